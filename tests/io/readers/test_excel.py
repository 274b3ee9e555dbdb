"""Workbooks and JSON files that are broken, or hold what no table can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from mast_opt.planner.io import read
from mast_opt.planner.io.readers.excel import cell_text
from tests.io.conftest import faults_of, places
from tests.io.test_file_faults import JUNK


@pytest.mark.parametrize("content", [b"", JUNK, b"PK\x03\x04" + JUNK])
def test_broken_workbook(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "toy.xlsx"
    path.write_bytes(content)
    [fault] = faults_of(path)
    assert fault.expected.startswith("a complete .xlsx workbook")


def test_sheets(tmp_path: Path) -> None:
    path = tmp_path / "toy.xlsx"
    book = xlsxwriter.Workbook(path)
    header = book.add_worksheet("instance")
    for row, pair in enumerate([("format", "mast-opt/1"), ("kind", "toy"), ("name", 2024), ("rules.days", "soon")]):
        header.write_row(row, 0, pair)
    sites = book.add_worksheet("sites")
    sites.write_row(0, 0, ["site", "storage_tb", "", "headroom"])
    sites.write_row(1, 0, ["eu", 0.1])
    sites.write_formula(2, 1, "=1/0", value="#DIV/0!")
    sites.write_string(2, 0, "us")
    sites.write_row(4, 0, ["asia", 1])
    sites.write_blank(9, 3, None, book.add_format({"bold": True}))
    book.add_worksheet("items")
    book.add_worksheet("hold").write_row(0, 0, ["item", "site"])
    book.close()
    assert places(path) == [
        ("toy.xlsx: instance: rules.days", None, None, "soon"),
        ("toy.xlsx: hold", None, None, None),
        ("toy.xlsx: sites", 3, "storage_tb", "an Excel error"),
        ("toy.xlsx: sites", 3, "storage_tb", ""),
        ("toy.xlsx: items", None, None, None),
        ("toy.xlsx: holds", None, None, None),
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.1 + 0.2, "0.3"), (1 - 0.9, "0.1"), (1e22, "1e+22"), (2.0**53, "9007199254740992"), (7.0, "7")],
)
def test_a_number_is_what_excel_shows(number: float, text: str) -> None:
    assert cell_text(number) == text


def test_blank_rows_are_skipped_and_faults_name_the_rows_of_the_sheet(tmp_path: Path) -> None:
    path = tmp_path / "toy.xlsx"
    book = xlsxwriter.Workbook(path)
    header = book.add_worksheet("instance")
    for row, pair in enumerate([("format", "mast-opt/1"), ("kind", "toy"), ("name", "x"), ("rules.days", 1)]):
        header.write_row(row, 0, pair)
    sites = book.add_worksheet("sites")
    for row, cells in {0: ["site", "storage_tb"], 2: ["eu", 0.1], 5: ["us", "much"], 6: ["asia", 1]}.items():
        sites.write_row(row, 0, cells)
    items = book.add_worksheet("items")
    items.write_row(0, 0, ["item", "size_tb", "memory_gb", "tier"])
    items.write_row(2, 0, ["a", 1, 1, 0])
    book.add_worksheet("holds").write_row(0, 0, ["item", "site"])
    book.close()
    assert places(path) == [("toy.xlsx: sites", 6, "storage_tb", "much")]


def test_a_workbook_without_header_sheet(tmp_path: Path) -> None:
    path = tmp_path / "toy.xlsx"
    book = xlsxwriter.Workbook(path)
    book.add_worksheet("sites")
    book.close()
    [fault] = faults_of(path)
    assert "a sheet 'instance'" in fault.expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "JSON (Expecting value, line 1 column 1)"),
        ('{"a": 1,}', "line 1 column 9"),
        ("[" * 100_000, "JSON (this is nested too deeply)"),
        ("[]", "an object with the key 'instance'"),
        ('{"instance": 5}', "the key 'instance' with an object"),
        ('{"a": 1, "a": 2}', "each key once"),
        ('{"instance": {}, "sites": []', "JSON ("),
    ],
)
def test_broken_json(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "toy.json"
    path.write_text(content)
    [fault] = faults_of(path)
    assert expected in fault.expected


def test_json_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    path.write_bytes(JUNK)
    [fault] = faults_of(path)
    assert "UTF-8" in fault.expected


@pytest.mark.parametrize(
    ("content", "file", "value"),
    [
        ({"instance": {"format": "mast-opt/1", "kind": "toy", "name": "x\ud800"}}, "toy.json: instance: name", "x?"),
        ({"instance": {}, "items": [{"item\udfff": 1}]}, "toy.json", "item?"),
    ],
)
def test_json_with_half_a_character(tmp_path: Path, content: dict[str, Any], file: str, value: str) -> None:
    path = tmp_path / "toy.json"
    path.write_text(json.dumps(content))
    fault = faults_of(path)[0]
    assert (fault.file, fault.value) == (file, value)
    assert "surrogate pairs" in fault.expected


@pytest.mark.parametrize("written", ["3", "2.50", "true", "null", '["x"]', '{"x": 1}', "NaN"])
@pytest.mark.parametrize("key", ["name", "provenance"])
def test_text_of_a_json_header_has_to_be_text(tmp_path: Path, key: str, written: str) -> None:
    header = {"format": "mast-opt/1", "kind": "toy", "name": "x"} | {key: "WRITTEN"}
    path = tmp_path / "toy.json"
    path.write_text(json.dumps({"instance": header}).replace('"WRITTEN"', written))
    found = [fault for fault in faults_of(path) if fault.file == f"toy.json: instance: {key}"]
    assert [fault.expected for fault in found] == [f"{key} = some text in quotation marks"]


def test_json_tables(tmp_path: Path) -> None:
    header = {"format": "mast-opt/1", "kind": "toy", "name": "x"}
    content = {
        "instance": header,
        "sites": {"site": ["eu", "us"], "storage_tb": [0.1, [1]], "headroom": [0]},
        "items": [
            {"item": "a", "size_tb": 1e-6, "memory_gb": "0.5", "tier": True},
            {"item": "\ud800", "size_tb": None},
        ],
        "holds": [5, {"item": "a"}],
        "rules": "none",
    }
    path = tmp_path / "toy.json"
    path.write_text(json.dumps(content))
    assert places(path) == [
        ("toy.json: sites", 2, "storage_tb", "['1']"),
        ("toy.json: sites", None, "headroom", "1 cells"),
        ("toy.json: items", 2, "item", "'\\ud800'"),
        ("toy.json: items", 2, "item", ""),
        ("toy.json: items", 2, "size_tb", ""),
        ("toy.json: items", 2, "memory_gb", ""),
        ("toy.json: items", 2, "tier", ""),
        ("toy.json: items", 1, "tier", "true"),
        ("toy.json: holds", 1, None, "5"),
        ("toy.json: rules", None, None, "none"),
    ]


def test_json_columns_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    text = """{"instance": {"format": "mast-opt/1", "kind": "toy", "name": "x", "rules": {"days": 1.5}},
      "sites": {"site": ["eu", 7], "storage_tb": [9007199254740.993001, 1e-6]},
      "items": [{"item": "a", "size_tb": 0.1, "memory_gb": 1, "tier": 0, "frozen": true}, {"tier": 1, "item": "b",
                 "memory_gb": 2, "size_tb": "1"}],
      "holds": []}"""
    path.write_text(text)
    tables = read(path).tables
    assert tables.axes["site"] == ("eu", "7")
    assert tables.get("sites", "storage_tb").tolist() == [9_007_199_254_740_993_001, 1]
    assert tables.get("items", "frozen").tolist() == [True, False]
