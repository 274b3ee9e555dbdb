"""Limits on a whole plan with every open solver: equal optima, and plans that the verifier accepts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.data_placement.limits import LIMITS
from tests.data_placement import glpk
from tests.data_placement.brute import Brute
from tests.data_placement.workshop import PROBLEM

TIGHT = {
    "copied_tb": 9,
    "remote": 0.25,
    "moved_work": 0.8,
    "moves": 3.5,
    "egress": 90,
    "overload_gpus": 4,
    "unserved": 0.9,
    "unserved_gpus": 8,
    "storage": 1.2,
}
LIMITED = PROBLEM.with_objective({"remote": 5.0, "moved_work": 0.0}).with_limits(TIGHT)


@pytest.mark.parametrize("solver", ["cpsat", "scip", "cbc"])
def test_solvers_agree_under_limits(solver: str) -> None:
    best = mast_opt.solve(LIMITED, "highs", gap=1e-9)
    found = mast_opt.solve(LIMITED, solver, gap=1e-9)
    assert found.status.value == best.status.value == "OPTIMAL"
    assert found.objective == pytest.approx(best.objective, rel=1e-6)
    assert found.objective is not None
    free = mast_opt.solve(LIMITED.with_limits(dict.fromkeys(LIMITS)), "highs", gap=1e-9)
    assert free.objective is not None
    assert free.objective < found.objective - 1e-6


def test_a_tighter_limit_is_never_better() -> None:
    objectives = []
    for most in (13, 11, 9, 4):
        solution = mast_opt.solve(PROBLEM.with_limits({"copied_tb": most}), "highs", gap=1e-9)
        objectives.append(float("inf") if solution.objective is None else solution.objective)
    assert objectives == sorted(objectives)
    assert objectives[-1] == float("inf")  # video has to be uploaded


def test_a_limit_of_nothing_meets_prices_that_are_nearly_nothing(tmp_path: Path) -> None:
    """2 MB pinned where storage costs 20 USD per TB-month are 4e-5 USD a month; GLPK called a limit of 0 kept."""
    problem = mast_opt.generate("data-placement", "standard", datasets=2, workloads=1, regions=2, seed=1)
    problem = problem.with_columns(
        {
            "datasets.size_mb": np.array([2, 2]),
            "datasets.pinned": np.array([[True, False], [True, False]]),
            "datasets.copies_max": np.array([1, 1]),
            "regions.storage_price_micro": np.array([20_000_000, 0]),
            "regions.gpu_price_micro": np.zeros_like(problem.regions.supply_mgpu),
        }
    )
    for most, feasible in ((0, False), (Fraction(79, 10**6), False), (Fraction(8, 10**5), True)):
        limited = replace(problem, limits={"running_cost": Fraction(most)})
        assert (Brute(limited, parts=1).optimum() is not None) == feasible
        assert (glpk.optimum(limited, tmp_path) is not None) == feasible
        for solver in ("highs", "cpsat", "scip"):
            found = mast_opt.solve(limited, solver, gap=0)
            assert found.status.has_solution == feasible, solver
