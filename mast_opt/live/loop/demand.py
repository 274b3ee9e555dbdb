"""Demand of the jobs that wait or run: its mean over the last days, as a forecast of the next one."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

from mast_opt.live.loop.job_spec import JobSpec

DAY_MS = 86_400_000
DAYS = 7
"""Span of the exponentially weighted mean: a new day counts 2 / (DAYS + 1)."""
KEPT_DAYS = 28
"""Days for which a class without jobs is kept if it may recur or belongs to a namespace. Others are kept for ``DAYS``,
since nothing is planned for data that nobody has read since then. After 28 days without jobs 0.03% of the mean is
left."""


class DemandClass(NamedTuple):
    """Jobs whose demand is forecast together."""

    namespace: str
    workload: str
    """Workload that they are runs of; empty for work that does not recur."""
    tier: int
    gpu_types: tuple[str, ...]
    """Types that they accept, sorted; empty for any."""
    datasets: tuple[str, ...]
    """Datasets that they read, sorted, where these are the same for all: work that recurs, and jobs without a
    namespace."""

    @classmethod
    def of(cls, spec: JobSpec) -> "DemandClass":
        """Class of demand to which a job belongs."""
        datasets = tuple(sorted(spec.datasets)) if spec.workload or not spec.namespace else ()
        return cls(spec.namespace, spec.workload, spec.tier, spec.accepted or (), datasets)


@dataclass(slots=True)
class _Demand:
    mgpu: int = 0
    mgpu_ms: int = 0
    """Integral of ``mgpu`` over the day of ``at_ms``, up to then."""
    at_ms: int = 0
    mean_mgpu: int | None = None
    """Weighted mean of finished days; None before the first day ends."""
    jobs: int = 0
    """Number of jobs that have been submitted."""
    present: int = 0
    """Number of them that have not ended."""
    largest_mgpu: int = 0
    """Request of the largest of them, in milli-GPUs."""
    arrived_mgpu: int = 0
    """Request of the jobs that came on the day of ``at_ms``, in milli-GPUs."""
    mean_arrived_mgpu: int | None = None
    """Weighted mean of that over the days that are over; None before the first day ends."""
    read: dict[str, int] = field(default_factory=dict)
    """Dataset → day on which a job that reads it was last submitted."""

    def at(self, now_ms: int) -> tuple[int | None, int]:
        """Mean demand of a class on finished days (milli-GPUs; None before one), and today's integral
        (milli-GPU·ms)."""
        mean, total, at = self.mean_mgpu, self.mgpu_ms, self.at_ms
        while at // DAY_MS < now_ms // DAY_MS:
            midnight = (at // DAY_MS + 1) * DAY_MS
            day = (total + self.mgpu * (midnight - at)) // DAY_MS
            mean = day if mean is None else mean + (day - mean) * 2 // (DAYS + 1)
            total, at = 0, midnight
        return mean, total + self.mgpu * (now_ms - at)

    def arrived(self, now_ms: int) -> tuple[int | None, int]:
        """Mean of what came each day of those that are over, and what came on the day of ``now_ms``, milli-GPUs."""
        mean, total = self.mean_arrived_mgpu, self.arrived_mgpu
        for _ in range(now_ms // DAY_MS - self.at_ms // DAY_MS):
            mean = total if mean is None else mean + (total - mean) * 2 // (DAYS + 1)
            total = 0
        return mean, total

    def change(self, mgpu: int, now_ms: int) -> None:
        """Add to the milli-GPUs that are asked for from now on; a negative amount takes away."""
        self.mean_arrived_mgpu, self.arrived_mgpu = self.arrived(now_ms)
        self.arrived_mgpu += max(0, mgpu)
        self.mean_mgpu, self.mgpu_ms = self.at(now_ms)
        self.at_ms = now_ms
        self.mgpu += mgpu

    def forget_before(self, day: int) -> None:
        """Forget datasets of a class of demand that were last read before this day."""
        if any(last < day for last in self.read.values()):
            self.read = {name: last for name, last in self.read.items() if last >= day}


class Demand:
    """Milli-GPUs that jobs ask for, from their submission to their end. Only ``State.apply`` changes it. A job counts
    on the type on which it takes the fewest GPUs, also while it waits: work that could not run where its data is
    belongs to the demand.
    """

    def __init__(self) -> None:
        self._classes: dict[DemandClass, _Demand] = {}
        self._ended: dict[int, tuple[int, int]] = {}
        """Tier → milli-GPUs that jobs asked for that have ended, and GPU time that they took, milli-GPU-ms; every day
        weighs as much less as in the mean."""
        self._day = 0
        """Day on which what is old was last forgotten."""

    def submitted(self, of: DemandClass, mgpu: int, reads: Iterable[str], now_ms: int) -> None:
        """Add a job of this class that asks for ``mgpu`` milli-GPUs and reads these datasets."""
        self._forget(now_ms // DAY_MS)
        known = self._classes.get(of)
        if known is None:
            known = self._classes[of] = _Demand(at_ms=now_ms // DAY_MS * DAY_MS)
        known.change(mgpu, now_ms)
        known.jobs += 1
        known.present += 1
        known.largest_mgpu = max(known.largest_mgpu, mgpu)
        for dataset in reads:
            known.read[dataset] = now_ms // DAY_MS

    def ended(self, of: DemandClass, mgpu: int, now_ms: int, ran_mgpu_ms: int = 0) -> None:
        """Remove a job of ``mgpu`` milli-GPUs, which ran for ``ran_mgpu_ms``, from the demand of its class. Raises
        KeyError for an unknown class.
        """
        self._forget(now_ms // DAY_MS)
        asked, ran = self._ended.get(of.tier, (0, 0))
        self._ended[of.tier] = asked + mgpu, ran + ran_mgpu_ms
        known = self._classes[of]
        known.change(-mgpu, now_ms)
        known.present -= 1

    def _forget(self, day: int) -> None:
        """Forget, once a day, classes whose last job ended long ago, and what nobody has read for ``DAYS`` days."""
        if day == self._day:
            return
        for _ in range(min(day - self._day, KEPT_DAYS)):
            self._ended = {
                tier: (asked * (DAYS - 1) // (DAYS + 1), ran * (DAYS - 1) // (DAYS + 1))
                for tier, (asked, ran) in self._ended.items()
            }
        self._day = day
        for of, known in list(self._classes.items()):
            kept = KEPT_DAYS if of.workload or of.namespace else DAYS
            if not known.present and known.at_ms // DAY_MS < day - kept:
                del self._classes[of]
            else:
                known.forget_before(day - DAYS)

    def classes(self) -> tuple[DemandClass, ...]:
        """Classes of demand, in the order in which their jobs first came."""
        return tuple(self._classes)

    def forecast_mgpu(self, of: DemandClass, now_ms: int) -> int:
        """Forecast of the demand of a class, in milli-GPUs: weighted mean of finished days; before the first day ends,
        the mean so far. Raises KeyError for an unknown class.
        """
        known = self._classes[of]
        mean, total = known.at(now_ms)
        return total // max(1, now_ms % DAY_MS) if mean is None else mean

    def forecast_by_arrivals_mgpu(self, of: DemandClass, now_ms: int) -> int:
        """Forecast of the demand of a class if no job waited: the request of the jobs that come on a day, times the run
        time of a job of its tier, or of any tier until a job of its own has run. The value of ``forecast_mgpu`` until a
        job has run.
        """
        asked, ran = self._ended.get(of.tier, (0, 0))
        if not (asked and ran):  # what ended long ago has faded
            asked, ran = (sum(parts) for parts in zip((0, 0), *self._ended.values(), strict=True))
        if not (asked and ran):
            return self.forecast_mgpu(of, now_ms)
        mean, total = self._classes[of].arrived(now_ms)
        came = total * DAY_MS // max(1, now_ms % DAY_MS) if mean is None else mean
        return came * ran // (asked * DAY_MS)

    def jobs(self, of: DemandClass) -> int:
        """Number of submitted jobs of a class. Raises KeyError for an unknown class."""
        return self._classes[of].jobs

    def largest_mgpu(self, of: DemandClass) -> int:
        """Request of the largest job of a class, in milli-GPUs. Raises KeyError for an unknown class."""
        return self._classes[of].largest_mgpu

    def read(self, of: DemandClass, now_ms: int) -> tuple[str, ...]:
        """Datasets that jobs of a class read in the last ``DAYS`` days, in the order of their first read. Raises
        KeyError for an unknown class.
        """
        since = now_ms // DAY_MS - DAYS
        return tuple(name for name, day in self._classes[of].read.items() if day >= since)

    def fields(self) -> list[tuple[object, ...]]:
        """Fields of the demand to compare states by."""
        classes = sorted(self._classes.items())
        found = [(*of, *astuple(known)[:-1], sorted(known.read.items())) for of, known in classes]
        return [*found, *sorted(self._ended.items())]
