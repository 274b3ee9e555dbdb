"""MIP scaling by powers of two: rows, continuous columns and the objective, exact in floating point.

Problems are stated in integer base units (megabytes, milli-GPUs), whose coefficients reach 1e12; solvers
compare rows against absolute tolerances near 1e-6 and costs against 1e-7. A backend therefore solves the
scaled program and maps the answer back. Integer columns are left alone, so integrality keeps its meaning.
A row is scaled down only as far as its least integer coefficient, limit and continuous entry stay a thousand times
the tolerance: in ``5e6 a + b <= 1e7`` the whole effect of ``b`` would otherwise be less than what solvers overlook.
"""

from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.mip.program import Mip, frozen

LARGEST_COST = 2.0**20
"""Costs are scaled up to be near 1 in the geometric mean, but none beyond this."""
VISIBLE = 2.0**-10
"""Least size to which scaling takes a row's least coefficient, limit or range: far above a solver's tolerance of
1e-6."""


@dataclass(frozen=True)
class Scaled:
    """A scaled program and the way back: x = column_factor · x_scaled, objective = objective_scaled / cost_factor."""

    mip: Mip
    row_factor: FloatArray
    column_factor: FloatArray
    cost_factor: float

    def to_original(self, x: FloatArray) -> FloatArray:
        """A point of the scaled program as one of the original."""
        return x * self.column_factor

    def to_scaled(self, x: FloatArray) -> FloatArray:
        """A point of the original program as one of the scaled."""
        return x / self.column_factor

    def to_original_price(self, price: FloatArray) -> FloatArray:
        """Prices of the scaled program's rows as those of the original's."""
        return price * self.row_factor / self.cost_factor

    def to_original_objective(self, objective: float) -> float:
        """An objective of the scaled program in units of the original."""
        return objective / self.cost_factor


def scale(mip: Mip) -> Scaled:
    """Scale so that each row's largest integer coefficient, each continuous column's, and a typical cost are near 1, as
    far as nothing becomes too small to be seen by a solver."""
    row_factor, column_factor = _factors(mip)
    cost = mip.cost * column_factor
    cost_factor = _cost_factor(cost)
    cost *= cost_factor
    scaled = replace(
        mip,
        cost=frozen(cost),
        offset=mip.offset * cost_factor,
        col_lower=frozen(mip.col_lower / column_factor),
        col_upper=frozen(mip.col_upper / column_factor),
        row_lower=frozen(mip.row_lower * row_factor),
        row_upper=frozen(mip.row_upper * row_factor),
        value=frozen(mip.value * np.repeat(row_factor, np.diff(mip.row_start)) * column_factor[mip.index]),
        terms={},
    )
    return Scaled(scaled, frozen(row_factor), frozen(column_factor), cost_factor)


def _factors(mip: Mip) -> tuple[FloatArray, FloatArray]:
    """Factor of every row and of every column, which is 1 for the integral ones.

    No integer coefficient and no limit of a row is scaled down below ``VISIBLE``, no limit of a column below 1, and no
    coefficient of a column for the sake of a larger one in another row: solvers drop entries below 1e-9.
    """
    magnitude = np.abs(mip.value)
    whole = mip.integral[mip.index]
    largest_whole = _by_row(np.maximum, np.where(whole, magnitude, 0.0), mip, 0.0)
    largest = np.where(largest_whole > 0.0, largest_whole, _by_row(np.maximum, magnitude, mip, 0.0))
    least = _by_row(np.minimum, np.where(whole & (magnitude > 0.0), magnitude, np.inf), mip, np.inf)
    limit = _finest(mip.row_lower, mip.row_upper)
    row_factor = _kept_visible(_inverse_power(largest), np.minimum(least, limit))
    other = np.flatnonzero(~whole & (magnitude > 0.0))
    column, entry = mip.index[other], (magnitude * np.repeat(row_factor, np.diff(mip.row_start)))[other]
    largest, least = np.zeros(len(mip.cost)), np.full(len(mip.cost), np.inf)
    np.maximum.at(largest, column, entry)
    np.minimum.at(least, column, entry)
    limit = _finest(mip.col_lower, mip.col_upper)
    most = np.where(np.isinf(limit), np.inf, np.maximum(1.0, 1.0 / _inverse_power(limit)))
    column_factor = np.minimum(_kept_visible(_inverse_power(largest), least), most)
    column_factor[mip.integral] = 1.0
    seen = np.full(len(magnitude), np.inf)
    seen[other] = magnitude[other] * column_factor[column]
    return _kept_visible(row_factor, _by_row(np.minimum, seen, mip, np.inf)), column_factor


def _by_row(pick: np.ufunc, amount: FloatArray, mip: Mip, empty: float) -> FloatArray:
    """The largest or least amount among the entries of each row."""
    start = mip.row_start[:-1]
    best = np.full(len(start), empty)
    filled = np.flatnonzero(start < mip.row_start[1:])
    if len(filled):
        best[filled] = pick.reduceat(amount, start[filled])
    return best


def _inverse_power(magnitude: FloatArray) -> FloatArray:
    """2^−k with 2^k the power of two just below each magnitude; 1 where that is 0."""
    return np.where(magnitude == 0.0, 1.0, np.ldexp(1.0, 1 - np.frexp(magnitude)[1]))


def _finest(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The least of |lower|, |upper| and their distance, of those that are finite and not 0; infinity without any."""
    with np.errstate(invalid="ignore"):
        amounts = np.stack([np.abs(lower), np.abs(upper), upper - lower])
        return np.asarray(np.where(amounts > 0.0, amounts, np.inf).min(axis=0))


def _kept_visible(factor: FloatArray, least: FloatArray) -> FloatArray:
    """Factors, raised as far as ``least`` times them would fall below ``VISIBLE``, but not above 1."""
    raised = np.maximum(factor, np.minimum(1.0, VISIBLE * _inverse_power(least)))
    return np.where(np.isinf(least), factor, raised)


def _cost_factor(cost: FloatArray) -> float:
    """Power of two with which a program's costs are scaled: a typical one near 1, the largest not too large."""
    sizes = np.abs(cost[cost != 0.0]) if cost.any() else np.ones(1)
    typical = np.exp2(np.log2(sizes).mean())
    return float(min(_inverse_power(typical), np.exp2(np.floor(np.log2(LARGEST_COST / sizes.max())))))
