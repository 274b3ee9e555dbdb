"""The states of a job. ``State.apply`` says which event leads from one to another, and refuses what cannot happen."""

import enum


class JobState(enum.Enum):
    """State of a job between its submission and its end."""

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
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    __hash__ = object.__hash__  # that of an Enum is Python, and takes longer than what looks it up


_S = JobState
WAITING = frozenset({_S.SUBMITTED, _S.QUEUED, _S.HELD})
"""States of a job without servers that has not ended."""
HOLDING = frozenset({_S.STARTING, _S.RUNNING, _S.STOPPING})
"""States in which a job holds servers."""
ENDED = frozenset({_S.FINISHED, _S.FAILED, _S.CANCELLED})
