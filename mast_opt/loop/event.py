"""Base of all events of the loop."""

from __future__ import annotations


class Event:
    """Base of all events."""

    __slots__ = ()
