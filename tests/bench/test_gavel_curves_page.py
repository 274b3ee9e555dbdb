"""What the page of Gavel's simulator states and draws of its curves."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest

from benchmarks.gavel_curves import POLICIES, PUBLISHED, Run, read
from benchmarks.gavel_curves_page import OWN_CODE, PAGE, curves, draw, knee, seeds_table, table, written

ROOT = Path(__file__).parents[2]
DATA = ROOT / "benchmarks" / "data" / "gavel-curves.jsonl"
RUNS = [
    Run("fifo", 4.0, 0, 4000, 5000, 25.0, 1.0),
    Run("fifo", 0.4, 0, 4000, 5000, 18.0, 1.0),
    Run("fifo", 4.4, 0, 4000, 5000, 50.0, 1.0),
    Run("fifo", 4.0, 1, 4000, 5000, 20.0, 1.0),
    Run("fifo", 2.0, 0, 0, 10, 1.0, 1.0),
]


def test_curves_are_those_of_a_seed_and_of_the_jobs_measured() -> None:
    assert curves(RUNS, 0)["fifo"] == {0.4: 18.0, 4.0: 25.0, 4.4: 50.0}
    assert curves(RUNS, 1)["fifo"] == {4.0: 20.0}
    assert knee(curves(RUNS, 0)["fifo"]) == 4.0
    assert knee({}) == 0.0


def test_knees_of_the_published_curves() -> None:
    assert [knee(PUBLISHED[policy]) for policy in POLICIES] == [4.0, 4.8, 4.4, 5.2]


def test_cells() -> None:
    lines = table(RUNS).splitlines()
    assert lines[2].startswith("| 0.4 | 18.00 / 17.58 (+2.4%) | – / 15.31 |")
    assert lines[-1] == "| knee | 4.0 / 4.0 | – / 4.8 | – / 4.4 | – / 5.2 |"
    assert lines[-2] == "| 6.0 | – | – / 150.04 | – | – / 41.23 |"
    assert seeds_table(RUNS).splitlines()[2].startswith("| fifo | 18.0 / – | – / – | 25.0 / 20.0 |")


def test_the_page_has_the_tables_of_the_committed_runs() -> None:
    page = (ROOT / "docs" / "benchmarks" / PAGE).read_text()
    assert written(page, read(DATA)) == page
    assert page.count("<!-- table: ") == 3


def test_the_committed_runs_are_near_what_was_published_and_nearer_to_its_code() -> None:
    found = curves(read(DATA), 0)
    for policy, most in (("fifo with speeds", 0.03), ("max-min", 0.05), ("max-min with speeds", 0.05)):
        below = {rate: hours for rate, hours in found[policy].items() if rate <= knee(PUBLISHED[policy])}
        assert below == pytest.approx({rate: PUBLISHED[policy][rate] for rate in below}, rel=most), policy
    for policy, of_code in OWN_CODE.items():
        if policy != "fifo":  # which draws by chance
            ours = {rate: found[policy][rate] for rate in of_code}
            assert ours == pytest.approx(of_code, rel=0.003), policy


def test_pictures_are_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("svg")
    monkeypatch.setitem(mpl.rcParams, "svg.hashsalt", "mast-opt")
    for name in ("one.svg", "two.svg"):
        draw(RUNS, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
