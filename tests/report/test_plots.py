"""Figures: what they show equals the charts of the report, and they can be saved."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import mast_opt
from mast_opt.core.errors import InputError, UsageError
from mast_opt.live.loop.events import Placed, Submitted
from mast_opt.problems.registry import kind_of

TRACE = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"
SIZES: dict[str, dict[str, int]] = {
    "data-placement": {"datasets": 6, "workloads": 8, "regions": 3},
    "job-placement": {"jobs": 6, "servers": 4},
    "server-assignment": {"servers": 20, "reservations": 2},
    "task-reassignment": {"processes": 12, "machines": 4},
    "resource-allocation": {"jobs": 5},
}


def solved(kind: str) -> tuple[Any, Any]:
    """An instance and its solution."""
    problem = mast_opt.generate(kind, None, seed=3, **SIZES[kind])
    return problem, mast_opt.solve(problem, "highs", gap=0.5, time_limit_s=20)


@pytest.mark.parametrize("kind", list(SIZES))
def test_a_plan_has_the_charts_of_its_report(kind: str) -> None:
    problem, solution = solved(kind)
    figures = mast_opt.plot_plan(problem, solution.plan)
    assert [figure.title for figure in figures] == [
        chart.title for chart in kind_of(problem).presentation.charts(problem, solution.plan)
    ]
    for figure in figures:
        assert figure.svg.startswith("<svg")
        assert "var(--" not in figure.svg
        assert "var(--" not in json.dumps(figure.specs)
        assert all("vega-lite" in spec["$schema"] for spec in figure.specs)
        assert pl.DataFrame(figure.table, strict=False).height > 0
        assert figure.title in repr(figure)
        assert figure._repr_svg_() == figure.svg


def test_the_table_of_a_search_has_its_incumbent_and_bound() -> None:
    _, solution = solved("data-placement")
    figure = mast_opt.plot_search(solution)
    rows = pl.DataFrame(figure.table).filter(pl.col("line") == "incumbent").sort("seconds")
    assert rows["objective"][-1] == pytest.approx(solution.objective)


def test_a_frontier_has_a_row_for_each_point() -> None:
    problem, _ = solved("data-placement")
    frontier = mast_opt.pareto(problem, ("storage", "peak"), points=3, time_limit_s=20)
    figure = mast_opt.plot_frontier(frontier)
    assert len(figure.table["storage"]) == len(frontier.points)
    assert list(figure.table["peak"]) == pytest.approx([point.terms["peak"] for point in frontier.points])


def test_a_run_has_its_queue_first() -> None:
    run = mast_opt.simulate(TRACE, "fifo", until_s=1_000_000)
    figures = mast_opt.plot_run(run)
    waiting, counts = 0, {}
    for stored in run.events():
        waiting += isinstance(stored.event, Submitted) - isinstance(stored.event, Placed)
        counts[stored.at_ms] = waiting
    assert figures[0].title == "Jobs that wait"
    assert pl.DataFrame(figures[0].table).filter(pl.col("line") == "most")["jobs"].max() == max(counts.values()) > 1


def test_a_solve_without_events_has_nothing_to_draw() -> None:
    _, solution = solved("data-placement")
    with pytest.raises(UsageError, match="nothing to draw"):
        mast_opt.plot_search(replace(solution, events=()))


@pytest.mark.parametrize(("suffix", "begin"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".json", b"[")])
def test_a_figure_is_saved_whole(suffix: str, begin: bytes, tmp_path: Path) -> None:
    problem, solution = solved("data-placement")
    figure = mast_opt.plot_plan(problem, solution.plan)[0]
    target = tmp_path / f"chart{suffix}"
    figure.save(target)
    assert target.read_bytes().startswith(begin)
    with pytest.raises(InputError, match="chart"):
        figure.save(target)
    figure.save(target, force=True)
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.json"):
        figure.save(tmp_path / "chart.bmp")
