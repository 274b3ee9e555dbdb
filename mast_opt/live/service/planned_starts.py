"""Starts of the jobs that a plan of job placement leaves waiting, as the service would tell them: what ``mast``
promises, what is predicted, and what would make them sooner.

The plan has been carried out at time 0, and nobody else comes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.core.wording import seconds
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.service.start_times import fits_by_ms, sooner
from mast_opt.live.simulation.forecast import PastRuns, predicted
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.problems.job_placement.live_fleet.conversion import servers_of
from mast_opt.problems.job_placement.live_fleet.reservations import Works
from mast_opt.problems.job_placement.live_fleet.types import Job
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement


def planned_starts(
    problem: JobPlacement, plan: Plan, names: Collection[str], history: JobTrace | None = None
) -> dict[str, dict[str, Any]]:
    """Those of these jobs that wait → seconds from the plan within which each starts, None where they are not known:
    ``promised_s``, ``usually_within_s``, ``expected_s``, ``fits_within_s`` (whoever waits before it); and the changes
    of it that would make it fit ``sooner``. A job of several parts is named by any of them.

    Args:
        history: jobs that have run; of those that have a duration, the shares of their limits that they used say what
            is ``expected``.
    """
    p = problem
    waiting = p.order[~np.isin(p.order, plan.job)].tolist()
    asked = {p.jobs.labels[j]: _job_of(p, j).name for j in waiting if p.jobs.labels[j] in names}
    if not asked:
        return {}
    state, params = state_after(p, plan), MastParams(reclaim=p.reclaim.value)
    past = PastRuns() if history is None else _past(history)
    found = predicted(state, lambda: Mast(params), past)
    starts = {name: _start(state, name) for name in asked.values()}
    engine = Engine(state, Mast(params))
    engine.advance(0, [])
    for name in starts:
        record, one = state.jobs[name], found[name]
        promised_ms = 0 if not record.waits else None if record.promise is None else record.promise.by_ms
        starts[name] = {
            "promised_s": _seconds(promised_ms),
            "usually_within_s": _seconds(one.by_ms),
            "expected_s": None if history is None else _seconds(one.expected_ms),
            **starts[name],
        }
    return {label: starts[name] for label, name in asked.items()}


def _start(state: State, name: str) -> dict[str, Any]:
    """Time when a waiting job fits, and changes with which it would fit sooner."""
    record = state.jobs[name]
    changes = sooner(record, state)
    return {
        "fits_within_s": _seconds(fits_by_ms(record, state)),
        "sooner": [{"change": one["change"], "fits_within_s": _seconds(one["fits_by_ms"])} for one in changes],
    }


def _seconds(time_ms: int | None) -> float | None:
    """Seconds of a start, from the plan on."""
    return None if time_ms is None else time_ms / MILLI


def _past(history: JobTrace) -> PastRuns:
    """Runs of the jobs of a trace, each alone from its submission on."""
    past = PastRuns()
    for j, name in enumerate(history.submissions.labels):
        spec = history.submissions.spec(j)
        if spec.duration_ms is not None:
            past.take(0, ev.Submitted(name, spec))
            past.take(0, ev.Placed(name, 1, "", "", ()))
            past.take(min(spec.duration_ms, spec.limit_ms or spec.duration_ms), ev.Finished(name, 1))
    return past


def in_words(name: str, start: dict[str, Any]) -> str:
    """Sentences on the start of a waiting job."""
    said = {
        "promised": start["promised_s"],
        "usually": start["usually_within_s"],
        "expected": start["expected_s"],
        "if nobody were before it": start["fits_within_s"],
    }
    known = [f"{what} {_within(time_s)}" for what, time_s in said.items() if time_s is not None]
    words = f"{name} starts: {', '.join(known)}." if known else f"{name}: limits do not say when it starts."
    changes = [f"{one['change']} ({_within(one['fits_within_s'])})" for one in start["sooner"]]
    return f"{words} It would fit sooner with: {'; '.join(changes)}." if changes else words


def _within(time_s: float) -> str:
    """Words for the time of a start."""
    return f"within {seconds(time_s)}" if time_s else "now"


def state_after(problem: JobPlacement, plan: Plan) -> State:
    """State of the loop when a plan has been carried out: what runs has what is left of its limit, and the other jobs
    wait in the order of the queue."""
    p = problem
    where = (p.datasets.stored | p.remote_reads) & (p.datasets.residency | ~p.datasets.residency.any(1, keepdims=True))
    where &= p.datasets.stored.any(1, keepdims=True)
    replicas = {
        name: {p.regions[r] for r in np.flatnonzero(held).tolist()} for name, held in zip(p.datasets.labels, where)
    }
    state = State(servers_of(p), tiers=p.tiers, replicas=replicas, quotas=p.rights)
    for event in (*state.opening(), *_running(p, plan), *_waiting(p, plan)):
        state.apply(state.seq + 1, 0, event)
    return state


def _running(problem: JobPlacement, plan: Plan) -> list[ev.Event]:
    """Events of the work that runs after a plan. Work with unlike tasks is a job for each sort of them."""
    found = list[ev.Event]()
    for _, job, shares in Works(problem, plan).jobs():
        s = problem.servers.labels.index(shares[0].server)
        cluster = problem.clusters.labels[problem.server_cluster[s]]
        region = problem.regions[problem.server_region[s]]
        found += [ev.Submitted(job.name, _spec_of(job)), ev.Adopted(job.name, 1, region, cluster, shares)]
    return found


def _waiting(problem: JobPlacement, plan: Plan) -> list[ev.Event]:
    """Events of the jobs that wait after a plan, the first of the queue first."""
    rows = problem.order[~np.isin(problem.order, plan.job)].tolist()
    jobs = [_job_of(problem, j) for j in rows if problem.counts_once[j]]
    return [ev.Submitted(job.name, _spec_of(job)) for job in jobs]


def _job_of(problem: JobPlacement, j: int) -> Job:
    """The job of a row of ``jobs``, which may be a further part of it."""
    return Job.of(problem, int(problem.first_part[j]))


def _spec_of(job: Job) -> JobSpec:
    """Specification of a job of the fleet, for the loop."""
    shared = [one.name for one in fields(JobSpec) if one.name in Job.__dataclass_fields__]
    most_mgpu = max(job.gpu_types.values()) if job.gpu_types else job.mgpu
    return JobSpec(**{name: getattr(job, name) for name in shared} | {"mgpu": most_mgpu})
