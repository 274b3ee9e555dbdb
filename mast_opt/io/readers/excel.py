"""One Excel workbook: a sheet for the header (rows of key and value), and one a table."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import python_calamine as calamine

from mast_opt.core.limits import MOST_DOCUMENT_BYTES
from mast_opt.io.faults import Faults, shortened
from mast_opt.io.raw_table import RawTable, is_note, raw_table
from mast_opt.io.readers.archive import TooLarge, check_archive, check_sheet, column_number
from mast_opt.io.readers.base import Untyped, read_bytes

Cell = Any
"""What calamine makes of a cell: str (empty for an empty cell), float, bool, or a date."""


class ExcelSource:
    """Rows without any content are skipped, and faults name rows by the numbers that Excel shows."""

    format = "xlsx"

    def __init__(self, path: Path, stem: str, faults: Faults) -> None:
        self.path = path
        self.header_file = self.file(stem)
        self._stem = stem
        self._faults = faults
        self._book: calamine.CalamineWorkbook | None = None
        self._errors: dict[str, list[tuple[int, int]]] = {}
        data = read_bytes(path, path.name, faults, most=MOST_DOCUMENT_BYTES)
        if data is None:
            return
        try:
            check_workbook(data)
            self._book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
            self._errors = error_cells(data)
        except TooLarge as error:
            faults.add(path.name, f"a workbook without hidden size ({shortened(str(error), 200)})")
        except (calamine.CalamineError, *_DAMAGE) as error:
            faults.add(path.name, f"a complete .xlsx workbook without a password ({shortened(str(error))})")
            self._book = None

    def header(self) -> Mapping[str, Any] | None:
        """Keys and values of the header's sheet; None, with a fault, where it cannot be read."""
        if self._book is None:
            return None
        if self._stem not in self._book.sheet_names:
            expected = f"a sheet {self._stem!r} with keys and values; it says what kind of tables these are"
            self._faults.add(self.path.name, expected)
            return None
        rows = self._rows(self._stem)
        if rows is None:
            return None
        header: dict[str, Any] = {}
        for number, row in enumerate(rows, start=1):
            key, value = (cell_text(cell).strip() for cell in (*row, "", "")[:2])
            if key and not (number == 1 and key == "key"):
                self._enter(header, key, value, number)
        return header

    def _enter(self, header: dict[str, Any], key: str, value: str, number: int) -> None:
        """``objective.weights.peak`` goes into the mapping ``weights`` of the mapping ``objective``."""
        *outer, last = key.split(".")
        inner = header
        for part in outer:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                self._faults.add(self.header_file, "a key that is not part of another", number, value=key)
                return
        if last in inner:
            self._faults.add(self.header_file, "each key only once", number, value=key)
        elif value:
            inner[last] = Untyped(value)

    def sheets(self) -> frozenset[str]:
        """Names of all sheets."""
        return frozenset(() if self._book is None else self._book.sheet_names)

    def tables(self) -> Mapping[str, str]:
        """Table → how faults name it; every worksheet but the header's."""
        if self._book is None:
            return {}
        sheets = [sheet.name for sheet in self._book.sheets_metadata if sheet.typ == calamine.SheetTypeEnum.WorkSheet]
        return {name: self.file(name) for name in sheets if name != self._stem}

    def file(self, table: str) -> str:
        """How faults name a table: the file and the sheet."""
        return f"{self.path.name}: {table}"

    def table(self, name: str) -> RawTable | None:
        """The cells of a sheet as texts; None, with a fault, where it cannot be read."""
        file = self.file(name)
        rows = self._rows(name)
        if rows is None:
            return None
        if not rows or _blank(rows[0]):
            self._faults.add(file, "a first row with the names of the columns")
            return None
        heads = [cell_text(cell) for cell in rows[0]]
        read = [position for position, head in enumerate(heads) if not is_note(head)]
        filled = {
            number: row
            for number, row in enumerate(rows[1:], start=2)
            if not _blank([row[position] for position in read])
        }
        columns = [
            pl.Series(str(position), [cell_text(row[position]) for row in filled.values()], pl.String)
            for position in read
        ]
        failed = np.array(sorted(self._errors.get(name, [])), np.int64).reshape(-1, 2)
        failed = failed[np.isin(failed[:, 1], read)]
        for column in np.unique(failed[:, 1]).tolist():
            numbers = failed[failed[:, 1] == column, 0]
            expected = "a value (the formula in this cell fails)"
            self._faults.cells(file, heads[column], numbers, lambda n: "an Excel error", expected)
        numbers_in_sheet = np.array(list(filled), np.int64)
        names = [heads[position] for position in read]
        return raw_table(file, names, columns, self._faults, numbers_in_sheet, partial=bool(len(failed)))

    def _rows(self, name: str) -> list[list[Cell]] | None:
        assert self._book is not None
        try:
            return self._book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        except calamine.CalamineError as error:
            self._faults.add(self.file(name), f"a sheet that can be read ({shortened(str(error))})")
            return None


def check_workbook(data: bytes) -> None:
    """Raises TooLarge for a workbook that would take far more memory than its size suggests."""
    check_archive(data, MOST_DOCUMENT_BYTES)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            check_sheet(entry.filename, archive.read(entry))


def _blank(row: Sequence[Cell]) -> bool:
    return all(cell == "" for cell in row)


def cell_text(cell: Cell) -> str:
    """The cell as it would be typed; a number in the 15 digits that Excel keeps, without a formula's rounding error."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e16 else f"{cell:.15g}"
    return str(cell)


_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ElementTree.ParseError,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    ValueError,
)
"""What a damaged archive makes the standard library raise."""
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_ERROR = re.compile(rb'<c(?=\s[^<>]*\bt="e")\s[^<>]*\br="([A-Z]+)([0-9]+)"')


def error_cells(data: bytes) -> dict[str, list[tuple[int, int]]]:
    """Sheet → cells with an error such as #DIV/0!, as (row of the sheet from 1, column from 0).

    The reader shows such cells as empty ones.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
        targets = {link.get("Id"): link.get("Target", "") for link in links}
        parts = set(archive.namelist())
        found: dict[str, list[tuple[int, int]]] = {}
        for sheet in book.iter(f"{_MAIN}sheet"):
            target = targets.get(sheet.get(f"{_REL}id"), "")
            part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            if part in parts:
                cells = _ERROR.findall(archive.read(part))
                found[sheet.get("name", "")] = [(int(row), column_number(letters)) for letters, row in cells]
    return found
