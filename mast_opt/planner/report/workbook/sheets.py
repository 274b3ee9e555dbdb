"""Sheets for people: sections and heat maps as formatted cells, on sheets that no reader of instances looks at."""

import re
from collections.abc import Iterable
from typing import Any

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from mast_opt.core.wording import UNKNOWN
from mast_opt.planner.io.writers.excel import MOST_ROWS
from mast_opt.problems.kind.presentation import Cell, Form, Head, HeatMap, Scale, Section

NOTE = "# "
"""How the name of such a sheet begins; readers ignore it."""
_LONGEST_NAME = 31
_FORBIDDEN = re.compile(r"[\[\]:*?/\\]")
_NUMBER = re.compile(r"(-?\d[\d,]*(?:\.(\d+))?)(%?)")
_WIDEST, _NARROWEST = 60, 9
_FORMATS = {
    Form.COUNT: "#,##0",
    Form.AMOUNT: "#,##0.###",
    Form.GPUS: "#,##0.###",
    Form.RATIO: "0.00",
    Form.FILL: "0.0%",
    Form.FIGURE: "General",
}
_HEAT = ((1.2, "#c0392b", "#ffffff"), (1.0, "#e6866a", "#000000"), (0.9, "#f5d76e", "#000000"))
"""Demand over supply: above which value, the colour of the cell and of its text; below all of them it is green."""
_COOL = "#c9e7cb"
_DARK, _GREY = "#1f4e79", "#6b6b6b"


class ReportBook:
    """A workbook that gets sheets for people, each with a title, a note and tables below one another.

    Rows are written from top to bottom, as a workbook in constant memory requires.
    """

    def __init__(self, book: xlsxwriter.Workbook) -> None:
        self.book = book
        self._names: set[str] = set()
        self._title: Format = book.add_format({"bold": True, "font_size": 14})
        self._note: Format = book.add_format({"italic": True, "font_color": _GREY})
        self._head: Format = book.add_format({"bold": True, "bg_color": _DARK, "font_color": "#ffffff"})
        self._right: Format = book.add_format(
            {"bold": True, "bg_color": _DARK, "font_color": "#ffffff", "align": "right"}
        )
        self._numbers: dict[Form, Format] = {
            form: book.add_format({"num_format": text}) for form, text in _FORMATS.items()
        }
        self._digits: dict[str, Format] = {}
        self._exact: Format = book.add_format({"num_format": "General", "align": "right"})
        self._heat = [(least, book.add_format({"bg_color": cell, "font_color": text})) for least, cell, text in _HEAT]
        self._cool: Format = book.add_format({"bg_color": _COOL})

    def name_of(self, title: str) -> str:
        """A free name of a sheet in the workbook of results that says what is on it."""
        plain = NOTE + _FORBIDDEN.sub(" ", title).strip("' ")
        name, number = plain[:_LONGEST_NAME].rstrip(), 2
        while name.lower() in self._names:
            suffix = f" {number}"
            name, number = plain[: _LONGEST_NAME - len(suffix)].rstrip() + suffix, number + 1
        self._names.add(name.lower())
        return name

    def add(self, title: str, parts: Iterable[Section | HeatMap]) -> str:
        """A sheet with these tables below one another; returns its name."""
        name = self.name_of(title)
        sheet = self.book.add_worksheet(name)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        widths: dict[int, int] = {}
        row = 0
        for number, part in enumerate(parts):
            row += 2 if number else 0
            row = self._heading(sheet, row, part.title, part.note)
            add = self._heat_map if isinstance(part, HeatMap) else self._section
            row = add(sheet, row, part, widths, alone=not number)  # type: ignore[arg-type]
        for column, width in widths.items():
            sheet.set_column(column, column, min(max(width + 2, _NARROWEST), _WIDEST))
        return name

    def _heading(self, sheet: Worksheet, row: int, title: str, note: str) -> int:
        """Write title and note of a section, and return the next row."""
        sheet.write_string(row, 0, title, self._title)
        if note:
            sheet.write_string(row + 1, 0, note, self._note)
        return row + 2 + bool(note)

    def _section(self, sheet: Worksheet, row: int, section: Section, widths: dict[int, int], *, alone: bool) -> int:
        """Write a section into a sheet, and return the next row."""
        first = row
        for column, head in enumerate(section.heads):
            sheet.write_string(row, column, head.title, self._head if head.form is Form.TEXT else self._right)
            widths[column] = max(widths.get(column, 0), len(head.title))
        shown = section.rows[: MOST_ROWS - row - 2]
        for cells in shown:
            row += 1
            for column, (head, cell) in enumerate(zip(section.heads, cells, strict=True)):
                self._cell(sheet, row, column, head, cell)
                widths[column] = max(widths.get(column, 0), _width(cell))
        if len(shown) < len(section.rows):
            row += 1
            sheet.write_string(row, 0, f"… and {len(section.rows) - len(shown):,} more", self._note)
        if shown and section.heads:
            for column, head in enumerate(section.heads):
                if head.form is Form.RATIO:
                    self._colour(sheet, first + 1, column, row, column)
            if alone:
                sheet.autofilter(first, 0, row, len(section.heads) - 1)
                sheet.freeze_panes(first + 1, 0)
        return row

    def _cell(self, sheet: Worksheet, row: int, column: int, head: Head, cell: Cell) -> None:
        """Write one cell of a section, by the form of its column."""
        if cell is None:
            return
        if isinstance(cell, str) and head.numeric and (number := _NUMBER.fullmatch(cell)):
            value = float(number[1].replace(",", "")) / (100 if number[3] else 1)
            sheet.write_number(row, column, value, self._as_written(len(number[2] or ""), number[3]))
        elif isinstance(cell, str):
            sheet.write_string(row, column, cell)
        elif head.form is Form.TEXT:
            sheet.write_number(row, column, cell, self._exact)
        elif cell != cell or cell in (float("inf"), float("-inf")):
            sheet.write_string(row, column, UNKNOWN if cell != cell else f"{cell}")
        else:
            sheet.write_number(row, column, cell, self._numbers[head.form])

    def _as_written(self, decimals: int, unit: str) -> Format:
        """The format that shows a number with its decimals, and in percent where that is its unit."""
        whole = "0" if unit else "#,##0"
        text = f"{whole}{'.' if decimals else ''}{'0' * decimals}{unit}"
        if text not in self._digits:
            self._digits[text] = self.book.add_format({"num_format": text})
        return self._digits[text]

    def _heat_map(self, sheet: Worksheet, row: int, chart: HeatMap, widths: dict[int, int], *, alone: bool) -> int:
        """The cells as a grid: as they become, then as they are."""
        form = {Scale.RATIO: Form.RATIO, Scale.FILL: Form.FILL, Scale.AMOUNT: Form.AMOUNT}[chart.scale]
        grids = [("after", chart.after)] + ([] if chart.before is None else [("before", chart.before)])
        for number, (words, values) in enumerate(grids):
            row += 2 if number else 0
            heads = (f"{words}: {chart.row_name}", *chart.columns)
            for column, head in enumerate(heads):
                sheet.write_string(row, column, head, self._right if column else self._head)
                widths[column] = max(widths.get(column, 0), len(head))
            first = row + 1
            for label, cells in zip(chart.rows, values, strict=True):
                row += 1
                sheet.write_string(row, 0, label)
                widths[0] = max(widths.get(0, 0), len(label))
                for column, cell in enumerate(cells, start=1):
                    self._cell(sheet, row, column, Head("", form), cell)
            if row >= first and chart.columns and chart.scale is not Scale.AMOUNT:
                self._colour(sheet, first, 1, row, len(chart.columns))
        return row

    def _colour(self, sheet: Worksheet, first_row: int, first: int, last_row: int, last: int) -> None:
        """Colour an area of a sheet in the workbook of results by its values."""
        area: tuple[Any, ...] = (first_row, first, last_row, last)
        sheet.conditional_format(*area, {"type": "blanks", "stop_if_true": True})
        for least, colours in self._heat:
            sheet.conditional_format(
                *area, {"type": "cell", "criteria": ">", "value": least, "format": colours, "stop_if_true": True}
            )
        sheet.conditional_format(
            *area, {"type": "cell", "criteria": ">=", "value": 0, "format": self._cool, "stop_if_true": True}
        )


def _width(cell: Cell) -> int:
    """Width of a cell in a workbook of results, in characters."""
    if cell is None:
        return 0
    return len(cell) if isinstance(cell, str) else len(f"{cell:,.2f}")
