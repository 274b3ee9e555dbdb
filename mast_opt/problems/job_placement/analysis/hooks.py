"""Analysis hooks of job placement, which is never infeasible: every job may be rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mast_opt.core.verdict import Violation
from mast_opt.core.wording import counted, listed
from mast_opt.problems.job_placement.analysis.rejection_reasons import Obstacle, reasons
from mast_opt.problems.job_placement.analysis.scenarios import CHANGES, adapted
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import WHOLE, Bools
from mast_opt.problems.kind.analysis_hooks import Alternative, AnalysisHooks, Decisions, Loss

if TYPE_CHECKING:
    from mast_opt.problems.job_placement.engine.feasibility import Request
    from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState


def settle_loss(
    problem: JobPlacement, scenario: JobPlacement, changes: Mapping[str, Any], plan: Plan | None
) -> tuple[JobPlacement, Loss]:
    """The scenario, unchanged, and the data and jobs that its lost regions take with them.

    Plans of jobs move no data, so the replicas are today's whatever the plan. Datasets have no sizes here.
    """
    if "lose_regions" not in changes:
        return scenario, Loss(tb=None, noun="job")
    lost: Bools = (problem.datasets.stored.sum(axis=1) > 0) & (scenario.datasets.stored.sum(axis=1) == 0)
    readers = np.unique(problem.reads.job[lost[problem.reads.dataset]])
    datasets = tuple(problem.datasets.labels[i] for i in np.flatnonzero(lost).tolist())
    worth = scenario.tier_weight[scenario.queue_tier] * scenario.jobs.value_milli
    never = worth.any() and not scenario.remote_reads
    share = float(worth[readers].sum() / worth.sum()) if never else 0.0
    names = tuple(problem.jobs.labels[j] for j in readers.tolist())
    return scenario, Loss(datasets, None, names, "job", {"rejected": share})


def now(problem: JobPlacement, plan: Plan, j: int) -> str:
    """``in cluster c1 on 2 servers``, or that it is not admitted."""
    servers = np.unique(plan.server[plan.job == j])
    if not len(servers):
        return "nowhere (it is not admitted)"
    cluster = problem.clusters.labels[problem.server_cluster[servers[0]]]
    return f"in cluster {cluster} on {counted(len(servers), 'server')}"


def alternatives(problem: JobPlacement, plan: Plan, j: int) -> tuple[Alternative, ...]:
    """Alternatives for a job: in each cluster, what the fast path would do with it there, or what rules the cluster
    out; and rejection.

    Of a part of a job of several parts, what rules clusters out, and rejected; the fast path places no such jobs.
    """
    if np.isin(j, problem.parts.job):
        return _of_a_part(problem, plan, j)
    from mast_opt.problems.job_placement.engine.best_bid import best_bid
    from mast_opt.problems.job_placement.engine.server_selection import TIGHT
    from mast_opt.problems.job_placement.exhaustive.batch_state import batch_state_of  # compiles kernels

    batch = batch_state_of(problem)
    batch.replay(plan)
    admitted = j in batch.placed
    here = batch.cluster_of(batch.placed[j]) if admitted else None
    if admitted:
        batch.remove(j)
    found = []
    for reason in reasons(problem, j):
        c, obstacle = reason.cluster, reason.obstacle
        cluster = problem.clusters.labels[c]
        words = f"in cluster {cluster}"
        trial = batch.copy()
        job = trial.request(j)
        offer = best_bid(trial.state, job, trial.layout.group_cluster == c, TIGHT)
        if offer is None and obstacle is Obstacle.IN_USE:
            trial = batch.copy()
            _let_give_way(trial, job)
            offer = best_bid(trial.state, job, trial.layout.group_cluster == c, TIGHT)
        if offer is None:
            why = (
                "no room was found there, even by stopping less important running jobs that may be stopped and leaving "
                "less important jobs of the plan waiting"
                if obstacle is Obstacle.IN_USE
                else obstacle.value
            )
            if c != here:
                found.append(Alternative(words, cluster, None, why))
            continue
        ejected = trial.admit(j, job, offer.placed, offer.victims)
        changed = trial.plan()
        if c != here or not _same(plan, changed, j):
            stopped = int(changed.preempt.sum()) - int(plan.preempt.sum())
            expense = f", stopping {counted(stopped, 'more job')}" if stopped > 0 else ""
            if ejected:
                expense += f", leaving {listed([problem.jobs.labels[k] for k in sorted(ejected)])} waiting"
            elsewhere = ", on other servers" if c == here else ""
            found.append(Alternative(f"{words}{elsewhere}{expense}", cluster, changed))
    if admitted:
        found.append(Alternative("rejected", "", batch.plan()))
    return tuple(found)


def _of_a_part(problem: JobPlacement, plan: Plan, j: int) -> tuple[Alternative, ...]:
    p = problem
    found = []
    for reason in reasons(p, j):
        cluster, words = p.clusters.labels[reason.cluster], reason.words
        if reason.obstacle is Obstacle.IN_USE:
            words = "what it costs there is not worked out for a job of several parts"
        if reason.cluster not in p.server_cluster[plan.server[plan.job == j]]:
            found.append(Alternative(f"in cluster {cluster}", cluster, None, words))
    if j in plan.job:
        stays = p.first_part[plan.job] != p.first_part[j]
        columns = ("job", "server", "tasks", "gpu_index", "indexed")
        rejected = replace(plan, **{name: getattr(plan, name)[stays] for name in columns})
        found.append(Alternative("rejected", "", rejected))
    return tuple(found)


def _let_give_way(batch: BatchState, job: Request) -> None:
    """Let placed jobs of one part that are less important than this one be pushed out; the larger, the more
    expensive."""
    from mast_opt.problems.job_placement.engine.capacity_ledger import set_price
    from mast_opt.problems.job_placement.engine.state import J_MGPU, J_TIER

    is_part = np.isin(np.arange(batch.movers.first), batch.problem.parts.job)
    pending = [at for at, j in batch.pending.items() if j < batch.movers.first and not is_part[j]]
    places = np.array(pending, np.int64)
    places = places[batch.state.job[J_TIER, places] > job.tier]
    set_price(batch.state, places, len(batch.problem.tiers), 1 + batch.state.job[J_MGPU, places] // WHOLE)


def _same(plan: Plan, other: Plan, j: int) -> bool:
    return _rows(plan, j) == _rows(other, j)


def _rows(plan: Plan, j: int) -> set[tuple[int, int]]:
    at = plan.job == j
    servers, where = np.unique(plan.server[at], return_inverse=True)
    tasks = np.bincount(where, weights=plan.tasks[at])
    return set(zip(servers.tolist(), tasks.tolist()))


def _phrase(problem: JobPlacement, violation: Violation) -> str:
    return str(violation)


def _heaviest(problem: JobPlacement) -> list[int]:
    gpus = problem.need_mgpu.max(axis=1, initial=0) * problem.jobs.tasks
    order: list[int] = np.argsort(-gpus, kind="stable").tolist()
    return order


def moved(problem: JobPlacement, scenario: JobPlacement, before: Plan, after: Plan) -> Mapping[str, float]:
    """Jobs that run elsewhere, or run in one plan only, and running jobs that only the second plan stops, or moves."""
    changed = sum(_rows(before, j) != _rows(after, j) for j in range(len(problem.jobs)))
    stopped = int((after.preempt & ~before.preempt).sum())
    found = {"moved_jobs": float(changed), "more_preempted": float(stopped)}
    if len(problem.movable):
        found["more_running_moved"] = float(len(np.setdiff1d(after.moved, before.moved)))
    return found


QUESTIONS = AnalysisHooks(
    choices=(Decisions("job", lambda problem: problem.jobs.labels, _heaviest, now, alternatives, _phrase),),
    changes=CHANGES,
    moved=moved,
    adapted=adapted,
    guards=lambda problem: ("rejected",),
    loss=settle_loss,
)
