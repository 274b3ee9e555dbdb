"""The table of cvxpy is that of the committed runs."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.allocation import page_table
from benchmarks.study_pages import with_tables

ROOT = Path(__file__).parents[2]


def test_the_table_is_that_of_the_runs() -> None:
    page = (ROOT / "docs/benchmarks/peers.md").read_text(encoding="utf-8")
    runs = [json.loads(line) for line in (ROOT / "benchmarks/data/allocation.jsonl").read_text().splitlines()]
    assert page == with_tables(page, {"allocation": lambda: page_table(runs)})
    assert f"<!-- table: allocation -->\n{page_table(runs)}\n<!-- end -->" in page
