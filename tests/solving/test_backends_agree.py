"""Every backend proves the same optimum, through the whole route: formulate, solve, decode, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.planner.solving import Solution
from tests.solvers import OPEN

FOLDER = Path(__file__).parents[2] / "instances" / "data_placement"
OPTIMA = {
    "two-regions": 2.1,
    "hot-dataset": 1.7,
    "links-bind": 1.7,
    "split-shares": 1.7,
    "unserved": 1000 / 3 + 5 / 3 + 0.1,
}


def solved(problem: Any, solver: str) -> Solution[Any]:
    return mast_opt.solve(problem, solver, time_limit_s=120, gap=1e-6)


@pytest.mark.parametrize("solver", OPEN)
@pytest.mark.parametrize("name", sorted(OPTIMA))
def test_the_worked_answers(name: str, solver: str) -> None:
    problem = mast_opt.read(FOLDER / name)
    solution = solved(problem, solver)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(OPTIMA[name], rel=1e-6)
    assert solution.bound is not None
    assert solution.bound == pytest.approx(OPTIMA[name], rel=3e-6)
    assert mast_opt.verify(problem, solution.plan).ok


@pytest.mark.parametrize("solver", OPEN)
def test_infeasible_is_a_status(solver: str) -> None:
    solution = solved(mast_opt.read(FOLDER / "infeasible-pins"), solver)
    assert solution.status is Status.INFEASIBLE
    assert solution.plan is None
    assert solution.conflicts


@pytest.mark.second_tier
@pytest.mark.parametrize("seed", range(3))
def test_generated_instances(seed: int) -> None:
    problem = mast_opt.generate("data-placement", family="standard", seed=seed, datasets=8, workloads=10, regions=3)
    values = [solved(problem, solver).objective for solver in OPEN]
    assert np.ptp(np.array(values, np.float64)) <= 2e-6 * float(values[0] or 0)


@pytest.mark.parametrize("solver", ["highs", "cpsat"])
def test_lexicographic_stages_keep_what_came_before(solver: str) -> None:
    problem = mast_opt.generate("data-placement", family="lexicographic", seed=2, datasets=6, workloads=8, regions=3)
    solution = solved(problem, solver)
    assert [stage.term for stage in solution.stages] == list(problem.objective.order)
    assert solution.status is Status.OPTIMAL
    assert solution.verdict is not None
    for stage in solution.stages:
        assert stage.objective is not None
        assert stage.bound is not None
        assert stage.bound <= stage.objective + 1e-12
        assert solution.verdict.terms[stage.term] <= stage.objective * (1 + 2e-6) + 2e-9
    alone = mast_opt.generate("data-placement", family="lexicographic", seed=2, datasets=6, workloads=8, regions=3)
    first = solved(alone, "highs").stages[0]
    assert solution.stages[0].objective == pytest.approx(first.objective, rel=1e-5, abs=1e-8)
