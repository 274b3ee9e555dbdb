"""The hand-made instances: HiGHS and GLPK find the answers that are worked out next to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.plan import today
from mast_opt.problems.server_assignment.problem import EMBEDDED
from mast_opt.problems.server_assignment.verification.verifier import verify
from tests.server_assignment.support import glpk_optimum

FOLDER = Path(__file__).parents[2] / "instances" / "server_assignment"
OPTIMA = {"spread-out": 0.7, "repair-first": 10 / 7 + 0.4 / 7, "shared-pool": 0.6}


def instance(name: str) -> ServerAssignment:
    problem = mast_opt.read(FOLDER / name)
    assert isinstance(problem, ServerAssignment)
    return problem


@pytest.mark.parametrize("name", OPTIMA)
def test_the_answer_is_the_one_worked_out(name: str, tmp_path: Path) -> None:
    problem = instance(name)
    solution = mast_opt.solve(problem, "highs", gap=0)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(OPTIMA[name], rel=1e-9)
    assert glpk_optimum(problem, tmp_path) == pytest.approx(OPTIMA[name], rel=1e-9)


def test_spread_out_keeps_two_and_gains_two() -> None:
    problem = instance("spread-out")
    solution = mast_opt.solve(problem, "highs", gap=0)
    assert solution.plan is not None
    has = solution.plan.reservation == 0
    assert np.bincount(problem.server_switchboard[has]).tolist() == [1, 1, 1, 1]
    assert verify(problem, today(problem)).objective == pytest.approx(1.05)
    busy = replace(problem, servers=replace(problem.servers, in_use=problem.owned))
    assert mast_opt.solve(busy, "highs", gap=0).objective == pytest.approx(1.05)


def test_repair_first_repairs_and_bars_what_is_worse() -> None:
    problem = instance("repair-first")
    assert verify(problem, today(problem)).objective == pytest.approx(0.25 + 25 + 0.4 / 7)
    more = problem.servers.owner.copy()
    more[3] = 0
    verdict = verify(problem, Plan(more))
    assert [violation.name for violation in verdict.violations] == ["no_denser[web,sb-1]"]
    weights = {**problem.objective.weights, "repair": 0.0}
    idle = replace(problem, objective=replace(problem.objective, weights=weights))
    solution = mast_opt.solve(idle, "highs", gap=0)
    assert solution.plan is not None
    assert solution.plan.reservation.tolist() == problem.servers.owner.tolist()


def test_without_a_pool_the_teams_of_shared_pool_would_need_three_servers_more() -> None:
    problem = instance("shared-pool")
    alone = replace(
        problem,
        reservations=replace(
            problem.reservations, buffer=np.where(np.arange(7) < 6, EMBEDDED, problem.reservations.buffer)
        ),
    )
    verdict = mast_opt.solve(alone, "highs", gap=0).verdict
    assert verdict is not None
    assert verdict.metrics["shortfall_rru"] == 2
