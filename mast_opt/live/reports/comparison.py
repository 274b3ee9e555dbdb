"""Two runs of the same jobs: their figures side by side, and the jobs whose waits differ most."""

from collections.abc import Mapping
from dataclasses import dataclass

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.history import History, history
from mast_opt.live.reports.content import flat_metrics
from mast_opt.live.simulation.run_folder import StoredRun

JOB_FIELDS = ("tasks", "mgpu", "duration_ms", "tier")
"""Fields of a job that have to be equal in two runs of the same work."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure in both runs; None where a run does not have it."""

    first: float | None
    second: float | None

    @property
    def by(self) -> float | None:
        """Amount by which a run's figure is larger in the second run."""
        return None if self.first is None or self.second is None else self.second - self.first


@dataclass(frozen=True, slots=True)
class JobPair:
    """A job in both runs."""

    job: str
    tier: int
    mgpu: int
    """Milli-GPUs of all its tasks."""
    regions: tuple[str, str]
    """Regions where it waited last in each run; empty where that is not known."""
    waited_ms: tuple[int, int]
    open: tuple[bool, bool] = (False, False)
    """Whether it still waited at the end of each run."""

    @property
    def by_ms(self) -> int:
        """Milliseconds that a job waited longer in the second run."""
        return self.waited_ms[1] - self.waited_ms[0]


@dataclass(frozen=True)
class RunDiff:
    """Differences between two runs."""

    metrics: Mapping[str, Pair]
    jobs: tuple[JobPair, ...]
    """Those whose waits differ, the largest differences first."""
    longer: int
    """Jobs that wait longer in the second run."""
    shorter: int
    same: int


def compare(first: StoredRun, second: StoredRun) -> RunDiff:
    """Compare two runs of the same jobs.

    Raises:
        UsageError: they are of different jobs; says which.
        LogError, InputError: a log has faults or cannot be read.
    """
    logs = history(first.events()), history(second.events())
    _check_same_jobs(first, second, logs)
    waits = tuple(_waits(log) for log in logs)
    pairs = []
    for job, (spec, _) in logs[0].jobs.items():
        (one, here, still), (other, there, also) = (found.get(job, (0, "", False)) for found in waits)
        pairs.append(JobPair(job, spec.tier, spec.stated_mgpu, (here, there), (one, other), (still, also)))
    changed = sorted(
        (pair for pair in pairs if pair.by_ms or pair.open[0] != pair.open[1]), key=lambda pair: -abs(pair.by_ms)
    )
    longer = sum((pair.open[1] - pair.open[0], pair.by_ms) > (0, 0) for pair in changed)
    stated = flat_metrics(first.metrics), flat_metrics(second.metrics)
    names = dict.fromkeys((*stated[0], *stated[1]))
    metrics = {name: Pair(stated[0].get(name), stated[1].get(name)) for name in names}
    return RunDiff(metrics, tuple(changed), longer, len(changed) - longer, len(pairs) - len(changed))


def _check_same_jobs(first: StoredRun, second: StoredRun, logs: tuple[History, History]) -> None:
    """Raises UsageError if two runs are not of the same jobs."""
    one, other = (log.jobs for log in logs)
    missing = [job for job in {**one, **other} if job not in one or job not in other]
    if missing:
        here, there = (first.path, second.path) if missing[0] in one else (second.path, first.path)
        count = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise UsageError(f"the runs are of different jobs: {missing[0]}{count} is in {here}, not in {there}")
    for job, (spec, submitted) in one.items():
        also, came = other[job]
        different = [name for name in JOB_FIELDS if getattr(spec, name) != getattr(also, name)]
        different += ["submission"] if submitted != came else []
        if different:
            raise UsageError(
                f"the runs are of different jobs: {' and '.join(different)} of job {job} differ between {first.path} "
                f"and {second.path}; compare runs of the same trace at the same load"
            )


def _waits(log: History) -> dict[str, tuple[int, str, bool]]:
    """Job → all its waits together in ms, the region of the last one, and whether that is still open."""
    found: dict[str, tuple[int, str, bool]] = {}
    for wait in log.waits:
        before_ms = found[wait.job][0] if wait.job in found else 0
        found[wait.job] = before_ms + wait.end_ms - wait.begin_ms, wait.region, wait.open
    return found
