"""``mast-opt diff`` and ``mast-opt steps``, for every kind of problem."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import mast_opt
from mast_opt.problems.registry import kind_named, kind_names
from tests.cli.conftest import Call, write_tables

RUNS = {"current_runs.csv": "workload,region,gpu_type\nrank,west,A100\nspam,west,A100\n"}
FULL = {"regions.csv": "region,storage_tb,cpu_cores\neast,3,10\nwest,3,10\n"}


@pytest.fixture
def pair(call: Call, tmp_path: Path) -> tuple[Path, Path]:
    """An instance that gives the present state, and a plan."""
    instance = write_tables(tmp_path / "pair", RUNS)
    assert call("solve", instance, "--out", tmp_path / "plan").code == 0
    return instance, tmp_path / "plan"


def swapped(folder: Path) -> Path:
    """A plan of the small instance that exchanges the datasets, and the work with them."""
    folder.mkdir()
    tables = {
        "placements": "dataset,region\nclicks,west\nlogs,east\n",
        "runs": "workload,region,gpu_type,share\nrank,west,A100,1\nspam,east,A100,1\n",
        "copies": "dataset,src,dst,share\nclicks,east,west,1\nlogs,west,east,1\n",
        "remote_reads": "workload,dataset,src,dst,share\n",
    }
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def test_what_changes_from_today(call: Call, pair: tuple[Path, Path]) -> None:
    ended = call("diff", *pair)
    assert ended.code == 0
    assert "runs" in ended.out
    record = call("diff", *pair, "--json").record
    runs = record["tables"]["runs"]
    assert [row["workload"] for row in runs["added"]] == ["rank"]
    assert runs["removed"] == [{"workload": "rank", "region": "west", "gpu_type": "A100", "share": "1"}]
    assert runs["same"] == 1
    verified = call("verify", *pair, "--json").record
    assert record["objective"] == verified["objective"]
    changes = record["changes"]["terms"]
    assert {name: change["after"] for name, change in changes.items()} == verified["terms"]
    assert changes["peak"]["by"] < 0


def test_a_plan_differs_from_itself_in_nothing(call: Call, pair: tuple[Path, Path]) -> None:
    record = call("diff", *pair, pair[1], "--json").record
    assert record["same"]
    assert "The plans are the same." in call("diff", *pair, pair[1]).out


def test_a_present_state_that_breaks_limits_is_called_so(call: Call, tmp_path: Path) -> None:
    short = {"regions.csv": "region,storage_tb,cpu_cores\neast,10,10\nwest,10,5\n"}
    instance, plan = write_tables(tmp_path / "short", {**RUNS, **short}), tmp_path / "plan"
    assert call("solve", instance, "--out", plan).code == 0
    assert "The present state breaks 1 limit." in call("diff", instance, plan).out


def test_what_changed_since_yesterday(call: Call, pair: tuple[Path, Path], tmp_path: Path) -> None:
    grown = {"datasets.csv": "dataset,size_tb\nclicks,4\nlogs,2\nviews,1\n"}
    new = write_tables(tmp_path / "new", RUNS | grown)
    assert call("solve", new, "--out", tmp_path / "later").code == 0
    record = call("diff", new, pair[1], tmp_path / "later", "--before", pair[0], "--json").record
    assert record["instance"]["datasets"]["changed"][0]["before"]["size_tb"] == "3"
    assert record["instance"]["datasets"]["added"][0]["dataset"] == "views"
    assert list(record["instance"]) == ["datasets"]
    said = call("diff", new, pair[1], tmp_path / "later", "--before", pair[0]).out
    assert said.index("Changed input: datasets") < said.index("Objective and terms") < said.index("placements")


def test_the_limit_that_shut_yesterdays_way_is_named_and_both_plans_are_judged_alike(
    call: Call, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    changed = {
        "regions.csv": "region,storage_tb,cpu_cores\neast,10,10\nwest,1,10\n",
        "workloads.csv": "workload,tier,cpu_cores\nrank,0,4\nspam,1,3\nfeed,1,1\n",
        "current_runs.csv": RUNS["current_runs.csv"] + "feed,east,\n",
    }
    new, later = write_tables(tmp_path / "new", RUNS | changed), tmp_path / "later"
    assert call("solve", new, "--weight", "storage=0.5", "--out", later).code == 0
    shared = ("diff", new, pair[1], later, "--before", pair[0])
    record = call(*shared, "--json").record
    assert record["shut"] == ["storage of west (1 TB) would be exceeded by 1 TB"]
    assert record["kept"]["objective"] > 0
    assert record["differing_rows"] > 0
    assert record["judged_by"] == {"weights": {"storage": 0.5}}
    assert record["changes"]["objective"]["before"] == pytest.approx(2.0 + 0.5 + 8 / 12)  # peak, storage, rank moved
    assert any(record["shut"] == one["keeps"] for one in record["worth"])
    said = " ".join(call(*shared).out.split())
    assert "judged as the later plan was solved: weight storage = 0.5; the earlier one was solved with the" in said
    assert "The first plan no longer holds: - storage of west (1 TB) would be exceeded by 1 TB" in said


def test_nothing_to_compare_with(call: Call, instance: Path, tmp_path: Path) -> None:
    plan = swapped(tmp_path / "plan")
    ended = call("diff", instance, plan)
    assert ended.code == 2
    assert "states no present state" in ended.err


def test_an_exchange_needs_room(call: Call, instance: Path, tmp_path: Path) -> None:
    plan = swapped(tmp_path / "plan")
    record = call("steps", instance, plan, "--json").record
    first = {(move["action"], move["what"]) for move in record["steps"] if move["wave"] == 0}
    assert first == {("copy", "clicks"), ("copy", "logs")}
    assert (record["days"], record["stuck"], record["stopped"]) == (1, [], [])
    assert {(row["action"], row["unit"]) for row in record["steps"]} == {
        ("copy", "TB"),
        ("delete", "TB"),
        ("start", "GPUs"),
    }
    assert "today's run of 2 workloads is not known" in record["notes"][0]
    full = write_tables(tmp_path / "full", FULL)
    ended = call("steps", full, plan)
    assert ended.code == 3
    assert "STUCK" in ended.out
    assert "temporary room would do it: 2 TB more in west" in ended.out


@pytest.mark.parametrize("command", ["diff", "steps"])
def test_a_plan_that_is_not_there(call: Call, instance: Path, tmp_path: Path, command: str) -> None:
    ended = call(command, instance, tmp_path / "nothing")
    assert ended.code == 2
    assert "nothing at this path" in ended.err


@pytest.mark.parametrize("command", ["diff", "steps"])
def test_a_broken_plan(call: Call, instance: Path, tmp_path: Path, command: str) -> None:
    plan = swapped(tmp_path / "plan")
    (plan / "runs.csv").write_text("workload,region,gpu_type,share\nrank,north,A100,2\n")
    ended = call(command, instance, plan)
    assert ended.code == 2
    assert "north" in ended.err
    (plan / "runs.csv").unlink()
    assert "runs.csv" in call(command, instance, plan).err


def test_there_is_no_way_to_a_plan_that_breaks_limits(call: Call, instance: Path, tmp_path: Path) -> None:
    plan = swapped(tmp_path / "plan")
    (plan / "runs.csv").write_text("workload,region,gpu_type,share\nrank,west,A100,1\n")
    ended = call("steps", instance, plan)
    assert ended.code == 2
    assert "served[spam]" in ended.err


@pytest.mark.parametrize("name", kind_names())
def test_every_kind_has_differences_and_steps(name: str) -> None:
    kind = kind_named(name)
    family = next(iter(kind.generate.families.values()))
    problem = mast_opt.generate(name, None, **{size: min(default, 5) for size, default in family.sizes.items()})
    solution = mast_opt.solve(problem, time_limit_s=20, gap=0.5)
    assert solution.plan is not None
    same = mast_opt.diff(problem, solution.plan, solution.plan)
    assert not same.differs
    assert same.objective.by == 0
    if kind.migration.steps is not None:
        assert not mast_opt.steps(problem, solution.plan).stuck
    else:
        with pytest.raises(mast_opt.UsageError, match="no steps"):
            mast_opt.steps(problem, solution.plan)


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small company and a plan of it with several changes and steps."""
    folder = tmp_path_factory.mktemp("company")
    problem = mast_opt.generate("data-placement", "organisation", seed=1, datasets=8, workloads=10, regions=3)
    solution = mast_opt.solve(problem, "highs", threads=1)
    mast_opt.write(problem, folder / "company")
    mast_opt.write_plan(problem, solution, folder / "plan")
    return folder / "company", folder / "plan"


def test_the_first_changes_are_a_plan(call: Call, company: tuple[Path, Path], tmp_path: Path) -> None:
    worth = call("diff", *company, "--json").record["worth"]
    made = call("steps", *company, "--changes", len(worth), "--plan-out", tmp_path / "made", "--json")
    assert made.code in (0, 3, 4)
    assert call("verify", company[0], tmp_path / "made").code == 0
    few = call("steps", *company, "--changes", 1, "--plan-out", tmp_path / "few", "--json")
    assert len(worth) > 1
    assert few.code in (0, 3, 4)
    assert call("verify", company[0], tmp_path / "few").code == 0
    assert len(call("diff", company[0], tmp_path / "few", "--json").record["worth"]) == 1
    again = call("steps", *company, "--changes", 1, "--plan-out", tmp_path / "few", "--force")
    assert again.code in (0, 3, 4)
    plans = (tmp_path / "few", company[1])
    after = [call("verify", company[0], plan, "--json").record["metrics"]["copied_tb"] for plan in plans]
    assert re.search(rf"TB copied +0 +{after[0]:.2f} +{after[1]:.2f} ", again.out)
    assert "Plans side by side" not in call("steps", *company).out
    assert "--force is about" in call("steps", *company, "--force").err
    assert "state how many" in call("steps", *company, "--plan-out", tmp_path / "other").err
    assert "state one" in call("steps", *company, "--first", 1, "--changes", 1).err


def test_the_first_steps_are_the_rows_of_all_and_a_plan(call: Call, company: tuple[Path, Path], tmp_path: Path) -> None:
    steps = call("steps", *company, "--json").record["steps"]
    objectives = []
    for count in range(len(steps) + 1):
        ended = call("steps", *company, "--first", count, "--plan-out", tmp_path / f"{count}", "--json")
        assert ended.code == 0
        assert ended.record["steps"] == steps[:count]
        verified = call("verify", company[0], tmp_path / f"{count}", "--json")
        assert verified.code == 0
        objectives.append(verified.record["objective"])
    whole = call("verify", company[0], company[1], "--json").record["objective"]
    assert objectives[-1] == pytest.approx(whole)
    assert objectives[0] > objectives[-1]
    assert len(set(objectives)) > 2
    said = call("steps", *company, "--first", len(steps) - 1).out
    assert f"{len(steps) - 1} steps of {len(steps)}" in said
    paid = re.search(r"Copies cost ([\d,]+) USD", said)
    assert paid is None or re.search(rf"USD once +0 +{paid[1]} ", said)
    assert re.search(rf"\nsteps +0 +{len(steps) - 1} +{len(steps)} ", said)


def test_what_is_broken_today_is_mended_first(call: Call, tmp_path: Path) -> None:
    tables = {
        "current_runs.csv": "workload,region,gpu_type\nrank,west,A100\nspam,east,A100\n",
        "residency.csv": "dataset,region\nlogs,west\n",
        "gpu_supply.csv": "region,gpu_type,gpus\neast,A100,16\nwest,A100,16\n",
    }
    instance, plan = write_tables(tmp_path / "resident", tables), tmp_path / "plan"
    assert call("solve", instance, "--out", plan).code == 0
    ended = call("steps", instance, plan, "--first", 0)
    assert ended.code == 2
    assert "residency" in ended.err
    assert "the first 1 keep every limit" in ended.err
    ended = call("steps", instance, plan, "--first", 1, "--plan-out", tmp_path / "one", "--json")
    assert [row["what"] for row in ended.record["steps"]] == ["spam"]
    assert call("verify", instance, tmp_path / "one").code == 0


@pytest.mark.parametrize("command", ["diff", "steps", "verify"])
def test_the_folder_of_all_goals_is_no_plan(call: Call, pair: tuple[Path, Path], tmp_path: Path, command: str) -> None:
    (tmp_path / "plans").mkdir()
    for goal in ("cheapest", "least-change"):
        shutil.copytree(pair[1], tmp_path / "plans" / goal)
    ended = call(command, pair[0], tmp_path / "plans")
    assert ended.code == 2
    goals = tmp_path / "plans" / "cheapest", tmp_path / "plans" / "least-change"
    assert "expected one plan; this folder holds one for each goal: name {} or {}".format(*goals) in ended.err
