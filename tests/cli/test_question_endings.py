"""How ``explain``, ``marginal``, ``whatif`` and ``pareto`` end where there is no plan, or another than hoped for."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.cli.commands import explain, whatif
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.explain import Explanation
from mast_opt.planner.analysis.whatif import WhatIf
from tests.cli.conftest import Call

FRONTIER = ["pareto", "--terms", "storage,peak"]


@pytest.mark.parametrize("with_plan", [True, False])
def test_explain_interrupted_when_the_answer_is_known(
    call: Call, instance: Path, plan: Path, monkeypatch: pytest.MonkeyPatch, with_plan: bool
) -> None:

    def late(*given: Any, cancel: threading.Event, **named: Any) -> Explanation:
        answer = mast_opt.explain(*given, cancel=cancel, **named)
        cancel.set()
        return answer

    monkeypatch.setattr(explain, "explain", late)
    ended = call("explain", instance, *(["--plan", plan] if with_plan else []))
    assert ended.code == 0
    assert "not yet known" not in ended.out


def test_explain_a_plan_that_breaks_limits(call: Call, packing: Path, instance: Path, plan: Path) -> None:
    ended = call("explain", packing, "--plan", plan)
    assert ended.code == 0
    assert "The plan breaks limits already" in ended.out
    assert call("explain", packing, "--plan", plan, "--json").record["status"] is None
    assert call("explain", instance, "--plan", plan, "--json").record["status"] == "FEASIBLE"


@pytest.mark.parametrize(("status", "code"), [("INFEASIBLE", 3), ("NO_SOLUTION", 4), ("FEASIBLE", 4)])
def test_without_a_robust_plan(
    call: Call, instance: Path, scenarios: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:

    def unlucky(*given: Any, **named: Any) -> WhatIf[Any]:
        answer = mast_opt.whatif(*given, **named)
        assert answer.robust is not None
        return replace(answer, robust=replace(answer.robust, status=Status(status), plan=None))

    monkeypatch.setattr(whatif, "whatif", unlucky)
    out = tmp_path / "robust"
    ended = call("whatif", instance, "--scenarios", scenarios, "--robust", "worst", "--out", out, "--json")
    assert ended.code == code
    assert ended.record["error"]
    assert ended.record["out"] is None
    assert not out.exists()


def test_a_robust_plan_that_leaves_work_out(call: Call, packing: Path, scenarios: Path, tmp_path: Path) -> None:
    """In the instance no work may be left out, so the plan of what is priced breaks its rules."""
    tokens = ("whatif", packing, "--scenarios", scenarios, "--robust", "worst", "--out", tmp_path / "robust")
    ended = call(*tokens)
    assert ended.code == 0
    assert f"The robust plan is in {tmp_path / 'robust'}. It breaks 1 limit of the instance (served[" in ended.out
    record = call(*tokens, "--json").record
    assert record["out"] == str(tmp_path / "robust")
    assert [one["constraint"] for one in record["robust"]["violations"]] == ["served"]
    assert call("verify", packing, tmp_path / "robust").code == 5


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("contradiction", FRONTIER),
        ("contradiction", [*FRONTIER, "--solver", "tetris"]),
        ("contradiction", [*FRONTIER, "--keep", "remote=0"]),
        ("contradiction", ["marginal"]),
        ("packing", FRONTIER),
        ("packing", [*FRONTIER, "--keep", "remote=0"]),
        ("packing", ["marginal", "--free"]),
    ],
)
def test_questions_about_what_has_no_plan(
    call: Call, request: pytest.FixtureRequest, name: str, tokens: list[str]
) -> None:
    ended = call(tokens[0], request.getfixturevalue(name), *tokens[1:], "--json")
    assert ended.code == 3
    assert ended.record["status"] == "INFEASIBLE"
    assert "infeasible" in ended.record["error"]


def test_where_there_is_no_plan_nothing_is_said_of_its_objective(call: Call, contradiction: Path) -> None:
    ended = call("marginal", contradiction)
    assert ended.code == 3
    assert "objective" not in ended.out
    assert "worth" not in ended.out
