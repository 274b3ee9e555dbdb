"""A section of a report as a table in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mast_opt.kind import Form, Section
from mast_opt.report.numbers import UNKNOWN, amounts, percent

TOP_ROWS = 12
"""Rows of a long table that are shown unless all are asked for."""

_HEAT = ((1.2, "bold red"), (1.0, "red"), (0.9, "yellow"), (0.0, "green"))
"""Demand over supply, from which value on, and its colour."""
_FILL = ((1.0, "bold red"), (0.95, "yellow"), (0.0, ""))

Cell = str | float | int | None


def show_section(console: Console, section: Section, rows: int | None = TOP_ROWS) -> None:
    """Print a section with its first ``rows`` rows (None: all), numbers aligned and ratios in colours of heat."""
    console.print()
    console.print(section.title, style="bold")
    if section.note:
        console.print(section.note, style="dim")
    if not section.rows:
        return
    # A table that is one row too long is shown in full: the line that says so would take the same room.
    shown = len(section.rows) if rows is None or len(section.rows) <= rows + 1 else rows
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = []
    for position, head in enumerate(section.heads):
        is_text = head.form is Form.TEXT
        table.add_column(head.title, justify="left" if is_text else "right", no_wrap=False, overflow="ellipsis")
        columns.append(_column([row[position] for row in section.rows[:shown]], head.form))
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    console.print(table)
    if shown < len(section.rows):
        console.print(f"… and {len(section.rows) - shown:,} more (--full shows all)", style="dim")


def _column(values: list[Cell], form: Form) -> list[Text]:
    if form is Form.TEXT:
        return [Text(UNKNOWN if value is None else str(value)) for value in values]
    numbers = [None if value is None else float(value) for value in values]
    if form is Form.RATIO:
        return [Text(UNKNOWN if number is None else f"{number:.2f}", style=_style(number, _HEAT)) for number in numbers]
    if form is Form.FILL:
        return [Text(percent(number, 1), style=_style(number, _FILL)) for number in numbers]
    if form is Form.COUNT:
        return [Text(UNKNOWN if number is None else f"{number:,.0f}") for number in numbers]
    return [Text(text) for text in amounts(numbers)]


def _style(number: float | None, steps: tuple[tuple[float, str], ...]) -> str:
    if number is None:
        return "dim"
    return next((style for least, style in steps if number > least), "")
