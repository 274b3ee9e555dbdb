"""The workbook to fill in: it solves as it is, it solves filled in, and it checks what is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pytest

import mast_opt
from mast_opt.problems.kind.schema import ColumnType
from mast_opt.problems.registry import kind_named, kind_names
from tests.cli.conftest import Call, call

__all__ = ["call"]


@pytest.mark.parametrize("name", kind_names())
def test_the_examples_solve(call: Call, name: str, tmp_path: Path) -> None:
    path = tmp_path / "template.xlsx"
    assert call("template", name, path).code == 0
    record = call("solve", path, "--time-limit", "60", "--json").record
    assert record["status"] == "OPTIMAL"
    assert record["kind"] == name
    problem = mast_opt.read(path)
    defaults = {term: one.weight for term, one in kind_named(name).terms.items()}
    priced = {"running_cost", "migration_cost"} & defaults.keys()
    assert all(problem.objective.weights[term] > 0 for term in priced), "prices that are stated count by default"
    assert {**problem.objective.weights, **dict.fromkeys(priced, 0.0)} == {**defaults, **dict.fromkeys(priced, 0.0)}
    assert set(kind_named(name).tables.example) == {table.name for table in kind_named(name).tables.schema.tables}


@pytest.mark.parametrize("name", kind_names())
def test_every_column_is_explained_and_checked(name: str, tmp_path: Path) -> None:
    path = tmp_path / "template.xlsx"
    mast_opt.write_template(name, path)
    book = openpyxl.load_workbook(path)
    schema = kind_named(name).tables.schema
    assert book.sheetnames == ["instance", *(table.name for table in schema.tables)]
    homes = {axis.name: axis.table for axis in schema.axes}
    for table in schema.tables:
        sheet = book[table.name]
        assert [cell.value for cell in sheet[1]] == [column.name for column in table.columns]
        checks = {str(check.sqref).split(":")[0].rstrip("2"): check for check in sheet.data_validations.dataValidation}
        for cell, column in zip(sheet[1], table.columns, strict=True):
            assert cell.comment is not None
            assert column.help in cell.comment.text
            assert (cell.comment.text.splitlines()[-1] == "required") == column.required
            check = checks.get(cell.column_letter)
            if column.type is not ColumnType.LABEL:
                assert check is not None
            elif homes[column.axis or ""] not in (None, table.name):
                assert check is not None
                assert check.formula1.startswith(f"{homes[column.axis or '']}!$")


def test_filled_in_by_a_planner(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "plan-me.xlsx"
    mast_opt.write_template("data-placement", path)
    book = openpyxl.load_workbook(path)
    rows: dict[str, list[tuple[Any, ...]]] = {
        "regions": [("north", 10, 100, None, None), ("south", 10, 100, None, None)],
        "gpu_supply": [("north", "A100", 8), ("south", "A100", 8)],
        "datasets": [("tiles", 4, None, None), ("words", 3, 1, 1)],
        "replicas": [("tiles", "north"), ("words", "north")],
        "workloads": [("maps", 0, 10, None, None, None), ("talk", 0, 10, None, True, None)],
        "gpu_demand": [("maps", "A100", 8), ("talk", "A100", 8)],
        "reads": [("maps", "tiles", 1), ("talk", "words", 1)],
        "rules": [("tiles", "north", "pinned")],
    }
    for sheet in book.worksheets[1:]:
        sheet.delete_rows(2, sheet.max_row)
        for row in rows.get(sheet.title, []):
            sheet.append(row)
    for optional in ("links", "cpu_quota", "current_runs", "workload_rules"):
        del book[optional]
    book["instance"]["B4"] = "filled-in"
    book.save(path)
    record = call("solve", path, "--out", tmp_path / "plan", "--json").record
    assert (record["status"], record["error"]) == ("OPTIMAL", None)
    assert record["terms"]["peak"] == pytest.approx(1.0 - 0.9)
    assert "words,south" in (tmp_path / "plan" / "placements.csv").read_text()


def test_names_and_files_that_do_not_fit(call: Call, tmp_path: Path) -> None:
    assert "expected one of" in call("template", "data", tmp_path / "x.xlsx").err
    assert ".xlsx" in call("template", "data-placement", tmp_path / "x.csv").err
    (tmp_path / "x.xlsx").write_text("mine")
    ended = call("template", "data-placement", tmp_path / "x.xlsx")
    assert ended.code == 2
    assert "exists already" in ended.err
    assert call("template", "data-placement", tmp_path / "x.xlsx", "--force").code == 0


OFFERED = [
    ("data-placement", "gpu_demand", "gpu_type", "gpu_supply"),
    ("data-placement", "current_runs", "gpu_type", "gpu_supply"),
    ("job-placement", "job_gpu_types", "gpu_type", "servers"),
    ("job-placement", "quotas", "gpu_type", "servers"),
    ("server-assignment", "values", "type", "servers"),
]


@pytest.mark.parametrize(("name", "table", "column", "source"), OFFERED)
def test_types_are_offered_in_a_list(name: str, table: str, column: str, source: str, tmp_path: Path) -> None:
    path = tmp_path / "template.xlsx"
    mast_opt.write_template(name, path)
    book = openpyxl.load_workbook(path)
    letter = next(cell.column_letter for cell in book[table][1] if cell.value == column)
    checks = {
        str(check.sqref).split(":")[0].rstrip("2"): check for check in book[table].data_validations.dataValidation
    }
    check = checks[letter]
    assert (check.type, check.errorStyle) == ("list", "warning")
    assert "instance!$E$2:$E$41" in check.formula1
    home = next(cell.column_letter for cell in book[source][1] if cell.value == column)
    assert f"{source}!${home}$2:${home}$1001" in book["instance"]["E2"].value.text
    assert letter not in {cell.column_letter for cell in book[source][1] if cell.value == column and source == table}
    shown = openpyxl.load_workbook(path, data_only=True)
    named = [cell.value for cell in shown["instance"]["E"][1:] if cell.value]
    typed = [cell.value for cell in shown[source][home][1:] if cell.value]
    assert named == list(dict.fromkeys(typed))
    assert named
