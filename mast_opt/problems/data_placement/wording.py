"""Amounts of data placement in words, as a planner says them."""

import math
from fractions import Fraction

from mast_opt.core.units import MB_PER_TB
from mast_opt.core.wording import counted


def quantity(number: float, units: str) -> str:
    """``1 core``, ``1.5 cores``, ``2 TB``: the unit as it is called next to several."""
    text = f"{number:.12g}"
    return f"{text} {units.removesuffix('s') if text == '1' else units}"


def tb(mb: float) -> str:
    """An amount of MB of data in TB, in words."""
    return f"{mb / MB_PER_TB:.12g} TB"


def cores(mcores: float) -> str:
    """An amount of mcores in cores, in words."""
    return quantity(mcores / 1000, "cores")


def copies(number: int) -> str:
    """A number of copies, in words."""
    return counted(number, "copy", "copies")


def days(number: Fraction) -> str:
    """A number of days, in words."""
    return counted(float(number), "day")


def shortfall(needed_mb: int, mb_per_day: int, allowed: Fraction) -> str:
    """Words on what does not arrive within the days that copies may take, and on what would mend it.

    Args:
        needed_mb: what has to arrive, more than comes in the days allowed.
        mb_per_day: what arrives in a day.
        allowed: the days.
    """
    missing = needed_mb - mb_per_day * allowed
    longer = f"{days(Fraction(math.ceil(Fraction(needed_mb, mb_per_day))))}, or " if mb_per_day else ""
    return f"{tb(math.ceil(missing))} too much; {longer}{tb(math.ceil(missing / allowed))} a day more, would do"
