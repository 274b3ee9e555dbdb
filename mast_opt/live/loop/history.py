"""Time series of a log: jobs that wait, GPUs held, in service and by tenant, data, moves; and each wait of a job."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mast_opt.live.loop import events as ev
from mast_opt.problems.job_placement.units import WHOLE, Ints


@dataclass(frozen=True, eq=False)
class Steps:
    """An amount over time, as whole steps: it holds from each time until the next."""

    at_ms: Ints
    """Ascending, each once."""
    amount: Ints

    def at(self, times: Ints) -> Ints:
        """The amount of a time series of the log at each of these times; 0 before the first step."""
        place = np.searchsorted(self.at_ms, times, side="right")
        return np.concatenate([[0], self.amount])[place]

    def means(self, edges: Ints) -> NDArray[np.float64]:
        """[n − 1] time mean of a series of the log between each edge and the next; edges ascend."""
        bounds = np.union1d(self.at_ms, edges)
        area = np.concatenate([[0], np.cumsum((self.at(bounds[:-1]) * np.diff(bounds)).astype(np.float64))])
        found: NDArray[np.float64] = np.diff(area[np.searchsorted(bounds, edges)]) / np.maximum(np.diff(edges), 1)
        return found

    def most(self, edges: Ints) -> Ints:
        """[n − 1] the largest amount of a log's time series at any time from each edge up to the next."""
        bounds = np.union1d(self.at_ms, edges)
        return np.maximum.reduceat(self.at(bounds), np.searchsorted(bounds, edges[:-1]))

    def time_of_at_least(self, amount: int, since_ms: int, until_ms: int) -> int:
        """Milliseconds of a span of the log in which there was at least that amount."""
        first, last = np.searchsorted(self.at_ms, (since_ms, until_ms), side="right")
        times = np.concatenate([[since_ms], self.at_ms[first:last], [until_ms]])
        return int(np.diff(times)[self.at(times[:-1]) >= amount].sum())


@dataclass(frozen=True, slots=True)
class Wait:
    """A time from submission (or stop) to start."""

    job: str
    begin_ms: int
    end_ms: int
    region: str
    """Region where it started; where it may run, or its home, if it did not start; empty if neither is known."""
    open: bool
    """Whether it still waited at the end of the log."""
    reason: str = ""
    """Reason why a policy held it back, in words; empty where none did."""


@dataclass(frozen=True, eq=False)
class History:
    """Series of a log over time. Series have an entry only where the log says anything about them."""

    first_ms: int
    last_ms: int
    jobs: Mapping[str, tuple[ev.JobSpec, int]]
    """Job → what it asked for, and when it was submitted."""
    waits: tuple[Wait, ...]
    """Waits in order of their ends; those still open last."""
    stops: Mapping[str, tuple[str, ...]]
    """Reasons for which each job was asked to stop, by job."""
    waiting_jobs: Steps
    waiting_mgpu: Steps
    held_mgpu: Mapping[str, Steps]
    """Region → milli-GPUs of jobs that start, run or stop."""
    supply_mgpu: Mapping[str, Steps]
    stored_mb: Steps
    copying_mb: Steps
    """MB of replicas that are being made."""
    counts: Mapping[str, Steps]
    """``copies``, ``drops``, ``server moves``, ``stops`` → how many so far."""
    planned_ratio: Mapping[int, Steps]
    """Tier → the largest demand over supply that the plan of data in force has, in thousandths."""
    usage: Mapping[tuple[str, str], Steps]
    """Tenant, and ``asked`` (of jobs that have come and not ended), ``idle`` (held while nothing runs) or, with the GPU
    type behind it, ``held`` → milli-GPUs; ``lost`` → milli-GPU-milliseconds of work to be done again, so far.
    """


_Series: TypeAlias = list[tuple[int, int]]
"""(time, change)"""


def history(log: Iterable[ev.Stored]) -> History:
    """Compute the history (time series) of a log of events."""
    builder = HistoryBuilder()
    for stored in log:
        builder.take(stored.at_ms, stored.event)
    return builder.history()


def _steps(changes: _Series) -> Steps:
    """A time series of a log from its (time, change), one step for each time."""
    pairs = np.array(changes, np.int64).reshape(-1, 2)
    times, first = np.unique(pairs[:, 0], return_index=True)  # changes are in order of time
    totals = np.cumsum(pairs[:, 1])
    ends = np.append(first[1:], len(pairs)) - 1
    return Steps(times, totals[ends] if len(pairs) else totals)


@dataclass
class _Job:
    spec: ev.JobSpec
    submitted_ms: int
    mgpu: int
    waiting_since: int | None
    region: str
    reason: str = ""
    holds: tuple[str, int] | None = None
    """Region and milli-GPUs that the job holds."""
    partner: str = ""
    """The job with the same GPUs, which count for one of them."""
    cancelled: bool = False
    uses: dict[str, int] = field(default_factory=dict)
    """Entries of ``History.usage`` → the job's part of them."""


@dataclass
class HistoryBuilder:
    """Fold of a log from which its history is computed."""

    first_ms: int | None = None
    last_ms: int = 0
    jobs: dict[str, _Job] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    stops: dict[str, list[str]] = field(default_factory=dict)
    series: defaultdict[tuple[str, Any], _Series] = field(default_factory=lambda: defaultdict(list))
    """(field of ``History``, key in it; empty for none) → changes."""
    servers: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Server → region and milli-GPUs in service."""
    types: dict[str, str] = field(default_factory=dict)
    """Server → GPU type."""
    sizes: dict[str, int] = field(default_factory=dict)
    copying: dict[tuple[str, str], int] = field(default_factory=dict)
    last_ratio: dict[int, int] = field(default_factory=dict)

    def take(self, at: int, event: ev.Event) -> None:
        """Take in the next event of the log."""
        self.first_ms = at if self.first_ms is None else self.first_ms
        self.last_ms = at
        if isinstance(event, (ev.Submitted, ev.Bound, ev.Refused, ev.Cancelled)):
            self._queue(at, event)
        elif isinstance(event, (ev.Placed, ev.Started, ev.Stopped, ev.Finished, ev.Failed, ev.Adopted, ev.Resized)):
            self._attempt(at, event)
        elif isinstance(event, ev.Shared):
            self._share(at, *event.jobs)
        elif isinstance(event, ev.StopAsked):
            self.stops.setdefault(event.job, []).append(event.why)
            if (job := self.jobs.get(event.job)) is not None and job.holds is not None:
                self._use(at, job, "idle", job.holds[1])
        elif isinstance(event, (ev.ServerUp, ev.ServerDown, ev.CapacitySet)):
            self._server(at, event)
        else:
            self._plans(at, event)

    def _queue(self, at: int, event: ev.Submitted | ev.Bound | ev.Refused | ev.Cancelled) -> None:
        """Take in an event of a job that waits, for the history of a log."""
        if isinstance(event, ev.Submitted):
            spec = event.spec
            self.jobs[event.job] = _Job(spec, at, spec.tasks * spec.mgpu, None, spec.home_region)
            self._begin_wait(at, self.jobs[event.job])
            self._use(at, self.jobs[event.job], "asked", spec.tasks * spec.mgpu)
            return
        job = self.jobs.get(event.job)
        if job is None:
            return
        if isinstance(event, ev.Bound):
            job.region = event.region
        elif isinstance(event, ev.Refused):
            job.reason = event.reason
        else:
            job.cancelled = True
            if job.holds is None:
                self._end_wait(at, event.job, job)
                self._use(at, job, "asked", 0)

    def _attempt(
        self, at: int, event: ev.Placed | ev.Started | ev.Stopped | ev.Finished | ev.Failed | ev.Adopted | ev.Resized
    ) -> None:
        """Take in an event of a job's attempt."""
        job = self.jobs.get(event.job)
        if job is None:
            return
        if isinstance(event, (ev.Placed, ev.Adopted)):
            job.region = event.region
            mgpu = 0 if job.partner else job.mgpu
            self._hold(at, job, job.region, mgpu, self.types.get(event.shares[0].server, "") if event.shares else "")
            if isinstance(event, ev.Adopted) or event.at_once:
                self._end_wait(at, event.job, job)
            else:
                self._use(at, job, "idle", mgpu)
        elif isinstance(event, ev.Started):
            self._end_wait(at, event.job, job)
            self._use(at, job, "idle", 0)
        elif isinstance(event, ev.Resized):
            job.mgpu = event.tasks * job.spec.mgpu
            self._hold(at, job, job.region, job.mgpu)
            self._use(at, job, "asked", job.mgpu)
        else:
            self._hold(at, job, "", 0)
            if job.partner:
                self._part(at, job)
            if isinstance(event, ev.Stopped):
                self.series["counts", "stops"].append((at, 1))
                lost_ms = event.lost_ms if event.lost_time_ms is None else event.lost_time_ms
                self._use(at, job, "lost", job.uses.get("lost", 0) + job.mgpu * lost_ms)
                if not job.cancelled:
                    self._begin_wait(at, job)
                    return
            self._use(at, job, "asked", 0)

    def _share(self, at: int, holder: str, guest: str) -> None:
        """Take in that two jobs share GPUs from now on."""
        if holder in self.jobs and guest in self.jobs:
            if before := self.jobs[holder].partner:  # it stops
                self._part(at, self.jobs[before])
            self.jobs[holder].partner, self.jobs[guest].partner = guest, holder

    def _part(self, at: int, job: _Job) -> None:
        """Take in that two jobs share GPUs no longer."""
        other = self.jobs[job.partner]
        job.partner = other.partner = ""
        if other.holds is not None:
            self._hold(at, other, other.region, other.mgpu)

    def _begin_wait(self, at: int, job: _Job) -> None:
        """Begin a wait of a job in the history of a log, if it does not wait already."""
        if job.waiting_since is None:
            job.waiting_since, job.reason = at, ""
            self.series["waiting_jobs", ""].append((at, 1))
            self.series["waiting_mgpu", ""].append((at, job.mgpu))

    def _end_wait(self, at: int, name: str, job: _Job, *, still: bool = False) -> None:
        """End the wait of a job in the history of a log, or (``still``) cut it off where the log ends."""
        if job.waiting_since is not None:
            self.waits.append(Wait(name, job.waiting_since, at, job.region, still, job.reason))
            job.waiting_since = None
            if not still:
                self.series["waiting_jobs", ""].append((at, -1))
                self.series["waiting_mgpu", ""].append((at, -job.mgpu))

    def _use(self, at: int, job: _Job, what: str, amount: int) -> None:
        """Note a job's part of what its tenant uses from now on."""
        more = amount - job.uses.get(what, 0)
        if more:
            job.uses[what] = amount
            self.series["usage", (job.spec.tenant, what)].append((at, more))

    def _hold(self, at: int, job: _Job, region: str, mgpu: int, gpu_type: str | None = None) -> None:
        """Change the GPUs that a job holds, and where. ``gpu_type``: None for the one that it had."""
        held = next((what for what in job.uses if what.startswith("held")), "held")
        if gpu_type is not None:
            self._use(at, job, held, 0)
            job.uses.pop(held, None)
            held = f"held {gpu_type}"
        self._use(at, job, held, mgpu)
        if not region:
            self._use(at, job, "idle", 0)
        if job.holds is not None:
            self.series["held_mgpu", job.holds[0]].append((at, -job.holds[1]))
        job.holds = (region, mgpu) if region else None
        if region:
            self.series["held_mgpu", region].append((at, mgpu))

    def _server(self, at: int, event: ev.ServerUp | ev.ServerDown | ev.CapacitySet) -> None:
        """Take in an event of a server's capacity."""
        region, before = self.servers.get(event.server, ("", 0))
        region = event.region if isinstance(event, ev.ServerUp) else region
        now = 0 if isinstance(event, ev.ServerDown) else event.gpus * WHOLE
        if isinstance(event, ev.ServerUp):
            self.types[event.server] = event.gpu_type
        self.servers[event.server] = region, now
        if now != before:
            self.series["supply_mgpu", region].append((at, now - before))

    def _plans(self, at: int, event: ev.Event) -> None:
        """Take in an event of data, moves or plans."""
        if isinstance(event, ev.DatasetCreated):
            more_mb = event.size_mb - self.sizes.get(event.dataset, 0)
            self.sizes[event.dataset] = event.size_mb
            self.series["stored_mb", ""].append((at, more_mb * len(event.regions)))
        elif isinstance(event, ev.CopyAsked):
            self.sizes.setdefault(event.dataset, event.size_mb)
            self.copying[event.dataset, event.region] = event.size_mb
            self.series["copying_mb", ""].append((at, event.size_mb))
        elif isinstance(event, ev.CopyEnded):
            size = self.copying.pop((event.dataset, event.region), 0)
            self.series["copying_mb", ""].append((at, -size))
            if event.whole:
                self.series["stored_mb", ""].append((at, self.sizes.get(event.dataset, 0)))
                self.series["counts", "copies"].append((at, 1))
        elif isinstance(event, ev.ReplicaDropped):
            self.series["stored_mb", ""].append((at, -self.sizes.get(event.dataset, 0)))
            self.series["counts", "drops"].append((at, 1))
        elif isinstance(event, ev.ServerMoved):
            self.series["counts", "server moves"].append((at, 1))
        elif isinstance(event, ev.PlanAdopted):
            for tier, ratio in (event.ratios or {}).items():
                thousandths = round(ratio * WHOLE)
                self.series["planned_ratio", tier].append((at, thousandths - self.last_ratio.get(tier, 0)))
                self.last_ratio[tier] = thousandths

    def take_usage(self) -> dict[tuple[str, str], Steps]:
        """``History.usage`` since the last call. Forgets all other series, and jobs that have ended."""
        found = {key: _steps(changes) for (of, key), changes in sorted(self.series.items()) if of == "usage"}
        self.series.clear()
        for key, steps in found.items():
            if key[1] != "lost" and steps.amount[-1]:
                self.series["usage", key].append((self.last_ms, int(steps.amount[-1])))
        self.waits.clear()
        self.stops.clear()
        self.jobs = {name: job for name, job in self.jobs.items() if job.waiting_since is not None or job.holds}
        return found

    def history(self) -> History:
        """History of all events until now."""
        for name, job in self.jobs.items():
            self._end_wait(self.last_ms, name, job, still=True)
        one = ("waiting_jobs", "waiting_mgpu", "stored_mb", "copying_mb")
        found: dict[str, Any] = {name: _steps(self.series[name, ""]) for name in one}
        for name in ("held_mgpu", "supply_mgpu", "planned_ratio", "usage", "counts"):
            found[name] = {key: _steps(changes) for (of, key), changes in sorted(self.series.items()) if of == name}
        return History(
            first_ms=self.first_ms or 0,
            last_ms=self.last_ms,
            jobs={name: (job.spec, job.submitted_ms) for name, job in self.jobs.items()},
            waits=tuple(self.waits),
            stops={name: tuple(whys) for name, whys in self.stops.items()},
            **found,
        )
