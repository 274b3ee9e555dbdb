"""A second exact solver solves again: it confirms, proves less, or contradicts, and then the solve fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.cli import main
from mast_opt.core.errors import BackendError, Contradiction, UsageError
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems.backends.scip import Scip
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.program import frozen
from tests.narrowing import some

FOLDER = Path(__file__).parents[2] / "instances" / "data_placement"
TWO = FOLDER / "two-regions"
Solve = Callable[[Scip, Mip, SolveParams], SolveResult]
truly = Scip.solve


def narrow(backend: Scip, mip: Mip, params: SolveParams) -> SolveResult:
    """Calls the best of some plans the best of all: each column is at its most expensive value."""
    held = np.flatnonzero(mip.integral)[:1]
    return truly(backend, mip.fix(held, 1 - truly(backend, mip, params).x[held]), params)  # type: ignore[index]


def nothing(backend: Scip, mip: Mip, params: SolveParams) -> SolveResult:
    return SolveResult(Status.INFEASIBLE, None, None, None, None, "there is none")


def late(backend: Scip, mip: Mip, params: SolveParams) -> SolveResult:
    result = truly(backend, mip, params)
    return replace(result, status=Status.FEASIBLE, bound=0.0)


def broken(backend: Scip, mip: Mip, params: SolveParams) -> SolveResult:
    raise BackendError("out of order")


def as_scip(monkeypatch: pytest.MonkeyPatch, solve: Solve) -> None:
    monkeypatch.setattr(Scip, "solve", solve)


@pytest.mark.parametrize("solver", ["highs", "auto"])
def test_the_second_confirms(solver: Any) -> None:
    solution = mast_opt.solve(mast_opt.read(TWO), solver, cross_check="scip")
    checked = some(solution.cross_check)
    assert (checked.solver, checked.status, checked.outcome) == ("scip", Status.OPTIMAL, "confirmed")
    assert checked.objective == pytest.approx(2.1)
    assert str(checked).startswith("confirmed by scip: OPTIMAL, 2.1")
    assert {"scip"} <= set(solution.versions)


def test_both_say_that_there_is_no_plan() -> None:
    problem = mast_opt.read(TWO)
    problem = problem.with_columns({"regions.cpu_mcores": np.zeros_like(problem.regions.cpu_mcores)})
    solution = mast_opt.solve(problem, "highs", cross_check="scip")
    assert solution.status is Status.INFEASIBLE
    assert some(solution.cross_check).outcome == "confirmed"


def test_a_second_that_proves_less_contradicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    as_scip(monkeypatch, late)
    solution = mast_opt.solve(mast_opt.read(TWO), "highs", cross_check="scip")
    assert solution.status is Status.OPTIMAL
    assert some(solution.cross_check).outcome == "open"


def test_a_second_that_fails_costs_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    as_scip(monkeypatch, broken)
    solution = mast_opt.solve(mast_opt.read(TWO), "highs", cross_check="scip")
    assert solution.status is Status.OPTIMAL
    assert str(some(solution.cross_check)) == "failed by scip: out of order"


@pytest.mark.parametrize("lie", [narrow, nothing])
@pytest.mark.parametrize(("first", "second"), [("highs", "scip"), ("scip", "highs")])
def test_proofs_that_cannot_both_be_true(lie: Solve, first: Any, second: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    as_scip(monkeypatch, lie)
    problem = mast_opt.read(TWO)
    with pytest.raises(Contradiction, match="scip is wrong") as raised:
        mast_opt.solve(problem, first, cross_check=second, gap=0, weights={"remote": 5.0})
    kept = raised.value.solution
    assert (kept.status, kept.bound) == (Status.FEASIBLE, None)
    assert kept.objective == pytest.approx(mast_opt.solve(problem, "highs", gap=0, weights={"remote": 5.0}).objective)
    assert kept.overrides.weights == {"remote": 5.0}
    assert kept.cross_check.outcome == "contradicted"


def test_a_first_stage_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mast_opt.read(TWO)
    order = ("storage", "remote")
    solution = mast_opt.solve(problem, "highs", cross_check="scip", order=order)
    assert some(solution.cross_check).outcome == "confirmed"

    def doubled(backend: Scip, mip: Mip, params: SolveParams) -> SolveResult:
        more = replace(mip, col_lower=frozen(np.where(mip.integral, mip.col_upper, mip.col_lower)))
        whole = np.array([name.startswith("place") for name in mip.column_names()])
        return truly(backend, replace(mip, col_lower=frozen(np.where(whole, more.col_lower, mip.col_lower))), params)

    as_scip(monkeypatch, doubled)
    with pytest.raises(Contradiction, match="storage cannot be better"):
        mast_opt.solve(problem, "highs", cross_check="scip", order=order)


@pytest.mark.parametrize(
    ("solver", "second"), [("highs", "highs"), ("auto", "highs"), ("cbc", "tetris"), ("highs", "auto"), ("highs", "x")]
)
def test_what_checks_nothing_is_refused(solver: Any, second: Any) -> None:
    with pytest.raises(UsageError, match="expected an exact solver other than"):
        mast_opt.solve(mast_opt.read(TWO), solver, cross_check=second)


def test_the_command_fails_and_keeps_the_plan(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    as_scip(monkeypatch, narrow)
    out = tmp_path / "plan"
    asked = ["solve", str(TWO), "--solver", "scip", "--cross-check", "highs", "--gap", "0", "--out", str(out)]
    assert main([*asked, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert "scip is wrong" in record["error"]
    assert record["cross_check"]["outcome"] == "contradicted"
    assert record["bound"] is None
    assert record["objective"] == pytest.approx(2.1)
    assert main(["verify", str(TWO), str(out)]) == 0
    assert main(["report", str(TWO), str(out), "--out", str(tmp_path / "report.html")]) == 0
    assert "contradicted by highs" in (tmp_path / "report.html").read_text()
    capsys.readouterr()
    assert main(asked) == 1
    assert "scip is wrong" in " ".join(capsys.readouterr().out.split())


def test_the_command_says_what_was_confirmed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(TWO), "--solver", "highs", "--cross-check", "scip", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["cross_check"]["outcome"] == "confirmed"
    assert record["cross_check"]["solver"] == "scip"
    assert record["cross_check"]["bound"] == pytest.approx(2.1)
