"""The states of a job, and the events that lead from one to another."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from mast_opt.loop.events import (
    Adopted,
    Bound,
    Cancelled,
    Checkpointed,
    Event,
    Failed,
    Finished,
    HostLost,
    Placed,
    Queued,
    Refused,
    Relocated,
    Resized,
    Shared,
    Started,
    StopAsked,
    Stopped,
    Submitted,
)


class JobState(enum.Enum):
    """Where a job is between its submission and its end."""

    SUBMITTED = "submitted"
    """Nothing has been decided yet."""
    QUEUED = "queued"
    HELD = "held"
    """It waits, and is not looked at: it was refused, or is held back."""
    STARTING = "starting"
    """It holds servers and does not run yet."""
    RUNNING = "running"
    STOPPING = "stopping"
    """It was asked to stop and still holds its servers."""
    LOST = "lost"
    """Its host cannot be reached: it may run or not."""
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


_S = JobState
WAITING = frozenset({_S.SUBMITTED, _S.QUEUED, _S.HELD})
"""States of a job without servers that has not ended."""
HOLDING = frozenset({_S.STARTING, _S.RUNNING, _S.STOPPING, _S.LOST})
"""States in which a job holds servers."""
ENDED = frozenset({_S.FINISHED, _S.FAILED, _S.CANCELLED})


def _moves(sources: frozenset[JobState], target: JobState | None) -> dict[JobState, JobState]:
    return {source: target or source for source in sources}


TRANSITIONS: Mapping[type[Event], Mapping[JobState, JobState]] = {
    Queued: _moves(WAITING, _S.QUEUED),
    Refused: _moves(WAITING, _S.HELD),
    Bound: _moves(WAITING, None),
    Cancelled: {**_moves(WAITING, _S.CANCELLED), **_moves(HOLDING, None)},
    Placed: _moves(WAITING, _S.STARTING),
    Started: {_S.STARTING: _S.RUNNING, _S.LOST: _S.RUNNING, _S.STOPPING: _S.STOPPING},
    Checkpointed: _moves(frozenset({_S.RUNNING, _S.STOPPING, _S.LOST}), None),
    StopAsked: _moves(HOLDING, _S.STOPPING),
    Stopped: _moves(HOLDING, _S.QUEUED),
    Finished: _moves(HOLDING, _S.FINISHED),
    Failed: _moves(HOLDING, _S.FAILED),
    Adopted: _moves(WAITING | HOLDING, _S.RUNNING),
    Resized: _moves(frozenset({_S.RUNNING}), None),
    Relocated: _moves(frozenset({_S.STARTING, _S.RUNNING}), None),
    Shared: _moves(WAITING | {_S.RUNNING}, _S.RUNNING),
    HostLost: _moves(HOLDING, _S.LOST),
}
"""Event → state of the job before → state after; what is not listed cannot happen. ``Submitted`` makes a new job."""


def state_after(before: JobState | None, event: Event) -> JobState | None:
    """The state of a job after an event that is about it; None if that cannot happen in this state.

    Args:
        before: None for a job that there was not.
        event: one that names the job, or the loss of its host.
    """
    if before is None:
        if isinstance(event, Submitted):
            return _S.SUBMITTED
        return _S.RUNNING if isinstance(event, Adopted) else None
    if isinstance(event, Placed) and event.at_once and before in WAITING:
        return _S.RUNNING
    return TRANSITIONS.get(type(event), {}).get(before)
