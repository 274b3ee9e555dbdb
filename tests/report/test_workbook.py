"""Workbooks of results: what they show is the verifier's, and they read back as the instance and its plan."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
import xlsxwriter

import mast_opt
from mast_opt.core.errors import InputError, PlanError, UsageError
from mast_opt.planner.io import checksum, read_plan_of
from mast_opt.planner.report.workbook.sheets import NOTE, ReportBook
from mast_opt.problems.kind.overrides import Overrides
from mast_opt.problems.kind.presentation import Form, Head, HeatMap, Section
from mast_opt.problems.registry import kind_names, kind_of
from tests.platforms import OFFICE, needs

CLOUD = Path(__file__).parents[2] / "instances" / "data_placement"
SMALL = {
    "data-placement": {"datasets": 4, "workloads": 4, "regions": 2},
    "job-placement": {"jobs": 3},
    "server-assignment": {"servers": 12},
    "task-reassignment": {"processes": 8, "machines": 4},
    "resource-allocation": {"jobs": 4},
}


def solved(kind: str, **options: Any) -> tuple[Any, Any]:
    problem = mast_opt.generate(kind, None, seed=3, **SMALL[kind])
    return problem, mast_opt.solve(problem, "highs", gap=0.05, **options)


@pytest.mark.parametrize("kind", kind_names())
def test_a_workbook_reads_back_as_the_instance_and_its_plan(kind: str, tmp_path: Path) -> None:
    problem, solution = solved(kind)
    book = tmp_path / "results.xlsx"
    mast_opt.write_plan(problem, solution, book)
    again = mast_opt.read(book)
    assert checksum(again) == checksum(problem)
    reading = read_plan_of(again, book)
    assert reading.same_instance
    assert reading.plan == solution.plan
    assert float(reading.fields["objective"]) == pytest.approx(solution.objective, rel=1e-12)
    assert mast_opt.verify(again, reading.plan) == solution.verdict


def test_a_plan_of_other_weights_and_a_lexicographic_one_state_them(tmp_path: Path) -> None:
    problem, solution = solved("data-placement", order=("peak", "storage"))
    book = tmp_path / "results.xlsx"
    mast_opt.write_plan(problem, solution, book)
    again = mast_opt.read(book)
    assert checksum(again) == checksum(problem)
    reading = read_plan_of(again, book)
    assert reading.overrides == solution.overrides == Overrides(order=("peak", "storage"))
    assert [stage["term"] for stage in reading.fields["stages"]] == ["peak", "storage"]


def cells(sheet: Any) -> list[tuple[Any, ...]]:
    return [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]


def test_figures_of_the_summary_are_the_verifiers(tmp_path: Path) -> None:
    problem, solution = solved("data-placement")
    mast_opt.write_plan(problem, solution, tmp_path / "results.xlsx")
    book = openpyxl.load_workbook(tmp_path / "results.xlsx")
    shown = {row[0]: row for row in cells(book[f"{NOTE}Summary"])}
    assert solution.verdict is not None
    for name, value in solution.verdict.metrics.items():
        assert shown[name][2] == pytest.approx(value)
    weights = problem.objective.weights
    weighed = {name: value for name, value in solution.verdict.terms.items() if value or weights[name]}
    for name, value in weighed.items():
        assert shown[name][3] == kind_of(problem).terms[name].unit
        assert (shown[name][2], *shown[name][4:6]) == pytest.approx((value, weights[name], value * weights[name]))
    assert shown["objective"][5] == pytest.approx(sum(weights[name] * value for name, value in weighed.items()))


NUMBER = re.compile(r"[-+−<>]?[\d,]*\.?\d+ ?%?(–[\d,.]+)?")


@pytest.mark.parametrize("kind", kind_names())
def test_numbers_are_numbers(kind: str, tmp_path: Path) -> None:
    problem, solution = solved(kind)
    mast_opt.write_plan(problem, solution, tmp_path / "results.xlsx")
    book = openpyxl.load_workbook(tmp_path / "results.xlsx")
    words = [
        (sheet.title, cell.coordinate, cell.value)
        for sheet in book
        if sheet.title.startswith(NOTE)
        for row in sheet.iter_rows()
        for cell in row
        if cell.column > 1 and isinstance(cell.value, str) and NUMBER.fullmatch(cell.value)
    ]
    assert words == []
    shown = {row[0]: row[1] for row in cells(book[f"{NOTE}Summary"]) if len(row) > 1}
    gap = None if solution.gap is None else 100 * solution.gap
    assert (shown["bound"], shown["gap, %"]) == pytest.approx((solution.bound, gap))


def test_compared_figures_are_numbers_and_notes_are_sentences(tmp_path: Path) -> None:
    problem = mast_opt.read(CLOUD / "links-bind")
    plan = mast_opt.read_plan(problem, CLOUD / "best_known" / "links-bind")
    others = {"first": plan, "second": plan}
    said: dict[str, Any] = {"others": others, "notes": ["one thing", "Another."], "fields": {"bound": 0.0}}
    mast_opt.write_workbook(problem, plan, tmp_path / "b.xlsx", **said)
    book = openpyxl.load_workbook(tmp_path / "b.xlsx")
    sheet = book[f"{NOTE}Plans side by side"]
    compared = {row[0].value: row[1:] for row in sheet.iter_rows()}
    steps = len(mast_opt.steps(problem, plan).moves)
    assert [cell.value for cell in compared["steps"] if cell.value is not None][-2:] == [steps, steps]
    shown = [cell.value for row in sheet.iter_rows() for cell in row if cell.column > 1]
    assert not [value for value in shown if isinstance(value, str) and NUMBER.fullmatch(value)]
    summary = [row[0] for row in cells(book[f"{NOTE}Summary"])]
    assert any(str(words).startswith("one thing. Another. ") for words in summary)


def test_texts_of_numeric_columns_keep_their_digits(tmp_path: Path) -> None:
    texts = ("4,808,140", "33.3%", "0.25", "-1,200.5", "10 (home)", "")
    section = Section("Figures", (Head("figure"), Head("plan", numeric=True)), tuple(("row", text) for text in texts))
    with xlsxwriter.Workbook(tmp_path / "b.xlsx") as book:
        ReportBook(book).add("Figures", [section])
    sheet = openpyxl.load_workbook(tmp_path / "b.xlsx")[f"{NOTE}Figures"]
    found = [(cell.value, cell.number_format) for (cell,) in sheet.iter_rows(min_col=2, max_col=2, min_row=4)]
    assert found[:4] == [(4808140, "#,##0"), (0.333, "0.0%"), (0.25, "#,##0.00"), (-1200.5, "#,##0.0")]
    assert found[4][0] == "10 (home)"


def test_days_of_steps_are_numbers(tmp_path: Path) -> None:
    problem = mast_opt.read(CLOUD / "links-bind")
    mast_opt.write_workbook(
        problem, mast_opt.read_plan(problem, CLOUD / "best_known" / "links-bind"), tmp_path / "b.xlsx"
    )
    rows = cells(openpyxl.load_workbook(tmp_path / "b.xlsx")[f"{NOTE}Steps"])
    heads = next(row for row in rows if "step" in row)
    days = [row[heads.index("day")] for row in rows[rows.index(heads) + 1 :]]
    assert days
    assert all(isinstance(day, int) for day in days)


def test_the_heat_map_is_a_grid_of_the_verifiers_ratios_with_colours(tmp_path: Path) -> None:
    problem, solution = solved("data-placement")
    mast_opt.write_plan(problem, solution, tmp_path / "results.xlsx")
    heat = next(
        chart for chart in kind_of(problem).presentation.charts(problem, solution.plan) if isinstance(chart, HeatMap)
    )
    sheet = openpyxl.load_workbook(tmp_path / "results.xlsx")[f"{NOTE}{heat.title}"]
    rows = cells(sheet)
    first = next(at for at, row in enumerate(rows) if str(row[0]).startswith("after: "))
    for row, label, values in zip(rows[first + 1 :], heat.rows, heat.after, strict=False):
        assert row[0] == label
        assert row[1 : len(values) + 1] == pytest.approx(values)
    coloured = {rule.operator for rules in sheet.conditional_formatting for rule in rules.rules}
    assert {"greaterThan", "greaterThanOrEqual"} <= coloured


def test_notes_on_sheets_and_in_columns_are_not_read(tmp_path: Path) -> None:
    problem, _ = solved("data-placement")
    mast_opt.write(problem, tmp_path / "in.xlsx")
    book = openpyxl.load_workbook(tmp_path / "in.xlsx")
    book.create_sheet("# owners").append(["anything", "at all"])
    book.create_sheet("_todo").append([None, "=1/0"])
    sheet = book["datasets"]
    column = sheet.max_column + 1
    sheet.cell(1, column, "_owner")
    sheet.cell(2, column, "the team of clicks")
    sheet.cell(sheet.max_row + 1, column, "a note below the table")
    sheet.cell(1, column + 1, "#checked")
    book.save(tmp_path / "in.xlsx")
    assert checksum(mast_opt.read(tmp_path / "in.xlsx")) == checksum(problem)


def test_notes_in_folders_json_and_tables_in_memory_are_not_read(tmp_path: Path) -> None:
    problem, _ = solved("data-placement")
    mast_opt.write(problem, tmp_path / "in")
    (tmp_path / "in" / "_notes.csv").write_text("no table\n")
    path = tmp_path / "in" / "regions.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{lines[0]},_owner", *(f"{line},me" for line in lines[1:])]) + "\n")
    assert checksum(mast_opt.read(tmp_path / "in")) == checksum(problem)
    mast_opt.write(problem, tmp_path / "in.json")
    import json

    content = json.loads((tmp_path / "in.json").read_text())
    content["_notes"] = "free text"
    content["regions"] = [row | {"#owner": ["a", "list"]} for row in content["regions"]]
    (tmp_path / "in.json").write_text(json.dumps(content))
    assert checksum(mast_opt.read(tmp_path / "in.json")) == checksum(problem)
    tables = mast_opt.to_tables(problem)
    named = {name: table.to_dict(as_series=False) for name, table in tables.items()}
    named["regions"]["_owner"] = [object()] * len(named["regions"]["region"])
    again = mast_opt.from_tables("data-placement", {**named, "_notes": 5}, name=problem.name)
    assert again.regions.labels == problem.regions.labels


def test_a_table_of_an_unknown_name_is_a_fault_still(tmp_path: Path) -> None:
    problem, _ = solved("data-placement")
    mast_opt.write(problem, tmp_path / "in.xlsx")
    book = openpyxl.load_workbook(tmp_path / "in.xlsx")
    book.create_sheet("placements").append(["dataset", "region"])
    book.save(tmp_path / "in.xlsx")
    with pytest.raises(mast_opt.InstanceError, match="a known table"):
        mast_opt.read(tmp_path / "in.xlsx")


def test_a_workbook_replaces_only_earlier_results_that_no_program_has_open(tmp_path: Path) -> None:
    problem, solution = solved("data-placement")
    book = tmp_path / "results.xlsx"
    mast_opt.write_plan(problem, solution, book)
    mast_opt.write_plan(problem, solution, book)
    lock = tmp_path / ".~lock.results.xlsx#"
    lock.write_text("")
    with pytest.raises(InputError, match="open in another program"):
        mast_opt.write_plan(problem, solution, book)
    lock.unlink()
    mast_opt.write(problem, tmp_path / "mine.xlsx")
    before = (tmp_path / "mine.xlsx").read_bytes()
    with pytest.raises(InputError, match="no earlier workbook of results"):
        mast_opt.write_plan(problem, solution, tmp_path / "mine.xlsx")
    assert (tmp_path / "mine.xlsx").read_bytes() == before
    (tmp_path / "folder.xlsx").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        mast_opt.write_plan(problem, solution, tmp_path / "folder.xlsx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.xlsx", "mine.xlsx", "results.xlsx"]


def test_a_plan_of_another_instance_is_refused(tmp_path: Path) -> None:
    _, solution = solved("data-placement")
    other = mast_opt.generate("data-placement", None, seed=4, **SMALL["data-placement"])
    with pytest.raises(PlanError):
        mast_opt.write_plan(other, solution, tmp_path / "results.xlsx")
    assert not (tmp_path / "results.xlsx").exists()


def test_long_and_equal_titles_get_names_of_their_own(tmp_path: Path) -> None:
    from mast_opt.planner.io.writers.excel import new_workbook
    from mast_opt.planner.report.workbook.sheets import ReportBook

    section = Section("t", (Head("a"), Head("b", Form.RATIO)), (("x", 1.5), ("y", None), ("z", np.inf)))
    with new_workbook(tmp_path / "b.xlsx") as book:
        sheets = ReportBook(book)
        names = [sheets.add(title, (section,)) for title in ("a/b: c?" * 9, "a/b: c?" * 9, "A B  C " * 9, "'")]
    assert openpyxl.load_workbook(tmp_path / "b.xlsx").sheetnames == names
    assert len({name.lower() for name in names}) == 4
    assert max(map(len, names)) <= 31


@needs("LibreOffice")
def test_libreoffice_opens_recalculates_and_saves_it(tmp_path: Path) -> None:
    problem, solution = solved("data-placement")
    mast_opt.write_plan(problem, solution, tmp_path / "results.xlsx")
    (tmp_path / "saved").mkdir()
    command = [str(OFFICE), "--headless", f"-env:UserInstallation=file://{tmp_path}/profile", "--convert-to", "xlsx"]
    subprocess.run(
        [*command, "--outdir", str(tmp_path / "saved"), str(tmp_path / "results.xlsx")],
        check=True,
        capture_output=True,
        timeout=300,
    )
    saved = tmp_path / "saved" / "results.xlsx"
    again = mast_opt.read(saved)
    assert checksum(again) == checksum(problem)
    assert mast_opt.read_plan(again, saved) == solution.plan


def test_a_table_too_long_for_a_sheet_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solution = solved("data-placement")
    monkeypatch.setattr("mast_opt.planner.io.writers.excel.MOST_ROWS", 3)
    with pytest.raises(UsageError, match="an Excel sheet holds 2"):
        mast_opt.write_plan(problem, solution, tmp_path / "results.xlsx")
    assert not (tmp_path / "results.xlsx").exists()
