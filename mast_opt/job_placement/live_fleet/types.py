"""Types of the live fleet (job placement), with checked arguments; milli-GPUs, millicores, MiB and GPU-hours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from operator import index

import numpy as np

from mast_opt.core.arguments import (
    a,
    a_flag,
    a_price,
    a_text,
    a_whole,
    anything,
    checked,
    each,
    mapping_of,
    optional,
    refuse,
    texts,
)
from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.core.units import MICRO
from mast_opt.job_placement.engine.limits import LIMIT_RANGES, SAMPLING_RANGES, FillSampling, SearchLimits
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import LARGEST, LEVELS, MOST_GPUS, MOST_POOLED, MOST_TASKS, WHOLE

PLACEMENTS = ("fragmentation", "best-fit")
"""What decides between places that are equally close and equally priced."""


def whole(owner: str, what: str, value: object, least: int = 0, most: int = LARGEST) -> int:
    """A whole number (of Python or NumPy) as one of Python. Raises UsageError for anything else, and for one that is
    not within the limits."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{owner}: {what} is {value!r}; expected a whole number") from None
    if number < least:
        raise UsageError(f"{owner}: {what} is {number}; expected at least {least}")
    if number > most:
        raise UsageError(f"{owner}: {what} is {number:,}; expected at most {most:,}")
    return number


def amount(owner: str, what: str, value: object) -> float:
    """A finite number of at least 0. Raises UsageError for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value) and value >= 0:
        return float(value)
    raise UsageError(f"{owner}: {what} is {value!r}; expected a finite number of at least 0")


def names_in(what: str, names: Collection[str]) -> frozenset[str]:
    """The names. Raises UsageError for a single string, whose letters would be taken for names."""
    if isinstance(names, str):
        raise UsageError(f"{what}: {names!r} is one string; expected a collection of names, as in [{names!r}]")
    texts(what, names)
    return frozenset(names)


def tiers_in(tiers: Iterable[int]) -> tuple[int, ...]:
    """The tiers in ascending order, each once. Raises UsageError for what is no collection of whole numbers."""
    if isinstance(tiers, (str, bytes)) or not isinstance(tiers, Iterable):
        raise refuse("tiers", tiers, "a collection of whole numbers")
    return tuple(sorted({whole("the fleet", "a tier", tier, least=-LARGEST) for tier in tiers}))


@dataclass(frozen=True)
class Server:
    """A machine, or (with more than 4,096 GPUs) a pool, such as a quota. The GPUs of a machine are numbered from 0;
    those of a pool have no numbers, and shares have what they take of all of them under 0."""

    name: str
    region: str
    cluster: str
    """Belongs to one region."""
    rack: str
    """Belongs to one cluster."""
    gpu_type: str
    gpus: int
    cpu_mcores: int
    memory_mib: int

    def __post_init__(self) -> None:
        for what in ("name", "region", "cluster", "rack", "gpu_type"):
            a_text(f"{what} of a server", getattr(self, what))
        owner = f"server {self.name}"
        for what, most in (("gpus", MOST_POOLED), ("cpu_mcores", LARGEST), ("memory_mib", LARGEST)):
            object.__setattr__(self, what, whole(owner, what, getattr(self, what), most=most))

    @property
    def pool(self) -> bool:
        """Whether its GPUs have no numbers."""
        return self.gpus > MOST_GPUS

    @property
    def amounts(self) -> tuple[int, int, int]:
        """Milli-GPUs, millicores and MiB."""
        return self.gpus * WHOLE, self.cpu_mcores, self.memory_mib


def servers_in(servers: Iterable[Server]) -> tuple[Server, ...]:
    """The servers. Raises UsageError for what is no collection of servers."""
    if not isinstance(servers, Iterable):
        raise refuse("servers", servers, "a collection of Server")
    found = tuple(servers)
    each(a(Server))("servers", found)
    return found


@dataclass(frozen=True)
class Job:
    """A gang of equal tasks that run together or not at all. All needs are those of one task."""

    name: str
    tier: int
    """One of the fleet's tiers; the lowest number is the most important."""
    tasks: int = 1
    mgpu: int = WHOLE
    """Whole GPUs, or less than one."""
    cpu_mcores: int = 0
    memory_mib: int = 0
    gpu_types: Mapping[str, int] | None = None
    """GPU types that it accepts, and how many milli-GPUs a task needs on each; None for any type and ``mgpu``."""
    datasets: tuple[str, ...] = ()
    """It runs only in regions that hold all of them, unless the fleet has a price for remote reads."""
    within: str = "cluster"
    """``server``, ``rack`` or ``cluster``: what it must stay within."""
    prefer: str = "server"
    """What is close enough."""
    preemptible: bool = False
    """May it be stopped for more important work once it runs?"""
    gpu_hours_at_risk: float = 0.0
    """What is lost if it is stopped now; see ``Fleet.set_at_risk``."""
    tenant: str = ""
    read_mb_per_day: Mapping[str, int] = field(default_factory=dict)
    """Dataset → volume that it reads; 0 for those that are not named."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Cluster → price of running it there; 0 for those that are not named."""

    def __post_init__(self) -> None:
        a_text("name of a job", self.name)
        owner = f"job {self.name}"
        object.__setattr__(self, "tier", whole(owner, "tier", self.tier, least=-LARGEST))
        for what in ("read_mb_per_day", "costs"):
            mapping_of(anything)(f"{owner}: {what}", getattr(self, what))
        optional(mapping_of(anything))(f"{owner}: gpu_types", self.gpu_types)
        for what in ("within", "prefer", "tenant"):
            a_text(f"{owner}: {what}", getattr(self, what))
        a_flag(f"{owner}: preemptible", self.preemptible)
        a_price(f"{owner}: gpu_hours_at_risk", self.gpu_hours_at_risk)
        texts(f"{owner}: datasets", self.datasets)
        object.__setattr__(self, "datasets", tuple(self.datasets))
        volumes = {name: whole(owner, f"MB a day of {name}", mb) for name, mb in self.read_mb_per_day.items()}
        object.__setattr__(self, "read_mb_per_day", volumes)
        prices = {name: amount(owner, f"cost in {name}", cost) for name, cost in self.costs.items()}
        object.__setattr__(self, "costs", prices)
        object.__setattr__(self, "tasks", whole(owner, "tasks", self.tasks, least=1, most=MOST_TASKS))
        most = LARGEST // self.tasks
        for what in ("mgpu", "cpu_mcores", "memory_mib"):
            object.__setattr__(self, what, whole(owner, what, getattr(self, what), most=most))
        if self.gpu_types is not None:
            needs = {kind: whole(owner, "mgpu", mgpu, most=most) for kind, mgpu in self.gpu_types.items()}
            object.__setattr__(self, "gpu_types", needs)
        for mgpu in (self.mgpu, *(self.gpu_types or {}).values()):
            if mgpu > WHOLE and mgpu % WHOLE:
                raise UsageError(f"{owner}: {mgpu} milli-GPUs a task; expected whole GPUs, or less than one")
        for what in ("within", "prefer"):
            if getattr(self, what) not in LEVELS:
                raise UsageError(f"job {self.name}: {what} is {getattr(self, what)!r}; expected one of {LEVELS}")

    @classmethod
    @checked(problem=a(JobPlacement))
    def of(cls, problem: JobPlacement, j: int) -> Job:
        """The j-th pending job of an instance. It may be stopped once it runs if it is not of tier 0. Its costs are
        weighted as in the instance's objective.

        Raises:
            UnsupportedOption: the job is a part of a job of several parts, which a live fleet does not place.
        """
        p = problem
        j = whole(f"jobs of {p.name}", "j", j, most=len(p.jobs) - 1)
        if np.isin(j, p.parts.job):
            name = p.multipart_jobs.labels[p.parts.whole[p.parts.job == j][0]]
            raise UnsupportedOption(f"a live fleet places no jobs of several parts, and {name} is one")
        accepted = p.options.gpu_type[p.options.job == j].tolist()
        read, priced = np.flatnonzero(p.reads.job == j).tolist(), np.flatnonzero(p.costs.job == j).tolist()
        weight = p.objective.weights["cost"]
        return cls(
            name=p.jobs.labels[j],
            tier=p.tiers[p.jobs.tier[j]],
            tasks=int(p.jobs.tasks[j]),
            gpu_types={p.gpu_types[k]: int(p.need_mgpu[j, k]) for k in accepted},
            cpu_mcores=int(p.jobs.cpu_mcores[j]),
            memory_mib=int(p.jobs.memory_mib[j]),
            datasets=tuple(p.datasets.labels[p.reads.dataset[row]] for row in read),
            read_mb_per_day={p.datasets.labels[p.reads.dataset[row]]: int(p.reads.mb_per_day[row]) for row in read},
            costs={
                p.clusters.labels[p.costs.cluster[row]]: weight * (int(p.costs.cost_micro[row]) / MICRO)
                for row in priced
            },
            within=LEVELS[p.jobs.within[j]],
            prefer=LEVELS[p.jobs.prefer[j]],
            preemptible=bool(p.jobs.tier[j] > 0),
            tenant=p.tenants[p.jobs.tenant[j]],
        )


def sound_sampling(sampling: FillSampling) -> FillSampling:
    """The sampling, as it is. Raises UsageError for what is none, and for a number out of range."""
    a(FillSampling)("sampling", sampling)
    for name, (least, most) in SAMPLING_RANGES.items():
        a_whole(least, most)(f"sampling.{name}", getattr(sampling, name))
    return sampling


def sound_limits(limits: SearchLimits) -> SearchLimits:
    """The limits, as they are. Raises UsageError for what are none, and for a number out of range."""
    a(SearchLimits)("search_limits", limits)
    for name, (least, most) in LIMIT_RANGES.items():
        a_whole(least, most)(f"search_limits.{name}", getattr(limits, name))
    return limits


def by_loss(placement: str) -> bool:
    """Whether loss of value decides between servers. Raises UsageError for what is no placement."""
    if not isinstance(placement, str) or placement not in PLACEMENTS:
        raise refuse("placement", placement, "fragmentation or best-fit")
    return placement == PLACEMENTS[0]


def jobs_in(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """The jobs. Raises UsageError for what is no collection of jobs."""
    if not isinstance(jobs, Iterable):
        raise refuse("jobs", jobs, "a collection of Job")
    found = tuple(jobs)
    each(a(Job))("jobs", found)
    return found


@dataclass(frozen=True)
class Share:
    """Tasks of a job on one server."""

    server: str
    tasks: int
    gpus: Mapping[int, int]
    """GPU → milli-GPUs that they take of it; 0 → milli-GPUs in all where the server is a pool."""


@dataclass(frozen=True)
class Bid:
    """The best place for a job, as long as the fleet does not change."""

    job: Job
    tier: int
    """The tier that counts."""
    over_quota: bool
    """The job would take its tenant over the quota: it has the lowest tier and may be stopped."""
    region: str
    cluster: str
    gpu_type: str
    shares: tuple[Share, ...]
    level: str
    """``server``, ``rack`` or ``cluster``: how close together the tasks are."""
    victims: tuple[str, ...]
    """Running jobs that have to be stopped first."""
    victim_tier: int | None
    """The most important tier among them."""
    gpu_hours_lost: float
    price: float
    """The job's cost in the cluster, and what it reads from other regions at the fleet's price."""
    load: float
    """Share of the region's GPUs in use."""
    proven: bool
    """Whether no bid is better; False if the search for victims reached its limit."""
    version: int = field(compare=False)
    """Of the fleet that made it."""
    fleet: str = field(compare=False, repr=False)
    """Which fleet that is; no other one takes the bid."""

    @property
    def key(self) -> tuple[float, float, int, int, float, float, str, str, str]:
        """What bids for the same job compare by; the least is the best: importance of the most important victim,
        GPU-hours lost, victims, level beyond what the job prefers, price, load of the region, and names."""
        importance = float("-inf") if self.victim_tier is None else -float(self.victim_tier)
        level = max(0, LEVELS.index(self.level) - LEVELS.index(self.job.prefer))
        lost, stopped = self.gpu_hours_lost, len(self.victims)
        return importance, lost, stopped, level, self.price, self.load, self.region, self.cluster, self.gpu_type


@dataclass(frozen=True)
class Refused:
    """A job that fits nowhere, and why."""

    job: Job
    reason: str
    code: str
    """For programs: ``gpu-type`` (no server has one that it accepts), ``residency``, ``lost`` (no region holds a
    dataset), ``data`` (none holds all of them), ``regions`` (none of those that were asked), ``data-and-type``,
    ``size`` (larger than any cluster), ``in-use``, ``no-room`` (for more tasks, see ``Fleet.resize``);
    ``Fleet.explain`` has a code for each cluster."""
    remembered: bool = False
    """True if it was not searched for, because it asks for no less than one that fitted nowhere."""


@dataclass(frozen=True)
class Drained:
    """What became of the jobs on a server that takes no more work."""

    stopped: tuple[str, ...]
    """Those that may be stopped, and now are."""
    staying: tuple[str, ...]
    """Those that may not be; the server is empty when they have ended."""


@dataclass(frozen=True)
class ClusterReport:
    """What stands between a job and a cluster."""

    cluster: str
    fits: bool
    words: str
    """The first constraint that rules the cluster out, or what admitting the job there takes."""
    code: str
    """The same for programs: ``fits``, ``victims``; ``residency``, ``lost``, ``data``, ``gpu-type``, ``task`` (no empty
    server holds one), ``size``, ``level``, ``out-of-service``; ``gpus``, ``cpu``, ``memory``, ``fragmented``."""
