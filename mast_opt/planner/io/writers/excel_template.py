"""An Excel workbook to fill in: columns explained, cells checked while typing, and a few rows to copy."""

import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.utility import xl_col_to_name
from xlsxwriter.worksheet import Worksheet

from mast_opt.planner.io.writers.excel import flat
from mast_opt.problems.kind.header import Rule
from mast_opt.problems.kind.schema import Axis, Column, ColumnType, Schema, Table

LAST_ROW = 1000
"""Excel checks what is typed down to this row."""
MOST_OFFERED = 40
"""Different names that a drop-down list offers for an axis without a sheet of its own."""
_FIRST_LIST = 4
"""Column of the sheet ``instance`` in which the lists begin, right of what is read there."""
_DARK, _LIGHT, _GREY = "#1f4e79", "#ddebf7", "#7f7f7f"
_WIDEST = 40


class _Book:
    """A workbook and its formats."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.offered = [axis for axis in schema.axes if axis.offered is not None]
        self.content = io.BytesIO()
        self.book = xlsxwriter.Workbook(self.content)
        head = {"bold": True, "border": 1, "border_color": "#ffffff", "text_wrap": False}
        self.required: Format = self.book.add_format({**head, "bg_color": _DARK, "font_color": "#ffffff"})
        self.optional: Format = self.book.add_format({**head, "bg_color": _LIGHT})
        self.soft: Format = self.book.add_format({"italic": True, "font_color": _GREY})

    def header(
        self,
        fields: Mapping[str, Any],
        rules: Sequence[Rule],
        limits: Collection[str],
        example: Mapping[str, Sequence[Sequence[Any]]],
    ) -> None:
        """The sheet ``instance`` of a workbook to fill in: keys, values, and next to them what they mean (which no
        reader reads).
        """
        sheet = self.book.add_worksheet("instance")
        sheet.write_row(0, 0, ("key", "value"), self.required)
        by_key = {f"rules.{rule.name}": rule for rule in rules}
        last = 0
        for row, (key, value) in enumerate(flat(fields, ""), start=1):
            sheet.write(row, 0, key)
            sheet.write(row, 1, value)
            if key in by_key:
                rule = by_key[key]
                allowed = " or ".join(rule.choices) if rule.choices else "a number above 0"
                sheet.write(row, 2, f"{rule.help} ({allowed})", self.soft)
                if rule.choices:
                    sheet.data_validation(row, 1, row, 1, {"validate": "list", "source": list(rule.choices)})
            elif key.startswith("objective.weights."):
                sheet.write(row, 2, "weight of this term in the objective", self.soft)
                sheet.data_validation(row, 1, row, 1, _at_least(0.0))
            elif key == "objective.mode":
                sheet.data_validation(row, 1, row, 1, {"validate": "list", "source": ["weighted", "lexicographic"]})
                sheet.write(
                    row, 2, "lexicographic: add a row objective.order with the terms, the first one first", self.soft
                )
            elif key in ("format", "kind"):
                sheet.write(row, 2, "leave as it is", self.soft)
            last = row
        if limits:
            words = f"hard limits on the whole plan: add rows limits.NAME with a number; NAME: {', '.join(limits)}"
            sheet.write(last + 1, 2, words, self.soft)
        sheet.set_column(0, 0, 30)
        sheet.set_column(1, 1, 22)
        sheet.set_column(2, 2, 80)
        for at, axis in enumerate(self.offered):
            self._list(sheet, _FIRST_LIST + at, axis, example)
        sheet.freeze_panes(1, 0)

    def _list(self, sheet: Worksheet, at: int, axis: Axis, example: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        """A column of formulas: every name of the axis once, in the order in which its table mentions them."""
        table = self.schema.table(axis.offered or "")
        there = next(n for n, column in enumerate(table.columns) if column.axis == axis.name)
        named = (row[there] for row in example.get(table.name, ()))
        names = list(dict.fromkeys(name for name in named if name is not None))
        source, letter = _cells(table.name, there), xl_col_to_name(at)
        sheet.write_string(0, at, f"names of {axis.name}, from {table.name}", self.soft)
        for row in range(1, MOST_OFFERED + 1):
            new = f'(COUNTIF(${letter}$1:{letter}{row},{source})+({source}=""))'
            formula = f'{{=IFERROR(INDEX({source},MATCH(0,{new},0)),"")}}'
            value = names[row - 1] if row <= len(names) else ""
            sheet.write_array_formula(row, at, row, at, formula, self.soft, value)
        sheet.set_column(at, at, 30)

    def table(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        """Write a table's sheet to fill in, with its head, its checks and its example rows."""
        sheet = self.book.add_worksheet(table.name)
        sheet.set_tab_color(_DARK if table.required else _LIGHT)
        for at, column in enumerate(table.columns):
            sheet.write_string(0, at, column.name, self.required if column.required else self.optional)
            words = _words(table, column)
            if at == 0:
                words = f"{_about(table)}\n\n{words}"
            sheet.write_comment(0, at, words, {"x_scale": 2.4, "y_scale": 1.2 + words.count("\n") / 4})
            check = self._check(table, at, column)
            if check is not None:
                sheet.data_validation(1, at, LAST_ROW, at, check)
            cells = [len(str(row[at])) for row in rows if row[at] is not None]
            sheet.set_column(at, at, min(_WIDEST, max([len(column.name), 10, *cells]) + 3))
        for row, cells_of_row in enumerate(rows, start=1):
            _write(sheet, row, cells_of_row)
        sheet.freeze_panes(1, 0)

    def _check(self, table: Table, at: int, column: Column) -> dict[str, Any] | None:
        """Data validation of the column in Excel; None where anything goes."""
        if column.type is ColumnType.BOOLEAN:
            return _listed(["TRUE", "FALSE"])
        if column.type is ColumnType.CHOICE:
            return _listed(list(column.choices))
        if column.type is ColumnType.INTEGER:
            return {**_at_least(column.minimum), "validate": "integer"}
        if column.type in (ColumnType.QUANTITY, ColumnType.REAL):
            least = column.minimum / column.scale
            if column.maximum is None:
                return _at_least(least)
            most = column.maximum / column.scale
            message = f"a number from {least:g} to {most:g}"
            return {
                "validate": "decimal",
                "criteria": "between",
                "minimum": least,
                "maximum": most,
                **_on_error(message),
            }
        return self._reference(table, at, column)

    def _reference(self, table: Table, at: int, column: Column) -> dict[str, Any] | None:
        """A name of another sheet, or of its own, where it has to be the only one."""
        home = next((axis.table for axis in self.schema.axes if axis.name == column.axis), None)
        if home is None:
            return self._offer(table, column)
        key = self.schema.table(home).key[0]
        there = [one.name for one in self.schema.table(home).columns].index(key)
        letter = xl_col_to_name(there)
        if home == table.name and column.name == key:
            first = f"{letter}2"
            rule = f"=COUNTIF(${letter}$2:${letter}${LAST_ROW + 1},{first})=1"
            return {"validate": "custom", "value": rule, **_on_error(f"a {column.name} that is not in the list yet")}
        return {"validate": "list", "source": f"={_cells(home, there)}", **_on_error(f"a name from the sheet {home}")}

    def _offer(self, table: Table, column: Column) -> dict[str, Any] | None:
        """A list of the names that another table mentions; a different one is possible, after a question."""
        at = next((n for n, axis in enumerate(self.offered) if axis.name == column.axis), None)
        if at is None or self.offered[at].offered == table.name:
            return None
        letter = xl_col_to_name(_FIRST_LIST + at)
        names = f"instance!${letter}$2:${letter}${MOST_OFFERED + 1}"
        source = f"=OFFSET(instance!${letter}$2,0,0,MAX(1,SUMPRODUCT(--(LEN({names})>0))),1)"
        words = f"No row of the sheet {self.offered[at].offered} has this {column.name}. Keep it?"
        settings = {"error_title": "Is it spelt right?", "error_message": words, "error_type": "warning"}
        return {"validate": "list", "source": source, **settings}


def write_template(
    path: Path,
    schema: Schema,
    fields: Mapping[str, Any],
    rules: Sequence[Rule],
    limits: Collection[str],
    example: Mapping[str, Sequence[Sequence[Any]]],
) -> None:
    """The workbook. ``example``: table → rows in the order of the columns, None for an empty cell."""
    book = _Book(schema)
    book.header(fields, rules, limits, example)
    for table in schema.tables:
        book.table(table, example.get(table.name, ()))
    book.book.close()
    path.write_bytes(book.content.getbuffer())


def _cells(sheet: str, at: int) -> str:
    """The cells of a column in which rows may be typed."""
    letter = xl_col_to_name(at)
    return f"{sheet}!${letter}$2:${letter}${LAST_ROW + 1}"


def _about(table: Table) -> str:
    """Description of a table in the workbook to fill in, and whether its sheet is needed."""
    more = "" if table.required else " Optional: delete the sheet where you do not need it."
    return f"{table.name}: {table.help}.{more}"


def _words(table: Table, column: Column) -> str:
    """Comment of a column: its meaning, the values that it takes, and what an empty cell stands for."""
    words = [column.help] if column.help else []
    if column.type is ColumnType.LABEL:
        words.append("a name")
    elif column.type is ColumnType.CHOICE:
        words.append(f"one of: {', '.join(column.choices)}")
    else:
        words.append(column.type.value)
    if column.required:
        words.append("required")
    elif column.default is None:
        words.append("may be empty")
    else:
        words.append(f"empty = {_default(column)}")
    return f"{column.name}\n" + "\n".join(words)


def _default(column: Column) -> str:
    """Default of a column as the workbook to fill in shows it."""
    if column.type is ColumnType.CHOICE:
        return column.choices[int(column.default or 0)]
    if column.type in (ColumnType.QUANTITY, ColumnType.REAL):
        return f"{(column.default or 0) / column.scale:g}"
    return str(column.default).lower()


def _listed(names: list[str]) -> dict[str, Any]:
    """Data validation in Excel: one of these names."""
    return {"validate": "list", "source": names, **_on_error(f"one of: {', '.join(names)}")}


def _at_least(least: float) -> dict[str, Any]:
    """Data validation in Excel: a number of at least this."""
    return {"validate": "decimal", "criteria": ">=", "value": least, **_on_error(f"a number of at least {least:g}")}


def _on_error(expected: str) -> dict[str, str]:
    """Message of Excel where a cell is not as expected."""
    return {"error_title": "Invalid value", "error_message": f"Expected {expected}."}


def _write(sheet: Worksheet, row: int, cells: Sequence[Any]) -> None:
    """Write cells into a row of the workbook to fill in."""
    for at, cell in enumerate(cells):
        if isinstance(cell, bool):
            sheet.write_boolean(row, at, cell)
        elif isinstance(cell, str):
            sheet.write_string(row, at, cell)
        elif cell is not None:
            sheet.write_number(row, at, cell)
