"""Limits on a whole plan in tetris: plans keep them, bounds stay below the limited optimum."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mast_opt
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.plan_limits import PRICED, PlanLimitParams
from mast_opt.problems.data_placement.verification.verifier import use_of_limits
from tests.data_placement.test_limits import LIMITED

FEW = TetrisParams(plan_limits=PlanLimitParams(searches=4))


def solve(problem: DataPlacement, **limits: float) -> mast_opt.Solution[Plan]:
    return mast_opt.solve(problem, "tetris", iterations=10, threads=1, seed=1, params=FEW, limits=limits)


@pytest.fixture(scope="module")
def drawn() -> DataPlacement:
    """An instance whose best plan has more of everything than it must: peaks count from 0."""
    problem = mast_opt.generate("data-placement", seed=1, datasets=10, workloads=14, regions=3)
    return replace(problem, objective=replace(problem.objective, peak_levels=dict.fromkeys(problem.tiers, 0.0)))


def test_many_limits_at_once() -> None:
    problem = LIMITED.with_limits({"egress": None})
    best = mast_opt.solve(problem, "highs", gap=1e-9)
    found = solve(problem)
    assert best.objective is not None
    assert found.objective is not None
    assert found.bound is not None
    assert found.bound <= best.objective <= found.objective * (1 + 1e-9) <= best.objective * 1.02


@pytest.mark.parametrize("name", ["copied_tb", "storage", "moved_work", "remote", "overload_gpus", "moves"])
def test_a_plan_keeps_its_limit(drawn: DataPlacement, name: str) -> None:
    free = solve(drawn, **{name: 1e12})
    assert free.plan is not None
    limited = drawn.with_limits({name: 1e12})
    most = 0.9 * float(use_of_limits(limited, free.plan)[name])
    found = solve(drawn, **{name: most})
    assert found.plan is not None
    assert float(use_of_limits(limited, found.plan)[name]) <= most
    assert free.bound is not None
    assert found.objective is not None
    assert found.objective >= free.bound - 1e-9


def test_what_no_plan_keeps(drawn: DataPlacement) -> None:
    found = solve(drawn, storage=0.5)
    assert found.status.value in ("NO_SOLUTION", "INFEASIBLE")
    assert found.plan is None


def test_a_start_within_the_limits_is_a_plan(drawn: DataPlacement) -> None:
    start = solve(drawn, storage=1.2)
    assert start.plan is not None
    again = mast_opt.solve(
        drawn, "tetris", start=start.plan, iterations=1, threads=1, seed=2, params=FEW, limits={"storage": 1.2}
    )
    assert again.objective is not None
    assert start.objective is not None
    assert again.objective <= start.objective


def test_an_order_of_terms_is_refused(drawn: DataPlacement) -> None:
    with pytest.raises(mast_opt.UnsupportedOption, match="weights, not an order"):
        mast_opt.solve(drawn, "tetris", iterations=1, limits={"storage": 1.2}, order=("peak", "copy"))


def test_limits_are_priced_by_terms() -> None:
    assert PRICED.keys() == LIMITS.keys() - {"egress"}
    assert {term for terms in PRICED.values() for term in terms} <= set(LIMITED.objective.weights)
