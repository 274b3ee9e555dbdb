"""Analysis hooks of job placement, which is never infeasible: every job may be rejected.

A scenario is what can happen to a fleet and its queue, key by key. Labels keep their positions, so that a plan of the
instance can be checked against what has become of it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mast_opt.core.wording import counted, listed
from mast_opt.problems.job_placement.analysis.rejection_reasons import Obstacle, reasons
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import WHOLE, Bools
from mast_opt.problems.kind.analysis_hooks import Alternative, AnalysisHooks, Decisions, Loss

if TYPE_CHECKING:
    from mast_opt.problems.job_placement.engine.feasibility import Request
    from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState


from mast_opt.core.errors import UsageError
from mast_opt.core.wording import unused, unused_labels
from mast_opt.problems.kind.analysis_hooks import PLAUSIBLE_GROWTH, Change
from mast_opt.problems.kind.scenario_values import grown, positions, records, reweighted, tier_factors, whole


def lose_regions(problem: JobPlacement, value: object) -> JobPlacement:
    """Their servers are empty shells, and the datasets there are gone."""
    lost = positions("lose_regions", "region", problem.regions, value)
    stored = problem.datasets.stored.copy()
    stored[:, lost] = False
    return _lose(
        replace(problem, datasets=replace(problem.datasets, stored=stored)), np.isin(problem.server_region, lost)
    )


def lose_clusters(problem: JobPlacement, value: object) -> JobPlacement:
    """The instance whose servers in these clusters have nothing to give; jobs that ran there have ended."""
    lost = positions("lose_clusters", "cluster", problem.clusters.labels, value)
    return _lose(problem, np.isin(problem.server_cluster, lost))


def _lose(problem: JobPlacement, lost: Bools) -> JobPlacement:
    """The servers have nothing to give; running jobs that held something there run no more."""
    p = problem
    ended = np.zeros(len(p.running), np.bool_)
    ended[p.allocations.running[lost[p.allocations.server]]] = True
    stays = ~ended[p.allocations.running]
    place = np.cumsum(stays) - 1
    parts = p.running_parts.rows(stays[p.running_parts.allocation])
    return replace(
        p,
        servers=replace(p.servers, supply=np.where(lost[:, None], 0, p.servers.supply)),
        running=replace(
            p.running,
            preemptible=p.running.preemptible & ~ended,
            at_risk_mgpu_hours=np.where(ended, 0, p.running.at_risk_mgpu_hours),
        ),
        allocations=p.allocations.rows(stays),
        running_parts=replace(parts, allocation=place[parts.allocation]),
        movable=p.movable.rows(~ended[p.movable.running]),
    )


def adapted(scenario: JobPlacement, plan: Plan) -> Plan:
    """A plan for the instance before the scenario, without the stops and moves of jobs that have ended with their
    servers."""
    moves = np.isin(plan.moved, scenario.movable.running)
    columns = ("moved", "moved_server", "moved_tasks", "moved_gpu_index", "moved_indexed")
    return replace(
        plan,
        preempt=plan.preempt & scenario.running.preemptible,
        **{name: getattr(plan, name)[moves] for name in columns},
    )


def grow_demand(problem: JobPlacement, value: object) -> JobPlacement:
    """Tasks and value of all pending jobs times a factor, or another one for some tiers; tasks are rounded up."""
    p = problem
    each = tier_factors("grow_demand", p.tiers, value)[p.jobs.tier]
    tasks = np.maximum(grown("grow_demand", p.jobs.tasks, each), 1)
    return replace(
        p, jobs=replace(p.jobs, tasks=tasks, value_milli=np.rint(p.jobs.value_milli * each).astype(np.int64))
    )


def add_servers(problem: JobPlacement, value: object) -> JobPlacement:
    """New servers in a rack of their own, equal to one of that type that is there and not lost.

    Raises:
        UsageError: there is none.
    """
    p = problem
    for record in records("add_servers", {"cluster": p.clusters.labels, "gpu_type": p.gpu_types}, "servers", value):
        count = whole("add_servers.servers", record.amount, 1)
        cluster, kind = record.at["cluster"], record.at["gpu_type"]
        alike = np.flatnonzero((p.servers.gpu_type == kind) & p.servers.supply.any(axis=1))
        if not len(alike):
            name = p.gpu_types[kind]
            raise UsageError(f"add_servers: no server of type {name} is left that new ones could be equal to")
        near = alike[p.server_cluster[alike] == cluster]
        like = int((near if len(near) else alike)[0])
        rack = unused("new-rack", p.racks.labels)
        p = replace(
            p,
            racks=p.racks.appended(labels=(rack,), cluster=np.array([cluster])),
            servers=p.servers.rows(
                np.append(np.arange(len(p.servers)), np.full(count, like)),
                labels=(*p.servers.labels, *unused_labels("new-server", p.servers.labels, count)),
                rack=np.append(p.servers.rack, np.full(count, len(p.racks))),
            ),
        )
    return p


def replicate(problem: JobPlacement, value: object) -> JobPlacement:
    """The instance with further replicas of datasets."""
    stored = problem.datasets.stored.copy()
    for record in records("replicate", {"dataset": problem.datasets.labels, "region": problem.regions}, None, value):
        stored[record.at["dataset"], record.at["region"]] = True
    return replace(problem, datasets=replace(problem.datasets, stored=stored))


CHANGES = {
    "lose_regions": Change(lose_regions, 'lose_regions = ["east"]', "regions that are gone, with servers and data"),
    "lose_clusters": Change(lose_clusters, 'lose_clusters = ["east-1"]', "clusters that are gone"),
    "grow_demand": Change(
        grow_demand,
        "grow_demand = { all = 1.2, 0 = 1.5 }",
        "tasks times a factor, all or by tier",
        plausible=PLAUSIBLE_GROWTH,
    ),
    "add_servers": Change(
        add_servers, 'add_servers = [{ cluster = "east-1", gpu_type = "H100", servers = 8 }]', "new servers"
    ),
    "replicate": Change(replicate, 'replicate = [{ dataset = "logs", region = "east" }]', "further replicas of data"),
    "weights": Change(reweighted, "weights = { preemption = 1 }", "other weights of terms of the objective"),
}


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
    return scenario, Loss(datasets, None, names, noun="job", unavoidable={"rejected": share})


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
    """Alternatives to where one part of a job runs: another cluster, or rejection, and what rules each out."""
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


def _let_give_way(batch: "BatchState", job: "Request") -> None:
    """Let placed jobs of one part that are less important than this one be pushed out; the larger, the more
    expensive."""
    from mast_opt.problems.job_placement.engine import columns as col
    from mast_opt.problems.job_placement.engine.capacity_ledger import set_price

    is_part = np.isin(np.arange(batch.movers.first), batch.problem.parts.job)
    pending = [at for at, j in batch.pending.items() if j < batch.movers.first and not is_part[j]]
    places = np.array(pending, np.int64)
    places = places[batch.state.job[col.J_TIER, places] > job.tier]
    set_price(batch.state, places, len(batch.problem.tiers), 1 + batch.state.job[col.J_MGPU, places] // WHOLE)


def _same(plan: Plan, other: Plan, j: int) -> bool:
    """Whether two plans put a job on the same servers with as many tasks on each."""
    return _rows(plan, j) == _rows(other, j)


def _rows(plan: Plan, j: int) -> set[tuple[int, int]]:
    """Servers of a job in a plan, with the number of its tasks on each."""
    at = plan.job == j
    servers, where = np.unique(plan.server[at], return_inverse=True)
    tasks = np.bincount(where, weights=plan.tasks[at])
    return set(zip(servers.tolist(), tasks.tolist()))


def _heaviest(problem: JobPlacement) -> list[int]:
    """Pending jobs by their GPUs, the most first."""
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
    choices=(Decisions("job", lambda p: p.jobs.labels, _heaviest, now, alternatives, lambda _, one: str(one)),),
    changes=CHANGES,
    moved=moved,
    adapted=adapted,
    guards=lambda problem: ("rejected",),
    loss=settle_loss,
)
