"""The integer relaxation behind CP-SAT: never cuts off a feasible point, never loses more than it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.problems.mip import Mip, MipBuilder
from mast_opt.problems.mip.integer_relaxation.bound_tightening import endless_gain, finite_bounds
from mast_opt.problems.mip.integer_relaxation.coefficients import Coefficients
from mast_opt.problems.mip.integer_relaxation.implied_integers import integral_units, whole
from mast_opt.problems.mip.integer_relaxation.relaxation import IntegerRelaxation, Unlimited, lattice
from tests.backends.programs import INF, DenseRow, overload, program


def minimum(mip: Mip, integral: BoolArray | None = None) -> float | None:
    """The minimum by SciPy, or None if there is no feasible point."""
    matrix = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape).tocsc()
    rows = [LinearConstraint(matrix, mip.row_lower, mip.row_upper)] if mip.shape[0] else []
    kinds = mip.integral if integral is None else integral
    bounds, plain = Bounds(mip.col_lower, mip.col_upper), {"presolve": False}  # its presolve errs on small programs
    found = milp(mip.cost, integrality=kinds, bounds=bounds, constraints=rows, options=plain)
    assert found.status in (0, 2), found.message
    return None if found.status == 2 else float(found.fun) + mip.offset


def row_sums(integers: IntegerRelaxation, z: IntArray) -> FloatArray:
    rows = integers.rows
    shape = (len(rows.lower), len(z))
    return np.asarray(csr_array((rows.value, rows.index, rows.start), shape=shape) @ z)


@st.composite
def planted(draw: st.DrawFn) -> tuple[Mip, FloatArray]:
    """A program of awkward numbers around a point that is feasible for it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    width, height = int(rng.integers(1, 8)), int(rng.integers(0, 6))
    integral = rng.random(width) < 0.5
    x = np.where(integral, rng.integers(-3, 9, width), rng.normal(size=width) * 10.0 ** rng.integers(-3, 7))
    rows = []
    for _ in range(height):
        scale = 10.0 ** rng.integers(-3, 10)
        coefficients = np.where(rng.random(width) < 0.7, rng.normal(size=width) * scale, 0.0)
        if rng.random() < 0.5:
            coefficients = np.round(coefficients, int(rng.integers(0, 4)))
        activity, room = float(coefficients @ x), float(np.abs(coefficients) @ np.abs(x))
        kind = rng.integers(4)
        lower = activity - (0 if kind == 0 else rng.random() * room)
        upper = activity + (0 if kind == 0 else rng.random() * room)
        rows.append((coefficients, -INF if kind == 1 else lower, INF if kind == 2 else upper))
    spread = np.where(integral, rng.integers(0, 5, width), rng.random(width) * 10.0 ** rng.integers(-3, 7))
    cost = rng.normal(size=width) * 10.0 ** rng.integers(-6, 6)
    mip = program(cost, rows, lower=x - spread, upper=x + spread, integral=integral, offset=float(rng.normal()))
    return mip, x


@settings(max_examples=200, deadline=None)
@given(planted(), st.sampled_from([3, 7]))
def test_every_feasible_point_has_one_on_the_lattice(case: tuple[Mip, FloatArray], digits: int) -> None:
    mip, x = case
    if (integral_units(mip, Coefficients.of(mip)) > 0).any():
        return  # only minima are promised to be integral there, see below
    integers = lattice(mip, digits)
    z = integers.to_z(x)
    assert not integers.empty
    assert (z >= integers.lower).all()
    assert (z <= integers.upper).all()
    sums = row_sums(integers, z)
    assert (sums >= integers.rows.lower).all()
    assert (sums <= integers.rows.upper).all()
    objective = mip.objective(x)
    size = float(np.abs(mip.cost) @ np.abs(x)) + abs(mip.offset)
    bound = integers.to_bound(float(integers.cost @ z) + integers.cost_offset)
    assert bound <= objective + 1e-12 * size
    rounded_down = float((integers.upper - integers.lower).sum()) / integers.cost_factor
    assert integers.to_objective(float(integers.cost @ z) + integers.cost_offset) == pytest.approx(
        mip.objective(integers.to_x(z)), abs=rounded_down + integers.loss + 1e-12 * size
    )
    np.testing.assert_allclose(integers.to_x(z), x, rtol=1e-12, atol=float((1 / integers.per_unit).max()))


@settings(max_examples=100, deadline=None)
@given(planted())
def test_no_row_can_overflow(case: tuple[Mip, FloatArray]) -> None:
    integers = lattice(case[0], 10)
    reach = np.maximum(np.abs(integers.lower), np.abs(integers.upper)).astype(object)
    rows = integers.rows
    for at in range(len(rows.lower)):
        part = slice(rows.start[at], rows.start[at + 1])
        assert sum(abs(int(a)) * r for a, r in zip(rows.value[part], reach[rows.index[part]], strict=True)) < 2**62
    assert sum(abs(int(a)) * r for a, r in zip(integers.cost, reach, strict=True)) < 2**62


def test_integer_programs_are_kept_as_they_are() -> None:
    rows: list[DenseRow] = [([6, 9, 0], -INF, 20), ([0.25, 0, 0.5], 0.75, INF), ([1, 1, 1], -1, 7)]
    integers = lattice(program([1.5, -2, 0.25], rows, lower=-2, upper=[3, 4.5, 9]), 7)
    assert integers.loss == 0.0
    assert not integers.grid.any()
    assert integers.cost.tolist() == [150, -200, 25]
    assert integers.rows.value.tolist() == [2, 3, 1, 2, 1, 1, 1]
    assert integers.rows.upper.tolist()[0] == 6, "6 a + 9 b ≤ 20 means 2 a + 3 b ≤ 6"
    assert integers.rows.lower.tolist()[1:] == [3, -1]
    assert integers.upper.tolist() == [3, 4, 9]


def test_limits_in_large_base_units_are_exact() -> None:
    mip = program([-1, -1], [([10**12, 10**12 - 1], -INF, 2 * 10**12 - 2)])
    integers = lattice(mip, 7)
    assert row_sums(integers, np.array([1, 1]))[0] > integers.rows.upper[0]
    assert row_sums(integers, np.array([0, 1]))[0] <= integers.rows.upper[0]


@pytest.mark.parametrize("unit", [1.0, 1000.0, 1e9])
def test_excess_over_supply_is_whole_in_units_of_the_data(unit: float) -> None:
    mip, _ = overload(unit)
    integers = lattice(mip, 7)
    assert not integers.grid.any()
    assert integers.loss == pytest.approx(0.0, abs=1e-12)
    assert integers.upper[-2:].tolist() == [6, 6]
    np.testing.assert_array_equal(integers.to_x(np.ones(8, np.int64))[-2:], [unit, unit])


def tiers(rng: np.random.Generator) -> Mip:
    """Cumulative demand per tier by a chain of equalities, excess, the largest part, a shortage, and a rate."""
    m = MipBuilder("tiers")
    work, tier, part = 6, 3, 3
    need = rng.integers(1, 9, work) * 1000.0
    run = m.columns("run", [[str(i) for i in range(work)]], upper=1, integral=True)
    demand = m.columns("demand", [[str(i) for i in range(tier)]])
    over = m.columns("over", [[str(i) for i in range(tier)]])
    largest, short, rate = (m.columns(name, []) for name in ("largest", "short", "rate"))
    m.rows("enough", [], lower=int(rng.integers(1, work))).add(0, run)
    tally = m.equals("tally", [[str(i) for i in range(tier)]])
    tally.add(np.arange(tier), demand).add(np.arange(1, tier), demand[:-1], -1).add(np.arange(work) % tier, run, -need)
    supply = rng.integers(1, 20, tier) * 1000.0
    m.rows("gpu", [[str(i) for i in range(tier)]], upper=supply).add(np.arange(tier), demand).add(
        np.arange(tier), over, -1
    )
    split = m.rows("split", [[str(i) for i in range(part)]], upper=0.0)
    split.add(np.arange(work) // 2, run, need).add(np.arange(part), largest, -1)
    m.rows("survive", [], lower=float(need.sum() // 2000) * 1000).add(0, run, need).add(0, largest, -1).add(0, short)
    m.rows("rate", [[str(i) for i in range(tier)]], upper=0.0).add(np.arange(tier), demand).add(
        np.arange(tier), rate, -supply
    )
    m.term("cost", np.concatenate([over, [largest, short]]), rng.random(tier + 2))
    m.term("cost", rate, 1000.0)
    m.term("cost", run, rng.normal(size=work) * 1000)
    return m.build({"cost": 1.0})


@pytest.mark.parametrize("seed", range(10))
def test_what_is_called_integral_is_so_at_some_minimum(seed: int) -> None:
    mip = tiers(np.random.default_rng(seed))
    units = integral_units(mip, Coefficients.of(mip))
    names = [name.split("[")[0] for name in mip.column_names()]
    for name, unit in zip(names, units, strict=True):
        assert (unit > 0) == (name in ("demand", "over", "largest", "short")), name
        assert unit == 0.0 or (1 / unit) % 1000 == 0.0, "in whole thousands, like the data"
    lower, upper = finite_bounds(mip, Coefficients.of(mip))
    scale = np.where(units > 0, 1 / np.where(units > 0, units, 1.0), 1.0)
    stretched = replace(
        mip,
        cost=mip.cost * scale,
        value=mip.value * scale[mip.index],
        col_lower=mip.col_lower / scale,
        col_upper=mip.col_upper / scale,
    )
    assert minimum(stretched, mip.integral | (units > 0)) == pytest.approx(minimum(mip), rel=1e-6)
    bounded = replace(mip, col_lower=lower, col_upper=upper)
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()
    assert minimum(bounded) == pytest.approx(minimum(mip), rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_derived_bounds_keep_the_minimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, height = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    rows = []
    for _ in range(height):
        coefficients = rng.integers(-3, 4, width).astype(float)
        limit = float(rng.integers(-6, 7))
        rows.append((coefficients, *((-INF, limit), (limit, INF), (limit, limit), (limit, limit + 3))[rng.integers(4)]))
    lower = np.where(rng.random(width) < 0.2, -INF, rng.integers(-3, 1, width))
    upper = np.where(rng.random(width) < 0.6, INF, rng.integers(0, 4, width))
    mip = program(rng.integers(-1, 4, width), rows, lower=lower, upper=upper, integral=rng.random(width) < 0.5)
    entries = Coefficients.of(mip)
    low, high = finite_bounds(mip, entries)
    assert (low >= mip.col_lower).all()
    assert (high <= mip.col_upper).all()
    if endless_gain(mip, entries).any() or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return
    if (low > high).any():
        assert minimum(mip) is None
        return
    bounded = minimum(replace(mip, col_lower=low, col_upper=high))
    assert bounded == (None if bounded is None else pytest.approx(minimum(mip), rel=1e-6, abs=1e-6))
    if bounded is None:
        assert minimum(mip) is None


def test_no_bounds_at_all() -> None:
    with pytest.raises(Unlimited) as caught:
        lattice(program([1, 1, 1], [([0, 1, 1], 1, INF), ([0, 1, -1], 0, 3)], lower=[0, -INF, -INF], upper=INF), 7)
    assert caught.value.column == 1


def test_endless_gain() -> None:
    mip = program([-1, 1, -1, 0], [([1, -1, 1, 1], 0, INF), ([0, 0, 1, 0], -INF, 4)], upper=INF)
    assert endless_gain(mip, Coefficients.of(mip)).tolist() == [True, False, False, False]


def test_what_does_not_fit_in_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError, match="column 1 ranges"):
        lattice(program([1, 1], upper=[1, 1e19], integral=True), 7)


def test_whole_numbers() -> None:
    numbers = np.array([3.0, 3 + 1e-13, 3.001, 1e15 + 0.5, INF, -INF])
    assert whole(numbers).tolist() == [True, True, False, True, True, True]


def test_a_determined_column_keeps_its_own_bounds() -> None:
    mip = program([0, 1], [([5, -3], 3, 3)], lower=[-2, -1.5], upper=[2, 2.25], integral=[True, False])
    integers = lattice(mip, 7)
    assert integers.per_unit.tolist() == [1, 3]
    assert (integers.lower[1], integers.upper[1]) == (-4, 6), "thirds within −1.5 and 2.25"


def test_units_that_are_no_reciprocals_of_integers() -> None:
    mip = program([0, 1], [([16, -15], -INF, 0)], upper=[3, INF], integral=[True, False])
    integers = lattice(mip, 7)
    assert integers.per_unit.tolist() == [1, 15 / 16]
    assert integers.to_x(np.array([2, 2])).tolist() == [2, 32 / 15]


@pytest.mark.parametrize("digits", [7, 10])
def test_a_derived_bound_next_to_a_grid_point_is_not_that_point(digits: int) -> None:
    """4,000,000 of 4,000,001: the share in tenth millionths is whole but for 6e-6 of one, and a row needs all of it."""
    rows: list[DenseRow] = [([4_000_000, -1, 0], 0, 0), ([0, 1, -4_000_001], -INF, 0), ([0, 1, -8_000_001], -INF, 0)]
    mip = program([0.0, 0.0, 1.0], rows, lower=[1, 0, 0], upper=[1, INF, INF], integral=[True, False, False])
    integers = lattice(mip, digits)
    sums = row_sums(integers, integers.upper)
    assert (sums <= integers.rows.upper).all(), "the most that there is of each column is enough"
