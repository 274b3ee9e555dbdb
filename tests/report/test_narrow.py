"""Tables in a narrow terminal: heads break between words, numbers never."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mast_opt.analysis.pareto import Frontier, Point
from mast_opt.report.analysis import _abreast, show_frontier
from mast_opt.report.parts import light_table, print_table


def printed(width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    table = light_table("", ("scenario", "objective", "moved_workloads", "storage_overhead"))
    table.add_row("the whole of the east is lost", "1,234.5", "1,000,000", "0.1234")
    print_table(console, table)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


def test_a_wide_terminal_keeps_heads_whole() -> None:
    assert any("moved_workloads" in line for line in printed(100))


def test_a_narrow_terminal_breaks_heads_between_words() -> None:
    lines = printed(56)
    assert max(map(len, lines)) <= 56
    words = " ".join(lines).split()
    for whole in ("scenario", "objective", "moved_", "workloads", "storage_", "overhead", "1,234.5", "1,000,000"):
        assert whole in words


@pytest.mark.parametrize("width", [10, 40, 200])
def test_scenarios_side_by_side_are_all_shown_once(width: int) -> None:
    heads = [f"scenario {at}" for at in range(12)]
    parts = _abreast(width, heads)
    assert [at for part in parts for at in part] == list(range(12))
    assert all(len(part) == 1 or len(part) * 11 <= width for part in parts)


def test_a_frontier_with_many_figures_is_several_tables() -> None:
    metrics = [f"figure_{at}" for at in range(9)]
    points = tuple(
        Point({"storage": 1.0 + at, "peak": 5.0 - at}, dict.fromkeys(metrics, 1000.5 + at), None, None, 2.0, at > 0)
        for at in range(2)
    )
    console = Console(file=io.StringIO(), width=80)
    show_frontier(console, "network", Frontier("data-placement", "highs", ("storage", "peak"), "epsilon", points, 0, 0))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("1,000.5") == text.count("1,001.5") == len(metrics)
    assert sum("storage" in line for line in text.splitlines()) > 2  # in the headline, and at the left of each table
