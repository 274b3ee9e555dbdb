"""``--json``: the same keys whatever happened, and nothing else on stdout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mast_opt.core.solve_result import Limit, SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip
from tests.cli.conftest import OPTIMUM, Call, write_tables

KEYS = {
    "kind",
    "sense",
    "solver",
    "versions",
    "status",
    "objective",
    "bound",
    "gap",
    "runtime_s",
    "terms",
    "metrics",
    "violations",
    "stages",
    "error",
}


def test_a_solved_instance(call: Call, instance: Path) -> None:
    ended = call("solve", instance, "--json")
    record = ended.record
    assert ended.code == 0
    assert set(record) >= KEYS
    assert record["kind"] == "data-placement"
    assert record["sense"] == "min"
    assert record["solver"] == "auto"
    assert set(record["versions"]) >= {"mast-opt", "python", "highs"}
    assert record["status"] == "OPTIMAL"
    assert record["objective"] == pytest.approx(OPTIMUM)
    assert record["bound"] == pytest.approx(OPTIMUM)
    assert record["gap"] == pytest.approx(0, abs=1e-4)
    assert set(record["runtime_s"]) == {"read", "formulate", "solve", "verify", "compile"}
    assert all(seconds > 0 for phase, seconds in record["runtime_s"].items() if phase != "compile")
    assert record["terms"]["storage"] == pytest.approx(1)
    assert record["terms"]["peak"] == pytest.approx(2)
    assert record["metrics"]["stored_tb"] == pytest.approx(5)
    assert record["violations"] == []
    assert record["stages"] == []
    assert record["error"] is None


def test_stages_of_a_lexicographic_objective(call: Call, tmp_path: Path, instance: Path) -> None:
    toml = instance / "instance.toml"
    toml.write_text(toml.read_text() + '[objective]\nmode = "lexicographic"\norder = ["storage", "peak"]\n')
    ended = call("solve", instance, "--json", "--out", tmp_path / "plan")
    assert ended.code == 0
    stages = ended.record["stages"]
    assert [stage["term"] for stage in stages] == ["storage", "peak"]
    assert [stage["objective"] for stage in stages] == [pytest.approx(1), pytest.approx(2)]
    assert all(set(stage) == {"term", "objective", "bound", "gap"} for stage in stages)
    verified = call("verify", instance, tmp_path / "plan", "--json")
    assert verified.code == 0
    assert verified.record["objective"] == pytest.approx(2)


@pytest.mark.parametrize(
    ("tokens", "code"),
    [
        (["solve", "nothing-here"], 2),
        (["solve", "nothing-here", "--solver", "no-such"], 2),
        (["validate", "nothing-here"], 2),
        (["verify", "nothing-here", "nor-here"], 2),
        (["export", "nothing-here", "out.lp"], 2),
        (["generate", "no-such-kind", "out"], 2),
        (["import", "no-such-importer", "out"], 2),
        (["backends", "--no-such-option"], 2),
        (["no-such-command"], 2),
        (["solve"], 2),
        (["solve", "x", "--gap", "many"], 2),
    ],
)
def test_failures_have_every_key_and_an_error(call: Call, tokens: list[str], code: int) -> None:
    ended = call(*tokens, "--json")
    assert ended.code == code
    assert set(ended.record) >= KEYS
    assert ended.record["error"]
    assert ended.record["status"] is None
    assert ended.record["objective"] is None
    assert "Traceback" not in ended.err


def test_faults_are_structured(call: Call, instance: Path) -> None:
    (instance / "reads.csv").write_text("workload,dataset,tb_per_day\nrank,clicks,-1\nspam,cats,1\n")
    (row_1, row_2) = sorted(call("validate", instance, "--json").record["faults"], key=lambda fault: fault["row"])
    assert (row_1["file"], row_1["row"], row_1["column"], row_1["value"]) == ("reads.csv", 1, "tb_per_day", "-1")
    assert (row_2["file"], row_2["row"], row_2["column"], row_2["value"]) == ("reads.csv", 2, "dataset", "cats")


class Noisy:
    """A backend that writes to stdout as native code does, and answers as it is set up to."""

    name = "highs"
    package = "noisy"
    answer: Any = None

    def version(self) -> str:
        return "1"

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        os.write(1, b"I am a chatty solver\n")
        if isinstance(self.answer, Exception):
            raise self.answer
        return SolveResult(self.answer, None, None, None, Limit.OTHER, "as set up")


@pytest.fixture
def noisy(monkeypatch: pytest.MonkeyPatch) -> type[Noisy]:
    class Scripted(Noisy):
        pass

    monkeypatch.setattr(backends, "get", lambda name: Scripted())
    return Scripted


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.NO_SOLUTION, 4),
        (Status.INFEASIBLE, 3),
        (Status.INFEASIBLE_OR_UNBOUNDED, 3),
        (Status.UNBOUNDED, 1),
    ],
)
def test_statuses_have_their_exit_codes(
    call: Call, noisy: type[Noisy], instance: Path, status: Status, code: int
) -> None:
    noisy.answer = status
    ended = call("solve", instance, "--solver", "highs", "--json")
    assert ended.code == code
    assert ended.record["status"] == status.value
    assert ended.record["error"]
    assert "chatty" in ended.err
    assert call("solve", instance, "--solver", "highs").code == code


@pytest.mark.parametrize("tokens", [["pareto", "--terms", "storage,peak"], ["marginal"], ["marginal", "--free"]])
@pytest.mark.parametrize("rules", ["", '[rules]\nunserved = "price"\n'])
@pytest.mark.parametrize(("status", "code"), [(Status.NO_SOLUTION, 4), (Status.INFEASIBLE, 3)])
def test_questions_have_the_same_exit_codes(
    call: Call, noisy: type[Noisy], tmp_path: Path, tokens: list[str], rules: str, status: Status, code: int
) -> None:
    noisy.answer = status
    name, *rest = tokens
    ended = call(name, write_tables(tmp_path / "instance", settings=rules), *rest, "--json")
    assert ended.code == code
    assert ended.record["status"] == status.value
    assert ended.record["error"]


def test_an_unexpected_error_is_a_message_and_not_a_traceback(
    call: Call, noisy: type[Noisy], instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAST_OPT_DEBUG", raising=False)
    noisy.answer = ZeroDivisionError("by nought")
    ended = call("solve", instance, "--solver", "highs", "--json")
    assert ended.code == 1
    assert "ZeroDivisionError: by nought" in ended.record["error"]
    assert "MAST_OPT_DEBUG=1 mast-opt solve" in ended.err
    assert "Traceback" not in ended.err
    monkeypatch.setenv("MAST_OPT_DEBUG", "1")
    assert "Traceback" in call("solve", instance, "--solver", "highs").err
