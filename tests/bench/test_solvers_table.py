"""The README's table of solvers is that of the committed runs."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.solvers import table
from benchmarks.study_pages import with_tables

ROOT = Path(__file__).parents[2]


def test_the_table_is_that_of_the_runs() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    runs = [json.loads(line) for line in (ROOT / "benchmarks/data/solvers.jsonl").read_text().splitlines()]
    assert len(runs) == 5
    assert page == with_tables(page, {"solvers": lambda: table(runs)})
    assert f"<!-- table: solvers -->\n{table(runs)}\n<!-- end -->" in page
    assert {run["time_limit_s"] for run in runs} == {60.0}
