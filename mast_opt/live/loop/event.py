"""Base of all events of the loop, and the errors of one that does not fit."""

from __future__ import annotations

from mast_opt.core.errors import MastOptError


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
