"""Cells of a workbook that hold something which its reader shows as empty or as 0."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter

from mast_opt.planner.io import read
from tests.io.conftest import faults_of, places
from tests.io.toy import GOOD

HEADER = [("format", "mast-opt/1"), ("kind", "toy"), ("name", "x"), ("rules.days", 1)]
SHEETS: dict[str, list[list[Any]]] = {
    "instance": [list(pair) for pair in HEADER],
    "sites": [["site", "storage_tb", "headroom"], ["eu", 10, 0.25], ["us", 20, 0.25]],
    "items": [["item", "size_tb", "memory_gb", "tier"], ["a", 1, 1, 0]],
    "holds": [["item", "site"]],
}
Write = Callable[[Path, Mapping[str, Any]], Path]


def by_openpyxl(path: Path, changes: Mapping[str, Any]) -> Path:
    """The workbook with other cells (``sites!C2`` → content); no formula has a value."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in SHEETS.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    for place, content in changes.items():
        sheet, cell = place.split("!")
        book[sheet][cell] = content
    book.save(path)
    return path


def by_xlsxwriter(path: Path, changes: Mapping[str, Any]) -> Path:
    """The same; every formula has the value 0."""
    book = xlsxwriter.Workbook(path)
    for name, rows in SHEETS.items():
        sheet = book.add_worksheet(name)
        for at, row in enumerate(rows):
            sheet.write_row(at, 0, row)
    for place, content in changes.items():
        sheet, cell = place.split("!")
        book.get_worksheet_by_name(sheet).write(cell, content)
    book.close()
    return path


def content(path: Path) -> object:
    """The header and the tables, comparable."""
    toy: Any = read(path)
    return toy.header, {
        name: {column: cells.tolist() for column, cells in toy.tables.values[name].items()} for name in GOOD
    }


@pytest.fixture(params=[by_openpyxl, by_xlsxwriter])
def write(request: pytest.FixtureRequest) -> Write:
    """How a script writes a workbook."""
    found: Write = request.param
    return found


@pytest.mark.parametrize("formula", ["=1/4", "=VLOOKUP(A2,sites!A:B,2)", "=C2", "=limit", "=2>1"])
def test_a_formula_without_a_value_is_refused_with_its_cell(tmp_path: Path, write: Write, formula: str) -> None:
    [fault, *others] = faults_of(write(tmp_path / "toy.xlsx", {"sites!C2": formula}))
    assert (fault.file, fault.row, fault.column, fault.value) == ("toy.xlsx: sites", 2, "headroom", formula)
    assert "save the workbook once in Excel or LibreOffice (cell C2)" in fault.expected
    assert not others


def test_a_formula_in_the_header_is_no_missing_key(tmp_path: Path, write: Write) -> None:
    assert places(write(tmp_path / "other.xlsx", {"instance!B4": "=TODAY()"})) == [
        ("other.xlsx: instance", 4, None, "=TODAY()")
    ]


def test_an_error_in_the_header_is_no_missing_key(tmp_path: Path) -> None:
    assert places(by_openpyxl(tmp_path / "toy.xlsx", {"instance!B4": "#N/A"})) == [
        ("toy.xlsx: instance", 4, None, "an Excel error")
    ]


def test_an_array_formula_fills_cells_that_have_no_formula(tmp_path: Path) -> None:
    path = tmp_path / "toy.xlsx"
    book = xlsxwriter.Workbook(path)
    for name, rows in SHEETS.items():
        sheet = book.add_worksheet(name)
        for at, row in enumerate(rows):
            sheet.write_row(at, 0, row)
    book.get_worksheet_by_name("sites").write_array_formula("C2:C3", "{=TRANSPOSE(items!B2:C2)}")
    book.close()
    assert [fault.row for fault in faults_of(path)] == [2, 3]


def test_values_that_a_program_stored_are_read(tmp_path: Path) -> None:
    path = tmp_path / "toy.xlsx"
    book = xlsxwriter.Workbook(tmp_path / "stored.xlsx")
    for name, rows in SHEETS.items():
        sheet = book.add_worksheet(name)
        for at, row in enumerate(rows):
            sheet.write_row(at, 0, row)
    book.get_worksheet_by_name("sites").write_formula("C2", "=VLOOKUP(A2,A:A,1)", None, 0.25)
    book.get_worksheet_by_name("holds").write_formula("A2", '=""', None, "nothing")
    book.close()
    with zipfile.ZipFile(tmp_path / "stored.xlsx") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"<v>nothing</v>", b"<v></v>"))
    assert content(path) == content(by_openpyxl(tmp_path / "plain.xlsx", {}))


def test_merged_cells_are_not_empty_ones(tmp_path: Path) -> None:
    path = by_openpyxl(tmp_path / "toy.xlsx", {})
    book = openpyxl.load_workbook(path)
    book["sites"].merge_cells("C2:C3")
    book.save(path)
    [fault] = faults_of(path)
    assert (fault.row, fault.column) == (3, "headroom")
    assert "C2:C3 are merged" in fault.expected


def test_a_prefix_of_the_namespace_changes_nothing(tmp_path: Path) -> None:
    path = by_openpyxl(tmp_path / "plain.xlsx", {"sites!C2": "=RAND()", "sites!B3": "#REF!"})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "toy.xlsx", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.startswith("xl/worksheets/"):
                content = content.replace(b"xmlns=", b"xmlns:x=").replace(b"<", b"<x:").replace(b"<x:/", b"</x:")
            new.writestr(name, content)
    assert [(place[1], place[3]) for place in places(tmp_path / "toy.xlsx")][:2] == [
        (3, "an Excel error"),
        (2, "=RAND()"),
    ]
