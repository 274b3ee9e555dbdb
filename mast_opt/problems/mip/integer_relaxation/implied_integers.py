"""Implied integers of a MIP: continuous columns whose minimum is integral once the integer columns are given.

Some are determined by an equality with integer data (``demand = Σ gpus · run``). And where the continuous part of every
row has at most two columns with coefficients ±q, and some columns can be flipped so that the two always have opposite
signs, that part is a (transposed) network matrix. It is totally unimodular, so with integer data every vertex is
integral (Hoffman and Kruskal, 1956), in units of 1/q.
"""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.problems.mip.integer_relaxation.coefficients import Coefficients
from mast_opt.problems.mip.program import Mip

TOLERANCE = 1e-12
"""Relative; how far a float may be from the integer that was meant."""
LARGEST_EXACT = 2.0**53


def whole(value: FloatArray) -> BoolArray:
    """Whether each number of a program is an integer, up to rounding; ±inf counts as one."""
    with np.errstate(invalid="ignore"):
        off = np.abs(value - np.round(value))
    return np.asarray(np.isinf(value) | (off <= TOLERANCE * np.maximum(1.0, np.abs(value))))


def snapped(value: FloatArray) -> FloatArray:
    """Each number of a program, or the integer that it is up to rounding."""
    return np.where(whole(value), np.round(value), value)


def integral_units(mip: Mip, entries: Coefficients) -> FloatArray:
    """A u > 0 for each continuous column such that some minimum has u · x integer, or 0 where none was recognised.

    u allows for what divides the data: 1/1000 for whole GPUs that are counted in thousandths.
    """
    step = _steps(mip, entries)
    free = np.isnan(step)
    unit = np.where(free, _network_units(mip, entries, step), 0.0)
    determined = ~free & ~mip.integral & (mip.col_lower < mip.col_upper)
    return np.where(determined, 1 / np.where(determined, step, 1.0), unit)


def _steps(mip: Mip, entries: Coefficients) -> FloatArray:
    """A number for each column of the program that every feasible value is a multiple of, or NaN where none is known.

    1 for integer columns, the value itself for fixed ones; the rest are found where an equality determines one
    column by others whose step is known, over and over.
    """
    fixed = mip.col_lower == mip.col_upper
    step = np.where(mip.integral, 1.0, np.where(fixed, np.abs(mip.col_lower), np.nan))
    equality = (mip.row_lower == mip.row_upper) & whole(mip.row_lower)
    mine = entries.part(equality[entries.row])
    while True:
        size = np.abs(mine.value) * step[mine.column]
        unknown = np.isnan(size)
        known = mine.part(~unknown)
        found = np.bincount(mine.row[unknown], minlength=mine.height) == 1
        found &= ~known.rows_with(~whole(size[~unknown]))
        at = np.flatnonzero(unknown & found[mine.row])
        if not len(at):
            return step
        divisor = np.gcd(known.row_best(np.gcd, _divisible(size[~unknown]), 0), _divisible(mip.row_lower))
        step[mine.column[at]] = np.maximum(divisor[mine.row[at]], 1) / np.abs(mine.value[at])


def _network_units(mip: Mip, entries: Coefficients, step: FloatArray) -> FloatArray:
    """u for the columns without a step, where they form a network; 0 for the others."""
    free = np.isnan(step)
    mine = entries.part(free[entries.column])
    others = entries.part(~free[entries.column])
    magnitude, fixed = np.abs(mine.value), others.value * step[others.column]
    in_row = np.bincount(mine.row, minlength=mine.height)
    greatest, smallest = mine.row_best(np.maximum, magnitude, 0.0), mine.row_best(np.minimum, magnitude, np.inf)
    broken_row = (in_row > 2) | (greatest != smallest) | others.rows_with(~whole(fixed))
    broken_row |= ~whole(mip.row_lower) | ~whole(mip.row_upper)
    unit, least_unit = mine.column_best(np.maximum, magnitude, 0.0), mine.column_best(np.minimum, magnitude, np.inf)
    unit = np.where(unit > 0, unit, 1.0)
    lower, upper = mip.col_lower * unit, mip.col_upper * unit
    broken = ((least_unit != unit) & np.isfinite(least_unit)) | ~whole(lower) | ~whole(upper)
    broken |= mine.columns_with(broken_row[mine.row])
    label, odd = _components(mine.part(in_row[mine.row] == 2))
    spoilt = np.bincount(label[free & (broken | odd)], minlength=label.max(initial=-1) + 1) > 0
    good = free & ~spoilt[label]
    divisor = np.zeros(len(spoilt), np.int64)
    of_row = np.zeros(mine.height, np.int64)
    of_row[mine.row] = label[mine.column]
    near = np.flatnonzero((in_row > 0)[others.row])
    rows, columns = np.flatnonzero(in_row), np.flatnonzero(good)
    for where, data in (
        (of_row[others.row[near]], fixed[near]),
        (of_row[rows], mip.row_lower[rows]),
        (of_row[rows], mip.row_upper[rows]),
        (label[columns], lower[columns]),
        (label[columns], upper[columns]),
    ):
        np.gcd.at(divisor, where, _divisible(data))
    return np.where(good, unit / np.maximum(divisor, 1)[label], 0.0)


def _divisible(data: FloatArray) -> IntArray:
    """The integers of a program to find a common divisor of: 0 for ±inf, which does not restrict it, 1 for what is too
    large.
    """
    size = np.where(np.isinf(data), 0.0, np.round(np.abs(data)))
    return np.where(size < LARGEST_EXACT, size, 1.0).astype(np.int64)


def _components(pairs: Coefficients) -> tuple[IntArray, BoolArray]:
    """Columns of the program connected by rows of two entries, and the columns that cannot be flipped consistently."""
    width = pairs.width
    first, second = pairs.column[0::2], pairs.column[1::2]
    same_sign = (pairs.value[0::2] > 0) == (pairs.value[1::2] > 0)
    label = _connected(first, second, width)
    # node j is column j as it is, node width + j the column flipped; a row ties the states that suit it
    flipped = np.where(same_sign, second + width, second)
    unflipped = np.where(same_sign, second, second + width)
    state = _connected(np.concatenate([first, first + width]), np.concatenate([flipped, unflipped]), 2 * width)
    return label, state[:width] == state[width:]


def _connected(first: IntArray, second: IntArray, nodes: int) -> IntArray:
    """Number of the connected part of a program's graph in which each node is."""
    graph = coo_array((np.ones(len(first), np.int8), (first, second)), shape=(nodes, nodes))
    return np.asarray(connected_components(graph, directed=False)[1])
