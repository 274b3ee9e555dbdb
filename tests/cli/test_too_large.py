"""Programs that the memory does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import OPTIMUM, Call


@pytest.fixture
def plan_before(plan: Path) -> Path:
    """A plan of the instance, made while there was memory."""
    return plan


@pytest.fixture(autouse=True)
def little_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "plan_before" in request.fixturenames:
        request.getfixturevalue("plan_before")
    monkeypatch.setattr("mast_opt.problems.kind.kind.available_bytes", lambda: 1000)


@pytest.mark.parametrize("verb", ["solve", "pareto", "whatif"])
def test_the_command_names_the_solver_to_use_instead(verb: str, call: Call, instance: Path, tmp_path: Path) -> None:
    scenarios = tmp_path / "what-if.toml"
    scenarios.write_text('[[scenario]]\nname = "east is lost"\nlose_regions = ["east"]\n')
    options: dict[str, list[str | Path]] = {
        "solve": ["--solver", "highs"],
        "pareto": ["--terms", "storage,peak"],
        "whatif": ["--scenarios", scenarios, "--solver", "highs"],
    }
    more = options.get(verb, [])
    ended = call(verb, instance, *more, "--json")
    assert ended.code == 2
    assert ended.record["status"] is None
    assert "coefficients" in ended.record["error"]
    assert "use a solver without a formulation (tetris)" in ended.record["error"]


@pytest.mark.parametrize("verb", ["explain", "marginal"])
def test_no_heuristic_is_named_where_none_would_do(verb: str, call: Call, instance: Path, plan_before: Path) -> None:
    ended = call(verb, instance, *(["--plan", plan_before] if verb == "marginal" else []))
    assert ended.code == 2
    assert "GB are available: use a smaller instance" in ended.err


def test_an_export_needs_no_solver(call: Call, instance: Path, tmp_path: Path) -> None:
    out = tmp_path / "program.lp"
    ended = call("export", instance, out)
    assert ended.code == 2
    assert "writing it needs at least" in ended.err
    assert "solver" not in ended.err
    assert not out.exists()


def test_a_heuristic_needs_no_program(call: Call, instance: Path) -> None:
    ended = call("solve", instance, "--solver", "tetris", "--iterations", "2000", "--json")
    assert ended.code == 0
    assert ended.record["objective"] == pytest.approx(OPTIMUM)
