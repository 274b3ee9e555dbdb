"""What --time-limit covers: reading, searching and writing; neither loading libraries nor compiling."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mast_opt.cli import invocation as run
from mast_opt.cli.commands import solve
from mast_opt.planner.io import validate
from mast_opt.problems import registry as kinds
from tests.cli.conftest import Call

LONG_S = 5000.0


@pytest.fixture
def slowed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Makes a function take very long by the clock of the command."""
    passed = [0.0]
    monkeypatch.setattr(run, "time", SimpleNamespace(perf_counter=lambda: time.perf_counter() + passed[0]))

    def slow(function: Any) -> Any:
        def slowly(*arguments: Any) -> Any:
            passed[0] += LONG_S
            return function(*arguments)

        return slowly

    return slow


@pytest.mark.parametrize("solver", ["highs", "tetris"])
def test_loading_libraries_is_not_covered(
    call: Call, instance: Path, monkeypatch: pytest.MonkeyPatch, slowed: Callable[[Any], Any], solver: str
) -> None:
    monkeypatch.setattr(kinds, "kinds", slowed(kinds.kinds))
    rounds = () if solver == "highs" else ("--iterations", "3")
    ended = call("solve", instance, "--solver", solver, "--time-limit", "1000", *rounds, "--json")
    assert ended.code == 0, ended.err
    assert ended.record["runtime_s"]["compile"] >= LONG_S
    assert ended.record["runtime_s"]["read"] < LONG_S
    assert ended.record["limit"] != "time"


def test_reading_is_covered_and_the_message_says_what_it_took(
    call: Call, instance: Path, monkeypatch: pytest.MonkeyPatch, slowed: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(solve, "validate", slowed(validate))
    ended = call("solve", instance, "--time-limit", "1000", "--json")
    assert ended.code == 4
    assert ended.record["error"].startswith(f"reading {instance} took 500")
    assert "nothing is left of --time-limit 1000" in ended.record["error"]
