"""One default solver for every question, and plans that a search did not improve."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

import mast_opt
from mast_opt.core.solve_result import Limit, SolveParams, SolveResult, Status
from mast_opt.planner.report.result_sections import period_sections
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.problems.mip import Mip

QUESTIONS = ("solve", "buy", "explain", "marginal_values", "pareto", "plan_periods", "plan_periods_jointly", "whatif")
COMMANDS = ("solve", "buy", "explain", "marginal", "pareto", "periods", "whatif")


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_function_has_the_same_default(name: str) -> None:
    assert inspect.signature(getattr(mast_opt, name)).parameters["solver"].default == DEFAULT_SOLVER


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_same_default(name: str) -> None:
    command = import_module(f"mast_opt.cli.commands.{name}").command
    assert inspect.signature(command).parameters["solver"].default == DEFAULT_SOLVER


def test_a_plan_that_the_search_did_not_improve_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from mast_opt.problems.backends.highs import Highs

    def idle(self: Highs, mip: Mip, params: SolveParams) -> SolveResult:
        assert params.start is not None
        return SolveResult(Status.FEASIBLE, params.start, mip.objective(params.start), 0.0, Limit.TIME, "")

    problem: Any = mast_opt.generate("data-placement", None, seed=3, datasets=4, workloads=4, regions=2)
    best = mast_opt.solve(problem, "highs")
    assert not best.unimproved
    weights = dict.fromkeys(problem.objective.weights, 1.0)
    monkeypatch.setattr(Highs, "solve", idle)
    found = mast_opt.solve(problem, "highs", start=best.plan, weights=weights)
    assert found.unimproved
    assert found.outcome == "FEASIBLE, not improved"
    assert "no better than the plan that the search began with" in found.message


def test_periods_state_bound_and_gap() -> None:
    problem = mast_opt.generate("data-placement", None, seed=3, datasets=4, workloads=4, regions=2)
    answer = mast_opt.plan_periods(problem, [mast_opt.Scenario("later", {"grow_demand": {"all": 1.2}})], threads=1)
    table = period_sections(answer)[0]
    heads = ["period", "begins on day", "status", "objective", "bound", "gap (%)"]
    assert [head.title for head in table.heads][:6] == heads
    [row] = table.rows
    solution = answer.periods[0].solution
    assert row[3:6] == (solution.objective, solution.bound, 100 * (solution.gap or 0.0))
