"""Pages of speed, guarantees and ablations have the tables that the committed runs give."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks.loop_speed import CASES
from benchmarks.loop_speed import queue as one_turn
from benchmarks.measured_pages import LOOP, PAGES, ablated, aimed, best, read, tables
from benchmarks.study_pages import with_tables

TABLES = tables()


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_committed_runs(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text()
    assert with_tables(page, TABLES[name]) == page
    assert set(re.findall(r"<!-- table: ([a-z-]+) -->", page)) == set(TABLES[name])


@pytest.mark.parametrize("name", [name for name in TABLES if name.startswith("benchmarks/")])
def test_no_other_line_of_the_page_is_a_table(name: str) -> None:
    page = re.sub(r"(?s)<!-- table: .*?<!-- end -->", "", (PAGES / f"{name}.md").read_text())
    assert "\n|" not in page


def test_every_case_of_the_loop_is_on_its_page() -> None:
    stated = {case for case, *_ in LOOP} | {"kernels"}
    assert {row["case"] for row in read("loop")} == stated == set(CASES) - {"memory"}


def test_the_quickest_run_counts_and_an_aim_is_met_or_missed() -> None:
    rows: list[dict[str, Any]] = [{"case": "a", "cpu_s": cpu_s, "jobs": 1234} for cpu_s in (3.0, 2.0)]
    rows += [{"case": "b", "cpu_s": 1.0}]
    assert best(rows, case="a")["cpu_s"] == 2.0
    stated = [("a", "{jobs:,} jobs", "{cpu_s:.1f} s", "cpu_s", aim, "s") for aim in (2, 1)]
    lines = aimed({"a": best(rows, case="a")}, stated).splitlines()
    assert lines[2:] == ["| 1,234 jobs | 2.0 s | 2 s: met |", "| 1,234 jobs | 2.0 s | 1 s: **missed** |"]


def test_an_ablation_states_rounds_and_seeds() -> None:
    run = {"solver": "s", "instance": "i", "rounds": 5, "params": {}, "bound": 0.0, "cpu_s": 1.0}
    rows = [
        {**run, "seed": seed, "variant": variant, "objective": objective}
        for seed in (0, 1)
        for variant, objective in (("defaults", 1.0), ("without", 1.0))
    ]
    assert ablated(rows, "s").splitlines()[0] == "| variant | i (5 rounds, seeds: 2) | all | processor time |"
    assert "| without | +0.00 ± 0.00 | +0.00 ± 0.00 | +0% |" in ablated(rows, "s")


@pytest.mark.second_tier
def test_a_run_places_as_many_as_is_stated() -> None:
    assert one_turn()["placed"] == best(read("loop"), case="queue")["placed"]
