"""The closed list of events: facts that hosts and clients report, and decisions of the loop.

An event does not say when it happened; ``Stored`` adds its place in the log and its time. Jobs, servers and regions are
named as in the live fleet. Times and durations are in ms; amounts in base units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mast_opt.live.loop.event import Event
from mast_opt.live.loop.fleet_events import (
    CapacitySet,
    CopyAsked,
    CopyEnded,
    CopyProgress,
    DatasetCreated,
    LeadTaken,
    MoveAsked,
    QuotaSet,
    ReplicaDropped,
    ServerClosed,
    ServerDown,
    ServerMoved,
    ServerOpened,
    ServerUp,
    StorageSet,
    Timer,
)
from mast_opt.live.loop.job_events import (
    Adopted,
    Bound,
    Cancelled,
    Failed,
    Finished,
    JobSpec,
    Key,
    Placed,
    Promised,
    PromiseEnded,
    Queued,
    Refused,
    Resized,
    Shared,
    Started,
    StopAsked,
    Stopped,
    Submitted,
    bid_key,
)
from mast_opt.live.loop.plan_events import (
    COPY,
    DROP,
    MOVE,
    PlanAdopted,
    PlanStep,
    SolveAsked,
    SolveEnded,
    StepDropped,
)

__all__ = [
    "COPY",
    "DROP",
    "EVENTS",
    "FORMAT",
    "JOB_EVENTS",
    "MOVE",
    "Adopted",
    "Asked",
    "Bound",
    "Cancelled",
    "CapacitySet",
    "CopyAsked",
    "CopyEnded",
    "CopyProgress",
    "DatasetCreated",
    "Event",
    "Failed",
    "Finished",
    "JobSpec",
    "Key",
    "LeadTaken",
    "MoveAsked",
    "Placed",
    "PlanAdopted",
    "PlanStep",
    "PromiseEnded",
    "Promised",
    "Queued",
    "QuotaSet",
    "Refused",
    "ReplicaDropped",
    "Resized",
    "ServerClosed",
    "ServerDown",
    "ServerMoved",
    "ServerOpened",
    "ServerUp",
    "Shared",
    "SolveAsked",
    "SolveEnded",
    "Started",
    "StepDropped",
    "StopAsked",
    "Stopped",
    "StorageSet",
    "Stored",
    "Submitted",
    "Timer",
    "bid_key",
]

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
