"""What the parts of the state raise where an event does not fit."""

from __future__ import annotations


class Unfit(Exception):
    """An event does not fit the events before it; the argument says why. ``State.apply`` adds which event it is."""
