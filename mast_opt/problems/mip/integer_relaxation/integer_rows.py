"""Integer rows of a MIP for CP-SAT: exact where they can be, relaxed by the rounding error where not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.problems.mip.integer_relaxation.coefficients import Coefficients
from mast_opt.problems.mip.integer_relaxation.implied_integers import snapped, whole
from mast_opt.problems.mip.program import Mip

NO_LIMIT = 2**63 - 1
"""A row limit of ±this is none."""
LARGEST_SUM = 2.0**61
"""Largest sum of a row, so that int64 arithmetic on it never overflows."""
PRECISE_SUM = 2.0**57
"""Largest sum to which a row that needs rounding is scaled."""
MOST_DIGITS = 12
ROUND_OFF = 2.0**-48
"""Relative error of a sum of floats."""
NEGLIGIBLE = 1e-13
"""Relative error of a row that counts as none when a scale is chosen; it is accounted for all the same."""


@dataclass(frozen=True)
class IntegerRows:
    """lower ≤ Σ value · z ≤ upper, row by row (CSR: start, index, value), all int64. Rows without limits are absent."""

    lower: IntArray
    upper: IntArray
    start: IntArray
    index: IntArray
    value: IntArray


def row_units(entries: Coefficients, exact: BoolArray) -> FloatArray:
    """Greatest common divisor of each row's coefficients of ``exact`` columns; 1 if one of them is not whole."""
    mine = entries.part(exact[entries.column])
    sound = whole(mine.value) & (np.abs(mine.value) < 2.0**53)
    coefficient = np.where(sound, np.round(np.abs(mine.value)), 1.0).astype(np.int64)
    return np.asarray(np.maximum(mine.row_best(np.gcd, coefficient, 1), 1), np.float64)


def integer_rows(
    mip: Mip,
    entries: Coefficients,
    base: FloatArray,
    per_unit: FloatArray,
    z_lower: FloatArray,
    z_upper: FloatArray,
    off_by: FloatArray,
) -> IntegerRows:
    """The rows of ``mip`` over z, where x = base + z / per_unit.

    Args:
        off_by: by how much each z may be off; limits move outward by what that can add up to.

    Raises:
        OverflowError: a row's sum does not fit in int64.
    """
    whole_columns = (base == 0) & (off_by == 0)
    unit = row_units(entries, whole_columns & (per_unit == 1))
    coefficient = entries.value / per_unit[entries.column]
    reach = np.maximum(np.abs(z_lower), np.abs(z_upper))[entries.column]
    shift = entries.row_sum(entries.value * base[entries.column])
    shift_size = entries.row_sum(np.abs(entries.value * base[entries.column]))
    factor, rough = _factors(entries, coefficient, reach, unit)
    scaled = coefficient * factor[entries.row]
    rounded = np.where(reach > 0, np.round(scaled), 0.0)
    error = entries.row_sum(np.abs(scaled - rounded) * reach + np.abs(rounded) * off_by[entries.column])
    total = entries.row_sum(np.abs(rounded) * reach)
    if (total > LARGEST_SUM).any():
        row = int(np.argmax(total))
        raise OverflowError(f"row {row} adds up to {total[row] / factor[row]:g}")
    slack = error + ROUND_OFF * (shift_size * factor + np.where(rough, total, 0.0))
    lower = np.ceil(_loosened((mip.row_lower - shift) * factor, -slack))
    upper = np.floor(_loosened((mip.row_upper - shift) * factor, slack))
    return _reduced(mip, entries, rounded.astype(np.int64), lower, upper)


def _loosened(limit: FloatArray, slack: FloatArray) -> FloatArray:
    """A row's limit moved by its slack; where the row is exact, the integer that the limit is up to rounding."""
    finite = np.where(np.isinf(limit), 0.0, np.abs(limit))
    return np.where(slack == 0, snapped(limit), limit + slack + np.sign(slack) * ROUND_OFF * finite)


def _factors(
    entries: Coefficients, coefficient: FloatArray, reach: FloatArray, unit: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Multiplier of each row: the least power of ten, or that over the row's unit, that makes it whole.

    Where none does, a power of two as large as ``PRECISE_SUM`` allows; those rows are marked in the second array.
    """
    total = entries.row_sum(np.abs(coefficient) * reach)
    factor = np.full(entries.height, np.inf)
    for size in (unit, np.ones_like(unit)):
        best = np.full(entries.height, np.inf)
        for digits in range(MOST_DIGITS + 1):
            trial = 10.0**digits / size
            scaled = coefficient * trial[entries.row]
            error = entries.row_sum(np.abs(scaled - np.round(scaled)) * reach)
            limit = LARGEST_SUM / 2 if digits == 0 else PRECISE_SUM
            fits = (error <= NEGLIGIBLE * total * trial) & (total * trial <= limit)
            best = np.where(np.isinf(best) & fits, trial, best)
            if np.isfinite(best).all():
                break
        factor = np.minimum(factor, best)
    precise = np.exp2(np.floor(np.log2(PRECISE_SUM / np.where(total > 0, total, 1.0))))
    return np.where(np.isinf(factor), precise, factor), np.isinf(factor)


def _reduced(mip: Mip, entries: Coefficients, value: IntArray, lower: FloatArray, upper: FloatArray) -> IntegerRows:
    """Rows divided by the greatest common divisor of their coefficients; entries of 0 and rows without limits gone."""
    divisor = np.maximum(entries.row_best(np.gcd, np.abs(value), 1), 1)
    kept = value != 0
    limited = np.isfinite(mip.row_lower) | np.isfinite(mip.row_upper)
    count = np.bincount(entries.row[kept], minlength=entries.height)[limited]
    low, high = _as_limit(lower), _as_limit(upper)
    low = np.where(np.abs(low) == NO_LIMIT, low, -(-low // divisor))
    high = np.where(np.abs(high) == NO_LIMIT, high, high // divisor)
    return IntegerRows(
        low[limited],
        high[limited],
        np.concatenate([[0], np.cumsum(count)]),
        entries.column[kept],
        (value // divisor[entries.row])[kept],
    )


def _as_limit(value: FloatArray) -> IntArray:
    """int64, where what no row can reach becomes no limit or an unreachable one."""
    clipped = np.clip(value, -2.0 * LARGEST_SUM, 2.0 * LARGEST_SUM).astype(np.int64)
    return np.where(np.isinf(value), np.where(value > 0, NO_LIMIT, -NO_LIMIT), clipped)
