"""Summaries of objects: one line on a console, a table in a notebook."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape

from mast_opt.core.wording import shown

MOST_ROWS = 20
"""Rows of a table that a notebook shows; the rest are counted."""


@dataclass(frozen=True)
class Summary:
    """Summary of an object: what a person wants to know of it first."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """(name of a field, value as text), the most important first."""
    heads: tuple[str, ...] = ()
    """Titles of the table's columns."""
    rows: tuple[tuple[str, ...], ...] = ()
    """A table of details, for notebooks only."""

    def line(self) -> str:
        """Summary in one line: ``Solution(status=FEASIBLE, objective=18.46, gap=8.1%)``."""
        return f"{self.title}({', '.join(f'{name}={shown(value)}' for name, value in self.facts)})"

    def html(self) -> str:
        """Summary as tables in HTML, every text escaped."""
        pieces = [
            f"<strong>{_text(self.title)}</strong>",
            _table((), tuple((name.replace("_", " "), value) for name, value in self.facts)),
        ]
        if self.rows:
            pieces.append(_table(self.heads, self.rows[:MOST_ROWS]))
        if len(self.rows) > MOST_ROWS:
            pieces.append(f"<p>{len(self.rows) - MOST_ROWS:,} more rows</p>")
        return f"<div>{''.join(pieces)}</div>"


class Summarised(ABC):
    """An object that shows a summary of itself on consoles and in notebooks."""

    __slots__ = ()

    @abstractmethod
    def _summary(self) -> Summary:
        """Summary that this object shows."""

    def __repr__(self) -> str:
        return self._summary().line()

    def _repr_html_(self) -> str:
        """The summary as HTML, for Jupyter and others."""
        return self._summary().html()


def _table(heads: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> str:
    """Table of a summary in HTML."""
    head = "".join(f"<th>{_text(title)}</th>" for title in heads)
    lines = [f"<tr>{head}</tr>"] if heads else []
    lines += [f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"


def _text(text: str) -> str:
    """Text of a summary in HTML, escaped."""
    return escape(shown(text))
