"""Workbooks on the command line: results of a solve, and the answers of analyses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import mast_opt
from tests.cli.conftest import Call
from tests.report.test_workbook import cells, solved


def of_the_template(folder: Path) -> tuple[Any, Any]:
    """An instance that states its present state, and a plan of it."""
    mast_opt.write_template("data-placement", folder / "template.xlsx")
    problem = mast_opt.read(folder / "template.xlsx")
    return problem, mast_opt.solve(problem, "highs", gap=0.05)


def test_a_cell_of_the_plan_that_a_planner_edits_counts(tmp_path: Path, call: Call) -> None:
    problem, solution = of_the_template(tmp_path)
    book = tmp_path / "results.xlsx"
    mast_opt.write_plan(problem, solution, book)
    edited = openpyxl.load_workbook(book)
    sheet = edited["placements"]
    dataset, region = sheet["A2"].value, sheet["B2"].value
    other = next(name for name in problem.regions.labels if name != region)
    if any(row[:2] == (dataset, other) for row in cells(sheet)):
        sheet.delete_rows(2)
    else:
        sheet["B2"].value = other
    edited.save(book)
    plan = mast_opt.read_plan(problem, book)
    d, r = problem.datasets.labels.index(dataset), problem.regions.labels.index(region)
    assert solution.plan.place[d, r]
    assert not plan.place[d, r]
    ended = call("verify", book, book)
    assert ended.code != 0
    changed = call("diff", book, book, "--json")
    assert changed.code == 0


def test_report_writes_a_workbook_by_the_suffix(tmp_path: Path, call: Call) -> None:
    problem, solution = solved("data-placement")
    mast_opt.write(problem, tmp_path / "in")
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    book = tmp_path / "results.xlsx"
    assert call("report", tmp_path / "in", tmp_path / "plan", "--out", book).code == 0
    assert mast_opt.read_plan(problem, book) == solution.plan
    again = call("report", tmp_path / "in", tmp_path / "plan", "--out", book)
    assert again.code == 2
    assert call("report", tmp_path / "in", tmp_path / "plan", "--out", book, "--force").code == 0
    assert call("report", tmp_path / "in", tmp_path / "plan", "--out", book, "--force", "--png", "x.png").code == 2


def test_a_workbook_that_is_read_is_not_written(tmp_path: Path, call: Call) -> None:
    problem, solution = solved("data-placement")
    book = tmp_path / "results.xlsx"
    mast_opt.write_plan(problem, solution, book)
    before = book.read_bytes()
    ended = call("solve", book, "--out", book)
    assert ended.code == 2
    assert "also read" in ended.err
    assert call("solve", book, "--start", book, "--out", tmp_path / "next.xlsx", "--gap", 0.05).code == 0
    assert book.read_bytes() == before
    assert call("verify", book, tmp_path / "next.xlsx").code == 0


@pytest.fixture
def files(tmp_path: Path) -> Path:
    problem, solution = of_the_template(tmp_path)
    mast_opt.write(problem, tmp_path / "in")
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    (tmp_path / "what-if.toml").write_text('[[scenario]]\nname = "more"\ngrow_demand = { all = 1.1 }\n')
    return tmp_path


def command(name: str, files: Path) -> list[object]:
    words: dict[str, list[object]] = {
        "diff": [files / "in", files / "plan"],
        "steps": [files / "in", files / "plan"],
        "marginal": [files / "in", "--plan", files / "plan", "--resource", "storage"],
        "pareto": [files / "in", "--terms", "storage,peak", "--points", 2],
        "whatif": [files / "in", "--scenarios", files / "what-if.toml", "--plan", files / "plan", "--gap", 0.05],
    }
    return [name, *words[name]]


@pytest.mark.parametrize("name", ["diff", "steps", "marginal", "pareto", "whatif"])
def test_answers_go_into_a_file_by_its_suffix(name: str, files: Path, call: Call) -> None:
    record = call(*command(name, files), "--out", files / "answer.json", "--json").record
    assert record["out"] == str(files / "answer.json")
    written = json.loads((files / "answer.json").read_text())
    volatile = {"runtime_s", "out"}
    assert {k: v for k, v in written.items() if k not in volatile} == {
        k: v for k, v in record.items() if k not in volatile
    }
    for suffix in ("xlsx", "csv", "md"):
        ended = call(*command(name, files), "--out", files / f"answer.{suffix}")
        assert ended.code == 0
        assert f"answer.{suffix}" in ended.out.replace("\n", "")
    rows = list(csv.reader((files / "answer.csv").read_text().splitlines()))
    book = openpyxl.load_workbook(files / "answer.xlsx")
    main = cells(book.worksheets[0])
    head = next(at for at, row in enumerate(main) if [cell for cell in row if cell is not None] == rows[0])
    assert len(main) - head == len(rows)
    assert "| --" in (files / "answer.md").read_text()
    again = call(*command(name, files), "--out", files / "answer.md")
    assert again.code == 2
    assert "exists already" in again.err
    assert call(*command(name, files), "--out", files / "answer.txt").code == 2


def test_marginal_values_in_a_table_are_those_of_the_record(files: Path, call: Call) -> None:
    record = call(*command("marginal", files), "--out", files / "values.csv", "--json").record
    rows = list(csv.DictReader((files / "values.csv").read_text().splitlines()))
    assert [float(row["value of one more unit"]) for row in rows] == [one["value"] for one in record["values"]]
    assert {row["resource"] for row in rows} == {"storage"}
