"""What callers of a live fleet hand in, checked where they hand it in."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import isfinite
from operator import index

from mast_opt.core.arguments import refuse, texts
from mast_opt.core.errors import UsageError
from mast_opt.job_placement.units import LARGEST


def whole(owner: str, what: str, value: object, least: int = 0, most: int = LARGEST) -> int:
    """A whole number (of Python or NumPy) as one of Python. Raises UsageError for anything else, and for one that is
    not within the limits."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{owner}: {what} is {value!r}; expected a whole number") from None
    if number < least:
        raise UsageError(f"{owner}: {what} is {number}; expected at least {least}")
    if number > most:
        raise UsageError(f"{owner}: {what} is {number:,}; expected at most {most:,}")
    return number


def amount(owner: str, what: str, value: object) -> float:
    """A finite number of at least 0. Raises UsageError for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value) and value >= 0:
        return float(value)
    raise UsageError(f"{owner}: {what} is {value!r}; expected a finite number of at least 0")


def names_in(what: str, names: Collection[str]) -> frozenset[str]:
    """The names. Raises UsageError for a single string, whose letters would be taken for names."""
    if isinstance(names, str):
        raise UsageError(f"{what}: {names!r} is one string; expected a collection of names, as in [{names!r}]")
    texts(what, names)
    return frozenset(names)


def tiers_in(tiers: Iterable[int]) -> tuple[int, ...]:
    """The tiers in ascending order, each once. Raises UsageError for what is no collection of whole numbers."""
    if isinstance(tiers, (str, bytes)) or not isinstance(tiers, Iterable):
        raise refuse("tiers", tiers, "a collection of whole numbers")
    return tuple(sorted({whole("the fleet", "a tier", tier, least=-LARGEST) for tier in tiers}))
