"""Columns of a log about jobs: one row for each event that changes what a job holds or waits for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_fold import LogFold, PastJob
from mast_opt.problems.job_placement.units import Ints

SUBMITTED, PLACED, STARTED, STOPPED, FINISHED, FAILED, CANCELLED = range(7)
"""Kinds of rows."""


@dataclass(frozen=True, eq=False)
class JobLog:
    """The rows of a log, in order, and what they are about."""

    jobs: tuple[str, ...]
    tier: Ints
    mgpu: Ints
    """Milli-GPUs of all tasks."""
    duration_ms: Ints
    """-1 where nobody knows."""
    at_ms: Ints
    kind: NDArray[np.int8]
    job: NDArray[np.int32]
    at_once: bool
    """Whether a job runs from the moment when it is placed, so that there are no rows STARTED."""
    stop_work_ms: Ints
    """Time whose work is kept, for every row STOPPED in order."""
    stop_lost_ms: Ints
    """Time whose work has to be done again, for every row STOPPED."""
    supply_at_ms: Ints
    """Times when the GPUs in service change."""
    supply_mgpu: Ints
    """GPUs in service from then on."""
    shared: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """[n, 2] jobs that were placed on the GPUs of others: the row PLACED, and the other job."""
    finish_work_ms: Ints | None = None
    """Time that the last attempt worked, for every row FINISHED in order, -1 for as long as at the reference speed.
    None if all are -1."""
    sizes: Mapping[int, Sequence[tuple[int, int, int]]] = field(default_factory=dict)
    """Row PLACED of an elastic job → (time, time from which it works, milli-GPUs from then on) of each size that it has
    until the attempt ends."""

    def __len__(self) -> int:
        return len(self.at_ms)

    @property
    def started(self) -> NDArray[np.bool_]:
        """Rows with which a job begins to run."""
        return np.equal(self.kind, PLACED if self.at_once else STARTED)

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Rows with which a job gives back what it holds, or stops waiting, for good."""
        return np.greater_equal(self.kind, FINISHED)


_KINDS = {ev.Placed: PLACED, ev.Started: STARTED, ev.Stopped: STOPPED, ev.Finished: FINISHED, ev.Failed: FAILED}


def job_log(log: Iterable[ev.Stored]) -> JobLog:
    """The rows of a log of events.

    A job that is cancelled while it holds servers is CANCELLED when it has stopped.

    Raises:
        ValueError: a job was adopted, so that rows do not tell its GPUs.
    """
    rows = _Rows()
    for stored in log:
        rows.take(stored)
    return rows.log()


class _Rows:
    """Rows so far."""

    def __init__(self) -> None:
        self.fold = LogFold()
        self.specs: dict[str, JobSpec] = {}
        self.rows: list[tuple[int, int, int]] = []
        self.stops: list[tuple[int, int]] = []
        self.finishes: list[int] = []
        self.supply: list[tuple[int, int]] = []
        self.in_service = 0
        self.shared: list[tuple[int, int]] = []
        self.sizes: dict[int, list[tuple[int, int, int]]] = {}
        self.sized: dict[str, list[tuple[int, int, int]]] = {}
        """Elastic job → the sizes of its present attempt."""

    def take(self, stored: ev.Stored) -> None:
        """Take in the next event of the log."""
        event, at = stored.event, stored.at_ms
        if isinstance(event, ev.Adopted):
            raise ValueError(f"event {stored.seq} is {type(event).__name__}, whose GPUs rows do not tell")
        if isinstance(event, (ev.ServerUp, ev.CapacitySet, ev.ServerDown)):
            before = self.fold.supply_mgpu(event.server)
            self.fold.take(at, event)
            self.in_service += self.fold.supply_mgpu(event.server) - before
            self.supply.append((at, self.in_service))
            return
        changed = self.fold.take(at, event)
        if isinstance(event, (ev.Placed, ev.Started, ev.Resized)):
            self.size(at, event, changed[0])
        if isinstance(event, ev.Submitted):
            self.specs[event.job] = event.spec
            self.rows.append((at, SUBMITTED, changed[0].number))
        elif type(event) in _KINDS:
            self.attempt(at, event, changed[0])
        if isinstance(event, (ev.Cancelled, ev.Stopped)) and changed and changed[0].ended:
            self.rows.append((at, CANCELLED, changed[0].number))

    def attempt(self, at: int, event: ev.Event, job: PastJob) -> None:
        """Take in an event of a job's attempt."""
        self.rows.append((at, _KINDS[type(event)], job.number))
        if isinstance(event, ev.Placed) and job.is_guest:
            self.shared.append((len(self.rows) - 1, self.fold.jobs[job.partner].number))
        elif isinstance(event, ev.Stopped):
            kept = event.work_ms if event.work_time_ms is None else event.work_time_ms
            self.stops.append((kept, event.lost_ms if event.lost_time_ms is None else event.lost_time_ms))
        elif isinstance(event, ev.Finished):
            self.finishes.append(-1 if event.work_time_ms is None else event.work_time_ms)
        if isinstance(event, ev.Placed) and event.at_once:
            self.rows.append((at, STARTED, job.number))

    def size(self, at: int, event: ev.Placed | ev.Started | ev.Resized, job: PastJob) -> None:
        """Take in when an elastic job has which size, and since when it works."""
        least, most = job.spec.sizes
        if least == most:
            return
        restart_ms = job.spec.restart_ms * (isinstance(event, ev.Resized) or event.attempt > 1)
        if isinstance(event, ev.Placed):
            self.sized[job.name] = self.sizes[len(self.rows)] = [(at, at + restart_ms, job.mgpu)]
        elif isinstance(event, ev.Started):
            placed_ms, _, mgpu = self.sized[job.name][0]
            self.sized[job.name][0] = placed_ms, at + restart_ms, mgpu
        else:
            self.sized[job.name].append((at, at + restart_ms, job.mgpu))

    def log(self) -> JobLog:
        """Log of jobs with all rows so far."""
        specs = self.specs.values()
        rows = np.array(self.rows, np.int64).reshape(-1, 3)
        stops, supply = (np.array(pairs, np.int64).reshape(-1, 2) for pairs in (self.stops, self.supply))
        durations = (-1 if spec.duration_ms is None else spec.duration_ms for spec in specs)
        return JobLog(
            jobs=tuple(self.specs),
            tier=np.array([spec.tier for spec in specs], np.int64),
            mgpu=np.array([spec.stated_mgpu for spec in specs], np.int64),
            duration_ms=np.fromiter(durations, np.int64),
            at_ms=rows[:, 0],
            kind=rows[:, 1].astype(np.int8),
            job=rows[:, 2].astype(np.int32),
            at_once=False,
            stop_work_ms=stops[:, 0],
            stop_lost_ms=stops[:, 1],
            supply_at_ms=supply[:, 0],
            supply_mgpu=supply[:, 1],
            shared=np.array(self.shared, np.int64).reshape(-1, 2),
            finish_work_ms=np.array(self.finishes, np.int64) if any(one >= 0 for one in self.finishes) else None,
            sizes=self.sizes,
        )
