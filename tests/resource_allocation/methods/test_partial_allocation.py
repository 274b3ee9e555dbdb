"""Partial allocation: nobody gains by a lie, by the formula on exact allocations and by the solver."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Status
from mast_opt.problems.resource_allocation.methods.solver import kept_parts, partial_allocation
from mast_opt.problems.resource_allocation.methods.subproblems import without_job
from tests.narrowing import some

GPUS = 4
DIVISIONS = np.array([cut for cut in product(range(GPUS + 1), repeat=3) if sum(cut) == GPUS])
"""[D, 3] every way to divide the GPUs among three apps."""


def best_division(value: FloatArray, weight: FloatArray, out: int | None = None) -> FloatArray:
    """[3] GPUs of the highest Π value^weight, without one app where ``out`` says so."""
    worth = value[np.arange(3), DIVISIONS] ** weight
    if out is not None:
        worth[:, out] = 1
    division: FloatArray = DIVISIONS[worth.prod(axis=1).argmax()]
    return division


def auction(value: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """GPUs and parts kept."""
    won = best_division(value, weight)

    def without(app: int) -> FloatArray:
        division = best_division(value, weight, app)
        return np.delete(value[np.arange(3), division], app)

    return won, partial_allocation(weight, value[np.arange(3), won], without)


def bids(rng: np.random.Generator) -> FloatArray:
    """[GPUS + 1] values of 0 to all GPUs, ascending."""
    return np.cumsum(rng.exponential(1.0, GPUS + 1)) + 0.01


def test_no_lie_of_a_thousand_gains_in_an_auction() -> None:
    rng = np.random.default_rng(0)
    gains = 0
    for _ in range(40):
        value, weight = np.array([bids(rng) for _ in range(3)]), rng.choice([1.0, 2.0, 0.5], 3)
        won, kept = auction(value, weight)
        assert ((kept > 0) & (kept <= 1)).all()
        honest = kept[0] * value[0, won[0]]
        for _ in range(30):
            said = value.copy()
            said[0] = bids(rng)
            lied_won, lied_kept = auction(said, weight)
            assert lied_kept[0] * value[0, lied_won[0]] <= honest * (1 + 1e-9)
            gains += int(value[0, lied_won[0]] > value[0, won[0]] * (1 + 1e-9))
    assert gains > 100  # without the payment, many of them would


def shared(rate: FloatArray) -> FloatArray:
    """[2, 2] shares of two jobs on two GPUs of different types at the highest product of their rates."""
    (p, first), (last, r) = (rate[0, 1], rate[0, 0]), (rate[1, 0], rate[1, 1])
    q, s = first - p, r - last  # rates are p + q·a and last + s·a, a the first job's share of the first type
    at = -(q * last + s * p) / (2 * q * s) if q * s else np.inf
    ends = [a for a in (0.0, 1.0, at) if 0 <= a <= 1]
    a = max(ends, key=lambda a: (p + q * a) * (last + s * a))
    return np.array([[a, 1 - a], [1 - a, a]])


def test_no_lie_of_a_thousand_gains_with_shares() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        rate = rng.uniform(0.2, 3, (2, 2))

        def kept_of_first(said: FloatArray, true: FloatArray = rate) -> float:
            share = shared(said)
            rates = (share * said).sum(axis=1)
            kept = kept_parts(np.ones(2), rates, said.max(axis=1)[::-1, None] * np.ones((2, 2)))
            return float(kept[0] * (share[0] * true[0]).sum())

        honest = kept_of_first(rate)
        for _ in range(30):
            assert kept_of_first(np.array([rng.uniform(0.2, 3, 2), rate[1]])) <= honest * (1 + 1e-9)


TABLES = {
    "resources": {"resource": ["v100", "k80"], "amount": [1, 1]},
    "jobs": {"job": ["a", "b", "c"], "weight": [1, 2, 1]},
    "configurations": {"configuration": ["av", "ak", "bv", "bk", "cv", "ck", "ab"]},
    "members": {
        "configuration": ["av", "ak", "bv", "bk", "cv", "ck", "ab", "ab"],
        "job": ["a", "a", "b", "b", "c", "c", "a", "b"],
        "rate": [3.0, 1.0, 4.0, 1.0, 2.0, 1.5, 2.0, 2.0],
    },
    "uses": {
        "configuration": ["av", "ak", "bv", "bk", "cv", "ck", "ab"],
        "resource": ["v100", "k80", "v100", "k80", "v100", "k80", "v100"],
        "amount": np.ones(7),
    },
}
MECHANISM = {"policy": "nash", "mechanism": "partial-allocation"}


def test_the_solver_keeps_what_the_formula_says() -> None:
    problem = mast_opt.from_tables("resource-allocation", TABLES, objective=MECHANISM)
    solution = mast_opt.solve(problem, "highs", gap=1e-7)
    plan = some(solution.plan)
    assert some(solution.verdict).ok
    expected = np.ones(3)
    for job in range(3):
        rest = without_job(problem, job)
        assert len(rest.jobs) == 2
        assert rest.jobs.labels == tuple(np.delete(list(problem.jobs.labels), job))
        assert "ab" not in rest.configurations.labels or job == 2
        rate = some(mast_opt.solve(rest, "highs", gap=1e-7).plan).rate
        weight = np.delete(problem.jobs.weight, job) / problem.jobs.weight[job]
        expected[job] = ((np.delete(plan.rate, job) / rate) ** weight).prod()
    assert plan.kept == pytest.approx(expected, abs=1e-4)
    assert plan.kept.max() < 1


def test_a_job_alone_keeps_everything() -> None:
    tables = {
        "resources": {"resource": ["v100"], "amount": [1]},
        "jobs": {"job": ["a"]},
        "configurations": {"configuration": ["a"]},
        "members": {"configuration": ["a"], "job": ["a"], "rate": [3.0]},
        "uses": {"configuration": ["a"], "resource": ["v100"], "amount": [1]},
    }
    problem = mast_opt.from_tables("resource-allocation", tables, objective=MECHANISM)
    assert some(mast_opt.solve(problem, "highs").plan).kept.tolist() == [1]


def test_where_a_job_runs_only_next_to_another_nothing_is_claimed() -> None:
    tables = {
        "resources": {"resource": ["v100"], "amount": [1]},
        "jobs": {"job": ["a", "b"]},
        "configurations": {"configuration": ["ab"]},
        "members": {"configuration": ["ab", "ab"], "job": ["a", "b"], "rate": [3.0, 1.0]},
        "uses": {"configuration": ["ab"], "resource": ["v100"], "amount": [1]},
    }
    problem = mast_opt.from_tables("resource-allocation", tables, objective=MECHANISM)
    solution = mast_opt.solve(problem, "highs")
    assert solution.status is Status.NO_SOLUTION
    assert "best allocation without a is not" in solution.message
