"""The table of ``auto`` and its members is that of the committed results."""

from __future__ import annotations

from pathlib import Path

from benchmarks.members_page import read, table
from benchmarks.study_pages import with_tables

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_committed_runs() -> None:
    page = (ROOT / "docs" / "how-to" / "choose-a-solver.md").read_text()
    runs = read(ROOT / "benchmarks" / "results")
    assert page == with_tables(page, {"members": lambda: table(runs)})
    assert "<!-- table: members -->\n| instance" in page


def test_a_row_has_the_median_run_and_who_is_behind() -> None:
    def run(name: str, objective: float, seed: int, status: str = "FEASIBLE") -> dict[str, object]:
        return {
            "source": {"kind": "data-placement"},
            "instance": "i",
            "contestant": {"name": name},
            "time_limit_s": 8.0,
            "seed": seed,
            "objective": objective,
            "bound": 1.0,
            "status": status,
            "strategy": {"plan_by": "tetris", "bound_by": "highs"},
        }

    runs = [run("auto", 2.0, 0), run("auto", 9.0, 1), run("auto", 3.0, 2), run("highs", 2.5, 0, "OPTIMAL")]
    runs += [run("tetris", 4.0, 0), run("twine", 1.0, 0)]
    row = "| data-placement, i, 8 s | 3 (1) | tetris, highs | 2.5* | 4 (1) | +20.00% |"
    assert table(runs).splitlines()[2:] == [row]
