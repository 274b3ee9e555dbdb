"""Tables in a narrow terminal: heads break between words, numbers never."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mast_opt.report.analysis import _abreast
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
