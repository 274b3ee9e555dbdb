"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from mast_opt.core.number_format import percent, plain

DASH = "–"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def plain_or_dash(value: float | None) -> str:
    """A number as a cell of a table; a dash for None."""
    return DASH if value is None else plain(value)


def percent_or_dash(value: float | None) -> str:
    """A share as percents in a cell of a table; a dash for None."""
    return DASH if value is None else percent(value)
