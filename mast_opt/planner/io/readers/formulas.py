"""Cells of a workbook that hold something which the reader shows as empty: errors, formulas without a stored value.

A script writes a formula, but not what it gives: openpyxl stores nothing, XlsxWriter a 0, and both ask Excel to compute
when it opens the file. Such a cell is refused with its place.
"""

import io
import posixpath
import re
import zipfile
from dataclasses import dataclass, field
from xml.etree import ElementTree

from mast_opt.planner.io.readers.archive import TooLarge, column_number

Place = tuple[int, int]
"""A cell: row of the sheet from 1, column from 0."""

_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_OF_INTEREST = re.compile(rb"""<(?:[\w-]+:)?(?:f[\s/>]|mergeCell\s)|\st\s*=\s*["']e["']""")
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")
_MOST_CELLS = 1_000_000


@dataclass
class HeldCells:
    """The cells of one sheet that are not read as they stand."""

    errors: set[Place] = field(default_factory=set)
    formulas: dict[Place, str] = field(default_factory=dict)
    """Formulas without a stored value; empty text for part of an array formula."""
    merged: list[tuple[Place, Place]] = field(default_factory=list)
    """First and last cell of each merged range."""


def held_cells(data: bytes) -> dict[str, HeldCells]:
    """Sheet → its cells that are not read as they stand. Raises ParseError or KeyError for a damaged workbook."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
        targets = {link.get("Id"): link.get("Target", "") for link in links}
        stale = any(
            element.get("fullCalcOnLoad") in ("1", "true") for element in book.iter() if _tag(element) == "calcPr"
        )
        parts = set(archive.namelist())
        found: dict[str, HeldCells] = {}
        for sheet in (element for element in book.iter() if _tag(element) == "sheet"):
            target = next((targets.get(value, "") for name, value in sheet.items() if name.endswith("}id")), "")
            part = target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"xl/{target}")
            content = archive.read(part) if part in parts else b""
            found[sheet.get("name", "")] = _held(content, stale) if _OF_INTEREST.search(content) else HeldCells()
    return found


def _held(content: bytes, stale: bool) -> HeldCells:
    """Cells of a sheet that are not read as they stand. ``stale``: the workbook asks to be computed when it is opened,
    so that a 0 may stand for no value yet.
    """
    held, row, column, row_element = HeldCells(), 0, -1, None
    for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):
        tag = _tag(element)
        if event == "start" and tag == "row":
            row, column, row_element = int(element.get("r", row + 1)), -1, element
        elif event == "end" and tag == "c":
            at = _CELL.fullmatch(element.get("r", ""))
            row, column = (int(at[2]), _column(at[1])) if at else (row, column + 1)
            _enter(held, (row, column), element, stale)
        elif event == "end" and tag == "mergeCell":
            held.merged.append(_range(element.get("ref", "")))
        elif event == "end" and tag == "row" and row_element is not None:
            row_element.clear()
    return held


def _enter(held: HeldCells, place: Place, cell: ElementTree.Element, stale: bool) -> None:
    """Note a cell of a workbook that holds an error, or a formula without a stored value."""
    parts = {_tag(part): part for part in cell}
    formula, value = parts.get("f"), parts.get("v")
    text = (value.text or "") if value is not None else ""
    if cell.get("t") == "e":
        held.errors.add(place)
    elif formula is None or (value is not None and cell.get("t") == "str"):
        return  # an empty text is a value: ="" gives it
    elif not text or (stale and text == "0"):
        held.formulas[place] = formula.text or ""
        if formula.get("t") in ("array", "dataTable"):
            (top, left), (bottom, right) = _range(formula.get("ref", ""), place)
            if len(held.formulas) + (bottom - top + 1) * (right - left + 1) > _MOST_CELLS:
                raise TooLarge("its array formulas fill too many cells")
            spilled = {(row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)}
            held.formulas.update(dict.fromkeys(spilled, ""))


def _tag(element: ElementTree.Element) -> str:
    """Name of an element of a workbook's XML without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _column(letters: str) -> int:
    """Number of a spreadsheet's column from its letters in any case."""
    return column_number(letters.upper().encode())


def cell_name(place: Place) -> str:
    """The cell of a workbook as a spreadsheet calls it, such as D2."""
    letters, left = "", place[1] + 1
    while left:
        left, letter = divmod(left - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}{place[0]}"


def _range(text: str, otherwise: Place = (1, 0)) -> tuple[Place, Place]:
    """First and last cell of a workbook's range such as D2:D9 or of a single cell."""
    ends = [_CELL.fullmatch(end) for end in text.split(":")]
    places = [(int(end[2]), _column(end[1])) for end in ends if end] or [otherwise]
    return places[0], places[-1]
