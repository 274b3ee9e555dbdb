"""How a run can end, beside the statuses of a solve."""

from __future__ import annotations

import enum


class Ended(enum.Enum):
    """What a result says where no solver's status applies."""

    MEASURED = "MEASURED"
    """A program printed its figures."""
    UNAVAILABLE = "UNAVAILABLE"
    """The solver is not installed or has no licence."""
    TOO_LARGE = "TOO_LARGE"
    """Over the size that the solver's licence allows, or that the memory holds."""
    REJECTED = "REJECTED"
    """The verifier rejects the plan that the solver gave."""
    ERROR = "ERROR"
    """An exception, told in ``error``."""
    MEMORY = "MEMORY"
    """Out of memory."""
    CRASHED = "CRASHED"
    """The process ended without a result."""
    TIMEOUT = "TIMEOUT"
    """The process was killed, long after the time limit."""


_EXPECTED = (Ended.MEASURED, Ended.UNAVAILABLE, Ended.TOO_LARGE)
BROKEN = frozenset(ended.value for ended in Ended if ended not in _EXPECTED)
"""What no run should end in, as results say it."""
