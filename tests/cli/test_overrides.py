"""``--weight`` and ``--order``: what is solved for, what the plan says of it, and how it is verified."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import mast_opt
from tests.cli.conftest import OPTIMUM, Call


def test_a_plan_with_another_weight_is_verified_by_it(call: Call, instance: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    ended = call("solve", instance, "--weight", "storage=3", "--weight", "peak=0", "--out", plan, "--json")
    assert ended.code == 0
    assert ended.record["objective"] == pytest.approx(3.0)
    assert ended.record["overrides"] == {"weights": {"storage": 3.0, "peak": 0.0}}
    stated = tomllib.loads((plan / "plan.toml").read_text())
    assert stated["overrides"] == {"weights": {"storage": 3.0, "peak": 0.0}}
    checked = call("verify", instance, plan, "--json")
    assert checked.code == 0, checked.err
    assert checked.record["same_instance"] is True
    assert checked.record["objective"] == pytest.approx(3.0)
    assert checked.record["overrides"] == stated["overrides"]
    assert "solved with weight storage = 3, weight peak = 0" in checked.record["notes"][0]
    text = (plan / "plan.toml").read_text()
    (plan / "plan.toml").write_text(text.replace("storage = 3.0", "storage = 4.0"))
    assert call("verify", instance, plan).code == 5


def test_an_order_of_terms(call: Call, instance: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    ended = call("solve", instance, "--order", "peak, storage", "--out", plan, "--json")
    assert [stage["term"] for stage in ended.record["stages"]] == ["peak", "storage"]
    assert ended.record["overrides"] == {"order": ["peak", "storage"]}
    checked = call("verify", instance, plan, "--json")
    assert checked.code == 0, checked.err
    assert checked.record["objective"] == pytest.approx(1.0)
    assert call("solve", instance, "--order", "weighted", "--json").record["objective"] == pytest.approx(OPTIMUM)


def test_the_bound_of_a_heuristic_is_proven_for_the_weights_of_the_plan(
    call: Call, instance: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan"
    options = ("--solver", "tetris", "--iterations", "3", "--threads", "1", "--weight", "storage=3", "--out", plan)
    ended = call("solve", instance, *options, "--json")
    assert ended.record["bound"] > OPTIMUM
    checked = call("verify", instance, plan, "--json").record
    assert checked["bound_checked"] is True
    assert checked["violations"] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--weight", "remotes=1"), "has no term called 'remotes'; expected some of: peak, overload"),
        (("--weight", "remote=-1"), "expected a number from 0"),
        (("--weight", "remote"), "expected NAME=NUMBER"),
        (("--weight", "remote=1", "--weight", "remote=2"), "remote is given twice"),
        (("--order", "peak,peaks"), "has no term called 'peaks'; expected some of: peak"),
        (("--order", "peak", "--weight", "copy=1"), "a weight of copy counts for nothing"),
    ],
)
def test_what_cannot_be_overridden(call: Call, instance: Path, options: tuple[str, ...], words: str) -> None:
    ended = call("solve", instance, *options)
    assert ended.code == 2
    assert words in ended.err.replace("\n", " ")


def test_a_policy_takes_no_weights(call: Call, tmp_path: Path) -> None:
    mast_opt.write(mast_opt.generate("resource-allocation", seed=1), tmp_path / "shares")
    ended = call("solve", tmp_path / "shares", "--weight", "peak=1")
    assert ended.code == 2
    assert "it has a policy (max-min), no weights" in ended.err


def test_questions_about_a_plan_use_its_weights(call: Call, instance: Path, tmp_path: Path) -> None:
    plan, scenarios = tmp_path / "plan", tmp_path / "scenarios.toml"
    scenarios.write_text('[[scenario]]\nname = "more"\ngrow_demand = { all = 1.1 }\n')
    call("solve", instance, "--weight", "storage=3", "--weight", "peak=0", "--out", plan)
    asked = call("whatif", instance, "--scenarios", scenarios, "--plan", plan, "--json")
    assert asked.record["base"]["objective"] == pytest.approx(3.0)
    asked = call("whatif", instance, "--scenarios", scenarios, "--plan", plan, "--weight", "storage=2", "--json")
    assert asked.record["base"]["objective"] == pytest.approx(2.0)
    page = tmp_path / "report.html"
    drawn = call("report", instance, plan, "--out", page, "--json").record
    assert drawn["objective"] == pytest.approx(3.0)
    assert drawn["notes"] == ["the plan was solved with weight storage = 3, weight peak = 0"]
    frontier = call("pareto", instance, "--terms", "storage,peak", "--points", "2", "--weight", "copy=2", "--json")
    assert frontier.code == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("overrides = 3", "expected a table with some of the keys"),
        ("[overrides]\nlimit = 3", "expected a table with some of the keys"),
        ("[overrides]\norder = 'peak'", "overrides.order"),
        ("[overrides.weights]\npeaks = 1", "has no term called 'peaks'"),
        ("[overrides.weights]\npeak = 'x'", "overrides"),
        ("[overrides.weights]\npeak = -1", "expected a number from 0"),
    ],
)
def test_overrides_of_a_plan_that_make_no_sense(
    call: Call, instance: Path, tmp_path: Path, line: str, words: str
) -> None:
    plan = tmp_path / "plan"
    call("solve", instance, "--out", plan)
    stated = (plan / "plan.toml").read_text()
    (plan / "plan.toml").write_text(f"{line}\n{stated}" if line.startswith("overrides") else f"{stated}\n{line}\n")
    ended = call("verify", instance, plan)
    assert ended.code == 2
    assert words in ended.err.replace("\n", " ")


def test_in_python(tmp_path: Path) -> None:
    problem = mast_opt.generate("data-placement", seed=1, datasets=4, workloads=5, regions=2)
    solution = mast_opt.solve(problem, weights={"storage": 2.0})
    assert solution.objective == pytest.approx(mast_opt.solve(problem.with_objective({"storage": 2.0})).objective)
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    reading = mast_opt.planner.io.read_plan_of(problem, tmp_path / "plan")
    assert reading.overrides.weights == {"storage": 2.0}
    assert reading.problem == problem.with_objective({"storage": 2.0})
