"""Column generation finds what the whole program finds, with a bound over all configurations."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.resource_allocation.generate import packing
from mast_opt.problems.resource_allocation.methods import columns
from mast_opt.problems.resource_allocation.methods.solves import Solves
from mast_opt.problems.resource_allocation.methods.subproblems import without_job
from mast_opt.problems.resource_allocation.policies import POLICIES
from tests.resource_allocation.support import small, with_policy


def packed(policy: str) -> ResourceAllocation:
    problem = mast_opt.generate("resource-allocation", "packing", seed=4, jobs=16, types=2)
    groups = small(0, "max-min").groups
    return with_policy(
        replace(
            problem,
            groups=replace(groups, min_rate=np.zeros(2)),
            jobs=replace(problem.jobs, group=np.arange(16) % 2, min_rate=0.5 * problem.jobs.fair_rate),
        ),
        policy,
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_optimum(policy: str) -> None:
    problem, params = packed(policy), mast_opt.AllocationParams(direct_configurations=0)
    whole = mast_opt.solve(problem)
    assert 0 < columns.Columns(problem, cast(Solves, None), params).chosen.sum() < len(problem.configurations)
    some = mast_opt.solve(problem, params=params)
    assert some.status is Status.OPTIMAL
    assert some.objective == pytest.approx(whole.objective, rel=2e-6)
    assert some.bound == pytest.approx(whole.bound, rel=2e-6)
    assert some.certificate is not None
    assert whole.plan is not None
    assert some.plan is not None
    if policy in ("max-min", "hierarchical"):
        np.testing.assert_allclose(some.plan.rate, whole.plan.rate, rtol=1e-5)


def test_a_program_over_too_few_is_not_taken_for_infeasible() -> None:
    """The floors can only be kept by the configuration that seems worst."""
    names = ["wide", "narrow-1", "narrow-2", "narrow-3", "narrow-4", "narrow-5", "narrow-6"]
    problem = mast_opt.from_tables(
        "resource-allocation",
        {
            "resources": {"resource": ["gpu"], "amount": [1.0]},
            "jobs": {"job": ["job"], "min_rate": [1.0]},
            "configurations": {"configuration": names},
            "members": {"configuration": names, "job": ["job"] * 7, "rate": [1.0, *[0.5] * 6]},
            "uses": {"configuration": names, "resource": ["gpu"] * 7, "amount": [1.0, *[0.1] * 6]},
        },
        objective={"policy": "total-rate"},
    )
    assert mast_opt.solve(problem, params={"direct_configurations": 0}).objective == pytest.approx(1.0)


def test_much_work_does_not_hide_the_configurations_that_pay() -> None:
    """With a makespan of a million seconds the price of a rate is far below what solvers tell from 0."""
    problem = packed("makespan")
    problem = replace(problem, jobs=replace(problem.jobs, steps=problem.jobs.steps * 1e5))
    some = mast_opt.solve(problem, params=mast_opt.AllocationParams(direct_configurations=0))
    assert some.status is Status.OPTIMAL
    assert some.objective == pytest.approx(mast_opt.solve(problem).objective, rel=1e-6)


def test_large_programs_are_solved_by_an_interior_point_method_and_give_a_basis() -> None:
    problem = without_job(packing(np.random.default_rng(0), jobs=512, types=3), 511)
    assert mast_opt.solve(problem).status is Status.OPTIMAL
