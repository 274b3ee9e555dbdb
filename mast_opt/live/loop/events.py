"""The closed list of events: facts that hosts and clients report, and decisions of the loop.

An event does not say when it happened; ``Stored`` adds its place in the log and its time. Jobs, servers and regions are
named as in the live fleet. Times and durations are in ms; amounts in base units.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import TypeAlias

from mast_opt.core.errors import MastOptError
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.problems.job_placement.live_fleet.types import Server, Share


class Event:
    """Base of all events."""

    __slots__ = ()


class Unfit(Exception):
    """An event does not fit the events before it; the argument says why. ``State.apply`` adds which event it is."""


class CorruptLog(MastOptError):
    """An event that does not fit the events before it.

    Args:
        seq: number of the event in its log.
    """

    code = "corrupt-log"

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(f"event {seq} of the log does not fit: {why}")
        self.seq = seq


# --- jobs: what clients hand in, what is decided, and what hosts report ---

Key: TypeAlias = tuple[float | str | None, ...]
"""Key by which bids compare (``Bid.key``), with None for an infinite number: there are no victims."""


def bid_key(parts: Iterable[float | str]) -> Key:
    """The key of a bid as an event keeps it."""
    return tuple(None if isinstance(part, float) and math.isinf(part) else part for part in parts)


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
    """The time that the kept work took, without restarts; None: as long as at the reference speed."""
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
    """A running elastic job has another number of tasks: its work is saved, it gives up or gets servers at once, and
    works again after its ``restart_ms``. Nobody stops where it grows, and it shares its GPUs with no other job."""

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


# --- what jobs run on and read: servers, quotas, datasets, and the hosts of regions ---


@dataclass(frozen=True, slots=True)
class ServerUp(Event):
    """A server is in service; one that was out of service may come back with other amounts, or elsewhere."""

    server: str
    region: str
    cluster: str
    rack: str
    gpu_type: str
    gpus: int
    cpu_mcores: int = 0
    memory_mib: int = 0

    @classmethod
    def of(cls, server: Server) -> "ServerUp":
        """The event that puts a server in service."""
        return cls(*astuple(server))

    def as_server(self) -> Server:
        """The server, as the live fleet takes it."""
        return Server(*astuple(self))


@dataclass(frozen=True, slots=True)
class ServerDown(Event):
    """A server is out of service. What ran there is reported stopped."""

    server: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class ServerClosed(Event):
    """A server takes no new job until it is opened, also when it breaks and comes back meanwhile."""

    server: str
    stop_ms: int | None = None
    """Time at which what still runs there is asked to stop; None for never."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ServerOpened(Event):
    """A server that was closed takes jobs again."""

    server: str


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
    borrowing_mgpu: int | None = None
    """Most that it may hold beyond the quota; None: whatever is free."""
    lending_mgpu: int | None = None
    """Most of the quota that others may hold; None: all."""
    parent: str | None = None
    """The group above it from now on, none if it is empty; None: as it is."""


@dataclass(frozen=True, slots=True)
class MoveAsked(Event):
    """A server is to become part of another cluster of its region. It takes no job until it has moved."""

    server: str
    cluster: str


@dataclass(frozen=True, slots=True)
class ServerMoved(Event):
    """Event of a server that is part of another cluster from now on."""

    server: str
    region: str
    cluster: str


@dataclass(frozen=True, slots=True)
class StorageSet(Event):
    """Event of a region's storage."""

    region: str
    storage_mb: int


@dataclass(frozen=True, slots=True)
class DatasetCreated(Event):
    """Event of a dataset that exists from now on, whole in these regions; of a known dataset, its size, owner and
    residency change, and the regions are those where it is."""

    dataset: str
    size_mb: int
    regions: tuple[str, ...]
    namespace: str = ""
    """Namespace that owns the data."""
    residency: tuple[str, ...] = ()
    """The only regions where it may be copied and jobs may read it; empty for any. What runs elsewhere goes on, and a
    replica elsewhere is only copied from."""


@dataclass(frozen=True, slots=True)
class CopyAsked(Event):
    """A replica is to be made."""

    dataset: str
    source: str
    region: str
    size_mb: int


@dataclass(frozen=True, slots=True)
class CopyProgress(Event):
    """Event of a copy under way: so much of the replica is there."""

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
class LeadTaken(Event):
    """Event of a process that leads from now on."""

    holder: str
    epoch: int
    unenforced: str = ""
    """Reason why its host does not end all jobs at their limits; empty if it does."""


@dataclass(frozen=True, slots=True)
class Timer(Event):
    """A time that something waited for."""

    name: str


# --- plans of slow paths ---

COPY, DROP, MOVE = "copy", "drop", "move"
"""Kinds of steps of a plan: make a replica, delete one, or move a server to another cluster."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of an adopted plan."""

    does: str
    """``copy``, ``drop`` or ``move``."""
    name: str
    """The dataset or server."""
    target: str
    """The region of the replica, or the cluster that the server becomes part of."""
    source: str = ""
    """Region from which a replica is copied."""
    first_wave: int = 0
    """It begins when every step whose last wave lies before has been taken."""
    last_wave: int = 0
    keep: int = 1
    """Number of whole replicas within the residency that a deletion has to leave."""


@dataclass(frozen=True, slots=True)
class SolveAsked(Event):
    """A slow path has asked for a plan."""

    path: str
    checksum: str
    """Checksum of the instance as it was then."""


@dataclass(frozen=True, slots=True)
class SolveEnded(Event):
    """A solve has come to an end."""

    path: str
    checksum: str
    status: str
    plan: str = ""
    """Place of the plan; empty if there is none."""
    bound: float | None = None
    """A proven bound on the objective."""
    objective: float | None = None
    """Objective of the plan; None in logs that do not have it."""


@dataclass(frozen=True, slots=True)
class PlanAdopted(Event):
    """Event of a plan that is carried out from now on."""

    path: str
    plan: str
    dropped: tuple[str, ...] = ()
    """Parts that no longer fit, in words."""
    steps: tuple[PlanStep, ...] = ()
    """Steps to be taken, wave by wave."""
    ratios: Mapping[int, float] | None = None
    """Ratios of a plan of data: tier → the largest demand over supply of a region and GPU type that is planned for work
    of this tier and more important ones."""


@dataclass(frozen=True, slots=True)
class StepDropped(Event):
    """A step of an adopted plan is not taken, as it no longer fits."""

    path: str
    does: str
    name: str
    target: str
    why: str
    """Reason in words."""


# --- the log ---

FORMAT = "mast-opt-log/1"
"""First line of a log."""

JOB_EVENTS: frozenset[type[Event]] = frozenset(
    (
        *(Submitted, Cancelled, Queued, Refused, Bound, Placed, StopAsked, Started, Stopped, Finished),
        *(Failed, Adopted, Resized, Shared, Promised, PromiseEnded),
    )
)
"""Events about jobs."""

EVENTS: Mapping[str, type[Event]] = {
    cls.__name__: cls
    for cls in (
        *sorted(JOB_EVENTS, key=lambda cls: cls.__name__),
        *(ServerUp, ServerDown, ServerClosed, ServerOpened, CapacitySet, QuotaSet, StorageSet, MoveAsked, ServerMoved),
        *(DatasetCreated, CopyAsked, CopyProgress, CopyEnded, ReplicaDropped, SolveAsked, SolveEnded, PlanAdopted),
        *(StepDropped, LeadTaken, Timer),
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
    by: str = ""
    """Client that asked for it, its address and the name of its request; empty for what the loop and hosts do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An event that a client asks for, on its way to the log."""

    event: Event
    by: str
