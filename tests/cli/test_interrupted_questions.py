"""Ctrl-C ends a question soon, even while its solver hears nothing, and keeps what was found until then."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Call, Ended
from tests.platforms import needs

pytestmark = [pytest.mark.second_tier, needs("signals")]

PATIENCE_S = 120
"""After which a test gives up; it never takes nearly as long."""

DEAF = """
import itertools, os, sys, time
from mast_opt.problems.backends.highs import Highs
from mast_opt.cli import main

first, listens, solve = int(sys.argv.pop(1)), itertools.count(), Highs._minimise

def minimise(self, mip, params, progress):
    if next(listens) < first:
        return solve(self, mip, params, progress)
    os.write(2, b"solving\\n")
    time.sleep(3600)

Highs._minimise = minimise
sys.exit(main())
"""
"""HiGHS that hears nothing any more after its first few programs."""


def _interrupted(solves: int, *tokens: object) -> Ended:
    """The command, interrupted in the program after so many; Ctrl-C once."""
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF, str(solves), *map(str, tokens)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        try:
            assert process.stderr is not None
            assert "solving\n" in process.stderr
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    return Ended(process.returncode, out, err)


@pytest.fixture
def scenarios(tmp_path: Path) -> Path:
    path = tmp_path / "what-if.toml"
    path.write_text('[[scenario]]\nname = "growth"\ngrow_demand = { all = 1.25 }\n')
    return path


def test_pareto_keeps_its_points(instance: Path, tmp_path: Path) -> None:
    out = tmp_path / "frontier.csv"
    ended = _interrupted(4, "pareto", instance, "--terms", "storage,peak", "--keep", "remote=0", "--out", out, "--json")
    assert ended.code == 130
    assert len(ended.record["points"]) >= 1
    assert ended.record["missing"] > 0
    assert "points so far are kept" in ended.record["error"]
    with out.open() as file:
        assert len(list(csv.DictReader(file))) == len(ended.record["points"])


def test_pareto_without_a_point(instance: Path) -> None:
    ended = _interrupted(0, "pareto", instance, "--terms", "storage,peak")
    assert ended.code == 130
    assert "the points so far will be kept" in ended.err
    assert "no point had been found" in ended.out
    assert "--time-limit" not in ended.out


def test_explain(packing: Path) -> None:
    ended = _interrupted(0, "explain", packing)
    assert ended.code == 130
    assert "not yet known whether there is a plan" in ended.out
    some = _interrupted(3, "explain", packing, "--json")
    assert some.code == 130
    assert some.record["minimal"] is False
    assert "interrupted" in some.record["error"]


def test_marginal(instance: Path, plan: Path) -> None:
    ended = _interrupted(3, "marginal", instance, "--plan", plan, "--json")
    assert ended.code == 130
    values = [one["value"] for one in ended.record["values"]]
    assert values[0] is not None
    assert values[-1] is None
    shown = _interrupted(3, "marginal", instance, "--plan", plan)
    assert "were not found out in time" in shown.out


@pytest.mark.parametrize("free", [[], ["--free"]])
def test_marginal_before_there_is_a_plan(instance: Path, free: list[str]) -> None:
    ended = _interrupted(0, "marginal", instance, *free, "--json")
    assert ended.code == 130
    assert "interrupted before there was a plan" in ended.record["error"]


def test_whatif(instance: Path, plan: Path, scenarios: Path) -> None:
    ended = _interrupted(0, "whatif", instance, "--scenarios", scenarios, "--plan", plan, "--json")
    assert ended.code == 130
    assert ended.record["base"]["status"] == "FEASIBLE"
    assert "what was found so far is shown" in ended.record["error"]
    nothing = _interrupted(0, "whatif", instance, "--scenarios", scenarios, "--jobs", "2")
    assert nothing.code == 130
    assert "no base plan had been found" in nothing.out


def test_solve_keeps_what_a_deaf_solver_began_with(call: Call, instance: Path, plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "kept"
    ended = _interrupted(0, "solve", instance, "--start", plan, "--out", out, "--json")
    assert ended.code == 130
    assert json.loads(ended.out)["status"] == "FEASIBLE"
    assert call("verify", instance, out).code == 0


def test_solve_interrupted_before_there_was_a_plan_asks_for_patience(instance: Path) -> None:
    ended = _interrupted(0, "solve", instance, "--json")
    assert ended.code == 130
    record = json.loads(ended.out)
    assert record["status"] == "NO_SOLUTION"
    assert record["error"].startswith("interrupted. No plan had been found yet; let it run longer")
