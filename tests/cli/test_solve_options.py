"""The limits of ``solve``: ``--gap``, ``--time-limit``, ``--seed``, ``--threads`` and ``--iterations``."""

from __future__ import annotations

from pathlib import Path

import pytest

import mast_opt
from tests.cli.conftest import Call


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """An instance on which twine improves for many rounds."""
    problem = mast_opt.generate("task-reassignment", seed=1, processes=60, machines=8)
    mast_opt.write(problem, tmp_path / "tasks")
    return tmp_path / "tasks"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--gap", "many"),
        ("--gap", "-0.1"),
        ("--gap", "nan"),
        ("--time-limit", "soon"),
        ("--seed", "-1"),
        ("--threads", "0"),
        ("--iterations", "0"),
    ],
)
def test_a_value_out_of_range_names_the_option(call: Call, tasks: Path, option: str, value: str) -> None:
    ended = call("solve", tasks, "--solver", "twine", option, value)
    assert ended.code == 2
    assert "Invalid value" in ended.err
    assert f"for {option}" in ended.err
    assert f'"{value}"' in ended.err


def test_a_larger_gap_stops_earlier(call: Call, tmp_path: Path) -> None:
    problem = mast_opt.generate("data-placement", seed=1, datasets=6, workloads=8, regions=3)
    mast_opt.write(problem, tmp_path / "data")
    wide = call("solve", tmp_path / "data", "--solver", "highs", "--gap", "0.9", "--json").record
    close = call("solve", tmp_path / "data", "--solver", "highs", "--gap", "0", "--json").record
    assert wide["status"] == close["status"] == "OPTIMAL"
    assert close["gap"] == pytest.approx(0, abs=1e-6)
    assert 0.01 < wide["gap"] <= 0.9
    assert wide["bound"] < close["bound"]


def test_a_heuristic_stops_within_the_gap(call: Call, tasks: Path) -> None:
    record = call("solve", tasks, "--solver", "twine", "--gap", "1000", "--threads", "1", "--json").record
    assert record["status"] == "OPTIMAL"
    assert record["limit"] is None
    limited = call("solve", tasks, "--solver", "twine", "--gap", "0", "--iterations", "2", "--threads", "1", "--json")
    assert limited.record["limit"] == "iterations"


def test_seed_and_threads_decide_a_plan(call: Call, tasks: Path) -> None:
    common = ("solve", tasks, "--solver", "twine", "--iterations", "20", "--json")
    first, again, other = (
        call(*common, "--seed", seed, "--threads", threads).record["objective"]
        for seed, threads in (("1", "1"), ("1", "1"), ("2", "1"))
    )
    assert first == again
    assert first != other


def test_a_plan_stays_near_another(call: Call, tmp_path: Path) -> None:
    problem = mast_opt.generate("data-placement", "organisation", seed=2, datasets=6, workloads=8, regions=3)
    mast_opt.write(problem, tmp_path / "company")
    shared = ("solve", tmp_path / "company", "--solver", "highs", "--threads", "1")
    assert call(*shared, "--out", tmp_path / "week-1").code == 0
    again = call(*shared, "--near", tmp_path / "week-1", "--out", tmp_path / "week-2", "--json")
    assert (again.record["last_pass"]["reference"], again.record["last_pass"]["rows"]) == ("near", 0)
    loss = {"region", "overload_gpus", "unserved_gpus", "lost_gpus", "lost_tb", "datasets", "proven", "regions"}
    loss |= {"missing_gpus_at_most"}
    assert loss == set(again.record["worst_region_loss"])
    assert 'reference = "near"' in (tmp_path / "week-2" / "plan.toml").read_text()
    alike = call(*shared, "--near", tmp_path / "week-1")
    assert "proven within 0.1%" in alike.out
    assert "or rows differ" not in alike.err


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (("--goal", "least-change"), (), "with --goal least-change; ask for that goal too"),
        (("--goal", "safest"), ("--goal", "least-change"), "with --goal safest; ask for that goal too"),
        (("--weight", "copy=3"), (), "with other weights, levels or another order; ask for these too"),
        ((), ("--goal", "least-change"), "by the objective of its instance; leave out weights, order and goal too"),
        (("--goal", "least-change"), ("--goal", "least-change"), ""),
    ],
)
def test_another_objective_than_that_of_the_plan_to_stay_near_is_said(
    before: tuple[str, ...], now: tuple[str, ...], words: str, call: Call, tmp_path: Path
) -> None:
    company, later = (
        mast_opt.generate("data-placement", "organisation", seed=seed, datasets=6, workloads=8, regions=3)
        for seed in (2, 3)
    )
    mast_opt.write(company, tmp_path / "company")
    mast_opt.write(later, tmp_path / "later")
    shared = "--solver", "highs", "--threads", "1", "--time-limit", "10"
    assert call("solve", tmp_path / "company", *shared, *before, "--out", tmp_path / "week-1").code == 0
    again = call("solve", tmp_path / "later", *shared, *now, "--near", tmp_path / "week-1").err
    assert (words in again) if words else ("or rows differ" not in again)
