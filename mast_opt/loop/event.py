"""Base of all events of the loop, and the error of one that does not fit."""

from __future__ import annotations


class Event:
    """Base of all events."""

    __slots__ = ()


class Unfit(Exception):
    """An event does not fit the events before it; the argument says why. ``State.apply`` adds which event it is."""
