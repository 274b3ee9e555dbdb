"""Events about jobs: what clients hand in, what is decided about it, and what hosts report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mast_opt.live.loop.event import Event
from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.job_placement.units import WHOLE

Key: TypeAlias = tuple[float | str | None, ...]
"""Key by which bids compare (``Bid.key``), with None for an infinite number: there are no victims."""


def bid_key(parts: Iterable[float | str]) -> Key:
    """The key of a bid as an event keeps it."""
    return tuple(None if isinstance(part, float) and math.isinf(part) else part for part in parts)


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
    workload: str = ""
    """Workload that it is a run of, where work recurs."""
    namespace: str = ""
    home_region: str = ""
    min_tasks: int | None = None
    """The fewest tasks that it may be resized to; None if it may not be."""
    max_tasks: int | None = None
    model: str = ""
    """Model, or other kind of work, where the speeds of kinds of work are known."""

    @property
    def shape(self) -> tuple[object, ...]:
        """Needs of a job: jobs of one shape fit in the same places of a region."""
        kinds = None if self.gpu_types is None else tuple(sorted(self.gpu_types.items()))
        return self.tasks, self.mgpu, kinds, self.cpu_mcores, self.memory_mib, self.within, self.prefer


@dataclass(frozen=True, slots=True)
class Submitted(Event):
    """A client has handed in a job."""

    job: str
    spec: JobSpec


@dataclass(frozen=True, slots=True)
class Cancelled(Event):
    """A job's owner wants it no more. One that waits has ended; one that holds servers ends when it has stopped."""

    job: str


@dataclass(frozen=True, slots=True)
class Queued(Event):
    """A job waits for a place."""

    job: str


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """A job is held back: it fits nowhere, or a policy keeps it."""

    job: str
    reason: str
    """Reason in words."""
    code: str = ""
    """Reason as a code for programs; as in ``job_placement.Refused``."""
    until_ms: int | None = None
    """Time when it is looked at again at the latest."""


@dataclass(frozen=True, slots=True)
class Bound(Event):
    """Event that binds a job to a region: it may run in no other from now on."""

    job: str
    region: str


@dataclass(frozen=True, slots=True)
class Placed(Event):
    """A job gets servers. It holds them until it has stopped or ended."""

    job: str
    attempt: int
    """Counted from 1."""
    region: str
    cluster: str
    shares: tuple[Share, ...]
    victims: tuple[str, ...] = ()
    """Jobs that are asked to stop for it."""
    key: Key | None = None
    """Key by which the bid was compared; None where there was no choice."""
    runner_up: Key | None = None
    """Key of the second-best bid; None if there was none."""
    at_once: bool = False
    """Whether it runs from this moment on, so that no ``Started`` follows."""


@dataclass(frozen=True, slots=True)
class StopAsked(Event):
    """A job is asked to save its work and stop."""

    job: str
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The host runs all tasks of a job."""

    job: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """An attempt has ended and holds nothing any more; the job is not finished."""

    job: str
    attempt: int
    work_ms: int
    """Work of this attempt that is kept, at reference speed."""
    lost_ms: int
    """Work of this attempt that has to be done again, at reference speed."""
    work_time_ms: int | None = None
    """The time that the kept work took; None: as long as at the reference speed."""
    lost_time_ms: int | None = None
    """The time that the lost work took; None: as long as at the reference speed."""


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """A job has done all its work, and holds nothing any more."""

    job: str
    attempt: int
    work_time_ms: int | None = None
    """The time that the work of this attempt took; None: as long as at the reference speed."""


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """A job has ended with an error of its own, and holds nothing any more."""

    job: str
    attempt: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Adopted(Event):
    """A host reports a job that runs already."""

    job: str
    attempt: int
    region: str
    cluster: str
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Resized(Event):
    """A running job has another number of tasks."""

    job: str
    attempt: int
    tasks: int
    shares: tuple[Share, ...]
    """All of them, not only those that came or went."""


@dataclass(frozen=True, slots=True)
class Promised(Event):
    """A waiting job has a reservation in a region, or a better one than before. Other jobs start there only if they
    leave it that, so it is placed at ``by_ms`` at the latest, there or elsewhere, unless ``PromiseEnded`` says why
    not."""

    job: str
    region: str
    by_ms: int | None
    """Time when it fits if all work that it waits for ends at its limit; None where limits do not say."""
    servers: tuple[str, ...]
    """Servers where it fits then."""


@dataclass(frozen=True, slots=True)
class PromiseEnded(Event):
    """A waiting job has its reservation no longer."""

    job: str
    why: str
    """One of ``PROMISES_END``."""


PROMISES_END = (SERVER, QUOTA, DATA, TIER, OVERRUN, ADOPTED, BOUND) = (
    *("server", "quota", "data", "more-important", "overrun", "adopted", "bound"),
)
"""Reasons for which promises end: a server of the region went out of service, was closed, shrank or is to move;
quotas, or what tenants use of them, gave jobs other tiers; data of the job is no longer in the region; more important
work came; work started later or ran longer than its limit said; a host reported work of its own; the job may run in
another region only."""


@dataclass(frozen=True, slots=True)
class Shared(Event):
    """Two jobs are to run on the same GPUs: the first one holds them, and goes on; the second one is placed there by
    the ``Placed`` that follows. When one of them has gone, the other has the GPUs for itself."""

    jobs: tuple[str, ...]
    """Holder and guest."""
    region: str
    cluster: str
    shares: tuple[Share, ...]
