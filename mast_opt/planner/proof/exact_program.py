"""A mixed-integer program in rational numbers, as its .mps file states it, and exact points near rounded ones."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.planner.proof.steps import Side, Source, Step
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.export.mps import row_limits
from mast_opt.problems.mip.transforms import Extension, extended

Entries = list[tuple[int, Fraction]]
Limits = tuple[Fraction | None, Fraction | None]
PATIENCE = 50
"""Shifts for each limit that is broken at first, after which there is taken to be no exact point nearby."""
FREE: Limits = (None, None)


class Combination(NamedTuple):
    """A linear combination of limits that proves Σ cost · x ≥ ``bound``."""

    bound: Fraction
    multipliers: dict[Side, Fraction]


@dataclass(frozen=True, eq=False)
class ExactProgram:
    """The program of an .mps file: every decimal there is a rational number.

    The constant of the objective is the cost of a last column that is fixed at 1.
    """

    mip: Mip
    cost: list[Fraction]
    rows: list[Entries]
    row_limits: list[Limits]
    column_limits: list[Limits]
    derived: Mapping[Side, Step] = field(default_factory=dict)
    """The steps of a proof that state limits which follow from the others."""

    @classmethod
    def of(cls, mip: Mip) -> "ExactProgram":
        """The program that ``write_mps`` writes."""
        known: dict[float, Fraction] = {}

        def exact(values: FloatArray) -> list[Fraction]:
            return [known.get(value) or known.setdefault(value, decimal(value)) for value in values.tolist()]

        def limits(lower: FloatArray, upper: FloatArray) -> list[Limits]:
            sides = [
                [number if finite else None for number, finite in zip(exact(np.nan_to_num(side)), np.isfinite(side))]
                for side in (lower, upper)
            ]
            return list(zip(*sides, strict=True))

        entries = list(zip(mip.index.tolist(), exact(mip.value), strict=True))
        start = mip.row_start.tolist()
        kind, rhs, span = row_limits(mip.row_lower, mip.row_upper)
        both = [
            _stated(letter, number, width)
            for letter, number, width in zip(kind.tolist(), exact(rhs), exact(span), strict=True)
        ]
        cost, columns = exact(mip.cost), limits(mip.col_lower, mip.col_upper)
        if mip.offset:
            cost, columns = [*cost, decimal(mip.offset)], [*columns, (Fraction(1), Fraction(1))]
        rows = [[(at, number) for at, number in entries[first:last] if number] for first, last in pairwise(start)]
        return cls(mip, cost, rows, both, columns)

    @cached_property
    def columns(self) -> list[Entries]:
        """Entries of each column, with their rows."""
        return transposed(self.rows, len(self.cost))

    def source(self, side: Side) -> Source:
        """A limit of the program, or the step that states it."""
        return self.derived.get(side, side)

    def constraint(self, source: Source) -> tuple[Fraction, Entries]:
        """Right-hand side and entries of a limit or a step."""
        if isinstance(source, Step):
            assert source.entries is not None
            return source.rhs, list(source.entries.items())
        kind, at, side = source
        limit = (self.row_limits if kind == "row" else self.column_limits)[at][side]
        assert limit is not None
        return limit, self.rows[at] if kind == "row" else [(at, Fraction(1))]

    def bounded(self, steps: Sequence[Step]) -> "ExactProgram":
        """The program with limits of columns, which steps of one entry 1 state, in place of weaker ones."""
        limits, derived = list(self.column_limits), dict(self.derived)
        mip = self.mip
        sides = mip.col_lower.copy(), mip.col_upper.copy()
        for step in steps:
            ((column, _),) = (step.entries or {}).items()
            side = int(step.sense == "L")
            below, above = limits[column]
            limits[column] = (below, step.rhs) if side else (step.rhs, above)
            derived["column", column, side] = step
            sides[side][column] = float(step.rhs)
        tighter = replace(mip, col_lower=frozen(sides[0]), col_upper=frozen(sides[1]))
        return replace(self, mip=tighter, column_limits=limits, derived=derived)

    def with_rows(self, steps: Sequence[Step]) -> "ExactProgram":
        """The program with more rows, which steps state."""
        if not steps:
            return self
        mip, first = self.mip, len(self.rows)
        derived = {**self.derived, **{("row", first + at, int(one.sense == "L")): one for at, one in enumerate(steps)}}
        rows = [list((step.entries or {}).items()) for step in steps]
        limits: list[Limits] = [(None, one.rhs) if one.sense == "L" else (one.rhs, None) for one in steps]
        lower, upper = (
            np.array([missing if limit[side] is None else float(limit[side] or 0) for limit in limits])
            for side, missing in enumerate((-np.inf, np.inf))
        )
        at = first + np.repeat(np.arange(len(rows)), [len(entries) for entries in rows])
        columns = np.array([column for entries in rows for column, _ in entries], np.int64)
        numbers = [float(number) for entries in rows for _, number in entries]
        more = Extension("proven", rows=len(rows), row_lower=lower, row_upper=upper, entries=[(at, columns, numbers)])
        wide = extended(mip, more)
        return replace(self, mip=wide, rows=self.rows + rows, row_limits=self.row_limits + limits, derived=derived)

    def objective(self, x: Sequence[Fraction]) -> Fraction:
        """The exact objective at x."""
        return sum((cost * value for cost, value in zip(self.cost, x, strict=True)), Fraction(0))

    def solution(self, x: FloatArray) -> list[Fraction] | None:
        """A point that keeps every limit exactly, with the integer columns of x; None where none is found."""
        start = [decimal(value) for value in x.tolist()]
        box = list(self.column_limits)
        for column in np.flatnonzero(self.mip.integral).tolist():
            start[column] = Fraction(round(start[column]))
            if _shortage(start[column], box[column]):
                return None
            box[column] = (start[column], start[column])
        start += [Fraction(1)] * (len(self.cost) - len(start))
        return exact_point(self.rows, self.columns, self.row_limits, box, start)

    def combination(
        self, prices: FloatArray, column_limits: Sequence[Limits], *, costs: bool = True
    ) -> Combination | None:
        """The bound that prices of rows prove on the objective, or on 0 without ``costs``: reduced costs take the
        limits of columns. None where a column without a limit stands in the way.
        """
        cost = self.cost if costs else [Fraction(0)] * len(self.cost)
        least = 1e-12 * float(np.abs(prices).max(initial=0.0))
        start = [Fraction(0) if abs(price) <= least else Fraction(f"{price:.14g}") for price in prices.tolist()]
        box = [(None if above is not None else Fraction(0), None if below is not None else Fraction(0))
               for below, above in self.row_limits]  # fmt: skip
        needed = [
            (number if below is None else None, number if above is None else None)
            for number, (below, above) in zip(cost, column_limits, strict=True)
        ]
        exact = exact_point(self.columns, self.rows, needed, box, start)
        if exact is None:
            return None
        reduced = list(cost)
        for price, entries in zip(exact, self.rows, strict=True):
            if price:
                for column, number in entries:
                    reduced[column] -= price * number
        bound, multipliers = Fraction(0), {}
        for kind, values, limits in (("row", exact, self.row_limits), ("column", reduced, column_limits)):
            for at, value in enumerate(values):
                side = int(value < 0)
                limit = limits[at][side]
                if value and limit is not None:
                    multipliers[kind, at, side] = value
                    bound += value * limit
        return Combination(bound, multipliers)


def decimal(value: float) -> Fraction:
    """The rational number that the shortest decimal of a float states."""
    return Fraction(repr(value))


def _stated(letter: int, rhs: Fraction, span: Fraction) -> Limits:
    """Limits of a row of an .mps file: 0 none, 1 from above, 2 from below, 3 on both sides."""
    return (
        None if letter == 0 or (letter == 1 and not span) else rhs - span if letter == 1 else rhs,
        None if letter == 0 or (letter == 2 and not span) else rhs + span if letter == 2 else rhs,
    )


def transposed(rows: Sequence[Entries], width: int) -> list[Entries]:
    """Entries of the columns of a matrix that is given by rows."""
    columns: list[Entries] = [[] for _ in range(width)]
    for row, entries in enumerate(rows):
        for column, number in entries:
            columns[column].append((row, number))
    return columns


def exact_point(
    rows: Sequence[Entries],
    columns: Sequence[Entries],
    limits: Sequence[Limits],
    box: Sequence[Limits],
    start: Sequence[Fraction],
) -> list[Fraction] | None:
    """A point that keeps the limits of rows and the box of columns exactly, near one that does so but for rounding.

    A row that is broken is repaired by one column, of those with room the one that breaks the fewest other rows.
    Returns None where that does not end.
    """
    point = [value + _shortage(value, limits) for value, limits in zip(start, box, strict=True)]
    activity = [sum((number * point[column] for column, number in entries), Fraction(0)) for entries in rows]
    broken = deque(row for row, limit in enumerate(limits) if limit != FREE and _shortage(activity[row], limit))
    patience = PATIENCE * (len(broken) + 1)
    while broken:
        row = broken.popleft()
        missing = _shortage(activity[row], limits[row])
        if not missing:
            continue
        patience -= 1
        choices = []
        for column, number in rows[row]:
            step = _rounded(missing / number) if limits[row][0] != limits[row][1] else missing / number
            if not _shortage(point[column] + step, box[column]):
                harmed = [
                    other
                    for other, part in columns[column]
                    if other != row and _shortage(activity[other] + part * step, limits[other])
                ]
                choices.append((len(harmed), abs(step), column, step, harmed))
        if not choices or patience < 0:
            return None
        _, _, column, step, harmed = min(choices)
        point[column] += step
        for other, part in columns[column]:
            activity[other] += part * step
        broken.extend(harmed)
    return point


def _shortage(value: Fraction, limits: Limits) -> Fraction:
    """The number that a value lacks to be within limits; 0 where it is."""
    lower, upper = limits
    if lower is not None and value < lower:
        return lower - value
    if upper is not None and value > upper:
        return upper - value
    return Fraction(0)


def _rounded(step: Fraction) -> Fraction:
    """A number with few digits that is a little further from 0."""
    return Fraction(f"{float(step) * (1 + 1e-6):.9g}")
