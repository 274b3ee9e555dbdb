"""Compiled kernels over MIP entries: assembly of the rows, the costs, and the factors of the scaling.

Arrays come in contiguous; they are only read unless the docstring says that they are filled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types

from mast_opt.core.kernel_cache import cached_njit

if TYPE_CHECKING:
    from mast_opt.core.arrays import BoolArray, FloatArray, IntArray


def _read(scalar: Any) -> Any:
    """Type of a read-only contiguous array, for kernels over a program's entries."""
    return types.Array(scalar, 1, "C", readonly=True)


_ints, _floats, _flags = _read(types.int32), _read(types.float64), _read(types.boolean)
_ints_out, _floats_out = types.int32[::1], types.float64[::1]
_positions = (types.int32, types.int64)
"""Entries are counted in 32 bits where that is enough."""


@cached_njit([types.void(_ints, _floats, n[::1]) for n in _positions], nogil=True)
def count_entries(row: IntArray, value: FloatArray, counts: IntArray) -> None:
    """Adds the number of non-zero entries of each row to ``counts``; a single value stands for all entries."""
    step = 0 if len(value) == 1 else 1
    for e in range(len(row)):
        if value[e * step] != 0.0:
            counts[row[e]] += 1


@cached_njit([types.void(_ints, _ints, _floats, n[::1], _ints_out, _floats_out) for n in _positions], nogil=True)
def lay_entries(
    row: IntArray, column: IntArray, value: FloatArray, end: IntArray, index_out: IntArray, value_out: FloatArray
) -> None:
    """Writes each non-zero entry at ``end`` of its row, and moves that end on."""
    step = 0 if len(value) == 1 else 1
    for e in range(len(row)):
        if value[e * step] != 0.0:
            at = end[row[e]]
            index_out[at] = column[e]
            value_out[at] = value[e * step]
            end[row[e]] = at + 1


@cached_njit([types.void(_ints_out, _floats_out)], nogil=True)
def sort_entries(index: IntArray, value: FloatArray) -> None:
    """Sorts entries by column; those of one column keep their order. Merges runs of 1, 2, 4, … entries.

    ``argsort`` and an assignment to slices would do, but take the compiler four seconds (decision 33).
    """
    size, width = len(index), 1
    moved_index, moved_value = np.empty(size, np.int32), np.empty(size)
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            left, right = low, middle
            for at in range(low, high):
                first = right >= high or (left < middle and index[left] <= index[right])
                taken = left if first else right
                left, right = left + first, right + (not first)
                moved_index[at], moved_value[at] = index[taken], value[taken]
        for at in range(size):
            index[at], value[at] = moved_index[at], moved_value[at]
        width *= 2


@cached_njit([types.void(n[::1], _ints_out, _floats_out) for n in _positions], nogil=True)
def tidy(end: IntArray, index: IntArray, value: FloatArray) -> None:
    """Sorts each row by column, adds up what a row has twice and leaves out zero sums; moves ``end`` accordingly.

    Rows in order, as they should be stated, cost one look.
    """
    start, kept = 0, 0
    for r in range(len(end)):
        stop = end[r]
        in_order = True
        for e in range(start + 1, stop):
            if index[e] <= index[e - 1]:
                in_order = False
                break
        if in_order and kept == start:
            start, kept = stop, stop
            continue
        if not in_order:
            sort_entries(index[start:stop], value[start:stop])
        first = kept
        for e in range(start, stop):
            column, amount = index[e], value[e]
            if kept > first and index[kept - 1] == column:
                value[kept - 1] += amount
                continue
            if kept > first and value[kept - 1] == 0.0:
                kept -= 1
            index[kept], value[kept] = column, amount
            kept += 1
        if kept > first and value[kept - 1] == 0.0:
            kept -= 1
        start, end[r] = stop, kept


@cached_njit([types.void(_ints, _floats, types.float64, _floats_out)], nogil=True)
def add_term(column: IntArray, coefficient: FloatArray, weight: float, cost: FloatArray) -> None:
    """Adds weight · coefficient to the cost of each column."""
    for e in range(len(column)):
        cost[column[e]] += weight * coefficient[e]


@cached_njit([types.float64(types.float64)], nogil=True)
def inverse_power(magnitude: float) -> float:
    """2^−k with 2^k the power of two just below the magnitude; 1 where that is 0."""
    if magnitude == 0.0 or 1.0 <= magnitude < 2.0:
        return 1.0
    return math.ldexp(1.0, 1 - math.frexp(magnitude)[1])


VISIBLE = 2.0**-10
"""Least size to which scaling takes a row's least coefficient, limit or range: far above a solver's tolerance of
1e-6."""


@cached_njit([types.float64(types.float64, types.float64)], nogil=True)
def finest(lower: float, upper: float) -> float:
    """The least of |lower|, |upper| and their distance, of those that are finite and not 0; infinity without any."""
    least = np.inf
    for amount in (abs(lower), abs(upper), upper - lower):
        if 0.0 < amount < least:
            least = amount
    return least


@cached_njit([types.float64(types.float64, types.float64)], nogil=True)
def kept_visible(factor: float, least: float) -> float:
    """A factor, raised as far as ``least`` times it would fall below ``VISIBLE``, but not above 1."""
    return factor if least == np.inf else max(factor, min(1.0, VISIBLE * inverse_power(least)))


@cached_njit(
    [
        types.void(_read(n), _ints, _floats, _flags, _floats, _floats, _floats, _floats, _floats_out, _floats_out)
        for n in _positions
    ],
    nogil=True,
)
def scaling_factors(
    row_start: IntArray,
    index: IntArray,
    value: FloatArray,
    integral: BoolArray,
    row_lower: FloatArray,
    row_upper: FloatArray,
    col_lower: FloatArray,
    col_upper: FloatArray,
    row_factor: FloatArray,
    column_factor: FloatArray,
) -> None:
    """Fills in the factor of every row, then that of every column: 1 for the integral ones.

    No integer coefficient and no limit of a row is scaled down below ``VISIBLE``, no limit of a column below 1, and no
    coefficient of a column for the sake of a larger one in another row: solvers drop entries below 1e-9.
    """
    least_coefficient = np.full(len(column_factor), np.inf)
    for j in range(len(column_factor)):
        column_factor[j] = 0.0
    for r in range(len(row_factor)):
        largest, largest_integral, least = 0.0, 0.0, finest(row_lower[r], row_upper[r])
        for e in range(row_start[r], row_start[r + 1]):
            magnitude = abs(value[e])
            largest = max(largest, magnitude)
            if integral[index[e]] and magnitude > 0.0:
                largest_integral, least = max(largest_integral, magnitude), min(least, magnitude)
        factor = kept_visible(inverse_power(largest_integral if largest_integral > 0.0 else largest), least)
        row_factor[r] = factor
        for e in range(row_start[r], row_start[r + 1]):
            j = index[e]
            if not integral[j] and value[e] != 0.0:
                column_factor[j] = max(column_factor[j], abs(value[e]) * factor)
                least_coefficient[j] = min(least_coefficient[j], abs(value[e]) * factor)
    for j in range(len(column_factor)):
        column_factor[j] = 1.0 if integral[j] else kept_visible(inverse_power(column_factor[j]), least_coefficient[j])
        least = finest(col_lower[j], col_upper[j])
        if least < np.inf:
            column_factor[j] = min(column_factor[j], max(1.0, 1.0 / inverse_power(least)))


@cached_njit([types.void(_read(n), _ints, _floats, _flags, _floats, _floats_out) for n in _positions], nogil=True)
def keep_columns_visible(
    row_start: IntArray,
    index: IntArray,
    value: FloatArray,
    integral: BoolArray,
    column_factor: FloatArray,
    row_factor: FloatArray,
) -> None:
    """Raises the factors of rows in which a scaled continuous column would fall below ``VISIBLE``."""
    for r in range(len(row_factor)):
        least = np.inf
        for e in range(row_start[r], row_start[r + 1]):
            if not integral[index[e]] and value[e] != 0.0:
                least = min(least, abs(value[e]) * column_factor[index[e]])
        row_factor[r] = kept_visible(row_factor[r], least)


@cached_njit(
    [types.void(_read(n), _ints, _floats, _flags, _floats, _floats, _floats_out) for n in _positions],
    nogil=True,
)
def scale_values(
    row_start: IntArray,
    index: IntArray,
    value: FloatArray,
    integral: BoolArray,
    row_factor: FloatArray,
    column_factor: FloatArray,
    scaled: FloatArray,
) -> None:
    """Fills ``scaled`` with row_factor · value · column_factor, which is 1 for the integral columns."""
    for r in range(len(row_factor)):
        for e in range(row_start[r], row_start[r + 1]):
            scaled[e] = value[e] * row_factor[r]
            if not integral[index[e]]:
                scaled[e] *= column_factor[index[e]]


@cached_njit(nogil=True)
def typical_and_largest(cost: FloatArray) -> tuple[float, float]:
    """Geometric mean and maximum of the magnitudes other than 0; (1, 1) where there are none."""
    logs, largest, found = 0.0, 0.0, 0
    for j in range(len(cost)):
        if cost[j] != 0.0:
            logs += math.log2(abs(cost[j]))
            largest = max(largest, abs(cost[j]))
            found += 1
    return (2.0 ** (logs / found), largest) if found else (1.0, 1.0)
