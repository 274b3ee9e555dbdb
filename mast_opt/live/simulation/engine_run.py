"""A trace through the engine, with a simulated host: the log of what happens."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mast_opt.core.errors import Fault, InstanceError
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.policy import SIZES, Policy
from mast_opt.live.loop.state import State
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.live.simulation.slow_runs import SlowRun
from mast_opt.live.simulation.traces import surroundings
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.problems.job_placement.live_fleet.types import Server

CANNOT = "the simulation cannot run this trace"


def engine_log(
    trace: JobTrace,
    policy: Policy,
    placement: str,
    slow: SlowRun,
    *,
    tick_ms: int = 0,
    limit_grace_ms: int = 0,
    until_ms: int | None = None,
    watch: Callable[[float], None] | None = None,
    stop: Callable[[], bool] | None = None,
    look: Callable[[State, Turn], None] | None = None,
) -> tuple[list[ev.Stored], bool]:
    """The log of a trace, and whether it is complete.

    Args:
        placement: what decides between servers, as in ``Fleet``.
        slow: slow paths and what they need.
        tick_ms: the least time between two decisions.
        limit_grace_ms: time after its limit at which the host ends a job that still runs.
        until_ms: the last ms; None for the end of all jobs.
        watch: called with the share of the jobs that have ended; it may raise, which ends the run.
        stop: asked after every turn; where it says so, the log ends there.
        look: called after every turn with the state, which it leaves as it is.

    Raises:
        InstanceError: what the engine cannot do with this trace, all of it listed.
    """
    _check(trace)
    jobs = trace.submissions
    work = {
        name: Work(duration, checkpoint, restart, limit_ms=None if limit < 0 else limit + limit_grace_ms)
        for name, duration, checkpoint, restart, limit in zip(
            jobs.labels,
            jobs.duration_ms.tolist(),
            jobs.checkpoint_ms.tolist(),
            jobs.restart_ms.tolist(),
            jobs.limit_ms.tolist(),
        )
    }
    log: list[ev.Stored] = []
    ended = 0

    def keep(turn: Turn) -> None:
        nonlocal ended
        log.extend(turn.events)
        ended += sum(isinstance(stored.event, (ev.Failed, ev.Finished)) for stored in turn.events)
        if look is not None:
            look(engine.state, turn)
        if watch is not None:
            watch(ended / len(jobs))
        if stop is not None and stop():
            raise _Stopped

    host = SimulatedHost(
        work,
        trace.rate() if jobs.model or (jobs.elastic and not SIZES.isdisjoint(policy.reads)) else None,
        servers=trace.servers,
        network=slow.network,
        solver=slow.solver,
        move_ms=slow.move_ms,
    )
    plans = None if slow.solver is None else slow.solver.plan
    engine = Engine(opening_state(trace, placement), policy, slow.paths, plans=plans, tick_ms=tick_ms)
    try:
        simulate(engine, host, what_comes(trace, limit_grace_ms), until_ms=until_ms, on_turn=keep)
    except _Stopped:
        return log, False
    return log, True


class _Stopped(Exception):
    """Stop of a run, between two turns."""


def opening_state(trace: JobTrace, placement: str) -> State:
    """The state before the first event. Datasets of which the trace states the size come as events; others stay
    where they are, so that a replica outside its residency is none."""
    sized = trace.surroundings.datasets
    return State(
        trace.servers,
        tiers=sorted(set(trace.submissions.tier.tolist())),
        replicas={name: trace.readable_in(name) for name in trace.replicas if name not in sized},
        quotas=trace.quotas,
        placement=placement,
    )


def what_comes(trace: JobTrace, limit_grace_ms: int = 0) -> Iterator[Happening]:
    """(time in ms, event) of all that comes from outside: data first, then what happens, then jobs; the host ends them
    this long after their limits."""
    around, jobs = trace.surroundings, trace.submissions
    where = around.residency

    def submitted(j: int, name: str) -> ev.Submitted:
        spec = jobs.spec(j)
        return ev.Submitted(name, replace(spec, limit_grace_ms=limit_grace_ms) if limit_grace_ms else spec)

    storage = [(0, ev.StorageSet(region, mb)) for region, mb in around.storage_mb.items()]
    created = [
        (one.created_ms, ev.DatasetCreated(name, one.size_mb, trace.replicas[name], one.namespace, where.get(name, ())))
        for name, one in around.datasets.items()
    ]
    happens = happenings_as_events(around.happenings, trace.servers, around.switchboards, trace.quotas)
    come = ((int(jobs.submitted_ms[j]), submitted(j, name)) for j, name in enumerate(jobs.labels))
    created.sort(key=lambda pair: pair[0])
    yield from heapq.merge(storage, created, happens, come, key=lambda pair: pair[0])


def happenings_as_events(
    happenings: Iterable[surroundings.Happening],
    servers: Sequence[Server],
    switchboards: Mapping[str, str],
    quotas: Quotas,
) -> list[Happening]:
    """(time in ms, event) of everything that happens, in order.

    A server is out of service as long as itself, its switchboard or its region is.
    """
    reasons: dict[str, set[tuple[str, str]]] = {server.name: set() for server in servers}
    parts: dict[tuple[str, str | None], list[Server]] = {}
    for server in servers:
        places = {"server": server.name, "region": server.region, "switchboard": switchboards.get(server.name)}
        for place in places.items():
            parts.setdefault(place, []).append(server)
    events: list[Happening] = []
    for one in happenings:
        if one.of == "quota":
            was = quotas.limits(one.name).get(None, Quota(0))
            lending = None if one.mgpu is None or was.lending is None else min(was.lending, one.mgpu)
            events.append((one.at_ms, ev.QuotaSet(one.name, one.mgpu, "", was.borrowing, lending)))
            continue
        for server in parts.get((one.of, one.name), ()):
            was_down, known = bool(reasons[server.name]), reasons[server.name]
            (known.add if one.down else known.discard)((one.of, one.name))
            if known and not was_down:
                events.append((one.at_ms, ev.ServerDown(server.name, f"{one.of} {one.name}")))
            elif was_down and not known:
                events.append((one.at_ms, ev.ServerUp.of(server)))
    return events


def _check(trace: JobTrace) -> None:
    """Raises InstanceError for a trace with jobs whose duration is not known."""
    faults = [
        Fault("submissions", f"how long the job runs (job {trace.submissions.labels[job]})", column="duration_s")
        for job in (trace.submissions.duration_ms < 0).nonzero()[0][:20].tolist()
    ]
    if faults:
        raise InstanceError(faults, CANNOT)
