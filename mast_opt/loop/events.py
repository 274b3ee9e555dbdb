"""The closed list of events: facts that hosts and clients report, and decisions of the loop.

An event does not say when it happened; ``Stored`` adds its place in the log and its time. Jobs, servers and regions are
named as in the live fleet. Times and durations are in ms; amounts in base units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mast_opt.job_placement.live_fleet.types import Share
from mast_opt.job_placement.units import WHOLE

FORMAT = "mast-opt-log/1"
"""What the first line of a log says."""

Key: TypeAlias = tuple[float | str | None, ...]
"""What bids compare by (``Bid.key``), with None for an infinite number: there are no victims."""


def bid_key(parts: Iterable[float | str]) -> Key:
    """The key of a bid as an event keeps it."""
    return tuple(None if isinstance(part, float) and math.isinf(part) else part for part in parts)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a client asks for. Needs are those of one task."""

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
    """How long an attempt after the first one takes to get going again."""
    duration_ms: int | None = None
    """How long it is expected to take on its reference type; None where nobody knows."""
    workload: str = ""
    """What it is a run of, where work recurs."""
    namespace: str = ""
    home_region: str = ""
    min_tasks: int | None = None
    """The fewest tasks that it may be resized to; None if it may not be."""
    max_tasks: int | None = None


class Event:
    """Base of all events."""

    __slots__ = ()


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
    """In words."""
    code: str = ""
    """For programs; as in ``job_placement.Refused``."""
    until_ms: int | None = None
    """When it is looked at again at the latest."""


@dataclass(frozen=True, slots=True)
class Bound(Event):
    """From now on a job may run in this region only."""

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
    """What the bid was compared by; None where there was no choice."""
    runner_up: Key | None = None
    """Of the second-best bid; None if there was none."""
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
class Checkpointed(Event):
    """A job has saved its work."""

    job: str
    attempt: int
    work_ms: int
    """Work done since the attempt began, at reference speed."""


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """An attempt has ended and holds nothing any more; the job is not finished."""

    job: str
    attempt: int
    work_ms: int
    """Work of this attempt that is kept, at reference speed."""
    lost_ms: int
    """Work of this attempt that has to be done again."""


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """A job has done all its work, and holds nothing any more."""

    job: str
    attempt: int


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
class Relocated(Event):
    """A running job is to go on in another place: it is asked to stop, and placed there."""

    job: str
    attempt: int
    region: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Shared(Event):
    """Jobs run on the same GPUs."""

    jobs: tuple[str, ...]
    region: str
    cluster: str
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class ServerUp(Event):
    """A server is in service."""

    server: str
    region: str
    cluster: str
    rack: str
    gpu_type: str
    gpus: int
    cpu_mcores: int = 0
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class ServerDown(Event):
    """A server is out of service. What ran there is reported stopped."""

    server: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class CapacitySet(Event):
    """A server or pool has another capacity."""

    server: str
    gpus: int
    cpu_mcores: int = 0
    memory_mib: int = 0


@dataclass(frozen=True, slots=True)
class QuotaSet(Event):
    """A tenant has another quota."""

    tenant: str
    mgpu: int | None
    """None: there is no limit any more."""
    gpu_type: str = ""
    """Empty: of all types together."""


@dataclass(frozen=True, slots=True)
class CopyAsked(Event):
    """A replica is to be made."""

    dataset: str
    source: str
    region: str
    size_mb: int


@dataclass(frozen=True, slots=True)
class CopyProgress(Event):
    """So much of a replica is there."""

    dataset: str
    region: str
    copied_mb: int


@dataclass(frozen=True, slots=True)
class CopyEnded(Event):
    """A copy has ended; only a whole one is a replica."""

    dataset: str
    region: str
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ReplicaDropped(Event):
    """A replica is deleted."""

    dataset: str
    region: str


@dataclass(frozen=True, slots=True)
class SolveAsked(Event):
    """A slow path has asked for a plan."""

    path: str
    checksum: str
    """Of the instance as it was then."""


@dataclass(frozen=True, slots=True)
class SolveEnded(Event):
    """A solve has come to an end."""

    path: str
    checksum: str
    status: str
    plan: str = ""
    """Where the plan is; empty if there is none."""
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class PlanAdopted(Event):
    """A plan is carried out from now on."""

    path: str
    plan: str
    dropped: tuple[str, ...] = ()
    """Parts that no longer fit, in words."""


@dataclass(frozen=True, slots=True)
class ServerMoved(Event):
    """A server is part of another cluster from now on."""

    server: str
    region: str
    cluster: str


@dataclass(frozen=True, slots=True)
class HostLost(Event):
    """The host of a region cannot be reached."""

    region: str


@dataclass(frozen=True, slots=True)
class HostBack(Event):
    """The host of a region can be reached again."""

    region: str


@dataclass(frozen=True, slots=True)
class Reconciled(Event):
    """What a host runs was compared with the state."""

    region: str
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeadTaken(Event):
    """A process leads from now on."""

    holder: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Timer(Event):
    """A time that something waited for."""

    name: str


EVENTS: Mapping[str, type[Event]] = {
    cls.__name__: cls
    for cls in (
        *(Submitted, Cancelled, Queued, Refused, Bound, Placed, StopAsked, Started, Checkpointed, Stopped, Finished),
        *(Failed, Adopted, Resized, Relocated, Shared, ServerUp, ServerDown, CapacitySet, QuotaSet, CopyAsked),
        *(CopyProgress, CopyEnded, ReplicaDropped, SolveAsked, SolveEnded, PlanAdopted, ServerMoved, HostLost),
        *(HostBack, Reconciled, LeadTaken, Timer),
    )
}
"""Name in the log → class: every event there is."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An event in its place in a log."""

    seq: int
    """Counted from 1, without gaps."""
    at_ms: int
    """Never less than that of the event before."""
    event: Event
