"""Integer relaxation of a MIP (all columns and coefficients integer), for solvers such as CP-SAT.

Every column becomes ``x = base + z / per_unit`` with integer z; every row and the objective get integer
coefficients:

* an integer column keeps its values;
* a continuous column whose minimum is integral anyway (``mip.integrality``) keeps it exactly;
* any other continuous column moves on a decimal grid. Rounding a minimum to the grid goes in the direction that
  no row minds, if there is one, and to the nearest point otherwise; then rows are relaxed by what that changes.

So every feasible x has a feasible z whose objective is higher by at most ``loss``, and a lower bound for the
lattice, less ``loss``, is one for the program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.problems.mip.integer_relaxation.bound_tightening import finite_bounds
from mast_opt.problems.mip.integer_relaxation.coefficients import Coefficients
from mast_opt.problems.mip.integer_relaxation.implied_integers import integral_units, snapped, whole
from mast_opt.problems.mip.integer_relaxation.integer_rows import IntegerRows, integer_rows, row_units
from mast_opt.problems.mip.program import Mip

WANTED_SUM = 2.0**55
"""Steps are chosen so that rows with a grid column add up to no more than this."""
LARGEST_RANGE = 2.0**60
LARGEST_OBJECTIVE = 2.0**54
"""Largest sum of the objective. CP-SAT's presolve shifts costs between columns that exclude one another, and calls a
model invalid where that might overflow: with 2^60 it did."""


class Unlimited(ValueError):
    """A column has no finite bounds and none can be derived; ``column`` is its position."""

    def __init__(self, column: int) -> None:
        self.column = column
        super().__init__(f"column {column} has no finite bounds")


@dataclass(frozen=True)
class IntegerRelaxation:
    """Minimise cost · z subject to ``rows`` and lower ≤ z ≤ upper, all int64."""

    cost: IntArray
    lower: IntArray
    upper: IntArray
    rows: IntegerRows
    base: FloatArray
    per_unit: FloatArray
    grid: BoolArray
    """Columns that only approximate; the others' x is exact."""
    rounding: IntArray
    """Direction of rounding for each column: 1 if x is rounded up to the grid, −1 down, 0 to the nearest point."""
    cost_factor: float
    cost_offset: float
    """objective(x) is (cost · z + cost_offset) / cost_factor, within ``loss``."""
    loss: float

    @property
    def empty(self) -> bool:
        """Whether bounds or row limits cross, so that there is no z at all."""
        return bool((self.lower > self.upper).any() or (self.rows.lower > self.rows.upper).any())

    def to_x(self, z: IntArray) -> FloatArray:
        """The values of the program's columns that belong to integers ``z``."""
        # 1/1000 is not exact in a float, 1000 is
        return np.asarray(self.base + np.where(self.per_unit < 1, z * snapped(1 / self.per_unit), z / self.per_unit))

    def to_z(self, x: FloatArray) -> IntArray:
        """The point that stands for x, inside the bounds."""
        at = (x - self.base) * self.per_unit
        up, down = np.ceil(snapped(at)), np.floor(snapped(at))
        z = np.where(self.rounding > 0, up, np.where(self.rounding < 0, down, np.round(at)))
        return np.asarray(np.clip(z, self.lower, self.upper).astype(np.int64))

    def to_objective(self, value: float) -> float:
        """The program's objective for a value of cost · z + cost_offset."""
        return value / self.cost_factor

    def to_bound(self, value: float) -> float:
        """A lower bound for the program from one for cost · z + cost_offset."""
        objective = value / self.cost_factor
        return objective - self.loss - 1e-13 * abs(objective)


def lattice(mip: Mip, digits: int) -> IntegerRelaxation:
    """The integer relaxation of ``mip``.

    Args:
        digits: a column's grid has 10^digits to 10^(digits + 1) points, fewer where its rows' sums would be too large.

    Raises:
        Unlimited: a column has no finite bounds, and neither rows nor costs imply them.
        OverflowError: a column's range or a row's sum does not fit in int64.
    """
    entries = Coefficients.of(mip)
    lower, upper = finite_bounds(mip, entries)
    endless = np.flatnonzero(np.isinf(lower) | np.isinf(upper))
    if len(endless):
        raise Unlimited(int(endless[0]))
    units = integral_units(mip, entries)
    grid = ~mip.integral & (units == 0)
    base = np.where(grid, lower, 0.0)
    per_unit = np.where(mip.integral, 1.0, units)
    per_unit[grid] = _grid_per_unit(entries, lower, upper, grid, digits)[grid]
    z_lower, z_upper = _bounds(mip, lower, upper, base, per_unit, grid)
    rounding = np.where(grid, _rounding(mip, entries), 0)
    off_by = np.where(grid & (z_upper > z_lower), np.where(rounding == 0, 0.5, 1.0), 0.0)
    rows = integer_rows(mip, entries, base, per_unit, z_lower, z_upper, np.where(rounding == 0, off_by, 0.0))
    cost, factor, cost_error = _integer_costs(mip.cost / per_unit, z_lower, z_upper)
    harm = np.where(rounding == 0, np.abs(mip.cost), np.maximum(0.0, mip.cost * rounding)) / per_unit
    constant = float(mip.cost @ (base + z_lower / per_unit)) + mip.offset
    return IntegerRelaxation(
        cost=cost,
        lower=z_lower.astype(np.int64),
        upper=z_upper.astype(np.int64),
        rows=rows,
        base=base,
        per_unit=per_unit,
        grid=off_by > 0,
        rounding=rounding,
        cost_factor=factor,
        cost_offset=constant * factor - float(cost @ z_lower),
        loss=float(harm @ off_by) + cost_error,
    )


def _bounds(
    mip: Mip, lower: FloatArray, upper: FloatArray, base: FloatArray, per_unit: FloatArray, grid: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds on z: inward where x only takes values of the lattice, outward on a grid and for derived bounds."""
    low, high = (lower - base) * per_unit, (upper - base) * per_unit
    inward_lower = mip.integral | (~grid & np.isfinite(mip.col_lower))
    inward_upper = mip.integral | (~grid & np.isfinite(mip.col_upper))
    z_lower = np.where(inward_lower, np.ceil(snapped(low)), np.floor(low))
    z_upper = np.where(inward_upper, np.floor(snapped(high)), np.ceil(high))
    reach = np.maximum(np.abs(z_lower), np.abs(z_upper))
    if (reach > LARGEST_RANGE).any():
        column = int(np.argmax(reach))
        raise OverflowError(f"column {column} ranges from {lower[column]:g} to {upper[column]:g}")
    return z_lower, z_upper


def _rounding(mip: Mip, entries: Coefficients) -> IntArray:
    up = ~entries.columns_with(entries.raising_hurts)
    down = ~entries.columns_with(entries.lowering_hurts)
    either = np.where(mip.cost > 0, -1, 1)
    return np.where(up & down, either, np.where(up, 1, np.where(down, -1, 0)))


def _grid_per_unit(
    entries: Coefficients, lower: FloatArray, upper: FloatArray, grid: BoolArray, digits: int
) -> FloatArray:
    """Grid points per unit of x, a power of ten: fine enough, but so that rows stay below ``WANTED_SUM``."""
    span = upper - lower
    places = digits - np.floor(np.log10(np.where(span > 0, span, 1.0)))
    unit = row_units(entries, ~grid)
    reach = np.where(grid, span, np.maximum(np.abs(lower), np.abs(upper)))
    total = entries.row_sum(np.abs(entries.value) * reach[entries.column]) / unit
    mine = entries.part(grid[entries.column])
    coefficient = np.abs(mine.value) / unit[mine.row]
    allowed = np.floor(np.log10(WANTED_SUM / np.maximum(total[mine.row], 1.0))) + _trailing_zeros(coefficient)
    places = np.minimum(places, mine.column_best(np.minimum, allowed, np.inf))
    return np.asarray(10.0**places)


def _trailing_zeros(value: FloatArray) -> FloatArray:
    """Decimal zeros at the end of each number, below 0 where it has decimals; its magnitude where they do not end."""
    zeros = np.floor(np.log10(value))
    for count in range(-6, 16):
        shifted = value / 10.0**count
        zeros = np.where(whole(shifted) & (shifted >= 0.5), count, zeros)
    return zeros


def _integer_costs(cost: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[IntArray, float, float]:
    """Integer costs per step of z, the factor they were multiplied with, and how far too high they may be in total.

    A power of ten, if that makes them whole. Otherwise as large as int64 allows, such that the column of the
    longest range is priced exactly, and rounded down, so that the integer objective is never above the true one.
    """
    farthest = np.maximum(np.abs(lower), np.abs(upper))
    cost = np.where(farthest > 0, cost, 0.0)
    span = np.where(cost == 0, 0.0, np.maximum(upper - lower, 0.0))
    reach = float(np.abs(cost) @ farthest)
    if reach == 0:
        return np.zeros(len(cost), np.int64), 1.0, 0.0
    for digits in range(-6, 13):
        factor = 10.0**digits
        scaled = cost * factor
        error = float(np.abs(scaled - np.round(scaled)) @ span)
        if reach * factor <= LARGEST_OBJECTIVE and error <= 1e-12 * reach * factor:
            return np.round(scaled).astype(np.int64), factor, error / factor
    longest = float(np.abs(cost[np.argmax(span)]))
    factor = LARGEST_OBJECTIVE / reach
    factor = np.floor(longest * factor) / longest if longest * factor >= 1 else factor
    scaled = snapped(cost * factor)
    error = float(np.maximum(0.0, np.floor(scaled) - cost * factor) @ span)
    return np.floor(scaled).astype(np.int64), float(factor), error / factor
