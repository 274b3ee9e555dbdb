"""``explain --risk`` on the command line."""

from __future__ import annotations

from pathlib import Path

import mast_opt
from mast_opt.planner.analysis.risk import risk
from tests.cli.conftest import Call


def test_the_command(call: Call, instance: Path, plan: Path) -> None:
    ended = call("explain", instance, "--plan", plan, "--risk", "--json")
    assert ended.code == 0
    found = ended.record["risk"]
    problem = mast_opt.read(instance)
    expected = risk(problem, mast_opt.read_plan(problem, plan))
    assert found["of"] == "plan"
    assert [one["lost_workloads"] for one in found["regions"]] == [list(one.loss.work) for one in expected.regions]
    assert [one["dataset"] for one in found["single_copies"]] == [one.dataset for one in expected.single_copies]
    assert call("explain", instance, "--risk", "--json").record["risk"]["of"] == "today"
    out = " ".join(call("explain", instance, "--plan", plan, "--risk").out.split())
    assert "What depends on each region" in out
    assert "Data with a single copy" in out


def test_arguments_that_cannot_be_honoured(call: Call, instance: Path, plan: Path) -> None:
    ended = call("explain", instance, "--plan", plan, "--risk", "--workload", "rank")
    assert ended.code == 2
    assert "--risk" in ended.err
