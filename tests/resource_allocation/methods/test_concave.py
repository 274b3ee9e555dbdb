"""Nash welfare and the harmonic mean in any unit of the rates: their objectives move, their allocations must not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.problems.resource_allocation import ResourceAllocation
from tests.resource_allocation.support import small, with_policy


def without_floors(policy: str, jobs: int = 12) -> ResourceAllocation:
    problem = with_policy(mast_opt.generate("resource-allocation", seed=3, jobs=jobs, types=3), policy)
    return replace(problem, jobs=replace(problem.jobs, min_rate=np.zeros(jobs)))


def in_unit(problem: ResourceAllocation, factor: float) -> ResourceAllocation:
    members, jobs = problem.members, problem.jobs
    return replace(
        problem,
        members=replace(members, rate=members.rate * factor),
        jobs=replace(jobs, fair_rate=jobs.fair_rate * factor),
    )


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("log_factor", [-9.0, 0.0, 14.0, None])
def test_the_gap_of_the_geometric_mean_is_proven_in_any_unit(log_factor: float | None, solver: str) -> None:
    """None: the unit in which the sum of logarithms is 0, so that a gap relative to it would never end."""
    problem = without_floors("nash")
    weights = float(problem.jobs.weight.sum())
    usual = mast_opt.solve(problem, "highs")
    assert usual.objective is not None
    shift = -usual.objective / weights if log_factor is None else log_factor
    solution = mast_opt.solve(in_unit(problem, math.exp(shift)), solver, gap=1e-6)
    assert solution.status is Status.OPTIMAL
    assert solution.objective is not None
    assert solution.bound is not None
    assert 0 <= (solution.bound - solution.objective) / weights <= 1e-6
    assert solution.objective / weights - shift == pytest.approx(usual.objective / weights, abs=2e-6)


@pytest.mark.parametrize("factor", [1e-4, 1e6])
def test_the_harmonic_mean_does_not_depend_on_the_unit(factor: float) -> None:
    problem = without_floors("harmonic")
    usual, other = (mast_opt.solve(one, "highs", gap=1e-6) for one in (problem, in_unit(problem, factor)))
    assert usual.status is other.status is Status.OPTIMAL
    assert other.objective == pytest.approx(usual.objective, rel=2e-6)


@pytest.mark.parametrize("solver", ["highs", "scip", "cpsat"])
def test_whole_shares_are_optimal_where_the_sum_of_logarithms_is_0(solver: str) -> None:
    problem = small(3, "nash", whole=True)
    problem = replace(problem, jobs=replace(problem.jobs, min_rate=np.zeros(4), weight=np.ones(4)))
    usual = mast_opt.solve(problem, "highs")
    assert usual.objective is not None
    solution = mast_opt.solve(in_unit(problem, math.exp(-usual.objective / 4)), solver)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(0.0, abs=1e-9)
