"""Presentation data of a plan: labelled data that a problem picks and the report draws.

Every chart is also a table, so every figure in it is what the verifier's half of the problem computes.
"""

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from mast_opt.core.arrays import IntArray

Values = tuple[float | None, ...]
"""None where there is nothing: a region without GPUs of that type."""


class Scale(enum.Enum):
    """Scale of the numbers of a chart."""

    RATIO = "demand over supply; above 1 is too much"
    FILL = "the used share of something that cannot be exceeded"
    AMOUNT = "a quantity, in the chart's unit"


@dataclass(frozen=True)
class HeatMap:
    """Cells over two axes, as they are and as they become."""

    title: str
    row_name: str
    column_name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    before: tuple[Values, ...] | None
    """A tuple of values a row; None where the instance gives no present state."""
    after: tuple[Values, ...]
    scale: Scale = Scale.RATIO
    note: str = ""
    after_name: str = "after"
    """Name of ``after`` in the chart."""


@dataclass(frozen=True)
class Bars:
    """Groups of bars: one group a category, one bar a series."""

    title: str
    category_name: str
    categories: tuple[str, ...]
    series: tuple[tuple[str, Values], ...]
    """(name, a value a category)"""
    unit: str = ""
    scale: Scale = Scale.AMOUNT
    note: str = ""


@dataclass(frozen=True)
class Flows:
    """Amounts from here to there."""

    title: str
    source_name: str
    target_name: str
    flows: tuple[tuple[str, str, float], ...]
    """(from, to, amount), each pair once."""
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Lines:
    """Values over a number, held until the next point."""

    title: str
    x_name: str
    y_name: str
    lines: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    """(name, points (x, y) by ascending x)"""
    note: str = ""
    from_zero: bool = False
    """Whether the upright axis begins at 0."""


@dataclass(frozen=True)
class Spans:
    """Gantt chart of when each of several things is done."""

    title: str
    row_name: str
    unit: str
    """Unit of the time: "day"."""
    rows: tuple[tuple[str, tuple[tuple[float, float, str, str], ...]], ...]
    """(name, (begin, end, words, sort) by begin), the first to begin first; each sort has a colour of its own."""
    note: str = ""
    first: date | None = None
    """Date of day 0; None where days are only counted."""

    @property
    def sorts(self) -> tuple[str, ...]:
        """Every sort of a chart's spans, in the order of the legend."""
        return tuple(sorted({sort for _, spans in self.rows for *_, sort in spans}))


Chart = HeatMap | Bars | Flows | Lines | Spans


def grid(values: Sequence[Sequence[float | None]]) -> tuple[Values, ...]:
    """Rows of a heat map's values, made immutable."""
    return tuple(tuple(None if value is None else float(value) for value in row) for row in values)


def ratios(part: IntArray, whole: IntArray) -> tuple[Values, ...]:
    """Heat map of ratios, cell by cell, the part that is of the whole; None where the whole is 0."""
    return grid([[a / b if b else None for a, b in zip(x, y)] for x, y in zip(part.tolist(), whole.tolist())])


Cell = str | float | int | None


class Form(enum.Enum):
    """Form of the cells of a section's column, which says how a report shows them."""

    TEXT = "text"
    COUNT = "a number of things"
    AMOUNT = "a quantity, in the unit of the column's title"
    GPUS = "a number of GPUs, which people see whole"
    FIGURE = "a figure of its row's own kind, with digits of its own"
    RATIO = "demand over supply; above 1 is too much"
    FILL = "the used share of something that cannot be exceeded"

    def heads(self, *titles: str) -> "tuple[Head, ...]":
        """Heads of a section's columns whose cells have this form."""
        return tuple(Head(title, self) for title in titles)


@dataclass(frozen=True)
class Head:
    """The head of a section's column."""

    title: str
    form: Form = Form.TEXT
    marks: tuple[float, ...] = (1.0,)
    """Values of a ratio that it must not seem to have by rounding: limits."""
    numeric: bool = False
    """Whether texts that are numbers, such as "4,808,140" or "33.3%", are numbers in a workbook."""


@dataclass(frozen=True)
class Answer:
    """The answer to a question that is asked first of a plan."""

    topic: str
    """"Overload", "Cost"."""
    value: str
    """Value with its unit; before and after where both are known."""
    detail: str
    """One sentence."""
    more: str = ""
    """Title of the chart or table that shows it; empty for none."""


@dataclass(frozen=True)
class Section:
    """A table for people; what matters most comes first, so that a report may cut it."""

    title: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """One sentence that says what to remember."""
    leads: bool = False
    """Whether a terminal shows it above the terms of the objective."""


def listed(
    title: str, rows: Iterable[Any], *columns: tuple[str, Form, Callable[[Any], Cell]], note: str = ""
) -> Section:
    """A section with a row for each of ``rows``; each column has title, form, and function from row to cell."""
    heads = tuple(Head(name, form) for name, form, _ in columns)
    return Section(title, heads, tuple(tuple(cell(row) for *_, cell in columns) for row in rows), note)
