"""Bound tightening of a MIP: finite bounds for columns that have none, for solvers on finite domains."""

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray
from mast_opt.problems.mip.integer_relaxation.coefficients import Coefficients
from mast_opt.problems.mip.integer_relaxation.implied_integers import snapped
from mast_opt.problems.mip.program import Mip

ROUNDS = 20


def finite_bounds(mip: Mip, entries: Coefficients) -> tuple[FloatArray, FloatArray]:
    """Bounds on every column that keep at least one minimum, finite wherever the rows or the costs imply it.

    A bound of ±inf becomes what the rows and the other columns' bounds imply. And where raising a column gains
    nothing (``overload``, ``remote``, a peak), nobody needs more of it than what the rows that it helps ask for in
    their worst case: cut down to that, every row still holds. Likewise for lowering. What stays infinite is
    returned infinite.
    """
    lower, upper = mip.col_lower.copy(), mip.col_upper.copy()
    positive = entries.value > 0
    for _ in range(ROUNDS):
        no_lower, no_upper = np.isinf(lower), np.isinf(upper)
        if not (no_lower | no_upper).any():
            break
        least, greatest = entries.rest(lower, upper)
        with np.errstate(invalid="ignore", over="ignore"):
            to_upper = (entries.upper - least) / entries.value
            to_lower = (entries.lower - greatest) / entries.value
            need_lower = (entries.lower - least) / entries.value
            need_upper = (entries.upper - greatest) / entries.value
        new_upper = entries.column_best(np.minimum, np.where(positive, to_upper, to_lower), np.inf)
        new_lower = entries.column_best(np.maximum, np.where(positive, to_lower, to_upper), -np.inf)
        most_needed = entries.column_best(np.maximum, np.where(positive, need_lower, need_upper), -np.inf)
        least_needed = entries.column_best(np.minimum, np.where(positive, need_upper, need_lower), np.inf)
        enough = np.maximum(_outward(np.ceil, most_needed, mip.integral), _at_rest(lower))
        little = np.minimum(_outward(np.floor, least_needed, mip.integral), _at_rest(upper))
        new_upper = np.where(mip.cost >= 0, np.minimum(new_upper, enough), new_upper)
        new_lower = np.where(mip.cost <= 0, np.maximum(new_lower, little), new_lower)
        found_upper, found_lower = no_upper & np.isfinite(new_upper), no_lower & np.isfinite(new_lower)
        if not (found_upper | found_lower).any():
            break
        upper[found_upper] = np.where(mip.integral, np.floor(snapped(new_upper)), new_upper)[found_upper]
        lower[found_lower] = np.where(mip.integral, np.ceil(snapped(new_lower)), new_lower)[found_lower]
    return lower, upper


def endless_gain(mip: Mip, entries: Coefficients) -> BoolArray:
    """Columns that improve the objective for ever while every row allows it: infeasible or unbounded."""
    up = (mip.cost < 0) & np.isinf(mip.col_upper) & ~entries.columns_with(entries.raising_hurts)
    down = (mip.cost > 0) & np.isinf(mip.col_lower) & ~entries.columns_with(entries.lowering_hurts)
    return np.asarray(up | down)


def _outward(away: np.ufunc, need: FloatArray, integral: BoolArray) -> FloatArray:
    """A row's need as the column can meet it: an integer one only in whole steps."""
    return np.where(integral, away(snapped(need)), need)


def _at_rest(bound: FloatArray) -> FloatArray:
    """Value of each column that nothing asks to move: its bound, or 0 if it has none."""
    return np.where(np.isfinite(bound), bound, 0.0)
