"""Types of the live fleet (job placement), with checked arguments; milli-GPUs, millicores, MiB and GPU-hours."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from operator import index
from typing import Any, TypeVar

import numpy as np

from mast_opt.core import arguments as arg
from mast_opt.core.errors import UsageError
from mast_opt.core.units import MICRO
from mast_opt.problems.job_placement import units
from mast_opt.problems.job_placement.problem import JobPlacement

ObjectT = TypeVar("ObjectT")


def whole(owner: str, what: str, value: object, least: int = 0, most: int = units.LARGEST) -> int:
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
    arg.texts(what, names)
    return frozenset(names)


def objects_in(what: str, objects: Iterable[ObjectT], kind: type[ObjectT]) -> tuple[ObjectT, ...]:
    """The objects of a live fleet. Raises UsageError for what is no collection of that kind."""
    if not isinstance(objects, Iterable):
        raise arg.refuse(what, objects, f"a collection of {kind.__name__}")
    found = tuple(objects)
    arg.each(arg.a(kind))(what, found)
    return found


def tiers_in(tiers: Iterable[int]) -> tuple[int, ...]:
    """The tiers in ascending order, each once. Raises UsageError for what is no collection of whole numbers."""
    if isinstance(tiers, (str, bytes)) or not isinstance(tiers, Iterable):
        raise arg.refuse("tiers", tiers, "a collection of whole numbers")
    return tuple(sorted({whole("the fleet", "a tier", tier, least=-units.LARGEST) for tier in tiers}))


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
            arg.a_text(f"{what} of a server", getattr(self, what))
        owner = f"server {self.name}"
        for what, most in (("gpus", units.MOST_POOLED), ("cpu_mcores", units.LARGEST), ("memory_mib", units.LARGEST)):
            object.__setattr__(self, what, whole(owner, what, getattr(self, what), most=most))

    @property
    def pool(self) -> bool:
        """Whether its GPUs have no numbers."""
        return self.gpus > units.MOST_GPUS

    @property
    def amounts(self) -> tuple[int, int, int]:
        """Milli-GPUs, millicores and MiB."""
        return self.gpus * units.WHOLE, self.cpu_mcores, self.memory_mib


def _check_tasks(owner: str, gang: "Job | Part") -> None:
    """Check the tasks of a job or part, and what each of them needs; numbers become plain ones."""
    arg.optional(arg.mapping_of(arg.anything))(f"{owner}: gpu_types", gang.gpu_types)
    object.__setattr__(gang, "tasks", whole(owner, "tasks", gang.tasks, least=1, most=units.MOST_TASKS))
    most = units.LARGEST // gang.tasks
    for what in ("mgpu", "cpu_mcores", "memory_mib"):
        object.__setattr__(gang, what, whole(owner, what, getattr(gang, what), most=most))
    if gang.gpu_types is not None:
        needs = {kind: whole(owner, "mgpu", mgpu, most=most) for kind, mgpu in gang.gpu_types.items()}
        object.__setattr__(gang, "gpu_types", needs)
    for mgpu in (gang.mgpu, *(gang.gpu_types or {}).values()):
        if mgpu > units.WHOLE and mgpu % units.WHOLE:
            raise UsageError(f"{owner}: {mgpu} milli-GPUs a task; expected whole GPUs, or less than one")


@dataclass(frozen=True)
class Part:
    """A part of a job of several parts, such as its trainers or its parameter servers: a gang of equal tasks in one
    cluster and on one GPU type. All needs are those of one task."""

    name: str
    tasks: int = 1
    mgpu: int = units.WHOLE
    """Whole GPUs, or less than one."""
    cpu_mcores: int = 0
    memory_mib: int = 0
    gpu_types: Mapping[str, int] | None = None
    """GPU types that it accepts, like those of a job."""
    within: str = "cluster"
    """``server``, ``rack`` or ``cluster``: what it must stay within, in addition to what its job must."""

    def __post_init__(self) -> None:
        arg.a_text("name of a part", self.name)
        owner = f"part {self.name}"
        arg.a_text(f"{owner}: within", self.within)
        if self.within not in units.LEVELS:
            raise UsageError(f"{owner}: within is {self.within!r}; expected one of {units.LEVELS}")
        _check_tasks(owner, self)


@dataclass(frozen=True)
class Job:
    """A gang of equal tasks that run together or not at all, or several such gangs (``parts``). All needs are those of
    one task."""

    name: str
    tier: int
    """One of the fleet's tiers; the lowest number is the most important."""
    tasks: int = 1
    mgpu: int = units.WHOLE
    """Whole GPUs, or less than one."""
    cpu_mcores: int = 0
    memory_mib: int = 0
    gpu_types: Mapping[str, int] | None = None
    """GPU types that it accepts, and how many milli-GPUs a task needs on each; None for any type and ``mgpu``."""
    datasets: tuple[str, ...] = ()
    """It runs only in regions that hold all of them, unless the fleet has a price for remote reads."""
    within: str = "cluster"
    """``server``, ``rack`` or ``cluster``: what it must stay within; with parts, what they all must stay within
    together, which may also be a ``region``."""
    prefer: str = "server"
    """Level that is close enough; with parts, for each of them."""
    preemptible: bool = False
    """True if it may be stopped for more important work once it runs."""
    gpu_hours_at_risk: float = 0.0
    """GPU-hours that are lost if it is stopped now; see ``Fleet.set_at_risk``."""
    tenant: str = ""
    read_mb_per_day: Mapping[str, int] = field(default_factory=dict)
    """Dataset → volume that it reads; 0 for those that are not named."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Cluster → price of running it there (with parts, its first one); 0 for those that are not named."""
    parts: tuple[Part, ...] = ()
    """Unlike tasks that run at the same time: all parts run, or none does. The job itself has no tasks then, so
    ``tasks``, ``mgpu``, ``cpu_mcores``, ``memory_mib`` and ``gpu_types`` must not be given."""
    limit_ms: int | None = None
    """Time after its start at which it is ended if it still runs; None for no limit. See ``Fleet.fits_by``."""

    def __post_init__(self) -> None:
        arg.a_text("name of a job", self.name)
        owner = f"job {self.name}"
        object.__setattr__(self, "tier", whole(owner, "tier", self.tier, least=-units.LARGEST))
        for what in ("read_mb_per_day", "costs"):
            arg.mapping_of(arg.anything)(f"{owner}: {what}", getattr(self, what))
        for what in ("within", "prefer", "tenant"):
            arg.a_text(f"{owner}: {what}", getattr(self, what))
        arg.a_flag(f"{owner}: preemptible", self.preemptible)
        arg.a_price(f"{owner}: gpu_hours_at_risk", self.gpu_hours_at_risk)
        arg.texts(f"{owner}: datasets", self.datasets)
        object.__setattr__(self, "datasets", tuple(self.datasets))
        volumes = {name: whole(owner, f"MB a day of {name}", mb) for name, mb in self.read_mb_per_day.items()}
        object.__setattr__(self, "read_mb_per_day", volumes)
        prices = {name: amount(owner, f"cost in {name}", cost) for name, cost in self.costs.items()}
        object.__setattr__(self, "costs", prices)
        if self.limit_ms is not None:
            object.__setattr__(self, "limit_ms", whole(owner, "limit_ms", self.limit_ms, least=1))
        _check_tasks(owner, self)
        self._check_parts(owner)
        for what, levels in (
            ("within", units.WHOLE_JOB_LEVELS if self.parts else units.LEVELS),
            ("prefer", units.LEVELS),
        ):
            if getattr(self, what) not in levels:
                raise UsageError(f"{owner}: {what} is {getattr(self, what)!r}; expected one of {levels}")

    def _check_parts(self, owner: str) -> None:
        """Check the parts of a job of the fleet. Raises UsageError."""
        if not isinstance(self.parts, (tuple, list)):
            raise arg.refuse(f"{owner}: parts", self.parts, "a tuple of Part")
        arg.each(arg.a(Part))(f"{owner}: parts", self.parts)
        object.__setattr__(self, "parts", tuple(self.parts))
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise UsageError(f"{owner}: expected each part once, not {', '.join(names)}")
        given = (self.tasks, self.mgpu, self.cpu_mcores, self.memory_mib, self.gpu_types)
        if self.parts and given != (1, units.WHOLE, 0, 0, None):
            raise UsageError(f"{owner}: its parts have tasks and needs; expected none for the job itself")

    @arg.checked(name=arg.a_text)
    def named(self, name: str) -> "Job":
        """The job under another name. What it needs was checked when this one was made."""
        return self._with(name=name)

    @arg.checked(gpu_hours=arg.a_price)
    def at_risk(self, gpu_hours: float) -> "Job":
        """The job with another amount that it would lose if it were stopped."""
        return self._with(gpu_hours_at_risk=gpu_hours)

    @arg.checked(gpu_type=arg.a_text)
    def on(self, gpu_type: str) -> "Job":
        """The job on this GPU type only. Raises UsageError if it does not accept it."""
        if self.gpu_types is not None and gpu_type not in self.gpu_types:
            raise UsageError(f"job {self.name} cannot run on {gpu_type}; it accepts {', '.join(self.gpu_types)}")
        return self._with(gpu_types={gpu_type: self.mgpu if self.gpu_types is None else self.gpu_types[gpu_type]})

    def _with(self, **sound: object) -> "Job":
        """A job with other values of fields that are sound."""
        twin = object.__new__(Job)
        vars(twin).update(vars(self), **sound)
        return twin

    @classmethod
    @arg.checked(problem=arg.a(JobPlacement))
    def of(cls, problem: JobPlacement, j: int) -> "Job":
        """The pending job of an instance whose row of ``jobs`` is j, or the first of whose rows, if it has parts. It
        may be stopped once it runs if it is not of tier 0. Its costs are weighted as in the instance's objective.

        Raises:
            UsageError: there is no such row, or it is a further part of a job; ``problem.counts_once`` says of which
                rows there are jobs.
        """
        p = problem
        j = whole(f"jobs of {p.name}", "j", j, most=len(p.jobs) - 1)
        if not p.counts_once[j]:
            raise UsageError(
                f"row {j} of jobs is a further part, {p.jobs.labels[j]}; expected the first one of its job"
            )
        rows = np.flatnonzero(np.isin(p.parts.job, np.flatnonzero(p.first_part == j))).tolist()
        read, priced = np.flatnonzero(p.reads.job == j).tolist(), np.flatnonzero(p.costs.job == j).tolist()
        weight = p.objective.weights["cost"]
        parts = tuple(
            Part(name=p.parts.labels[row], within=units.LEVELS[p.jobs.within[part]], **_tasks_of(p, part))
            for row, part in zip(rows, p.parts.job[rows].tolist())
        )
        whole_job = int(p.parts.whole[rows[0]]) if rows else -1
        return cls(
            name=p.multipart_jobs.labels[whole_job] if parts else p.jobs.labels[j],
            tier=p.tiers[p.jobs.tier[j]],
            datasets=tuple(p.datasets.labels[p.reads.dataset[row]] for row in read),
            read_mb_per_day={p.datasets.labels[p.reads.dataset[row]]: int(p.reads.mb_per_day[row]) for row in read},
            costs={
                p.clusters.labels[p.costs.cluster[row]]: weight * (int(p.costs.cost_micro[row]) / MICRO)
                for row in priced
            },
            within=units.WHOLE_JOB_LEVELS[p.multipart_jobs.within[whole_job] if parts else p.jobs.within[j]],
            prefer=units.LEVELS[p.jobs.prefer[j]],
            preemptible=bool(p.jobs.tier[j] > 0),
            tenant=p.tenants[p.jobs.tenant[j]],
            parts=parts,
            limit_ms=int(p.jobs.limit_ms[j]) or None,
            **({} if parts else _tasks_of(p, j)),
        )


def _tasks_of(problem: JobPlacement, j: int) -> dict[str, Any]:
    """Tasks of a row of ``jobs``, and what each needs."""
    p = problem
    accepted = p.options.gpu_type[p.options.job == j].tolist()
    return {
        "tasks": int(p.jobs.tasks[j]),
        "gpu_types": {p.gpu_types[k]: int(p.need_mgpu[j, k]) for k in accepted},
        "cpu_mcores": int(p.jobs.cpu_mcores[j]),
        "memory_mib": int(p.jobs.memory_mib[j]),
    }


@dataclass(frozen=True)
class Share:
    """Tasks of a job on one server."""

    server: str
    tasks: int
    gpus: Mapping[int, int]
    """GPU → milli-GPUs that they take of it; 0 → milli-GPUs in all where the server is a pool."""
    part: str = ""
    """Part of the job that they are of; empty where it has none."""


def gangs_of(job: Job) -> tuple[Job, ...]:
    """Each part of a job as a job of its own, as close together as it and the whole job must be; the job itself where
    it has no parts."""
    return tuple(_gang(job, part) for part in job.parts) if job.parts else (job,)


def _gang(job: Job, part: Part) -> Job:
    """Part of a job as a gang that the fleet places."""
    return Job(
        f"{job.name}/{part.name}",
        job.tier,
        part.tasks,
        part.mgpu,
        part.cpu_mcores,
        part.memory_mib,
        part.gpu_types,
        job.datasets,
        within=min(part.within, job.within, key=units.WHOLE_JOB_LEVELS.index),
        prefer=job.prefer,
        tenant=job.tenant,
    )


def amounts_of(job: Job, share: Share) -> tuple[int, int]:
    """Millicores and MiB that a share of a job holds."""
    gang: Job | Part = next((part for part in job.parts if part.name == share.part), job)
    return share.tasks * gang.cpu_mcores, share.tasks * gang.memory_mib
