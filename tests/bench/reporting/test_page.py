"""The page of results: figures where they belong, commands behind them, and where ours lose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import InputError, UsageError
from mast_opt.planner.bench.reporting.chapters import chapters_of
from mast_opt.planner.bench.reporting.page import GENERATED, Chapter, overview, page, suite_page
from mast_opt.planner.bench.reporting.plots import PLOTS, TITLES, draw
from mast_opt.planner.bench.results import metrics as figures
from mast_opt.planner.bench.results.store import append
from mast_opt.planner.bench.suites.suite import Suite
from mast_opt.problems.registry import kind_named
from tests.bench.conftest import result
from tests.plugins import offer

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"


def chapter(suite: Suite) -> Chapter:
    results = [
        result("highs", 4.0, bound=3.0, gap=0.25),
        result("exhaustive", 5.0),
        result("cbc", None, status="TIMEOUT", error="killed after 140 s"),
        result("highs", 9.0, instance="j"),
        result("exhaustive", 8.0, instance="j"),
        result("highs", 3.0, instance="k"),
        result("exhaustive", None, instance="k"),
        result("ours", None, entry="build", status="MEASURED", figures={"wall_s": 1.5}, source={"program": "p.py"}),
    ]
    return Chapter(suite, results, {(figures.identity({"kind": "job-placement"}), "i"): 3.2})


def test_the_page_says_what_was_found(suite: Suite) -> None:
    text = page([chapter(suite)], images=None)
    assert "| highs | 3 | 1 | 3 | 0 | 1 |" in text
    assert "| exhaustive | 3 | 1 | 2 | 0 | 1 |" in text
    assert "cbc: TIMEOUT × 1: killed after 140 s" in text
    assert f"mast-opt bench {suite.path} --filter 'e/'" in text
    assert "- highs: is here for the tests." in text
    assert "| ours | 1.5 |" in text
    assert "| i | 3.2 | 3 | 4 (25.0%) | 5 (56.2%) | – |" in text
    assert "P, 2 processors, 4 GB" in text


def test_figures_of_a_program_over_seeds_are_a_median_and_a_range(suite: Suite) -> None:
    source = {"program": "p.py"}
    results = [
        result("ours", None, entry="e", status="MEASURED", seed=seed, figures=figures_of_seed, source=source)
        for seed, figures_of_seed in enumerate(
            ({"ratio": 1.5, "same": 2, "word": "a"}, {"ratio": 1.0, "same": 2, "word": "b"}, {"ratio": 1.25, "same": 2})
        )
    ]
    text = page([Chapter(suite, results, {})], images=None)
    assert "| contestant | seeds | ratio | same | word |" in text
    assert "| ours | 3 | 1.25 (1 to 1.5) | 2 | a, b, – |" in text
    assert "--data" not in text
    other = {**results[0], "instance": "j", "source": source | {"data": "lists.csv"}}
    text = page([Chapter(suite, [*results, other], {})], images=None)
    assert "| instance | contestant | seeds | ratio | same | word |" in text
    assert "| j | ours | 1 | 1.5 | 2 | a |" in text
    assert "--data PUBLIC_DATA" in text


def test_the_page_compares_by_the_largest_where_more_is_better(suite: Suite) -> None:
    results = [
        result("highs", 4.0, sense="max", bound=4.0, status="OPTIMAL"),
        *(result("exhaustive", value, sense="max", seed=seed) for seed, value in enumerate((3.0, 2.0))),
        result("highs", 1.0, sense="max", instance="j"),
    ]
    text = page([Chapter(suite, results, {})], images=None)
    assert "| i | 4 | 4 | 4* (0.00%) | 3 (25.0%) … 2 (50.0%) |" in text
    assert "exhaustive 3 against 4 of highs (25.0% worse)" in text
    assert "| exhaustive | 2 | 2 | 2 | 0 | 0 | 35.4% | 50.0% | – |" in text


@pytest.mark.second_tier
def test_quality_over_time_rises_to_the_best_where_more_is_better(suite: Suite) -> None:
    from matplotlib.figure import Figure

    found = result("highs", 4.0, sense="max", events=[[0.5, 3.0, None], [1.0, 4.0, None]])
    axes = Figure().subplots()
    PLOTS["over-time"](axes, [found], Chapter(suite, [found], {}).best)
    heights = np.asarray(axes.get_lines()[0].get_ydata())
    assert (heights[0], heights[-1]) == (pytest.approx(0.25), pytest.approx(1e-4))


def test_the_page_says_what_ours_lose_at(suite: Suite) -> None:
    text = page([chapter(suite)], images=None)
    assert "Of 3 comparisons" in text
    assert "worse in 2:" in text
    assert "exhaustive 5 against 4 of highs (25.0% worse)" in text
    assert "no plan of exhaustive against 3 of highs" in text


def test_auto_is_no_other_solver(suite: Suite) -> None:
    """Half of it is ours."""
    results = [result("exhaustive", 5.0), result("auto", 4.0), result("highs", 5.0)]
    text = page([Chapter(suite, results, {})], images=None)
    assert "Of 1 comparisons" in text
    assert "worse in 0." in text


def test_memory_is_that_of_runs_that_tell_it(suite: Suite) -> None:
    """Those that were killed do not."""
    killed = result("cbc", None, status="TIMEOUT", seed=1)
    del killed["peak_memory_mb"]
    results = [result("cbc", 4.0), killed, {**killed, "contestant": {"name": "scip"}}]
    text = page([Chapter(suite, results, {})], images=None)
    assert "| cbc | 10 s | 2 | 1/2 | 0 | 4 | – | 0.00% | 0.00% | – | 4.24 s | 100 MB |" in text
    assert "| scip | 10 s | 1 | 0/1 | 0 | – | – | – | – | – | 10 s | – |" in text


def test_the_worst_seed_is_shown(suite: Suite) -> None:
    """With how many seeds there are; a seed without a plan is the worst there is."""
    results = [result("highs", cost, seed=seed) for seed, cost in enumerate((4.0, 6.0, 5.0))]
    results += [result("highs", 8.0, instance="j"), result("cbc", 8.0, instance="j")]
    results += [result("cbc", 4.4, seed=0), result("cbc", None, seed=1)]
    text = page([Chapter(suite, results, {})], images=None)
    assert "| highs | 4 | 1 to 3 | 4 | 0 | 2 | 5.03% | 50.0% | – |" in text
    assert "| highs | 10 s | 1 to 3 | 4/4 | 0 | 4 … 8 | – | 5.03% | 50.0% | – |" in text
    assert "| i | 4 | – | 4 (0.00%) … 6 (50.0%) | 4.4 (10.0%) … no plan |" in text
    assert "| j | 8 | – | 8 (0.00%) | 8 (0.00%) |" in text


def test_terms_that_are_minimised_one_by_one_are_compared_in_their_order(suite: Suite) -> None:
    """The objective of each is the value of another term: the first that is not proven."""
    order = {"order": ["x", "y"], "gap_asked": 1e-4}
    stages = [{"term": "x", "objective": 2.0, "bound": 2.0}, {"term": "y", "objective": 7.0, "bound": 6.0}]
    results = [
        result("exhaustive", 3.0, terms={"x": 3.0, "y": 1.0}, **order),
        result("highs", 7.0, bound=6.0, gap=1 / 7, terms={"x": 2.0, "y": 7.0}, stages=stages, **order),
        result("highs", 4.0, instance="j"),
        result("cbc", None, status="CRASHED"),
    ]
    text = page([Chapter(suite, results, {})], images=None)
    assert "exhaustive x 3 against x 2 of highs (50.0% worse)" in text
    assert "| exhaustive | 1 | 1 | 1 | 0 | 0 | – | – | – |" in text
    assert "| highs | 2 | 1 | 2 | 0 | 2 | 0.00% | 0.00% | – |" in text
    assert "| highs | 10 s | 1 | 2/2 | 0 | 4 | – | 0.00% | 0.00% | – |" in text
    rows = [
        "| contestant | instance | limit | seed | x | y |",
        "| --- | --: | --: | --: | --: | --: |",
        "| highs | i | 10 s | 0 | 2* | 7 (≥ 6) |",
        "| exhaustive | i | 10 s | 0 | 3 | 1 |",
    ]
    assert "\n".join(rows) in text
    assert "| j | 4 | – | 4 (0.00%) |" in text


@pytest.mark.second_tier
@pytest.mark.parametrize("name", PLOTS)
def test_plots_are_drawn_the_same_every_time(suite: Suite, tmp_path: Path, name: str) -> None:
    found = chapter(suite)
    files = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        draw(folder, "two", [name], found.results, found.best)
        files.append((folder / f"two-job-placement-{name}.svg").read_bytes())
    assert files[0] == files[1]
    assert b"<svg" in files[0]
    assert name in TITLES


@pytest.mark.second_tier
def test_an_unknown_plot_is_a_usage_error(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="profile"):
        draw(tmp_path, "two", ["pie"], [], {})


def test_results_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected results"):
        chapters_of([tmp_path / "none.jsonl"])
    with pytest.raises(InputError, match="expected results"):
        chapters_of([tmp_path])


def test_a_plot_is_part_of_the_page_where_the_suite_wants_it(suite: Suite) -> None:
    found = replace(chapter(suite), suite=replace(suite, plots=("profile",)))
    assert "](images/two-job-placement-profile.svg)" in page([found], images="images")


def test_the_committed_pages_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/benchmarks/results.md and its pages are what ``mast-opt bench report`` makes of the committed results."""
    monkeypatch.chdir(ROOT)
    chapters, folder = chapters_of([RESULTS.relative_to(ROOT)]), ROOT / "docs" / "benchmarks"
    assert (folder / "results.md").read_text(encoding="utf-8") == overview(chapters, "results")
    there = {path.name: path.read_text(encoding="utf-8") for path in (folder / "results").glob("*.md")}
    assert there == {f"{chapter.suite.name}.md": suite_page(chapter, "images") for chapter in chapters}


def test_a_page_a_suite_and_one_in_front(suite: Suite) -> None:
    found = chapter(suite)
    front, own = overview([found], "results"), suite_page(found, None)
    assert f"[{suite.name}](results/{suite.name}.md) | {suite.title} | {len(found.results):,} |" in front
    assert "## Where our solvers lose" in front
    assert own.startswith(f"# {suite.title}\n\n{GENERATED}")
    assert "Where our solvers lose" not in own


OUTSIDE = kind_named("job-placement").solvers.heuristics["exhaustive"]


def test_a_plug_in_is_not_a_solver_of_ours(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "mast_opt.heuristics", ("job-placement.outside", f"{__name__}:OUTSIDE"))
    results = [result("highs", 4.0), result("outside", 5.0)]
    assert "No run of ours can be compared" in overview([Chapter(suite, results, {})], "results")
    text = overview([Chapter(suite, [*results, result("exhaustive", 6.0)], {})], "results")
    assert "exhaustive 6 against 4 of highs" in text


def test_results_of_a_suite_that_is_not_here_are_told_without_its_words(tmp_path: Path) -> None:
    append(tmp_path / "mine.jsonl", result("a", 1.0))
    (tmp_path / "torn.jsonl").write_text('{"key')
    text = page(chapters_of([tmp_path]), images=None)
    assert "## mine\n" in text
    assert f"mast-opt bench report {tmp_path}" in text
    assert "benchmarks/results" not in text
    assert "peers.md" not in text
    assert "mast-opt bench mine.toml --filter 'e/'" in text
    assert "| a | 10 s | 1 | 1/1 | 0 | 1 |" in text
    assert "## torn\n" in text
