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
    from mast_opt.problems.mip import kernels  # compiles with numba: only where a program is built

    row_factor, column_factor, value = np.empty(len(mip.row_lower)), np.empty(len(mip.cost)), np.empty(len(mip.value))
    limits = (mip.row_lower, mip.row_upper, mip.col_lower, mip.col_upper)
    kernels.scaling_factors(mip.row_start, mip.index, mip.value, mip.integral, *limits, row_factor, column_factor)
    kernels.keep_columns_visible(mip.row_start, mip.index, mip.value, mip.integral, column_factor, row_factor)
    kernels.scale_values(mip.row_start, mip.index, mip.value, mip.integral, row_factor, column_factor, value)
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
        value=frozen(value),
        terms={},
    )
    return Scaled(scaled, frozen(row_factor), frozen(column_factor), cost_factor)


def _cost_factor(cost: FloatArray) -> float:
    """Power of two with which a program's costs are scaled: a typical one near 1, the largest not too large."""
    from mast_opt.problems.mip import kernels  # compiles with numba: only where a program is built

    typical, largest = kernels.typical_and_largest(cost)
    within = float(np.exp2(np.floor(np.log2(LARGEST_COST / largest))))
    return min(float(kernels.inverse_power(typical)), within)
