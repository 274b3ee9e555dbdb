"""One Excel workbook: a sheet for the header (rows of key and value), and one a table."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import python_calamine as calamine

from mast_opt.core.limits import MOST_DOCUMENT_BYTES
from mast_opt.planner.io.faults import Faults, shortened
from mast_opt.planner.io.raw_table import RawTable, is_note, raw_table
from mast_opt.planner.io.readers.archive import TooLarge, check_archive, check_sheet
from mast_opt.planner.io.readers.base import Untyped, read_bytes
from mast_opt.planner.io.readers.formulas import HeldCells, Place, cell_name, held_cells

Cell = Any
"""Types that calamine makes of a cell: str (empty for an empty cell), float, bool, or a date."""

Failed = dict[Place, tuple[str, str, str]]
"""Cell → what is there, what was expected, and more about it."""
_UNCOMPUTED = "a formula with its value in the file; open and save the workbook once in Excel or LibreOffice"


class ExcelSource:
    """Rows without any content are skipped, and faults name rows by the numbers that Excel shows."""

    format = "xlsx"

    def __init__(self, path: Path, stem: str, faults: Faults) -> None:
        self.path = path
        self.header_file = self.file(stem)
        self._stem = stem
        self._faults = faults
        self._book: calamine.CalamineWorkbook | None = None
        self._held: dict[str, HeldCells] = {}
        data = read_bytes(path, path.name, faults, most=MOST_DOCUMENT_BYTES)
        if data is None:
            return
        try:
            check_workbook(data)
            self._book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
            self._held.update(held_cells(data))
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
        found = self._rows(self._stem)
        if found is None:
            return None
        rows, failed = found
        self._faults_of(self.header_file, {place: why for place, why in failed.items() if place[1] < 2}, {})
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
        """Names of all sheets of the workbook."""
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
        found = self._rows(name)
        if found is None:
            return None
        rows, failed = found
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
        failed |= {place: why for place, why in self._merged(name) if place[0] in filled}
        failed = {place: why for place, why in failed.items() if place[1] in read or place[1] >= len(heads)}
        self._faults_of(file, failed, dict(enumerate(heads)))
        numbers_in_sheet = np.array(list(filled), np.int64)
        names = [heads[position] for position in read]
        return raw_table(file, names, columns, self._faults, numbers_in_sheet, partial=bool(failed))

    def _rows(self, name: str) -> tuple[list[list[Cell]], Failed] | None:
        """The cells of a sheet, and those that hold something which is not known; None, with a fault, for no sheet."""
        assert self._book is not None
        try:
            rows = self._book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        except calamine.CalamineError as error:
            self._faults.add(self.file(name), f"a sheet that can be read ({shortened(str(error))})")
            return None
        held = self._held.get(name, HeldCells())
        failed = dict.fromkeys(held.errors, ("an Excel error", "a value (the formula in this cell fails)", ""))
        for (row, column), formula in held.formulas.items():
            failed[row, column] = (f"={formula}", _UNCOMPUTED, f" (cell {cell_name((row, column))})")
            if row <= len(rows) and column < len(rows[row - 1]):
                rows[row - 1][column] = ""
        return rows, failed

    def _merged(self, name: str) -> Iterator[tuple[Place, tuple[str, str, str]]]:
        """Cells of a workbook below the heads that show the value of another one."""
        for (top, left), (bottom, right) in self._held.get(name, HeldCells()).merged:
            place = f"{cell_name((top, left))}:{cell_name((bottom, right))}"
            for row in range(max(top, 2), bottom + 1):
                for column in range(left, right + 1):
                    if (row, column) != (top, left):
                        yield (row, column), ("", "a value of its own in each cell", f" ({place} are merged)")

    def _faults_of(self, file: str, failed: Failed, heads: Mapping[int, str]) -> None:
        """One fault for each cell, by column."""
        for column, expected in sorted({(place[1], why[1]) for place, why in failed.items()}):
            cells = [
                (place[0], why) for place, why in sorted(failed.items()) if (place[1], why[1]) == (column, expected)
            ]
            rows = np.array([row for row, _ in cells], np.int64)
            values, details = ([why[part] for _, why in cells] for part in (0, 2))
            self._faults.cells(file, heads.get(column), rows, values.__getitem__, expected, details.__getitem__)


def check_workbook(data: bytes) -> None:
    """Raises TooLarge for a workbook that would take far more memory than its size suggests."""
    check_archive(data, MOST_DOCUMENT_BYTES)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            check_sheet(entry.filename, archive.read(entry))


def _blank(row: Sequence[Cell]) -> bool:
    """Whether a row of a workbook is empty."""
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
"""Exceptions that a damaged archive makes the standard library raise."""
