"""Starts of the jobs that a plan of job placement leaves waiting, as the service would tell them: what ``mast``
promises, what is predicted, and what would make them sooner.

The plan has been carried out at time 0, and nobody else comes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
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
from mast_opt.problems.job_placement.live_fleet.queue_forward import starts_of_queue
from mast_opt.problems.job_placement.live_fleet.reservations import Works, reservations
from mast_opt.problems.job_placement.live_fleet.types import Job
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import LEVELS


def planned_starts(
    problem: JobPlacement, plan: Plan, names: Collection[str], history: JobTrace | None = None
) -> dict[str, dict[str, Any]]:
    """Those of these jobs that wait → seconds from the plan within which each starts, None where they are not known:
    ``promised_s``, ``usually_within_s``, ``expected_s``, ``fits_within_s`` (whoever waits before it); and the changes
    of it that would make it fit ``sooner``. The loop gets no jobs of several parts: of one, named by any of its parts,
    this says what the plan reserves for it, and when it starts where the first of the queue alone has a promise; and of
    others, when they start without it.

    Args:
        history: jobs that have run; of those that have a duration, the shares of their limits that they used say what
            is ``expected``.
    """
    state, params = state_after(problem, plan), MastParams(reclaim=problem.reclaim.value)
    past = None if history is None else _past(history)
    whole = _of_parts(problem, plan, names, past)
    if not any(state.jobs[name].waits for name in names if name in state.jobs):
        return whole
    found = predicted(state, lambda: Mast(params), past or PastRuns())
    found = {name: found[name] for name in names if name in found}
    starts = {name: _start(state, name) for name in found}
    engine = Engine(state, Mast(params))
    engine.advance(0, [])
    for name, one in found.items():
        record = state.jobs[name]
        promised_ms = 0 if not record.waits else None if record.promise is None else record.promise.by_ms
        starts[name] = {
            "promised_s": _seconds(promised_ms),
            "usually_within_s": _seconds(one.by_ms),
            "expected_s": None if history is None else _seconds(one.expected_ms),
            **starts[name],
        }
    return starts | whole


def _start(state: State, name: str) -> dict[str, Any]:
    """Time when a waiting job fits, and changes with which it would fit sooner."""
    record = state.jobs[name]
    changes = sooner(record, state)
    return {
        "fits_within_s": _seconds(fits_by_ms(record, state)),
        "sooner": [{"change": one["change"], "fits_within_s": _seconds(one["fits_by_ms"])} for one in changes],
    }


def _of_parts(
    problem: JobPlacement, plan: Plan, names: Collection[str], past: PastRuns | None
) -> dict[str, dict[str, Any]]:
    """Starts of jobs of several parts, by the names of parts."""
    p = problem
    waiting = p.order[~np.isin(p.order, plan.job)]
    asked = [j for j in p.parts.job.tolist() if p.jobs.labels[j] in names and j in waiting]
    works, reserved = (Works(p, plan), reservations(p, plan, waiting)) if asked else (None, {})
    found = dict[str, dict[str, Any]]()
    if works is None:
        return found
    queue = [int(j) for j in waiting.tolist() if p.counts_once[j]]
    last = max(queue.index(int(p.first_part[j])) for j in asked)
    by, expected = (_played(p, works, queue[: last + 1], asked, one) for one in (None, past))
    for j in asked:
        first = int(p.first_part[j])
        name, fits = works.asked(first).name, works.parts_fit_by(first, np.flatnonzero(p.open_region[first]).tolist())
        found[p.jobs.labels[j]] = {
            "promised_s": _seconds(reserved[first].by_ms) if first in reserved else None,
            "usually_within_s": _seconds(by.get(name)),
            "expected_s": _seconds(expected.get(name)) if past is not None else None,
            "fits_within_s": _seconds(fits.by_ms) if fits else None,
            "sooner": _sooner_in_parts(p, works, first, fits.by_ms if fits else None),
        }
    return found


def _played(
    problem: JobPlacement, works: Works, queue: Sequence[int], asked: Sequence[int], past: PastRuns | None
) -> dict[str, int]:
    """Job → time when it starts, as ``starts_of_queue`` has it: jobs, by the row of their first part, run up to their
    limits, or as long as those before them."""
    p, names, open_to, lengths = problem, list[Job](), dict[str, frozenset[str]](), dict[str, int]()
    running = {job.name: (job.tenant, job.limit_ms) for _, job, _ in works.jobs()}
    for j in queue:
        job = works.asked(j)
        names.append(job)
        open_to[job.name] = frozenset(p.regions[r] for r in np.flatnonzero(p.open_region[j]).tolist())
        running[job.name] = p.tenants[p.jobs.tenant[j]], job.limit_ms
    for name, (tenant, limit_ms) in running.items():
        spec = JobSpec(tenant=tenant, limit_ms=limit_ms)
        length_ms = limit_ms if past is None else past.length_ms(spec, 0)
        if length_ms is not None:
            lengths[name] = length_ms
    return starts_of_queue(
        works.fleet, names, open_to, lengths, [works.asked(int(p.first_part[j])).name for j in asked]
    )[0]


def _sooner_in_parts(problem: JobPlacement, works: Works, j: int, now_ms: int | None) -> list[dict[str, Any]]:
    """Changes of a job of several parts with which it would fit sooner; ``j`` is the row of its first part."""
    p, job = problem, works.asked(j)
    regions = [p.regions[r] for r in np.flatnonzero(p.open_region[j]).tolist()]
    changes = list[tuple[str, Job, Sequence[str]]]()
    asked = [dict(part.gpu_types or {}) for part in job.parts]
    if any(types and len(types) < len(p.gpu_types) for types in asked):
        wider = [types and dict.fromkeys(p.gpu_types, max(types.values())) | types for types in asked]
        parts = tuple(replace(part, gpu_types=types or None) for part, types in zip(job.parts, wider))
        changes.append(("GPUs of any type", replace(job, parts=parts), regions))
    if len(regions) < len(p.regions):
        changes.append(("its data in every region", job, p.regions))
    if any(part.tasks > 1 for part in job.parts):
        parts = tuple(replace(part, tasks=max(1, part.tasks // 2)) for part in job.parts)
        changes.append(("half of the tasks of each part", replace(job, parts=parts), regions))
    if p.tiers[p.jobs.tier[j]] < job.tier:
        more = replace(job, tier=p.tiers[p.jobs.tier[j]])
        changes.append((f"a larger quota of {p.tenants[p.jobs.tenant[j]]}", more, regions))
    times = [(words, works.fleet.fits_by(changed, 0, regions=there)) for words, changed, there in changes]
    return [
        {"change": words, "fits_within_s": _seconds(one.by_ms)}
        for words, one in times
        if one is not None and (now_ms is None or one.by_ms < now_ms)
    ]


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
        spec = JobSpec(
            tier=job.tier,
            tasks=job.tasks,
            mgpu=job.mgpu,
            cpu_mcores=job.cpu_mcores,
            memory_mib=job.memory_mib,
            tenant=job.tenant,
            preemptible=job.preemptible,
            limit_ms=job.limit_ms,
        )
        s = problem.servers.labels.index(shares[0].server)
        cluster = problem.clusters.labels[problem.server_cluster[s]]
        region = problem.regions[problem.server_region[s]]
        found += [ev.Submitted(job.name, spec), ev.Adopted(job.name, 1, region, cluster, shares)]
    return found


def _waiting(problem: JobPlacement, plan: Plan) -> list[ev.Event]:
    """Events of the jobs that wait after a plan, the first of the queue first."""
    p, found = problem, list[ev.Event]()
    for j in p.order[~np.isin(p.order, plan.job) & ~np.isin(p.order, p.parts.job)].tolist():
        accepted = np.flatnonzero(p.options.job == j).tolist()
        needs = {p.gpu_types[p.options.gpu_type[at]]: int(p.options.mgpu[at]) for at in accepted}
        spec = JobSpec(
            tier=p.tiers[p.jobs.tier[j]],
            tasks=int(p.jobs.tasks[j]),
            mgpu=next(iter(needs.values())),
            cpu_mcores=int(p.jobs.cpu_mcores[j]),
            memory_mib=int(p.jobs.memory_mib[j]),
            gpu_types=needs if len(needs) < len(p.gpu_types) or len(set(needs.values())) > 1 else None,
            datasets=tuple(p.datasets.labels[i] for i in p.reads.dataset[p.reads.job == j].tolist()),
            within=LEVELS[p.jobs.within[j]],
            prefer=LEVELS[p.jobs.prefer[j]],
            tenant=p.tenants[p.jobs.tenant[j]],
            preemptible=bool(p.jobs.tier[j] > 0),
            limit_ms=int(p.jobs.limit_ms[j]) or None,
        )
        found.append(ev.Submitted(p.jobs.labels[j], spec))
    return found
