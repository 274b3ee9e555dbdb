"""Solved instances against brute force, SciPy on dense matrices, and bounds that certificates prove."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import mast_opt
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Status
from mast_opt.problems.resource_allocation.formulation.program import LEXIMIN
from mast_opt.problems.resource_allocation.policies import EVERY_JOB_RUNS, POLICIES
from mast_opt.problems.resource_allocation.verification.price_bound import certified_bound
from tests.narrowing import some
from tests.resource_allocation.reference import (
    Dense,
    can_have_more,
    every_choice,
    filled_rates,
    least_level,
    utilities,
    value_of,
)
from tests.resource_allocation.support import odd, small

SEEDS = range(4)
SMOOTH = ("nash", "harmonic")
WHOLE = tuple(policy for policy in POLICIES if policy != "hierarchical")


@pytest.mark.parametrize("policy", WHOLE)
@pytest.mark.parametrize("seed", SEEDS)
def test_whole_shares_are_the_best_of_all_choices(seed: int, policy: str) -> None:
    problem = small(seed, policy, whole=True, jobs=3)
    free = replace(problem.jobs, min_rate=np.where(np.arange(3) == seed % 3, problem.jobs.min_rate, 0.0))
    problem = replace(
        problem,
        jobs=replace(free, required=np.zeros(3, np.bool_)),
        resources=replace(problem.resources, amount=np.array([2.0, 1.0])),
    )
    values = [value_of(problem, share) for share in every_choice(problem)]
    finite = [value for value in values if math.isfinite(value)]
    solution = mast_opt.solve(problem, "highs", gap=0)
    if not finite:
        assert solution.status is Status.INFEASIBLE
        return
    best = max(finite) if problem.sense is Sense.MAX else min(finite)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert solution.certificate is None


@pytest.mark.parametrize("policy", LEXIMIN)
@pytest.mark.parametrize("seed", range(6))
def test_whole_shares_are_leximin(seed: int, policy: str) -> None:
    problem = small(seed, policy, whole=True, jobs=4)
    free = replace(problem.jobs, min_rate=np.zeros(4), required=np.zeros(4, np.bool_))
    problem = replace(
        problem,
        jobs=free,
        groups=replace(problem.groups, min_rate=np.zeros(2)),
        resources=replace(problem.resources, amount=np.array([2.0, 1.0])),
    )
    dense = Dense(problem)
    best = max(sorted(utilities(problem, dense.rate @ share).tolist()) for share in every_choice(problem))
    solution = mast_opt.solve(problem, gap=0)
    if policy != "max-min" and not best[0]:
        assert solution.status is Status.INFEASIBLE
        return
    assert solution.status is Status.OPTIMAL
    assert sorted(utilities(problem, some(solution.plan).rate).tolist()) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("policy", ["total-rate", "rate-per-cost", "cost"])
@pytest.mark.parametrize("seed", SEEDS)
def test_linear_policies(seed: int, policy: str) -> None:
    problem = small(seed, policy)
    corners = np.eye(len(problem.configurations))
    sign = 1 if problem.sense is Sense.MAX else -1
    found = Dense(problem).best(sign * np.array([value_of(problem, corner) for corner in corners]))
    assert found is not None
    assert mast_opt.solve(problem).objective == pytest.approx(sign * found[0], rel=1e-9)


@pytest.mark.parametrize("policy", LEXIMIN)
@pytest.mark.parametrize("seed", range(4))
def test_fractional_shares_are_leximin(seed: int, policy: str) -> None:
    problem = small(seed, policy, jobs=5)
    free = replace(problem.jobs, min_rate=np.zeros(5), required=np.zeros(5, np.bool_))
    problem = replace(problem, jobs=free, groups=replace(problem.groups, min_rate=np.zeros(2)))
    assert can_have_more(problem, some(mast_opt.solve(problem).plan).rate) == []


@pytest.mark.parametrize("solver", ["highs", "cbc", "scip"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("policy", [*LEXIMIN, "hierarchical"])
def test_odd_instances(policy: str, whole: bool, solver: str) -> None:
    """Jobs that cannot run, resources of which there is none, floors, groups, pairs: right, or proven impossible."""
    if policy == "hierarchical" and whole:
        return
    for seed in range(12):
        problem = odd(seed, policy, whole=whole)
        dense = Dense(problem)
        solution = mast_opt.solve(problem, solver)
        rates = [dense.rate @ share for share in every_choice(problem)] if whole else []
        if policy in EVERY_JOB_RUNS:
            rates = [rate for rate in rates if (rate > 0).all()]
        least = dense.level(np.ones(len(problem.jobs)), np.zeros(len(problem.jobs)))
        if not (rates if whole else least > (1e-12 if policy in EVERY_JOB_RUNS else -math.inf)):
            assert solution.status is Status.INFEASIBLE, seed
            continue
        assert solution.status is Status.OPTIMAL, seed
        rate = some(solution.plan).rate
        if whole:
            best = max(sorted(utilities(problem, one).tolist()) for one in rates)
            assert sorted(utilities(problem, rate).tolist()) == pytest.approx(best, rel=1e-9), seed
        elif policy == "hierarchical":
            np.testing.assert_allclose(rate, filled_rates(problem), rtol=1e-4, atol=1e-6)
        else:
            assert can_have_more(problem, rate) == [], seed


@pytest.mark.parametrize("policy", ["makespan", "finish-time-fairness"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_worst_job(seed: int, policy: str) -> None:
    problem = small(seed, policy)
    solution = mast_opt.solve(problem)
    assert solution.objective == pytest.approx(least_level(problem, policy != "makespan"), rel=1e-6)


@pytest.mark.parametrize("policy", SMOOTH)
@pytest.mark.parametrize("seed", range(2))
def test_smooth_policies(seed: int, policy: str) -> None:
    problem = small(seed, policy)
    solution = mast_opt.solve(problem)
    assert solution.plan is not None
    assert solution.objective is not None
    dense, sign = Dense(problem), -1 if problem.sense is Sense.MAX else 1
    start = mast_opt.solve(replace(problem, objective=replace(problem.objective, policy="max-min"))).plan
    assert start is not None
    found = minimize(
        lambda share: sign * value_of(problem, share),
        start.share,
        method="SLSQP",
        bounds=[(0, 1)] * len(start.share),
        constraints={"type": "ineq", "fun": lambda share: dense.limit - dense.upper @ share},
        options={"ftol": 1e-12, "maxiter": 200},
    )
    assert (dense.upper @ found.x <= dense.limit + 1e-6).all()
    assert sign * solution.objective <= found.fun + 2e-6 * abs(found.fun)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_certificate_proves_the_bound(seed: int, policy: str) -> None:
    problem = small(seed, policy)
    solution = mast_opt.solve(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate is not None
    assert solution.bound is not None
    proven = certified_bound(problem, solution.certificate.arrays())
    assert proven == pytest.approx(solution.bound, rel=1e-12)
    assert solution.gap is not None
    assert solution.gap <= 1e-6


@pytest.mark.parametrize("policy", POLICIES)
def test_any_prices_prove_a_bound_that_no_plan_passes(policy: str) -> None:
    """Prices are weak where they are not those of the optimum, and never wrong."""
    rng = np.random.default_rng(5)
    problem = small(3, policy)
    solution = mast_opt.solve(problem)
    assert solution.certificate is not None
    assert solution.objective is not None
    exact = solution.certificate.arrays()
    for _ in range(200):
        arrays = {name: values * rng.lognormal(0, 0.5, len(values)) for name, values in exact.items()}
        bound = certified_bound(problem, arrays)
        assert problem.sense.minimised(bound - solution.objective) <= 1e-9 * abs(solution.objective)


@pytest.mark.parametrize("policy", sorted(EVERY_JOB_RUNS))
def test_jobs_that_cannot_run_together_with_floors_are_named(policy: str) -> None:
    """The floor of job-1 takes the whole of the only resource that job-2 can use."""
    names = ["job-1", "job-2", "job-3"]
    tables = {
        "resources": {"resource": ["gpu", "cpu"], "amount": [1.0, 1.0]},
        "jobs": {"job": names, "min_rate": [2.0, 0.0, 0.0], "steps": [10.0, 10.0, 10.0]},
        "configurations": {"configuration": names},
        "members": {"configuration": names, "job": names, "rate": [2.0, 1.0, 1.0]},
        "uses": {"configuration": names, "resource": ["gpu", "gpu", "cpu"], "amount": [1.0, 1.0, 1.0]},
    }
    problem = mast_opt.from_tables("resource-allocation", tables, objective={"policy": policy})
    solution = mast_opt.solve(problem)
    assert solution.status is Status.INFEASIBLE
    assert solution.message.endswith("no allocation lets these run: job-2")
    explanation = mast_opt.explain(problem)
    assert explanation.status is Status.INFEASIBLE
    text = "; ".join(explanation.conflict)
    assert "gpu (1)" in text
    assert "job-1 at a rate of at least 2" in text
    assert "job-2 has to run" in text
    assert explanation.repairs


def test_a_counted_resource_is_raised_by_whole_units() -> None:
    """By hand: the job needs 2.5 GPUs all the time and there is 1; 1.5 are missing, which are 2 to order."""
    tables = {
        "resources": {"resource": ["gpu"], "amount": [1.0]},
        "jobs": {"job": ["a"], "min_rate": [1.0]},
        "configurations": {"configuration": ["a"]},
        "members": {"configuration": ["a"], "job": ["a"], "rate": [1.0]},
        "uses": {"configuration": ["a"], "resource": ["gpu"], "amount": [2.5]},
    }
    problem = mast_opt.from_tables("resource-allocation", tables, objective={"policy": "total-rate"})
    (repair,) = mast_opt.explain(problem, prices={"floor": float("inf")}, alternatives=1).repairs
    assert repair.changes == ("raise gpu by 2",)
    assert repair.exact == ("raise gpu by 1.5",)
    assert repair.problem.resources.amount.tolist() == [3.0]
    assert mast_opt.verify(repair.problem, repair.plan).ok


def test_floors_that_no_allocation_meets_are_explained() -> None:
    problem = small(1, "total-rate")
    most = np.zeros(4)
    np.maximum.at(most, problem.members.job, problem.members.rate)
    high = replace(problem, jobs=replace(problem.jobs, min_rate=most))
    assert mast_opt.solve(high).status is Status.INFEASIBLE
    explanation = mast_opt.explain(high)
    assert explanation.status is Status.INFEASIBLE
    assert explanation.minimal
    assert "at a rate of at least" in "; ".join(explanation.conflict)
    assert explanation.repairs


def test_a_floor_above_every_configuration_is_seen_before_solving() -> None:
    problem = small(1, "total-rate")
    floor = np.where(np.arange(4) == 2, 1e6, 0.0)
    solution = mast_opt.solve(replace(problem, jobs=replace(problem.jobs, min_rate=floor)))
    assert solution.status is Status.INFEASIBLE
    assert [conflict.index for conflict in solution.conflicts] == [("job-3",)]
