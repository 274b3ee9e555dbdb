"""Rows and limits that whole columns imply, each with the steps that derive it: rounded limits and MIR rows."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.planner.proof.exact_program import ExactProgram
from mast_opt.planner.proof.split_tree import WHOLE, Node, prove
from mast_opt.planner.proof.steps import Side, Source, Step, completed, joined, rounded, split

BOUND_ROUNDS = 5
"""Passes over the rows that look for limits of columns."""
MOST_ROUNDS = 30
"""Linear programs that are solved one after another to find rows which their solutions break."""
MOST_ROWS = 2_000
"""Rows added after one of them."""
MOST_DIVISORS = 8
"""Sizes by which a row is rounded, of those that it has."""
LEAST = 1e-4
"""Distance from a solution, relative to the length of the row, from which a row is added."""


@dataclass(frozen=True)
class Base:
    """A combination of rows, in the direction ≤."""

    factors: dict[Side, Fraction]


def tightened(program: ExactProgram) -> ExactProgram:
    """The program with limits of whole columns that single rows imply."""
    mip = program.mip
    row = np.repeat(np.arange(mip.shape[0]), np.diff(mip.row_start))
    for _ in range(BOUND_ROUNDS):
        low, high = program.mip.col_lower, program.mip.col_upper
        found: dict[tuple[int, int], tuple[float, int, int]] = {}
        for side, (limit, sign) in enumerate(((mip.row_lower, -1.0), (mip.row_upper, 1.0))):
            value = sign * mip.value
            least = np.where(value > 0, value * low[mip.index], value * high[mip.index])
            open_ends = np.bincount(row, weights=np.isinf(least), minlength=mip.shape[0])
            finite = np.where(np.isinf(least), 0.0, least)
            total = np.bincount(row, weights=finite, minlength=mip.shape[0])
            others = open_ends[row] - np.isinf(least)
            with np.errstate(invalid="ignore", divide="ignore"):
                reach = (sign * limit[row] - total[row] + finite) / value
            up = value > 0
            gains = np.where(up, reach < high[mip.index] - 1e-6, reach > low[mip.index] + 1e-6)
            for at in np.flatnonzero(gains & (others == 0) & mip.integral[mip.index] & np.isfinite(reach)).tolist():
                key, score = (int(mip.index[at]), int(up[at])), float(reach[at]) * (1 if up[at] else -1)
                if key not in found or score < found[key][0]:
                    found[key] = (score, int(row[at]), side)
        limits = (_limit(program, column, up, at, side) for (column, up), (_, at, side) in found.items())
        steps = [step for step in limits if step is not None]
        if not steps:
            break
        program = program.bounded(steps)
    return program


def _limit(program: ExactProgram, column: int, up: int, row: int, side: int) -> Step | None:
    """The limit of a whole column that a row implies; None where it is no better than what there is."""
    number = dict(program.rows[row])[column]
    step = completed(program, "GL"[up], {column: Fraction(1)}, {program.source(("row", row, side)): 1 / number})
    if step is None:
        return None
    step, known = rounded(step), program.column_limits[column][up]
    better = known is None or (step.rhs < known if up else step.rhs > known)
    return step if better else None


@dataclass(frozen=True)
class _Shifted:
    """A base over columns that are at least 0: whole ones with their sign in it, others only where they relax it."""

    whole: dict[int, tuple[int, Fraction, Fraction]]
    """Column → sign, limit that it is counted from, and coefficient."""
    rest: dict[int, Fraction]
    """Entries of the other columns that stay, each below 0 once it is counted from ``low``."""
    low: dict[int, Fraction]
    rhs: Fraction


def _shifted(program: ExactProgram, base: Base, x: FloatArray) -> _Shifted | None:
    """A base counted from the limits of columns that are nearest to x; None where a limit is missing."""
    entries: dict[int, Fraction] = {}
    rhs = Fraction(0)
    for source, factor in base.factors.items():
        limit, vector = program.constraint(source)
        rhs += factor * limit
        for column, number in vector:
            entries[column] = entries.get(column, Fraction(0)) + factor * number
    found = _Shifted({}, {}, {}, rhs)
    for column, number in entries.items():
        low, high = program.column_limits[column]
        if not number:
            continue
        whole = column < len(program.mip.integral) and bool(program.mip.integral[column])
        if whole:
            down = low is not None and (high is None or x[column] - float(low) <= float(high) - x[column])
            limit_of = low if down else high
            if limit_of is None or limit_of.denominator != 1:
                return None
            found.whole[column] = (1 if down else -1, limit_of, number if down else -number)
        else:
            limit_of = low if number > 0 or low is not None else high
            if limit_of is None or (number > 0 and low is None):
                return None
            if number < 0 and low is not None:
                found.rest[column], found.low[column] = number, low
        rhs -= number * limit_of
    return _Shifted(found.whole, found.rest, found.low, rhs)


def mir(program: ExactProgram, base: Base, size: Fraction, x: FloatArray) -> Step | None:
    """The mixed-integer rounding of a base by a size: a row that holds on both sides of a split. None where none is."""
    shifted = _shifted(program, base, x)
    return None if shifted is None else _mir(program, base, shifted, size)


def _mir(program: ExactProgram, base: Base, shifted: _Shifted, size: Fraction) -> Step | None:
    whole, over = divmod(shifted.rhs, size)
    if not over:
        return None
    row, count, below = dict(shifted.rest), {}, Fraction(whole)
    for column, (sign, limit, number) in shifted.whole.items():
        times, part = divmod(number, size)
        if entry := times * (size - over) + max(part - over, Fraction(0)):
            row[column] = sign * entry
        if up := Fraction(times + (part > over)):
            count[column] = sign * up
            below += sign * up * limit
    if not count:
        return None
    first, second = split(count, below)
    factors: dict[Source, Fraction] = {program.source(side): factor for side, factor in base.factors.items()}
    one = completed(program, "L", row, {first: size - over})
    other = completed(program, "L", row, {**factors, second: -over})
    return joined(one, first, other, second)


def _broken(shifted: _Shifted, size: float, x: FloatArray) -> float:
    """Distance by which x breaks the rounding of a base by a size; 0 or less where it does not."""
    columns = list(shifted.whole)
    if not columns:
        return 0.0
    sign, limit, number = np.array([[float(part) for part in shifted.whole[column]] for column in columns]).T
    t = sign * (x[columns] - limit)
    whole, over = divmod(float(shifted.rhs), size)
    if not 1e-6 * size < over < (1 - 1e-6) * size:
        return 0.0
    times = np.floor(number / size + 1e-12)
    entries = times * (size - over) + np.maximum(number - times * size - over, 0.0)
    rest = sum(float(entry) * (x[column] - float(shifted.low[column])) for column, entry in shifted.rest.items())
    length = np.sqrt((entries**2).sum() + sum(float(entry) ** 2 for entry in shifted.rest.values()))
    return float((entries @ t + rest - whole * (size - over)) / length) if length else 0.0


def strengthened(
    program: ExactProgram, rows: Sequence[Step], target: Fraction, *, time_limit_s: float
) -> tuple[ExactProgram, Node]:
    """The program with some rows and others that cut off solutions of its relaxation, and its root; no more than the
    target needs.
    """
    began, plain = time.monotonic(), program
    root, program = Node({}), plain.with_rows(rows)
    prove(program, root)
    for _ in range(MOST_ROUNDS):
        done = root.proof is None or root.x is None or root.proof.bound >= target
        if done or time.monotonic() - began > time_limit_s:
            break
        assert root.x is not None
        assert root.proof is not None
        rows = _separated(plain, root.x)
        used = [side for side in root.proof.multipliers if side[0] == "row" and side in program.derived]
        kept = [program.derived[side] for side in used]
        if not rows:
            break
        program = plain.with_rows([*kept, *rows])
        next_root = Node({})
        prove(program, next_root)
        if next_root.proof is None or next_root.proof.bound < root.proof.bound:
            break
        root = next_root
    return program, root


def _single_rows(program: ExactProgram, x: FloatArray) -> Iterator[Base]:
    """Each limit of a row that holds x back and has whole columns which x splits, in the direction ≤."""
    mip = program.mip
    row = np.repeat(np.arange(mip.shape[0]), np.diff(mip.row_start))
    parts = mip.integral & (np.abs(x - np.rint(x)) > WHOLE)
    splits = np.bincount(row, weights=parts[mip.index], minlength=mip.shape[0]) > 0
    activity = np.bincount(row, weights=mip.value * x[mip.index], minlength=mip.shape[0])
    for side, limit in enumerate((mip.row_lower, mip.row_upper)):
        tight = np.isfinite(limit) & (np.abs(activity - limit) <= WHOLE * np.maximum(1.0, np.abs(activity)))
        for at in np.flatnonzero(splits & tight).tolist():
            yield Base({("row", at, side): Fraction(1 if side else -1)})


def _separated(program: ExactProgram, x: FloatArray) -> list[Step]:
    """The rows that x breaks most."""
    found = []
    for order, base in enumerate(_single_rows(program, x)):
        shifted = _shifted(program, base, x)
        if shifted is None:
            continue
        fractional = {
            abs(number) for column, (_, _, number) in shifted.whole.items() if abs(x[column] - round(x[column])) > WHOLE
        }
        sizes = sorted(fractional, reverse=True)[:MOST_DIVISORS]
        score, size = max((_broken(shifted, float(size), x), size) for size in sizes)
        if score > LEAST:
            found.append((-score, order, base, shifted, size))
    found.sort(key=lambda one: one[:2])
    steps = (_mir(program, base, shifted, size) for _, _, base, shifted, size in found[:MOST_ROWS])
    return [step for step in steps if step is not None]
