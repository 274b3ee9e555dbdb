"""What the page of the headline in time states and draws, from runs made up by hand and from the committed ones."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import matplotlib as mpl
import pytest

from benchmarks.headline_in_time_page import (
    COLUMNS,
    OF_OWN_FILES,
    OTHERS,
    PAGE,
    TABLES,
    Runs,
    base_of,
    draw_questions,
    draw_variants,
    interval,
    runs_of,
    spread,
    table,
    written,
)
from benchmarks.headline_variants import VARIANTS

ROOT = Path(__file__).parents[2]
FIGURES = dict.fromkeys((column.figure for column in COLUMNS), 1.0) | {"urgent_starved": 0.0}
RUNS: Runs = {
    "before": {1: FIGURES | {"ratio": 2.5}, 2: FIGURES | {"ratio": 2.7}, 3: FIGURES | {"ratio": 2.9}},
    "after": {1: FIGURES, 2: FIGURES | {"ratio": 1.2}, 3: FIGURES | {"ratio": None}},
}


def test_cells_are_medians_and_differences_of_equal_seeds() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table(RUNS, ["before", "after"]).splitlines()
    ]
    assert rows[2][:4] == ["`before`", "3", "2.7 (2.5 to 2.9)", "+1.50 (2 pairs)"]
    assert rows[3][:4] == ["`after`", "3", "1.1 (1 to 1.2)", ""]
    assert rows[2][-1] == "1 (0)"
    assert len({len(row) for row in rows}) == 1


def test_intervals_hold_the_mean_and_say_where_there_are_too_few_pairs() -> None:
    assert interval([0.5, 0.5, 0.5, 0.5]) == "+0.50 (+0.50 to +0.50)"
    assert interval([-1.0, 1.0, -1.0, 1.0]) == "+0.00 (\N{MINUS SIGN}1.00 to +1.00)"
    assert interval([]) == ""
    assert (spread([]), spread([2.0]), spread([2.0, 4.0], ends=False)) == ("–", "2", "3")


def test_what_is_compared_with_what() -> None:
    assert [base_of(name) for name in ("before", "early-share", "short-early", "storage-110-early", "servers")] == [
        *("after", "after", "short", "storage-110", "no-servers")
    ]
    assert {*OTHERS, *(name for names in TABLES.values() for name in names)} <= set(VARIANTS)
    assert all(base_of(name) in VARIANTS for name in VARIANTS)


def test_the_page_has_the_tables_of_the_committed_runs() -> None:
    page = (ROOT / "docs" / "benchmarks" / PAGE).read_text()
    data = ROOT / "benchmarks" / "data"
    assert written(page, runs_of(data / "headline-in-time.jsonl"), data) == page
    assert all(f"<!-- table: {name} -->" in page for name in (*TABLES, *OF_OWN_FILES, "others", "at-size"))


def test_what_room_for_gangs_buys_is_stated() -> None:
    page = (ROOT / "docs" / "benchmarks" / PAGE).read_text()
    runs = runs_of(ROOT / "benchmarks" / "data" / OF_OWN_FILES["room"])
    after, room = ([figures["ratio"] or 0.0 for figures in runs[name].values()] for name in ("after", "room"))
    kept = sum(ratio <= 1 for ratio in room)
    assert f"from {median(after):.3g} to {median(room):.3g}, and is at most 1.0 in {kept} of {len(room)} seeds" in page


def test_pictures_are_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("svg")
    monkeypatch.setitem(mpl.rcParams, "svg.hashsalt", "mast-opt")
    for draw in (draw_variants, draw_questions):
        for name in ("one.svg", "two.svg"):
            draw(RUNS, tmp_path / name)
        assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
