"""Figures of a run, from its log alone. Jobs that have not ended by the end of the window stay in, as long as they are.

Every time is counted in whole ms before it is divided, so that sums are exact.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.job_log import CANCELLED, FAILED, FINISHED, PLACED, STARTED, STOPPED, SUBMITTED, JobLog
from mast_opt.problems.job_placement.units import WHOLE, Ints

SECOND_MS = 1000
GPU_HOUR = WHOLE * 3_600_000
"""Milli-GPU-ms of a GPU-hour."""
STARVED_MS = 24 * 3_600_000
"""A job that waits longer than this in one go is starved."""


@dataclass(frozen=True)
class Spread:
    """Mean, percentiles and maximum of values; None for what no value gives."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True)
class Held:
    """Uses of held GPUs, in GPU-seconds; the parts add up to ``all``. GPUs that two jobs share count for both."""

    all: float
    useful: float
    """Work that was kept or finished."""
    lost: float
    """Work that had to be done again."""
    restarting: float
    """Time until an attempt worked, and after it had ended until that was noticed."""
    unfinished: float
    """Attempts that had not ended at the end of the window, and those of jobs of unknown duration that ended."""


@dataclass(frozen=True)
class Metrics:
    """Figures of the jobs that were submitted in a window."""

    jobs: int
    finished: int
    failed: int
    cancelled: int
    waiting: int
    """Those that wait at the end of the window."""
    impossible: int
    """Jobs of these that no region can ever hold. Their waits are in no other figure."""
    running: int
    """Those that hold GPUs at the end of the window."""
    queue_s: Spread
    """Seconds from submission (or stop) to start, all attempts of a job together. A job that still waits counts with
    what it has waited so far, and not at all if that is nothing."""
    still_waiting_s: Spread
    """Waits of the jobs that still wait at the end of the window."""
    sum_queue_s: float
    gpu_weighted_queue_s: float | None
    """Mean of ``queue_s`` in which each job counts by its GPUs."""
    queue_s_by_tier: dict[int, float]
    """Tier → mean."""
    jct_s: Spread
    """Seconds from submission to the end, of finished jobs."""
    slowdown: Spread
    """``jct_s`` over the job's duration alone, of finished jobs whose duration is known."""
    makespan_s: float | None
    """Time from the first submission to the last end, of all jobs of the log; None as long as one has not ended."""
    allocation: float | None
    """GPU-seconds held in the window over GPU-seconds in service, of all jobs; GPUs that two jobs share count once."""
    offered: float | None
    """GPU-seconds of work submitted in the window over those in service; None where a duration is unknown."""
    preemptions: int
    """Number of stops."""
    lost_gpu_h: float
    starved: int
    """Jobs that waited more than a day in one go."""
    held_gpu_s: Held
    """GPU-seconds that the jobs of the window hold, also beyond its end."""

    def to_dict(self) -> dict[str, Any]:
        """The figures of a log as nested mappings, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Spans:
    """Times between two rows of the same job."""

    row: Ints
    """The row with which each begins."""
    job: Ints
    begin: Ints
    end: Ints
    closed: Ints
    """The row with which each ends; -1 if it is open at the end of the window."""


def metrics(
    log: JobLog, since_ms: int | None = None, until_ms: int | None = None, *, impossible: Collection[str] = ()
) -> Metrics:
    """The figures (waits, utilisation, completion times) of a log.

    Args:
        since_ms: the window's begin; jobs submitted earlier do not count. The first row unless given.
        until_ms: its end; the last row unless given. Rows after it do not count.
        impossible: jobs that no region can ever hold.

    Raises:
        UsageError: the window ends before it begins, or the log has no rows.
    """
    if not len(log):
        raise UsageError("the log has no job; there is nothing to measure")
    since = int(log.at_ms[0]) if since_ms is None else since_ms
    until = int(log.at_ms[-1]) if until_ms is None else until_ms
    if until < since:
        raise UsageError(f"the window ends at {until} ms, before it begins at {since} ms")
    return _Measured(log, since, until, impossible).metrics()


class _Measured:
    """The rows of a log up to the end of a window."""

    def __init__(self, log: JobLog, since: int, until: int, impossible: Collection[str] = ()) -> None:
        self.log, self.since, self.until = log, since, until
        rows = int(np.searchsorted(log.at_ms, until, side="right"))
        self.at, self.kind, self.job = log.at_ms[:rows], log.kind[:rows], log.job[:rows].astype(np.int64)
        jobs, submitted = len(log.jobs), self.kind == SUBMITTED
        self.submitted = np.full(jobs, -1, np.int64)
        self.submitted[self.job[submitted]] = self.at[submitted]
        self.counted = np.zeros(jobs, np.bool_)
        self.counted[self.job[submitted]] = self.at[submitted] >= since
        self.impossible = np.array([job in impossible for job in log.jobs] if impossible else [False] * jobs, np.bool_)
        self.end = np.full(jobs, -1, np.int64)
        self.last = np.full(jobs, -1, np.int64)
        ended = self.kind >= FINISHED
        self.end[self.job[ended]] = self.at[ended]
        self.last[self.job[ended]] = self.kind[ended]
        starts = (PLACED,) if log.at_once else (STARTED,)
        self.waits = self._spans((SUBMITTED, STOPPED), (*starts, CANCELLED))
        self.holds = self._spans((PLACED,), (STOPPED, FINISHED, FAILED))

    def _spans(self, begins: tuple[int, ...], ends: tuple[int, ...]) -> _Spans:
        """Spans of the log between events of these kinds, job by job."""
        rows = np.flatnonzero(np.isin(self.kind, (*begins, *ends)))
        rows = rows[np.argsort(self.job[rows], kind="stable")]
        first = np.flatnonzero(np.isin(self.kind[rows], begins))
        following = np.append(rows, -1)[first + 1]
        closed = np.where((following >= 0) & (self.job[following] == self.job[rows[first]]), following, -1)
        end = np.where(closed >= 0, self.at[closed], self.until)
        return _Spans(rows[first], self.job[rows[first]], self.at[rows[first]], end, closed)

    def metrics(self) -> Metrics:
        """Metrics of all events so far."""
        counted, log = self.counted, self.log
        waited = self._per_job(self.waits)
        finished = counted & (self.last == FINISHED)
        completion = (self.end - self.submitted)[finished]
        known = log.duration_ms[finished] > 0
        open_waits, open_holds = (spans.job[spans.closed < 0] for spans in (self.waits, self.holds))
        still = counted & np.isin(np.arange(len(counted)), open_waits)
        queued = counted & ~self.impossible & ~(still & (waited == 0))
        gpus, tiers, queue = log.mgpu[queued], log.tier[queued], waited[queued]
        holding = np.isin(np.arange(len(counted)), open_holds)
        all_ended = bool((self.end >= 0).all())
        stops = (self.kind == STOPPED) & counted[self.job]
        held = self._held()
        return Metrics(
            jobs=int(counted.sum()),
            finished=int(finished.sum()),
            failed=int((counted & (self.last == FAILED)).sum()),
            cancelled=int((counted & (self.last == CANCELLED)).sum()),
            waiting=len(np.setdiff1d(open_waits[counted[open_waits]], open_holds)),
            impossible=int((still & self.impossible).sum()),
            running=int((holding & counted).sum()),
            queue_s=_spread(queue / SECOND_MS),
            still_waiting_s=_spread(waited[queued & still & ~holding] / SECOND_MS),
            sum_queue_s=int(queue.sum()) / SECOND_MS,
            gpu_weighted_queue_s=float((queue * gpus).sum() / gpus.sum() / SECOND_MS) if gpus.sum() else None,
            queue_s_by_tier={int(tier): float(queue[tiers == tier].mean() / SECOND_MS) for tier in np.unique(tiers)},
            jct_s=_spread(completion / SECOND_MS),
            slowdown=_spread(completion[known] / log.duration_ms[finished][known]),
            makespan_s=int(self.end.max() - self.at[0]) / SECOND_MS if all_ended else None,
            allocation=self._of_supply(self._in_window(self.holds) - self._in_window(self._shared())),
            offered=self._offered(),
            preemptions=int(stops.sum()),
            lost_gpu_h=held["lost"] / GPU_HOUR,
            starved=len(np.unique(self._long_waits())),
            held_gpu_s=Held(**{part: value / WHOLE / SECOND_MS for part, value in held.items()}),
        )

    def _per_job(self, spans: _Spans) -> Ints:
        """Sum of the lengths of spans, ms, for each job that the metrics count."""
        total = np.zeros(len(self.counted), np.int64)
        np.add.at(total, spans.job, spans.end - spans.begin)
        return total

    def _long_waits(self) -> Ints:
        """Jobs of the log's waits, each that is long enough to count as starvation, those that fit nowhere left out."""
        counted = self.counted & ~self.impossible
        long = (self.waits.end - self.waits.begin > STARVED_MS) & counted[self.waits.job]
        return self.waits.job[long]

    def _in_window(self, spans: _Spans) -> int:
        """Milli-GPU-ms of these spans in the window of a log's metrics."""
        length = np.maximum(np.minimum(spans.end, self.until) - np.maximum(spans.begin, self.since), 0)
        mgpu_ms = length * self.log.mgpu[spans.job]
        for at, sizes in self._sized(spans):
            upto = [_by_size(sizes, min(int(spans.end[at]), edge), 0, 0)[0] for edge in (self.since, self.until)]
            mgpu_ms[at] = upto[1] - upto[0]
        return int(mgpu_ms.sum())

    def _sized(self, spans: _Spans) -> Iterator[tuple[int, Sequence[tuple[int, int, int]]]]:
        """Positions of the spans of elastic jobs, and the sizes of these."""
        for at in np.flatnonzero(np.isin(spans.row, list(self.log.sizes))).tolist() if self.log.sizes else ():
            yield at, self.log.sizes[int(spans.row[at])]

    def _shared(self) -> _Spans:
        """Times in which a job had GPUs that another one held already."""
        holds, pairs = self.holds, self.log.shared
        row, other = pairs[pairs[:, 0] < len(self.at)].T
        by_row = np.argsort(holds.row)
        guest = by_row[np.searchsorted(holds.row, row, sorter=by_row)]
        order = np.lexsort((holds.row, holds.job))
        key = holds.job[order] * (len(self.at) + 1) + holds.row[order]
        host = order[np.searchsorted(key, other * (len(self.at) + 1) + row) - 1]
        end = np.minimum(holds.end[guest], holds.end[host])
        return _Spans(row, holds.job[guest], holds.begin[guest], end, np.full(len(row), -1))

    def _of_supply(self, mgpu_ms: int) -> float | None:
        """Share of the supply, the milli-GPU-ms in service by the log in the window."""
        times = np.append(self.log.supply_at_ms, self.until)
        begins = np.clip(times[:-1], self.since, self.until)
        lengths = np.maximum(np.clip(times[1:], self.since, self.until) - begins, 0)
        supply = int((lengths * self.log.supply_mgpu).sum())
        return mgpu_ms / supply if supply else None

    def _offered(self) -> float | None:
        """GPUs that the counted jobs ask for over the supply; None if a duration is not known."""
        duration = self.log.duration_ms[self.counted]
        if (duration < 0).any():
            return None
        return self._of_supply(int((duration * self.log.mgpu[self.counted]).sum()))

    def _held(self) -> dict[str, int]:
        """Milli-GPU-ms of the log by what they were for."""
        log, holds = self.log, self.holds
        kind = np.where(holds.closed >= 0, self.kind[holds.closed], -1)
        stop = np.cumsum(self.kind == STOPPED) - 1
        stopped, finished = kind == STOPPED, (kind == FINISHED) & (log.duration_ms[holds.job] >= 0)
        kept, lost = np.zeros(len(kind), np.int64), np.zeros(len(kind), np.int64)
        at = stop[holds.closed[stopped]]
        kept[stopped], lost[stopped] = log.stop_work_ms[at], log.stop_lost_ms[at]
        before = np.zeros(len(self.counted), np.int64)
        np.add.at(before, holds.job[stopped], kept[stopped])
        kept[finished] = (log.duration_ms - before)[holds.job[finished]]
        if log.finish_work_ms is not None:
            ended = self.kind == FINISHED
            worked = log.finish_work_ms[(np.cumsum(ended) - 1)[holds.closed[finished]]]
            kept[finished] = np.where(worked >= 0, worked, kept[finished])
        length = holds.end - holds.begin
        parts = {
            "all": length,
            "useful": kept,
            "lost": lost,
            "restarting": np.where(stopped | finished, length - kept - lost, 0),
            "unfinished": np.where(stopped | finished, 0, length),
        }
        amounts = {part: values * log.mgpu[holds.job] for part, values in parts.items()}
        for at, sizes in self._sized(holds):
            held, useful, gone = _by_size(sizes, int(holds.end[at]), int(kept[at]), int(lost[at]))
            ended = bool(stopped[at] or finished[at])
            rest = held - useful - gone
            for part, value in zip(parts, (held, useful, gone, rest * ended, rest * (not ended)), strict=True):
                amounts[part][at] = value
        return {part: int((values * self.counted[holds.job]).sum()) for part, values in amounts.items()}


def _by_size(sizes: Sequence[tuple[int, int, int]], end_ms: int, kept_ms: int, lost_ms: int) -> tuple[int, int, int]:
    """Milli-GPU-ms of an attempt of an elastic job, until a time: all; those of the first ``kept_ms`` for which it
    worked, and of the ``lost_ms`` after them."""
    held = useful = lost = 0
    for (since_ms, works_ms, mgpu), (until_ms, _, _) in zip(sizes, (*sizes[1:], (end_ms, 0, 0)), strict=True):
        until_ms = min(until_ms, end_ms)
        worked_ms = max(0, until_ms - works_ms)
        kept = min(kept_ms, worked_ms)
        gone = min(lost_ms, worked_ms - kept)
        held += mgpu * max(0, until_ms - since_ms)
        useful, lost = useful + mgpu * kept, lost + mgpu * gone
        kept_ms, lost_ms = kept_ms - kept, lost_ms - gone
    return held, useful, lost


def _spread(values: NDArray[np.float64]) -> Spread:
    """Mean, percentiles and largest of a figure over jobs; None where there are no jobs."""
    if not len(values):
        return Spread(None, None, None, None, None)
    p50, p95, p99 = (float(found) for found in np.percentile(values, (50, 95, 99)))
    return Spread(float(values.mean()), p50, p95, p99, float(values.max()))
