"""``mast-opt solve --freeze``."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from mast_opt.cli import options as freezing
from tests.cli.conftest import OPTIMUM, Call, write_tables
from tests.platforms import needs

RUNS = {"current_runs.csv": "workload,region,gpu_type\nrank,west,A100\nspam,west,A100\n"}

LEAVES = 2 / 3
"""Share of the GPU work that leaves the west in the optimum, at the default price of moving all of it."""


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """The small instance with all work in the west, where it does not fit well."""
    return write_tables(tmp_path / "crowded", RUNS)


def test_a_frozen_part_stays(call: Call, crowded: Path, tmp_path: Path) -> None:
    free = call("solve", crowded, "--json").record
    assert free["objective"] == pytest.approx(OPTIMUM + LEAVES)
    kept = call("solve", crowded, "--freeze", "workload=rank", "--out", tmp_path / "plan", "--json").record
    assert kept["objective"] > free["objective"]
    assert "rank,west,A100,1" in (tmp_path / "plan" / "runs.csv").read_text()
    assert tomllib.loads((tmp_path / "plan" / "plan.toml").read_text())["frozen"] == {"workload": ["rank"]}
    assert call("verify", crowded, tmp_path / "plan").code == 0


def test_names_in_a_file(call: Call, crowded: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts.csv"
    parts.write_text("what,name\nworkload,rank\nworkload,spam\n")
    assert call("solve", crowded, "--freeze", parts, "--out", tmp_path / "plan").code == 0
    assert (tmp_path / "plan" / "runs.csv").read_text().count("west") == 2
    both = call("solve", crowded, "--freeze", "workload=rank,spam", "--json").record
    assert both["objective"] == call("solve", crowded, "--freeze", parts, "--json").record["objective"]


def test_the_start_is_what_is_kept(call: Call, crowded: Path, tmp_path: Path) -> None:
    assert call("solve", crowded, "--out", tmp_path / "plan").code == 0
    record = call("solve", crowded, "--start", tmp_path / "plan", "--freeze", "region=east,west", "--json").record
    assert record["objective"] == pytest.approx(OPTIMUM + LEAVES)


@pytest.mark.parametrize(
    ("freeze", "words"),
    [
        ("region=north", "there is no region called 'north'"),
        ("planet=earth", "nothing called 'planet'"),
        ("region=", "expected WHAT=NAME"),
        ("nothing.csv", "expected WHAT=NAME"),
    ],
)
def test_what_cannot_be_frozen(call: Call, crowded: Path, freeze: str, words: str) -> None:
    ended = call("solve", crowded, "--freeze", freeze)
    assert ended.code == 2
    assert words in ended.err


def test_more_names_than_a_path_could_hold(call: Call, crowded: Path) -> None:
    names = ",".join(f"workload-{number}" for number in range(1000))
    assert "no workload called 'workload-0'" in call("solve", crowded, "--freeze", f"workload={names}").err


def test_a_file_of_another_sort(call: Call, crowded: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts.csv"
    parts.write_text("region,name\neast,x\n")
    assert "first row with what,name" in call("solve", crowded, "--freeze", parts).err
    parts.write_text("what,name\nregion\n")
    assert "row 1" in call("solve", crowded, "--freeze", parts).err


def test_a_frozen_part_without_a_way_on(call: Call, tmp_path: Path) -> None:
    small = {"regions.csv": "region,storage_tb,cpu_cores\neast,10,10\nwest,10,6\n"}
    crowded = write_tables(tmp_path / "small", RUNS | small)
    ended = call("solve", crowded, "--freeze", "workload=rank,spam")
    assert ended.code == 3
    assert "keep less of it" in ended.out


@needs("links")
def test_a_pipe_of_names_is_refused_at_once(call: Call, crowded: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for freeze in (tmp_path / "pipe", "/dev/zero"):
        ended = call("solve", crowded, "--freeze", freeze)
        assert ended.code == 2
        assert "a pipe or a device" in ended.err


def test_a_file_of_names_that_is_too_large(
    call: Call, crowded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = tmp_path / "parts.csv"
    parts.write_text("what,name\nworkload,rank\n")
    monkeypatch.setattr(freezing, "MOST_FREEZE_BYTES", 20)
    ended = call("solve", crowded, "--freeze", parts)
    assert ended.code == 2
    assert "at most 20 are read" in ended.err
