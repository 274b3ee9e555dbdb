"""Parts of the reports in the terminal: light tables and sentences."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table

LABEL, SHORT_LABEL = 24, 12
"""Characters that a label keeps on one line if there is room for no more, and where even that does not fit."""
GAP = 2
"""Blanks between the columns of a narrow table."""


def light_table(title: str, heads: tuple[str, ...], text: tuple[str, ...] | None = None) -> Table:
    """A table without lines: text columns to the left (only the first, unless named), numbers to the right."""
    table = Table(title=title, title_style="bold", title_justify="left", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    left = heads[:1] if text is None else text
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", header_style="dim", overflow="fold")
    return table


def print_table(console: Console, table: Table) -> None:
    """The table after an empty line, its heads broken between words where the terminal is narrow."""
    if Measurement.get(console, console.options.update(max_width=10_000), table).maximum > console.width:
        _narrow(table, console.width)
    console.print()
    console.print(table)


def _narrow(table: Table, width: int) -> None:
    """No number and no word of a head is broken; the columns that hold words share what is left."""
    table.padding = (0, GAP, 0, 0)
    for column in table.columns:
        column.header = str(column.header).replace("_", "_ ")
    least = [_least(column, LABEL) for column in table.columns]
    if sum(least) + GAP * (len(least) - 1) > width:
        least = [_least(column, SHORT_LABEL) for column in table.columns]
    for column, characters in zip(table.columns, least, strict=True):
        if column.justify == "right":
            column.width = characters
        else:
            column.min_width = characters


def _least(column: Column, label: int) -> int:
    """Characters that a column needs: its widest number and word of the head; labels fold after so many."""
    heads = max((cell_len(word) for word in str(column.header).split()), default=0)
    cells = [str(cell) for cell in column.cells]
    if column.justify == "right":
        return max(heads, *map(cell_len, cells), 1)
    return max(heads, min(label, _longest_word(cells)))


def _longest_word(cells: list[str]) -> int:
    return max((cell_len(word) for cell in cells for word in cell.split()), default=0)


def print_words(console: Console, words: str, style: str = "") -> None:
    """Sentences, wrapped between words in a terminal; indented lines (commands, to be copied) are left whole."""
    for line in words.splitlines():
        console.print(line, style=style, soft_wrap=line.startswith("  ") or not console.is_terminal)
