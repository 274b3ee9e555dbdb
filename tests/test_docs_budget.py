"""Pages of the documentation stay short, and all of them together do not grow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = ("benchmarks/results.md", "benchmarks/results/", "importers.md", "policies-reference.md", "tables.md")
"""Pages that a command writes from results or from the code."""
PAGE = 1_500
"""Most words of a page, tables included that no command writes."""
ARGUED = {
    "problems/data-placement.md": (
        1_600,
        "states every table and row of the problem; test_problem_pages compares them",
    ),
}
"""Page → the most words that it may have instead, and why."""
SLACK = 1.005
"""How much the pages may grow by small changes before a budget is raised."""
PROSE = 64_800
"""Most words of all pages outside tables; a commit that raises it says for which pages."""
ALL = 80_000
"""Most words of all pages, tables included that no command writes; likewise."""


def lines(text: str) -> Iterator[str]:
    """The lines that a reader reads: no code (fenced or indented), no comments, no tables that a command writes."""
    fence = ""
    for line in re.sub(r"(?s)<!-- table: .*?<!-- end -->", "", text).splitlines():
        stripped = line.strip()
        found = re.match(r"`{3,}|~{3,}", stripped)
        if fence:
            fence = "" if stripped.startswith(fence) and not stripped.strip("`~") else fence
        elif found:
            fence = found[0]
        elif not stripped.startswith("<!--") and not re.match(r" {4}(?! *[-*\d|])", line):
            yield stripped


def words(text: str, *, tables: bool) -> int:
    """The number of words: everything between blanks that has a letter or a digit."""
    return sum(
        bool(re.search(r"\w", word)) for line in lines(text) if tables or line[:1] != "|" for word in line.split()
    )


def pages() -> dict[str, str]:
    found = {file.relative_to(DOCS).as_posix(): file.read_text(encoding="utf-8") for file in DOCS.rglob("*.md")}
    return {name: text for name, text in found.items() if not name.startswith(GENERATED)}


def test_pages_are_short() -> None:
    most = {name: limit for name, (limit, _) in ARGUED.items()}
    found = {name: words(text, tables=True) for name, text in pages().items()}
    assert {name: count for name, count in found.items() if count > most.get(name, PAGE)} == {}
    assert {name for name in ARGUED if found.get(name, 0) < PAGE - 100} == set(), "no exception is needed any more"


@pytest.mark.parametrize(("tables", "most"), [(False, PROSE), (True, ALL)])
def test_all_pages_together_do_not_grow(tables: bool, most: int) -> None:
    total = sum(words(text, tables=tables) for text in pages().values())
    assert total <= most * SLACK, f"{total:,} words: say what a new page replaces, or shorten another"


def test_words_are_counted_outside_code_and_generated_tables() -> None:
    table = "| one | 2 |\n|---|\n<!-- table: t -->\n| a |\n<!-- end -->\n"
    page = f"# A title\n\n```sh\nnot counted\n```\n{table}three – here\n"
    assert words(page, tables=True) == 2 + 2 + 2
    assert words(page, tables=False) == 2 + 2
