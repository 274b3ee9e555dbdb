"""What the page on the headline states and draws, from runs made up by hand."""

from __future__ import annotations

from pathlib import Path

from benchmarks.headline_page import MEASURES, Runs, draw, table

FIGURES = dict.fromkeys((measure.key for measure in MEASURES), 1.0)
RUNS: Runs = {
    ("storage for 2.0 copies", "soft"): [FIGURES | {"gap_%": None}],
    ("storage for 1.1 copies, recurring work only", "derived"): [FIGURES],
    ("storage for 1.1 copies", "derived"): [FIGURES | {"more_storage_%": share} for share in (30.0, 10.0, 20.0)],
}


def test_rows_are_in_order_of_storage_and_say_how_far_seeds_differ() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table(RUNS).splitlines()[2:]]
    assert [row[:3] for row in rows] == [
        ["1.1 copies", "V2 derived", "3"],
        ["2.0 copies", "V1 soft", "1"],
        ["1.1 copies, recurring work only", "V2 derived", "1"],
    ]
    assert rows[0][6] == "20 (10 to 30)"
    assert rows[0][9] == "1.0"
    assert rows[1][9] == "–"


def test_the_picture_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        draw(RUNS, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
