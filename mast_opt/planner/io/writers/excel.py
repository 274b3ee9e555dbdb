"""One Excel workbook: a sheet ``instance`` with keys and values, then a sheet a table."""

import io
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import xlsxwriter
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.worksheet import Worksheet

from mast_opt.core.errors import UsageError
from mast_opt.planner.io.validation.frames import EXACT_DIGITS, digits, is_number, table_frames
from mast_opt.problems.kind.schema import ColumnType, Schema, Table, Tables

MOST_ROWS = 1_048_576
"""Rows of a sheet, the header among them."""
_LONGEST_TEXT = 32_767
"""Characters of a cell."""


def write_excel(path: Path, fields: Mapping[str, Any], schema: Schema, tables: Tables) -> None:
    """Write an instance as a workbook: a number that Excel would round is written as text, so that it reads back
    exactly.

    Raises UsageError for a table or a label that does not fit in a sheet.
    """
    frames = checked_frames(schema, tables)
    with new_workbook(path) as book:
        add_tables(book, "instance", fields, frames)


@contextmanager
def new_workbook(path: Path) -> Iterator[xlsxwriter.Workbook]:
    """A workbook to fill, rows of a sheet from top to bottom; it is in the file when the block ends."""
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as rows:
        book = xlsxwriter.Workbook(content, {"constant_memory": True, "tmpdir": rows})
        try:
            yield book
        finally:  # after an error too: it closes the files of the rows
            _close(book)
    path.write_bytes(content.getbuffer())


def _close(book: xlsxwriter.Workbook) -> None:
    """Close a workbook that is written. Raises OSError where its file cannot be made."""
    try:
        book.close()
    except FileCreateError as error:
        raise OSError(str(error)) from error


Frames = list[tuple[Table, pl.DataFrame]]


def checked_frames(schema: Schema, tables: Tables) -> Frames:
    """Each table with its frame. Raises UsageError for a table or a label that does not fit in a sheet."""
    frames = list(table_frames(schema, tables))
    for table, frame in frames:
        _refuse_oversized(table, frame)
    return frames


def add_tables(book: xlsxwriter.Workbook, stem: str, fields: Mapping[str, Any], frames: Frames) -> None:
    """Add a sheet for the header, called ``stem``, and one a table."""
    bold = book.add_format({"bold": True})
    _write_header(book.add_worksheet(stem), fields)
    for table, frame in frames:
        sheet = book.add_worksheet(table.name)
        for position, name in enumerate(frame.columns):
            sheet.write_string(0, position, name, bold)
        _fill(sheet, table, frame)


def _write_header(sheet: Worksheet, fields: Mapping[str, Any]) -> None:
    """Write the header of an instance into a sheet, as rows of key and value."""
    for row, (key, value) in enumerate([("key", "value"), *flat(fields, "")]):
        sheet.write_string(row, 0, key)
        if isinstance(value, str):
            if len(value) > _LONGEST_TEXT:
                raise UsageError(f"{key} has more than {_LONGEST_TEXT:,} characters, which no Excel cell holds")
            sheet.write_string(row, 1, value)
        elif float(f"{value:.{EXACT_DIGITS}g}") == value:
            sheet.write_number(row, 1, value)
        else:
            sheet.write_string(row, 1, repr(value))


def _refuse_oversized(table: Table, frame: pl.DataFrame) -> None:
    """Raises UsageError for a table with more rows or longer text than an Excel sheet holds."""
    if frame.height >= MOST_ROWS:
        raise UsageError(
            f"the table {table.name} has {frame.height:,} rows and an Excel sheet holds {MOST_ROWS - 1:,} below its "
            "header; write a folder of Parquet tables instead"
        )
    for name in frame.columns:
        if frame[name].dtype == pl.String and (frame[name].str.len_chars() > _LONGEST_TEXT).any():
            raise UsageError(
                f"the table {table.name} has a {name} of more than {_LONGEST_TEXT:,} characters, which no Excel cell "
                "holds; write a folder of tables instead"
            )


def flat(fields: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """Every value of a header with its key, the keys of what is nested joined by points, those of a list of tables
    numbered from 1.
    """
    for key, value in fields.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            value = {str(number): one for number, one in enumerate(value, start=1)}
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{key}.")
        elif isinstance(value, list):
            yield f"{path}{key}", ", ".join(map(str, value))
        elif value is not None:
            yield f"{path}{key}", str(value).lower() if isinstance(value, bool) else value


def _fill(sheet: Worksheet, table: Table, frame: pl.DataFrame) -> None:
    """Write the rows of a table into a sheet; a number that Excel would round is text."""
    cells = []
    for name in frame.columns:
        column = table.column(name)
        values = frame[name]
        if is_number(column):
            text = values.cast(pl.String)
            fits = (digits(text) <= EXACT_DIGITS).to_list()
            cells.append([float(cell) if fit and cell is not None else cell for cell, fit in zip(text.to_list(), fits)])
        else:
            cells.append(values.to_list())
    truth = [table.column(name).type is ColumnType.BOOLEAN for name in frame.columns]
    for row, values_of_row in enumerate(zip(*cells), start=1):
        for position, cell in enumerate(values_of_row):
            if cell is None:
                continue
            if truth[position]:
                sheet.write_boolean(row, position, cell)
            else:
                (sheet.write_number if isinstance(cell, float) else sheet.write_string)(row, position, cell)
