"""The study of the fast path in small: it resumes, counts only what is proven, and writes its page and pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fast_path import figures, page, runs
from benchmarks.fast_path.instances import Batches
from benchmarks.fast_path.real import RealRecords

TINY = Batches("tiny", {"regions": 2, "clusters": 1, "servers": 4, "fill_percent": 90}, wanted=2)
OTHER = Batches("tiny, held out", TINY.sizes, wanted=1, first_seed=100)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (runs, figures, page):
        monkeypatch.setattr(module, "BATCHES", (TINY,), raising=False)
        monkeypatch.setattr(module, "HELD_OUT", (OTHER,), raising=False)
        monkeypatch.setattr(module, "FILLS", (95,), raising=False)
        monkeypatch.setattr(module, "FILL_SEEDS", 1)
    monkeypatch.setattr(runs, "REPAIR_ROUNDS", 100)


def test_the_study_resumes_and_writes_its_page(tmp_path: Path) -> None:
    results = tmp_path / "runs.jsonl"
    runs.study(runs.Records(results))
    first = results.read_text()
    results.write_text(first[:-20])
    runs.study(runs.Records(results))
    records = runs.Records(results)
    assert len(records.runs) == first.count("\n")

    best = figures.optima(records, (TINY,))
    assert len(best) == TINY.wanted
    assert all(run.proven and runs.LEAST_RATIO <= run.ratio <= runs.MOST_RATIO for run in best)
    for solver in runs.HEURISTICS:
        found = figures.pairs(records, solver, best)
        assert len(found) == TINY.wanted
        assert all(-1 < pair.gap <= 1 for pair in found)
    assert figures.row_of(runs.EXACT, figures.pairs(records, runs.EXACT, best)).worst == 0

    page.write_page(records, RealRecords(tmp_path / "none.jsonl"), tmp_path / "page.md")
    words = (tmp_path / "page.md").read_text()
    for solver in runs.HEURISTICS:
        assert f"| `{solver}` | {TINY.wanted} |" in words
    for picture in ("fast-path-gaps.svg", "fast-path-filling.svg"):
        assert f"images/{picture}" in words
        assert (tmp_path / "images" / picture).read_text().startswith("<?xml")
