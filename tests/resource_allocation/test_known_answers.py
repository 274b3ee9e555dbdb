"""Answers that are known: Gavel's instances, in the exact values that an independent script computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.problems.resource_allocation import ResourceAllocation
from tests.narrowing import some
from tests.resource_allocation.support import gavel, with_policy

BACKENDS = ("highs", "scip")
STEPS: dict[str, Any] = {"steps": (300, 500)}
SECOND_ROUND: dict[str, Any] = {"steps": (200, 300), "elapsed_s": (0, 0), "fair_elapsed_s": (109.0909, 120)}
CASES: dict[str, tuple[ResourceAllocation, float | None, tuple[float, ...] | None]] = {
    "max-min of one GPU a type": (gavel("max-min"), 24 / 19, (28 / 19, 48 / 19)),
    "max-min of 1, 2 and 3 GPUs": (gavel("max-min", (1, 2, 3)), 48 / 31, (1.419355, 2.580645)),
    "makespan of one GPU a type": (gavel("makespan", **STEPS), 200.0, (1.5, 2.5)),
    "makespan of 1, 2 and 3 GPUs": (gavel("makespan", (1, 2, 3), **STEPS), 200.0, (1.5, 2.5)),
    "finish time": (gavel("finish-time-fairness", (1, 2, 3), **STEPS), None, (1.419355, 2.580645)),
    "finish time, second round": (gavel("finish-time-fairness", (1, 2, 3), **SECOND_ROUND), None, (1.517241, 2.482759)),
    "rate per cost": (gavel("rate-per-cost"), 1.8951612903, (2.0, 1.0)),
    "rate per cost with a floor": (gavel("rate-per-cost", min_rate=(0.1, 0)), 1.8951612903, (2.0, 1.0)),
    "total rate": (gavel("total-rate"), 4.0, None),
    "total rate of whole shares": (gavel("total-rate", shares="whole"), 4.0, None),
    "nothing costs nothing": (gavel("cost"), 0.0, (0.0, 0.0)),
    "a strategy-proofness instance": (
        gavel("max-min", rates=((3, 1, 1), (3, 2, 1), (3, 2, 1))),
        None,
        (1.765, 2.118, 2.118),
    ),
    "the same with a lie": (gavel("max-min", rates=((3, 1.1, 1), (3, 2, 1), (3, 2, 1))), None, (1.789, 2.105, 2.105)),
}


@pytest.mark.parametrize("solver", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_objective_and_rates(case: str, solver: str) -> None:
    problem, objective, rates = CASES[case]
    solution = mast_opt.solve(problem, solver)
    assert solution.status is Status.OPTIMAL
    assert solution.plan is not None
    if objective is not None:
        assert solution.objective == pytest.approx(objective, rel=1e-9)
        assert solution.bound == pytest.approx(objective, rel=1e-9)
    assert solution.gap == pytest.approx(0, abs=1e-9)
    if rates is not None:
        np.testing.assert_allclose(solution.plan.rate, rates, rtol=1e-3, atol=1e-9)


def packed() -> ResourceAllocation:
    """Gavel's two jobs, which may also share a GPU without slowing each other down."""
    alone = gavel("max-min")
    tables: dict[str, Any] = {name: frame.to_dict(as_series=False) for name, frame in mast_opt.to_tables(alone).items()}
    for t, kind in enumerate(("v100", "p100", "k80")):
        name = f"both@{kind}"
        tables["configurations"]["configuration"].append(name)
        tables["configurations"]["cost"].append(1.0)
        tables["uses"]["configuration"].append(name)
        tables["uses"]["resource"].append(kind)
        tables["uses"]["amount"].append(1.0)
        for j in range(2):
            tables["members"]["configuration"].append(name)
            tables["members"]["job"].append(f"job-{j}")
            tables["members"]["rate"].append(float(alone.members.rate[3 * j + t]))
    return mast_opt.from_tables("resource-allocation", tables, objective={"policy": "max-min"})


@pytest.mark.parametrize("solver", BACKENDS)
def test_packing(solver: str) -> None:
    solution = mast_opt.solve(packed(), solver)
    assert solution.objective == pytest.approx(1.5, rel=1e-9)


@pytest.mark.parametrize("solver", BACKENDS)
def test_service_levels_of_singularity(solver: str) -> None:
    """Three jobs of tiers with guarantees: 8 GPUs at 95%, 8 at 70%, 4 without; 12 are too few, 14 suffice."""

    def tiers(amount: float) -> ResourceAllocation:
        demand, weight, floor = (8, 8, 4), (3, 2, 1), (0.95, 0.70, 0.0)
        rows = [(j, part) for j in range(3) for part in (1.0, 0.5, 0.25)]
        names = [f"job-{j} at {part:.0%}" for j, part in rows]
        return mast_opt.from_tables(
            "resource-allocation",
            {
                "resources": {"resource": ["gpu"], "amount": [amount]},
                "jobs": {
                    "job": [f"job-{j}" for j in range(3)],
                    "weight": weight,
                    "min_rate": [part * of for part, of in zip(floor, demand, strict=True)],
                },
                "configurations": {"configuration": names},
                "members": {
                    "configuration": names,
                    "job": [f"job-{j}" for j, _ in rows],
                    "rate": [part * demand[j] for j, part in rows],
                },
                "uses": {
                    "configuration": names,
                    "resource": ["gpu"] * len(rows),
                    "amount": [part * demand[j] for j, part in rows],
                },
            },
            objective={"policy": "total-rate"},
        )

    short = mast_opt.solve(tiers(12), solver)
    assert short.status is Status.INFEASIBLE
    assert short.plan is None
    solution = mast_opt.solve(tiers(14), solver)
    assert solution.objective == pytest.approx(36)
    assert solution.plan is not None
    np.testing.assert_allclose(solution.plan.rate, (8, 6, 0), atol=1e-8)


@pytest.mark.parametrize("solver", BACKENDS)
def test_nash_and_harmonic_of_equal_jobs_split_evenly(solver: str) -> None:
    rates = ((2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2))
    for policy, value in (("nash", 4 * np.log(1.5)), ("harmonic", 4 / 1.5)):
        problem = with_policy(gavel("max-min", rates=rates, fair_rate=(1, 1, 1, 1)), policy)
        solution = mast_opt.solve(problem, solver)
        assert solution.objective == pytest.approx(value, rel=1e-6)
        assert solution.bound == pytest.approx(value, rel=1e-6)
        assert solution.plan is not None
        np.testing.assert_allclose(solution.plan.rate, 1.5, rtol=1e-3)


@pytest.mark.parametrize("solver", BACKENDS)
def test_groups_share_by_weight_whatever_their_size(solver: str) -> None:
    """One resource, groups of weights 1 and 2 with three jobs and one: the one job gets two thirds."""
    names = [f"job-{j}" for j in range(4)]
    problem = mast_opt.from_tables(
        "resource-allocation",
        {
            "resources": {"resource": ["gpu"], "amount": [1.0]},
            "groups": {"group": ["many", "one"], "weight": [1.0, 2.0]},
            "jobs": {"job": names, "group": ["many", "many", "many", "one"], "submitted_s": [3, 2, 1, 0]},
            "configurations": {"configuration": names},
            "members": {"configuration": names, "job": names, "rate": [1.0] * 4},
            "uses": {"configuration": names, "resource": ["gpu"] * 4, "amount": [1.0] * 4},
        },
        objective={"policy": "hierarchical"},
    )
    solution = mast_opt.solve(problem, solver)
    assert solution.plan is not None
    np.testing.assert_allclose(solution.plan.rate, (1 / 9, 1 / 9, 1 / 9, 2 / 3), rtol=1e-9)
    assert solution.objective == pytest.approx(1 / 3)
    in_turn = mast_opt.solve(with_policy(problem, "hierarchical", "fifo"), solver)
    assert in_turn.plan is not None
    np.testing.assert_allclose(in_turn.plan.rate, (0, 0, 1 / 3, 2 / 3), rtol=1e-9, atol=1e-9)
    plenty = replace(problem, resources=replace(problem.resources, amount=np.array([2.0])))
    solution = mast_opt.solve(with_policy(plenty, "hierarchical", "fifo"), solver)
    assert solution.plan is not None
    np.testing.assert_allclose(solution.plan.rate, (0, 0, 1, 1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_whole_shares_for_some_of_equal_jobs(solver: str) -> None:
    """By hand: three equal jobs and two GPUs; one job waits, whichever it is, and the others run."""
    problem = gavel("max-min", (2, 0, 0), ((1.0, 1.0, 1.0),) * 3, shares="whole", fair_rate=(1.0,) * 3)
    solution = mast_opt.solve(problem, solver)
    assert solution.status is Status.OPTIMAL
    assert sorted(some(solution.plan).rate.tolist()) == [0.0, 1.0, 1.0]


def test_finish_time_fairness_leaves_nothing_idle() -> None:
    """By hand: two jobs, a GPU each that the other cannot use; the one that is late anyway decides the worst ratio."""
    tables = {
        "resources": {"resource": ["x", "y"], "amount": [1.0, 1.0]},
        "jobs": {"job": ["a", "b"], "steps": [10.0, 10.0], "elapsed_s": [1000.0, 0.0]},
        "configurations": {"configuration": ["ax", "by"]},
        "members": {"configuration": ["ax", "by"], "job": ["a", "b"], "rate": [1.0, 1.0]},
        "uses": {"configuration": ["ax", "by"], "resource": ["x", "y"], "amount": [1.0, 1.0]},
    }
    for policy, objective in (("finish-time-fairness", 101.0), ("makespan", 10.0)):
        problem = mast_opt.from_tables("resource-allocation", tables, objective={"policy": policy})
        solution = mast_opt.solve(problem)
        assert solution.objective == pytest.approx(objective)
        assert some(solution.plan).rate.tolist() == pytest.approx([1.0, 1.0])
