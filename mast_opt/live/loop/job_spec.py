"""Specifications of jobs. Times are in ms, amounts in base units."""

from collections.abc import Mapping
from dataclasses import dataclass

from mast_opt.problems.job_placement.live_fleet.types import Part
from mast_opt.problems.job_placement.units import WHOLE


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Specification of a job as a client submits it. Needs are those of one task."""

    tier: int = 0
    """Importance; the lowest number is the most important."""
    tasks: int = 1
    mgpu: int = WHOLE
    cpu_mcores: int = 0
    memory_mib: int = 0
    gpu_types: Mapping[str, int] | None = None
    """GPU types that it accepts, and milli-GPUs of a task on each; None for any type and ``mgpu``."""
    datasets: tuple[str, ...] = ()
    within: str = "cluster"
    prefer: str = "server"
    tenant: str = ""
    preemptible: bool = False
    checkpoint_ms: int = 0
    """Time between two checkpoints; 0: its work is saved whenever it is stopped."""
    restart_ms: int = 0
    """Milliseconds that an attempt after the first one takes to get going again."""
    duration_ms: int | None = None
    """Expected duration on its reference type; None where nobody knows."""
    limit_ms: int | None = None
    """Time after each start at which the host ends it if it still runs; None for no limit."""
    limit_grace_ms: int | None = 0
    """Longest time from its limit until its host has ended it; None: the host does not end it."""
    workload: str = ""
    """Workload that it is a run of, where work recurs."""
    namespace: str = ""
    home_region: str = ""
    min_tasks: int | None = None
    """The fewest tasks that it may have; None for ``tasks``. Only policies that resize look at it."""
    max_tasks: int | None = None
    """The most tasks that it may have; None for ``tasks``."""
    model: str = ""
    """Model, or other kind of work, where the speeds of kinds of work are known."""
    parts: tuple[Part, ...] = ()
    """Unlike tasks that run at the same time, as in ``live_fleet.Job``: the job itself has no tasks and needs then."""

    @property
    def gangs(self) -> tuple["JobSpec | Part", ...]:
        """Gangs of equal tasks that run at the same time: the parts of a job, or the job itself."""
        return self.parts or (self,)

    def gang_of(self, part: str) -> "JobSpec | Part":
        """Gang of the tasks of a share: the part of that name, or the job itself."""
        return next((one for one in self.parts if one.name == part), self)

    @property
    def asked_mgpu(self) -> int:
        """Milli-GPUs of all tasks of a job, on the types on which they take the fewest."""
        return sum(one.tasks * (min(one.gpu_types.values()) if one.gpu_types else one.mgpu) for one in self.gangs)

    @property
    def stated_mgpu(self) -> int:
        """Milli-GPUs of all tasks of a job, whatever they take on some types."""
        return sum(one.tasks * one.mgpu for one in self.gangs)

    @property
    def accepted(self) -> tuple[str, ...] | None:
        """GPU types on which tasks of a job that take GPUs may run, sorted; None for any."""
        gangs = [one for one in self.gangs if one.mgpu or one.gpu_types] or self.gangs
        types = {kind for one in gangs for kind in one.gpu_types or ()}
        return None if any(one.gpu_types is None for one in gangs) else tuple(sorted(types))

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest and the most tasks that a job may have; equal unless it is elastic."""
        return (
            self.tasks if self.min_tasks is None else self.min_tasks,
            self.tasks if self.max_tasks is None else self.max_tasks,
        )

    @property
    def longest_ms(self) -> int | None:
        """Longest time from a start until the job has given back its servers, by its limit; None without one."""
        return None if self.limit_ms is None else self.limit_ms + (self.limit_grace_ms or 0)

    @property
    def shape(self) -> tuple[object, ...]:
        """Needs of a job: jobs of one shape fit in the same places of a region."""
        if self.parts:
            return (*map(_needs, self.parts), self.within, self.prefer)
        return (*_needs(self), self.prefer)


def _needs(gang: JobSpec | Part) -> tuple[object, ...]:
    """Needs of a gang of equal tasks, and the level that it must stay within."""
    kinds = None if gang.gpu_types is None else tuple(sorted(gang.gpu_types.items()))
    return gang.tasks, gang.mgpu, kinds, gang.cpu_mcores, gang.memory_mib, gang.within
