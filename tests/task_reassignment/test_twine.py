"""The solver ``twine``: verified plans, no worse than today, a true bound, the same answer for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

import mast_opt
from mast_opt.task_reassignment.aggregate import aggregate_bound
from mast_opt.task_reassignment.generate import FAMILIES
from mast_opt.task_reassignment.heuristics.anneal import anneal
from mast_opt.task_reassignment.heuristics.fleet import fleet_of
from mast_opt.task_reassignment.heuristics.state import COST, state_of
from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.verify import verify


def drawn(family: str, seed: int) -> object:
    chosen = FAMILIES[family]
    sizes = {name: min(size, 12) for name, size in chosen.sizes.items()}
    return chosen.generate(np.random.default_rng(seed), **sizes)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("seed", [1, 2])
def test_between_the_bound_and_today(family: str, seed: int) -> None:
    problem = drawn(family, seed)
    solution = mast_opt.solve(problem, "twine", iterations=20, seed=seed, threads=2)
    exact = mast_opt.solve(problem, "highs", time_limit_s=30)
    assert solution.verdict is not None
    assert solution.verdict.ok
    assert solution.objective is not None
    assert solution.objective <= verify(problem, Plan(problem.initial.copy())).objective
    if exact.bound is not None:
        assert solution.objective >= exact.bound - 1e-6 * abs(exact.bound) - 1e-9
    if exact.objective is not None:
        assert aggregate_bound(problem) <= exact.objective + 1e-6
    again = mast_opt.solve(problem, "twine", iterations=20, seed=seed, threads=2)
    assert (again.plan.machine == solution.plan.machine).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_cost_is_kept_up_with_the_changes(seed: int) -> None:
    problem = drawn("challenge", seed)
    fleet, rng = fleet_of(problem), np.random.default_rng(seed)
    state = state_of(problem, fleet, problem.initial, rng)
    best, cost = state.machine.copy(), np.array([state.total[COST]])
    anneal(fleet, state, 5_000, float(fleet.size.max()), 1.0, 1e9, len(problem.processes), 0.5, 0.5, best, cost)
    fresh = state_of(problem, fleet, state.machine.astype(np.int64), rng)
    for name in ("level", "free", "cost", "locations", "moved", "total"):
        assert np.allclose(getattr(state, name), getattr(fresh, name)), name
    verdict = verify(problem, Plan(best.astype(np.int64)))
    assert verdict.ok
    assert verdict.objective == pytest.approx(cost[0], rel=1e-12)
