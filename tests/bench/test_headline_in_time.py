"""The command of the headline in time: runs are kept, and done once."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import headline_in_time
from benchmarks.headline_in_time import read
from mast_opt.core.errors import UsageError

TINY = "--days 2 --gpus 120 --regions 3 --datasets 60 --warm-up-days 1 --iterations 2 --skew 1.3"


def run(monkeypatch: pytest.MonkeyPatch, file: Path, arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["headline_in_time", *arguments.split(), "--out", str(file)])
    headline_in_time.main()


def test_runs_are_added_and_not_done_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "runs.jsonl"
    run(monkeypatch, file, f"{TINY} --variants before after")
    first = file.read_text()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["before", "after"]
    run(monkeypatch, file, f"{TINY} --variants before no-plan")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["no-plan"]
    assert file.read_text().startswith(first)
    head, runs = read(file)
    assert head is not None
    assert head["organisation"]["gpus"] == 120
    assert [(one["variant"], one["seed"], one["skew"]) for one in runs] == [
        (name, 1, 1.3) for name in ("before", "after", "no-plan")
    ]
    figures = {one["variant"]: one["figures"] for one in runs}
    assert figures["before"]["storage_percent"] == 0
    assert figures["after"]["storage_percent"] > 0
    assert figures["before"]["plan_gap"] is None
    assert 0 <= figures["after"]["plan_gap"] <= figures["after"]["plan_gap_worst"] < 10
    assert figures["before"]["ratio"] >= figures["before"]["least_ratio"] > 0
    assert json.dumps(figures["after"]) != json.dumps(figures["no-plan"])


def test_runs_of_something_else_are_not_mixed_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text('{"organisation": {"gpus": 99}}\n')
    with pytest.raises(UsageError, match="another organisation"):
        run(monkeypatch, file, TINY)
