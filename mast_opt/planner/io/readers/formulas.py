"""Cells of a workbook that hold something which the reader shows as empty: errors, formulas without a stored value.

A script writes a formula, but not what it gives: openpyxl stores nothing, XlsxWriter a 0, and both ask Excel to compute
when it opens the file. Simple arithmetic is computed here; whatever else such a cell holds is refused with its place.
"""

import io
import math
import operator
import posixpath
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from mast_opt.planner.io.readers.archive import TooLarge, column_number

Place = tuple[int, int]
"""A cell: row of the sheet from 1, column from 0."""
Value = float | str | bool

_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_OF_INTEREST = re.compile(rb"""<(?:[\w-]+:)?(?:f[\s/>]|mergeCell\s)|\st\s*=\s*["']e["']""")
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")
_MOST_STEPS = 1_000_000
_DEEPEST = 60


@dataclass
class HeldCells:
    """The cells of one sheet that are not read as they stand."""

    errors: set[Place] = field(default_factory=set)
    formulas: dict[Place, str] = field(default_factory=dict)
    """Formulas without a stored value; empty text for part of an array formula."""
    merged: list[tuple[Place, Place]] = field(default_factory=list)
    """First and last cell of each merged range."""


class NotComputed(Exception):
    """A formula that is not computed here; the message says why."""


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
            if len(held.formulas) + (bottom - top + 1) * (right - left + 1) > _MOST_STEPS:
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


_TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<text>"(?:[^"]|"")*")
    |(?P<function>[A-Za-z]+)(?=\()
    |(?:(?:'(?P<quoted>(?:[^']|'')+)'|(?P<sheet>[A-Za-z_]\w*))!)?
     (?P<first>\$?[A-Za-z]{1,3}\$?\d{1,7})(?::(?P<last>\$?[A-Za-z]{1,3}\$?\d{1,7}))?(?![\w.(!])
    |(?P<sign>[-+*/^%(),]))\s*""",
    re.VERBOSE,
)
_FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    "SUM": math.fsum,
    "MIN": lambda values: min(values, default=0.0),
    "MAX": lambda values: max(values, default=0.0),
}
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class Calculator:
    """Values of formulas over the cells of a workbook."""

    def __init__(self, held: Mapping[str, HeldCells], rows_of: Callable[[str], list[list[Any]]]) -> None:
        """``rows_of``: the cells of a sheet as its reader shows them."""
        self._held, self._rows_of = held, rows_of
        self._known: dict[tuple[str, Place], Value] = {}
        self._open: set[tuple[str, Place]] = set()
        self._steps = 0

    def value(self, sheet: str, place: Place) -> Value | None:
        """Value of a workbook's cell, None for an empty one. Raises NotComputed."""
        if sheet not in self._held:
            raise NotComputed(f"there is no sheet {sheet!r}")
        formula = self._held[sheet].formulas.get(place)
        if formula is None:
            return self._stored(sheet, place)
        if (sheet, place) not in self._known:
            if (sheet, place) in self._open or len(self._open) > _DEEPEST:
                raise NotComputed("it refers to itself, or over too many others")
            self._open.add((sheet, place))
            try:
                self._known[sheet, place] = _Expression(self, sheet, formula).result()
            except (ArithmeticError, ValueError):
                raise NotComputed("it gives no number") from None
            finally:
                self._open.remove((sheet, place))
        return self._known[sheet, place]

    def _stored(self, sheet: str, place: Place) -> Value | None:
        """Stored value of a workbook's cell, or the value of its formula."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise NotComputed("the formulas refer to too many cells")
        if place in self._held[sheet].errors:
            raise NotComputed("it refers to an error")
        rows = self._rows_of(sheet)
        row = rows[place[0] - 1] if place[0] <= len(rows) else []
        cell = row[place[1]] if place[1] < len(row) else ""
        if not isinstance(cell, str | float | bool):
            raise NotComputed("it refers to a date")
        return None if cell == "" else cell


class _Expression:
    """A formula, read from left to right with Excel's precedence: -2^2 is 4, and % comes first."""

    def __init__(self, calculator: Calculator, sheet: str, formula: str) -> None:
        self.calculator, self.sheet = calculator, sheet
        self.tokens: list[re.Match[str]] = []
        at = 0
        while at < len(formula):
            token = _TOKEN.match(formula, at)
            if token is None or len(self.tokens) > 1_000:
                raise NotComputed("it is more than arithmetic, SUM, MIN and MAX")
            self.tokens.append(token)
            at = token.end()
        self.tokens.reverse()

    def result(self) -> Value:
        """Value of a workbook's formula. Raises NotComputed, ArithmeticError or ValueError where there is none."""
        if len(self.tokens) == 1 and (self.tokens[0]["text"] or self.tokens[0]["first"]):
            [token] = self.tokens
            if token["text"]:
                return token["text"][1:-1].replace('""', '"')
            [cell] = self._cells(token)
            return 0.0 if cell is None else cell
        number = self._sum(0)
        if self.tokens or not math.isfinite(number):
            raise NotComputed("it is more than arithmetic, SUM, MIN and MAX" if self.tokens else "it gives no number")
        return number

    def _next(self, *signs: str) -> str:
        """The next sign of a workbook's formula, taken if it is one of these; else empty."""
        if self.tokens and self.tokens[-1]["sign"] in signs:
            return str(self.tokens.pop()["sign"])
        return ""

    def _sum(self, depth: int) -> float:
        """Value of a sum in a workbook's formula."""
        total = self._product(depth)
        while sign := self._next("+", "-"):
            total = _SIGNS[sign](total, self._product(depth))
        return total

    def _product(self, depth: int) -> float:
        """Value of a product in a workbook's formula."""
        product = self._power(depth)
        while sign := self._next("*", "/"):
            product = _SIGNS[sign](product, self._power(depth))
        return product

    def _power(self, depth: int) -> float:
        """Value of a power in a workbook's formula."""
        base = self._signed(depth)
        while self._next("^"):
            base = math.pow(base, self._signed(depth))
        return base

    def _signed(self, depth: int) -> float:
        """Value of an operand with its signs and percent signs in a workbook's formula."""
        negative = False
        while sign := self._next("+", "-"):
            negative ^= sign == "-"
        number = self._operand(depth)
        while self._next("%"):
            number /= 100
        return -number if negative else number

    def _operand(self, depth: int) -> float:
        """Value of a number, a cell, a function call or brackets in the formula."""
        if depth > _DEEPEST or not self.tokens:
            raise NotComputed("it is not complete, or nested too deeply")
        token = self.tokens.pop()
        if token["number"]:
            return float(token["number"])
        if token["first"]:
            [cell] = self._cells(token)
            return _number(cell)
        if token["function"]:
            return self._function(token["function"].upper(), depth)
        if token["sign"] == "(":
            number = self._sum(depth + 1)
            self._expect(")")
            return number
        raise NotComputed("it is more than arithmetic, SUM, MIN and MAX")

    def _function(self, name: str, depth: int) -> float:
        """Value of a function call in a workbook's formula."""
        if name not in _FUNCTIONS:
            raise NotComputed(f"{name} is not computed here")
        self._expect("(")
        values: list[float] = []
        while True:
            if self.tokens and self.tokens[-1]["last"]:
                values += [cell for cell in self._cells(self.tokens.pop()) if type(cell) is float]
            else:
                values.append(self._sum(depth + 1))
            if not self._next(","):
                break
        self._expect(")")
        return _FUNCTIONS[name](values)

    def _expect(self, sign: str) -> None:
        """Take a token of a workbook's formula that must come next. Raises NotComputed for another one."""
        if not self._next(sign):
            raise NotComputed(f"there should be a {sign}")

    def _cells(self, token: re.Match[str]) -> list[Value | None]:
        """Values of the cells that a reference in a workbook's formula names."""
        sheet = (token["quoted"] or "").replace("''", "'") or token["sheet"] or self.sheet
        (top, left), (bottom, right) = _range(f"{token['first']}:{token['last'] or token['first']}".replace("$", ""))
        if (bottom - top + 1) * (right - left + 1) > _MOST_STEPS:
            raise NotComputed("it refers to too many cells")
        places = [(row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)]
        return [self.calculator.value(sheet, place) for place in places]


def _number(cell: Value | None) -> float:
    """Number of a workbook's cell in a formula, 0 if it is empty. Raises NotComputed for text."""
    if cell is None:
        return 0.0
    if type(cell) is not float:
        raise NotComputed("it takes a text for a number")
    return cell
