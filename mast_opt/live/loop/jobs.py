"""Jobs whose end is not known: what was submitted, what has been done, and where each one runs."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from weakref import WeakValueDictionary

from mast_opt.live.loop.demand import DemandClass
from mast_opt.live.loop.events import Promised
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.problems.job_placement.live_fleet.types import Job, Share

MOST_KEPT = 4096
"""Jobs after the last one of its class for which the class is kept, and specifications that further jobs may share."""
_OWN = attrgetter(*(one.name for one in fields(JobSpec) if one.name not in ("gpu_types", "parts")))


@dataclass(frozen=True, slots=True, weakref_slot=True)
class JobClass:
    """Facts that jobs with equal requests share."""

    job: Job
    """One of them, checked; each of them is this one under another name."""
    asked_mgpu: int
    """Milli-GPUs, on the type on which it takes the fewest."""
    demand: DemandClass


class JobClasses:
    """Classes of equal jobs, and their specifications, each in memory once."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[object, ...], JobClass] = WeakValueDictionary()
        self._recent: deque[JobClass] = deque(maxlen=MOST_KEPT)
        self._specs: dict[tuple[object, ...], JobSpec] = {}

    def of(self, name: str, spec: JobSpec) -> JobClass:
        """Class to which a job belongs."""
        size = spec.tier, spec.tasks, spec.mgpu, spec.cpu_mcores, spec.memory_mib, _kinds(spec), spec.datasets
        parts = (spec.shape, *(part.name for part in spec.parts)) if spec.parts else ()
        key = size, spec.within, spec.prefer, spec.preemptible, spec.tenant, spec.workload, spec.namespace, parts
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = JobClass(job_of(name, spec), spec.asked_mgpu, DemandClass.of(spec))
        self._recent.append(known)
        return known

    def shared(self, spec: JobSpec) -> JobSpec:
        """A specification equal to this one that other jobs have too, if there is any."""
        if len(self._specs) == MOST_KEPT:
            self._specs.clear()
        return spec if spec.parts else self._specs.setdefault((_OWN(spec), _kinds(spec)), spec)


def _kinds(spec: JobSpec) -> tuple[tuple[str, int], ...] | None:
    """GPU types of a job, and milli-GPUs on each, in order."""
    return None if spec.gpu_types is None else tuple(spec.gpu_types.items())


_ASKED = tuple(one.name for one in fields(Job) if one.name in set(JobSpec.__dataclass_fields__) - {"limit_ms"})
"""Fields of a specification that the fleet has to know; the loop itself keeps time."""


def job_of(name: str, spec: JobSpec) -> Job:
    """The job as the fleet is asked for it, checked."""
    return Job(name, **{one: getattr(spec, one) for one in _ASKED})


@dataclass(slots=True, eq=False)
class JobRecord:
    """State of a job after the events so far. Only ``State.apply`` changes it.

    ``shares`` are where it runs, starts or stops.
    """

    name: str
    spec: JobSpec
    of: JobClass
    number: int
    """Jobs that were submitted later have higher ones."""
    submitted_ms: int
    state: JobState = JobState.SUBMITTED
    attempt: int = 0
    """Number of times that it has been placed."""
    since_ms: int = 0
    """Time since which it waits, starts, runs or stops."""
    queued_ms: int = 0
    """Waiting time of the attempts that have started."""
    work_ms: int = 0
    """Work of earlier attempts that a checkpoint has saved, at the reference speed."""
    attained_mgpu_ms: int = 0
    """Milli-GPUs held × time of earlier attempts."""
    region: str = ""
    """Region where it runs; empty while it waits."""
    shares: tuple[Share, ...] = ()
    mgpu: int = 0
    """Milli-GPUs that it holds; 0 while it waits."""
    stoppable_tier: int | None = None
    """Tier below which nothing may stop it while it holds servers; None if nothing may."""
    over_quota: bool = False
    """True if its tenant's quota did not cover it when it was placed, while it holds servers."""
    bound: str = ""
    """The only region where it may run, once it has been bound; empty before."""
    held: str = ""
    """Reason why it is held."""
    cancelled: bool = False
    """It is not to be queued again."""
    partner: str = ""
    """The job with which it has its GPUs in common; empty for none."""
    is_guest: bool = False
    """Whether its partner holds the GPUs, so that ``mgpu`` is 0."""
    blockers: frozenset[str] = frozenset()
    """Jobs that still stop on servers where this one starts."""
    promise: Promised | None = None
    """Reservation that it has while it waits."""
    resized: tuple[tuple[int, int], ...] = ()
    """(time, tasks until then) of each change of size in this attempt."""

    @property
    def job(self) -> Job:
        """The job as the fleet is asked for it."""
        return self.of.job.named(self.name)

    @property
    def tasks(self) -> int:
        """Tasks that a job has, or asks for while it waits."""
        least, most = self.spec.sizes
        return sum(share.tasks for share in self.shares) if self.shares and least < most else self.spec.tasks

    def on(self, shares: Sequence[Share]) -> Job:
        """The job of the record with as many tasks as its shares have."""
        least, most = self.spec.sizes
        return self.job if least == most else replace(self.job, tasks=sum(share.tasks for share in shares))

    def sizes_since(self, now_ms: int) -> Iterator[tuple[int, int, int]]:
        """(begin of the work, its end, tasks) for each size of the present attempt, until now."""
        begin_ms = self.since_ms + self.spec.restart_ms * (self.attempt > 1)
        for at_ms, tasks in (*self.resized, (now_ms, self.tasks)):
            yield min(begin_ms, at_ms), at_ms, tasks
            begin_ms = at_ms + self.spec.restart_ms

    @property
    def began_ms(self) -> int:
        """Time when a running job began to work, at its present size."""
        if self.resized:
            return self.resized[-1][0] + self.spec.restart_ms
        return self.since_ms + self.spec.restart_ms * (self.attempt > 1)

    def unsaved_mgpu_ms(self, now_ms: int) -> int:
        """Work of a running job since its last checkpoint, or since it began."""
        return self.mgpu * (max(0, now_ms - self.began_ms) % (self.spec.checkpoint_ms or 1))

    @property
    def asked_mgpu(self) -> int:
        """Milli-GPUs that a job asks for, on the type on which it takes the fewest."""
        return self.of.asked_mgpu

    @property
    def demand(self) -> DemandClass:
        """Class of demand with which a job is forecast."""
        return self.of.demand

    def ends_by_ms(self, now_ms: int) -> int | None:
        """Latest time at which a job gives back the servers that it holds; None if it has no time limit."""
        if self.state is JobState.STOPPING:
            return now_ms
        longest_ms = self.spec.longest_ms
        return (
            None if longest_ms is None else longest_ms + (self.since_ms if self.state is JobState.RUNNING else now_ms)
        )

    def queue_tier(self, now_ms: int, promote_ms: int) -> int:
        """The tier of a waiting job for its place in the queue: the next more important one each time that it has
        waited for ``promote_ms``; 0 for never."""
        return max(0, self.spec.tier - (now_ms - self.since_ms) // promote_ms) if promote_ms else self.spec.tier

    @property
    def waits(self) -> bool:
        """Whether a job waits, so that a policy may place it."""
        return self.state is JobState.QUEUED or self.state is JobState.SUBMITTED
