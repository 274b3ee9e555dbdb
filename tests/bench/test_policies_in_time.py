"""Every policy on one trace: the command, and the page that states what came of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.policies_in_time import VARIANTS, main, table
from benchmarks.study_pages import with_tables
from mast_opt.live.simulation.run import ENGINE_POLICIES

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "benchmarks" / "data" / "policies-in-time.jsonl"
PAGE = ROOT / "docs" / "policies-in-time.md"
ROWS = [json.loads(line) for line in RUNS.read_text().splitlines()]


def test_a_run_that_is_in_the_file_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs.jsonl"
    asked = ["--jobs", "24", "--regions", "2", "--out", str(out), "--policies", "pai", "gandiva"]
    main(asked)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["policy"], row["given"]) for row in rows] == [
        ("pai", {}),
        ("gandiva", {}),
        ("gandiva", {"packing": "true"}),
    ]
    assert all(row["jobs"] == 24 and row["makespan_s"] > 0 for row in rows)
    once = out.read_text()
    main(asked)
    assert out.read_text() == once
    capsys.readouterr()
    main(["--table", str(out)])
    assert capsys.readouterr().out.count("`gandiva`") == 2


def test_the_page_has_the_runs() -> None:
    page = PAGE.read_text()
    assert "<!-- table: mixed -->" in page
    assert with_tables(page, {"mixed": lambda: table(ROWS)}) == page


def test_every_policy_was_run() -> None:
    wanted = [(policy, given) for policy in ENGINE_POLICIES for given in VARIANTS.get(policy, ({},))]
    assert sorted(map(str, wanted)) == sorted(str((row["policy"], row["given"])) for row in ROWS)
    assert {(row["jobs"], row["regions"]) for row in ROWS} == {(2000, 8)}
