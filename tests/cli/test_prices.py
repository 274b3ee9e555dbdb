"""Prices and budgets that make no sense: what is wrong is named, and the least budget that works is found."""

from __future__ import annotations

import re
from pathlib import Path

import openpyxl
import pytest

import mast_opt
from mast_opt.problems.data_placement.tables.schema import SCHEMA
from tests.cli.conftest import Call


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "priced.xlsx"
    mast_opt.write_template("data-placement", path)
    return path


@pytest.mark.parametrize(
    ("sheet", "column"),
    [(table.name, one.name) for table in SCHEMA.tables for one in table.columns if one.name.startswith("usd_")],
)
def test_a_negative_price_is_named_with_its_cell(book: Path, call: Call, sheet: str, column: str) -> None:
    edited = openpyxl.load_workbook(book)
    heads = [cell.value for cell in edited[sheet][1]]
    edited[sheet].cell(2, heads.index(column) + 1).value = -1
    edited.save(book)
    ended = call("validate", book, "--json")
    assert ended.code == 2
    (fault,) = ended.record["faults"]
    assert (fault["row"], fault["column"], fault["value"]) == (2, column, "-1")
    assert sheet in fault["file"]


def test_a_budget_that_is_too_small_comes_with_the_least_one(book: Path, call: Call) -> None:
    ended = call("solve", book, "--limit", "running_cost=1", "--json")
    assert ended.code == 3
    assert "mast-opt explain" in ended.record["error"]
    assert "--limit running_cost=1" in ended.record["error"]
    explained = call("explain", book, "--limit", "running_cost=1")
    assert explained.code == 3
    offered = re.findall(r"raise the limit on running_cost to ([0-9.]+) USD a month", " ".join(explained.out.split()))
    least = max(map(float, offered))  # the other repairs also give up work
    assert call("solve", book, "--limit", f"running_cost={least}").code == 0
    assert call("solve", book, "--limit", f"running_cost={0.99 * least}").code == 3
