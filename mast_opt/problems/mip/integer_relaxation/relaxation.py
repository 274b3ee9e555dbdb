"""Integer relaxation of a MIP (all columns and coefficients integer), for solvers such as CP-SAT.

Every column becomes ``x = base + z / per_unit`` with integer z; every row and the objective get integer
coefficients:

* an integer column keeps its values;
* a continuous column whose minimum is integral anyway (``mip.integrality``) keeps it exactly;
* any other continuous column moves on a decimal grid. Rounding a minimum to the grid goes in the direction that
  no row minds, if there is one, and to the nearest point otherwise; then rows are relaxed by what that changes.

So every feasible x has a feasible z whose objective is higher by at most ``loss``, and a lower bound for the
lattice, less ``loss``, is one for the program.

Integer rows of a MIP for CP-SAT: exact where they can be, relaxed by the rounding error where not.
"""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.problems.mip.integer_relaxation.bound_tightening import finite_bounds
from mast_opt.problems.mip.integer_relaxation.coefficients import Coefficients
from mast_opt.problems.mip.integer_relaxation.implied_integers import integral_units, snapped, whole
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
    """Row limits of the integer relaxation as int64: no limit, or an unreachable one, where no row can reach them."""
    clipped = np.clip(value, -2.0 * LARGEST_SUM, 2.0 * LARGEST_SUM).astype(np.int64)
    return np.where(np.isinf(value), np.where(value > 0, NO_LIMIT, -NO_LIMIT), clipped)


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
        """The point of the integer relaxation that stands for x, inside the bounds."""
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
    """Direction in which each column's integer can be rounded without breaking a row: 1, −1, or 0 for neither."""
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
