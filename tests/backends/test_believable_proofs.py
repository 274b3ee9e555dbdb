"""Programs on which solvers proved the wrong answer, and random ones with wide coefficients against exact fractions."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip, scale
from mast_opt.problems.mip.scaling import VISIBLE
from tests.backends.programs import INF, DenseRow, enumerated, program, small_random
from tests.solvers import HERE

EXACT = SolveParams(gap=0.0)
TOLERANCE = Fraction(1, 10**5)


def least(mip: Mip, off: Fraction) -> Fraction | None:
    """The exact minimum over integers and at most one continuous column, rows being ``off`` wider; None if empty."""
    values = [Fraction(float(value)) for value in mip.value]
    entries = [
        {int(mip.index[e]): values[e] for e in range(mip.row_start[r], mip.row_start[r + 1])}
        for r in range(len(mip.row_lower))
    ]
    whole, free = np.flatnonzero(mip.integral).tolist(), np.flatnonzero(~mip.integral).tolist()
    ranges = [range(int(mip.col_lower[j]), int(mip.col_upper[j]) + 1) for j in whole]
    cost = [Fraction(float(amount)) for amount in mip.cost]
    found = []
    for point in itertools.product(*ranges):
        at = dict(zip(whole, point, strict=True))
        low, high = (
            Fraction(float(limits[free[0]])) if free else Fraction(0) for limits in (mip.col_lower, mip.col_upper)
        )
        for r, row in enumerate(entries):
            sums = sum((row[j] * at[j] for j in row if j in at), Fraction(0))
            slope = row.get(free[0], Fraction(0)) if free else Fraction(0)
            for limit, sign in ((mip.row_upper[r], 1), (-mip.row_lower[r], -1)):
                if limit == INF:
                    continue
                left = Fraction(float(limit)) + off - sign * sums
                if sign * slope > 0:
                    high = min(high, left / (sign * slope))
                elif sign * slope < 0:
                    low = max(low, left / (sign * slope))
                elif left < 0:
                    low, high = Fraction(1), Fraction(0)
        if low <= high:
            rest = cost[free[0]] * (low if cost[free[0]] > 0 else high) if free else Fraction(0)
            found.append(sum((cost[j] * value for j, value in at.items()), rest))
    return min(found, default=None)


def stable(mip: Mip) -> bool:
    """Whether rows that are a little wider or narrower have the same minimum; if not, tolerances decide."""
    narrow, exact, wide = (least(mip, off) for off in (-TOLERANCE, Fraction(0), TOLERANCE))
    if exact is None:
        return wide is None
    close = max(abs(exact), Fraction(1, 1000)) / 10**6
    return all(other is not None and abs(other - exact) <= close for other in (narrow, wide))


def wide(seed: int) -> Mip:
    """Up to five columns, the last one continuous in half of the programs, in rows of coefficients up to 1e13 apart."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(2, 6))
    lower = rng.integers(-2, 1, width).astype(np.float64)
    upper = lower + rng.integers(1, 4, width)
    integral = np.arange(width) < width - rng.integers(2)
    rows: list[DenseRow] = []
    for _ in range(int(rng.integers(1, 4))):
        spread = rng.uniform(3, 13)
        least_exponent = rng.uniform(-3, max(-3.0, 12 - spread))
        size = np.array([float(f"{10.0**e:.3g}") for e in rng.uniform(least_exponent, least_exponent + spread, width)])
        coefficients: FloatArray = np.minimum(size, 1e12) * rng.choice([-1, 1], width)
        middle = float(coefficients @ rng.integers(lower.astype(int), upper.astype(int) + 1))
        slack = float(rng.choice([size.min(), rng.choice(size)])) * float(rng.choice([0, 0.25, 0.5, 1.5]))
        kind = rng.integers(3)
        rows.append((coefficients, -INF if kind == 0 else middle - slack, INF if kind == 1 else middle + slack))
    cost = rng.integers(-9, 10, width) * float(rng.choice([1, 0.001, 1000]))
    return program(cost, rows, lower=lower, upper=upper, integral=integral)


@pytest.mark.parametrize("name", HERE)
def test_no_wrong_proof_on_wide_coefficients(name: str) -> None:
    backend, proven = backends.get(name), 0
    for seed in range(60 if name == "cbc" else 150):
        mip = wide(seed)
        if not stable(mip):
            continue
        minimum = least(mip, Fraction(0))
        try:
            result = backend.solve(mip, EXACT)
        except BackendError:  # heard, and no proof
            continue
        proven += result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if result.status is Status.INFEASIBLE:
            assert minimum is None, seed
        elif result.status is Status.OPTIMAL:
            assert minimum is not None, seed
            assert result.objective == pytest.approx(float(minimum), rel=1e-5, abs=1e-8), seed
    assert proven > 35


@pytest.mark.parametrize("name", HERE)
def test_the_column_that_scaling_lost(name: str) -> None:
    rows: list[DenseRow] = [([5e6, 1.0, 0.0], -INF, 1e7)]
    mip = program([4, -2, -6], rows, lower=[-1, 0, 0], upper=[2, 3, 3], integral=[True, False, True])
    result = backends.get(name).solve(mip, EXACT)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(-28)


def test_scaling_leaves_everything_in_sight() -> None:
    for seed in range(200):
        mip = wide(seed)
        scaled = scale(mip)
        before, after = np.abs(mip.value), np.abs(scaled.mip.value)
        larger = np.minimum(1.0, scaled.column_factor)[mip.index]  # the values of such columns become as much larger
        assert (after >= np.minimum(before, VISIBLE) * larger).all(), seed
        for name in ("col_lower", "col_upper", "row_lower", "row_upper"):
            before, after = np.abs(getattr(mip, name)), np.abs(getattr(scaled.mip, name))
            assert (after >= np.minimum(before, VISIBLE)).all(), (seed, name)


@pytest.mark.second_tier
@pytest.mark.parametrize("seed", [262, 378])
def test_the_minimum_that_cbc_preprocesses_away(seed: int) -> None:
    mip = small_random(seed, continuous=seed == 262)
    result = backends.get("cbc").solve(mip, EXACT)
    assert result.status.has_solution
    if result.status is Status.OPTIMAL:
        assert result.objective == pytest.approx(enumerated(mip))


@pytest.mark.parametrize("seed", [61, 316, 358])
def test_the_plan_that_highs_lost(seed: int) -> None:
    family, minimum = {61: ("standard", 13.047), 316: ("features", 50.433), 358: ("features", 49.607)}[seed]
    small, large = {"datasets": 4, "workloads": 5, "regions": 2}, {"datasets": 5, "workloads": 6, "regions": 3}
    problem = mast_opt.generate("data-placement", family=family, seed=seed, **(small if seed == 61 else large))
    objective = problem.objective
    weights, levels = (
        {**objective.weights, "retyped_work": 0.0, "moved_items": 0.0},
        dict.fromkeys(objective.peak_levels, 0.0),
    )
    problem = replace(problem, objective=replace(objective, weights=weights, peak_levels=levels))
    solution = mast_opt.solve(problem, "highs", gap=0.0, threads=1)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(minimum, abs=5e-4)


@pytest.mark.second_tier
def test_highs_writes_nothing_to_stdout() -> None:
    code = (
        "from mast_opt.problems import backends\n"
        "from mast_opt.core.solve_result import SolveParams\n"
        "from tests.backends.programs import knapsack\n"
        "assert backends.get('highs').solve(knapsack()[0], SolveParams()).objective == -23\n"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert (run.stdout, run.stderr) == ("", "")
