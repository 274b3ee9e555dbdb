"""Scenario values, for every kind of problem: names become positions, and faults are named with what was expected."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.problems.kind.problem import ProblemT

LARGEST = 1e12
LARGEST_SUM = 9.2e18
"""A little less than 2^63, so that it may be added up in floating point."""
LISTED = 12
"""Known names that an error lists."""


@dataclass(frozen=True)
class Record:
    """One table of a list: where it applies, and how much."""

    at: Mapping[str, int]
    amount: float


def named(key: str, noun: str, known: Sequence[str], name: object) -> int:
    """The position of a name in a scenario. Raises UsageError that lists the known ones."""
    if isinstance(name, str) and name in known:
        return known.index(name)
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    near = did_you_mean(name, known) if isinstance(name, str) else ""
    raise UsageError(
        f"{key}: there is no {noun} called {name!r}; expected one of: {', '.join(known[:LISTED])}{more}{near}"
    )


def positions(key: str, noun: str, known: Sequence[str], value: object) -> list[int]:
    """Positions of a scenario's list of names, or of a single one."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise UsageError(f'{key} is {value!r}; expected a list of {noun}s, as in {key} = ["{known[0]}"]')
    return [named(key, noun, known, name) for name in names]


def number(key: str, value: object) -> float:
    """A scenario's number of at most ``LARGEST``, so that it fits in 64 bits in base units too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise UsageError(f"{key} is {value!r}; expected a number")
    if abs(value) > LARGEST:
        raise UsageError(f"{key} is {str(value)[:20]}; expected a number from {-LARGEST:g} to {LARGEST:g}")
    return float(value)


def grown(key: str, values: NDArray[np.int64], times: NDArray[np.float64]) -> NDArray[np.int64]:
    """A scenario's growth: base units of at least 0 times factors, rounded up, but not for what is only floating-point
    error in a factor.

    Raises:
        UsageError: together they do not fit in 64 bits.
    """
    total = float((values * times).sum())
    if total >= LARGEST_SUM:
        raise UsageError(f"{key} makes {values.sum():.3g} base units {total:.3g}; expected what fits in 64 bits")
    larger = values.copy()
    each = np.broadcast_to(times, values.shape)
    for distinct in np.unique(times[times != 1.0]).tolist():
        share, at = _fraction(distinct), each == distinct
        chosen = values[at]
        if int(chosen.max(initial=1)) * share.numerator >= 2**63 or share.denominator >= 2**63:
            chosen = chosen.astype(object)
        larger[at] = -(-(chosen * share.numerator) // share.denominator)
    return larger


def _fraction(times: float) -> Fraction:
    """Exact value of a factor: 6/5 for 1.2, and 5/3 for the nearest floating-point numbers."""
    simple = Fraction(times).limit_denominator(1_000_000)
    return simple if math.isclose(simple, times, rel_tol=1e-15) else Fraction(str(times))


def whole(key: str, value: float, least: int | None = None) -> int:
    """A scenario's whole number, of at least ``least`` if that is given."""
    if not value.is_integer() or (least is not None and value < least):
        at_least = "" if least is None else f" of at least {least}"
        raise UsageError(f"{key} is {value:.12g}; expected a whole number{at_least}")
    return int(value)


def factor(key: str, value: object) -> float:
    """A scenario's factor, a number of at least 0."""
    times = number(key, value)
    if times < 0:
        raise UsageError(f"{key} is {value!r}; expected a factor of at least 0, such as 1.2")
    return times


def amounts(key: str, noun: str, known: Sequence[str], value: object) -> dict[int, float]:
    """A scenario's table of numbers by name."""
    if not isinstance(value, Mapping) or not value:
        raise UsageError(f"{key} is {value!r}; expected a table, as in {key} = {{ {known[0]} = 1 }}")
    return {named(key, noun, known, name): number(f"{key}.{name}", amount) for name, amount in value.items()}


def records(key: str, axes: Mapping[str, Sequence[str]], amount: str | None, value: object) -> list[Record]:
    """A scenario's list of tables with a name on each axis and, unless ``amount`` is None, a number."""
    wanted = (*axes, amount) if amount is not None else tuple(axes)
    shape = ", ".join(f"{name} = …" for name in wanted)
    rows = [value] if isinstance(value, Mapping) else value
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(f"{key} is {value!r}; expected a list of tables, as in {key} = [{{ {shape} }}]")
    found = []
    for row in rows:
        if set(row) != set(wanted):
            raise UsageError(f"{key} has a table with {', '.join(map(str, row))}; expected {{ {shape} }}")
        at = {name: named(f"{key}.{name}", name, known, row[name]) for name, known in axes.items()}
        found.append(Record(at, 1.0 if amount is None else number(f"{key}.{amount}", row[amount])))
    return found


def factors(key: str, noun: str, known: Sequence[str], value: object) -> NDArray[np.float64]:
    """A scenario's factor for every name: one number for all, or a table of names; 1 for those that the table leaves
    out.
    """
    by_name = value if isinstance(value, Mapping) else dict.fromkeys(known, value)
    times = np.ones(len(known))
    for at, one in amounts(key, noun, known, by_name).items():
        times[at] = factor(f"{key}.{known[at]}", one)
    return times


def tier_factors(key: str, tiers: Sequence[int], value: object) -> NDArray[np.float64]:
    """A scenario's factor for every tier: one number for all, or a table with ``all`` and tiers that differ from it."""
    by_tier = value if isinstance(value, Mapping) else {"all": value}
    names = ("all", *(str(tier) for tier in tiers))
    for name in by_tier:
        named(key, "tier", names, name)
    stated = {name: factor(f"{key}.{name}", times) for name, times in by_tier.items()}
    return np.array([stated.get(str(tier), stated.get("all", 1.0)) for tier in tiers])


def reweighted(problem: ProblemT, value: object) -> ProblemT:
    """The problem of a scenario, with other weights of some terms of its objective."""
    terms = tuple(problem.objective.weights)
    changed = {terms[at]: weight for at, weight in amounts("weights", "term", terms, value).items()}
    if any(weight < 0 for weight in changed.values()):
        raise UsageError("weights: expected numbers of at least 0")
    return problem.with_objective(changed)
