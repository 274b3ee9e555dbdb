"""What the reports in the terminal are made of: light tables and sentences."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def light_table(title: str, heads: tuple[str, ...], text: tuple[str, ...] | None = None) -> Table:
    """A table without lines: text columns to the left (only the first, unless named), numbers to the right."""
    table = Table(title=title, title_style="bold", title_justify="left", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    left = heads[:1] if text is None else text
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", header_style="dim", overflow="fold")
    return table


def print_table(console: Console, table: Table) -> None:
    """The table after an empty line."""
    console.print()
    console.print(table)


def print_words(console: Console, words: str, style: str = "") -> None:
    """Sentences, wrapped between words in a terminal; indented lines (commands, to be copied) are left whole."""
    for line in words.splitlines():
        console.print(line, style=style, soft_wrap=line.startswith("  ") or not console.is_terminal)
