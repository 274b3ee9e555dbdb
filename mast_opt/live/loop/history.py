"""Time series of a log: jobs that wait, GPUs held, in service and by tenant, data, moves; and each wait of a job."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_fold import LogFold, PastJob
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
    jobs: Mapping[str, tuple[JobSpec, int]]
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


@dataclass(slots=True)
class _Noted:
    """Parts of a job in the series, as they were noted last."""

    amounts: dict[tuple[str, Any], int] = field(default_factory=dict)
    """(field of ``History``, key in it) → the job's part."""
    since_ms: int | None = None
    """Time since which it waits; None while it does not."""
    reason: str = ""


@dataclass
class HistoryBuilder:
    """Reader of a log's fold from which its history is computed."""

    first_ms: int | None = None
    last_ms: int = 0
    fold: LogFold = field(default_factory=LogFold)
    jobs: dict[str, tuple[JobSpec, int]] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    stops: dict[str, list[str]] = field(default_factory=dict)
    series: defaultdict[tuple[str, Any], _Series] = field(default_factory=lambda: defaultdict(list))
    """(field of ``History``, key in it; empty for none) → changes."""
    noted: defaultdict[str, _Noted] = field(default_factory=lambda: defaultdict(_Noted))
    """Job that has not ended → what was noted of it."""
    sizes: dict[str, int] = field(default_factory=dict)
    copying: dict[tuple[str, str], int] = field(default_factory=dict)
    last_ratio: dict[int, int] = field(default_factory=dict)

    def take(self, at: int, event: ev.Event) -> None:
        """Take in the next event of the log."""
        self.first_ms = at if self.first_ms is None else self.first_ms
        self.last_ms = at
        if isinstance(event, (ev.ServerUp, ev.ServerDown, ev.CapacitySet)):
            before = self.fold.supply_mgpu(event.server)
            changed = self.fold.take(at, event)
            if more := self.fold.supply_mgpu(event.server) - before:
                self.series["supply_mgpu", self.fold.servers[event.server].up.region].append((at, more))
        else:
            changed = self.fold.take(at, event)
        if isinstance(event, ev.Submitted):
            self.jobs[event.job] = event.spec, at
        elif isinstance(event, ev.Refused) and event.job in self.noted:
            self.noted[event.job].reason = event.reason
        elif isinstance(event, ev.StopAsked):
            self.stops.setdefault(event.job, []).append(event.why)
        elif isinstance(event, ev.Stopped) and changed:
            job = changed[0]
            self.series["counts", "stops"].append((at, 1))
            lost_ms = event.lost_ms if event.lost_time_ms is None else event.lost_time_ms
            if lost := job.mgpu * lost_ms:
                self.series["usage", (job.spec.tenant, "lost")].append((at, lost))
        elif type(event) not in ev.JOB_EVENTS:
            self._plans(at, event)
        for job in changed:
            self._note(at, job)

    def _note(self, at: int, job: PastJob) -> None:
        """Note how a job's parts of the series have changed, and the end of a wait."""
        noted, amounts = self.noted[job.name], self._amounts(job)
        for key in {**noted.amounts, **amounts} if amounts != noted.amounts else ():
            if more := amounts.get(key, 0) - noted.amounts.get(key, 0):
                self.series[key].append((at, more))
        noted.amounts, waits = amounts, not (job.runs or job.ended)
        if waits and noted.since_ms is None:
            noted.since_ms, noted.reason = at, ""
        elif not waits and noted.since_ms is not None:
            self.waits.append(Wait(job.name, noted.since_ms, at, job.region, False, noted.reason))
            noted.since_ms = None
        if job.ended:
            del self.noted[job.name]

    def _amounts(self, job: PastJob) -> dict[tuple[str, Any], int]:
        """A job's parts of the series now."""
        if job.ended:
            return {}
        mgpu, tenant = job.mgpu, job.spec.tenant
        found: dict[tuple[str, Any], int] = {("usage", (tenant, "asked")): mgpu}
        if not job.runs:
            found["waiting_jobs", ""], found["waiting_mgpu", ""] = 1, mgpu
        if job.placed is not None and not job.is_guest:
            server = self.fold.servers.get(job.placed.shares[0].server) if job.placed.shares else None
            found["held_mgpu", job.placed.region] = mgpu
            found["usage", (tenant, f"held {server.up.gpu_type if server is not None else ''}")] = mgpu
            if not (job.runs and job.claims):
                found["usage", (tenant, "idle")] = mgpu
        return found

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
        """``History.usage`` since the last call. Forgets all other series, and what was asked for."""
        found = {key: _steps(changes) for (of, key), changes in sorted(self.series.items()) if of == "usage"}
        self.series.clear()
        for key, steps in found.items():
            if key[1] != "lost" and steps.amount[-1]:
                self.series["usage", key].append((self.last_ms, int(steps.amount[-1])))
        self.waits.clear()
        self.stops.clear()
        self.jobs.clear()
        return found

    def history(self) -> History:
        """History of all events until now."""
        waiting = [(job, self.noted[name]) for name, job in self.fold.jobs.items()]
        open_waits = (
            Wait(job.name, noted.since_ms, self.last_ms, job.region, True, noted.reason)
            for job, noted in waiting
            if noted.since_ms is not None
        )
        one = ("waiting_jobs", "waiting_mgpu", "stored_mb", "copying_mb")
        found: dict[str, Any] = {name: _steps(self.series[name, ""]) for name in one}
        for name in ("held_mgpu", "supply_mgpu", "planned_ratio", "usage", "counts"):
            found[name] = {key: _steps(changes) for (of, key), changes in sorted(self.series.items()) if of == name}
        return History(
            first_ms=self.first_ms or 0,
            last_ms=self.last_ms,
            jobs=dict(self.jobs),
            waits=(*self.waits, *open_waits),
            stops={name: tuple(whys) for name, whys in self.stops.items()},
            **found,
        )
