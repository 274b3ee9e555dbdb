"""``--begin``: days become calendar dates wherever they are counted."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import openpyxl
import pytest

import mast_opt
from mast_opt.core.dates import date_of
from mast_opt.core.errors import UsageError
from mast_opt.planner.report.html.content import report
from mast_opt.planner.report.workbook.sheets import NOTE
from tests.cli.conftest import Call
from tests.data_placement.workshop import PLAN, PROBLEM

BEGIN = date(2027, 2, 26)
PERIODS = """
[[period]]
name = "now"
begins_day = 0
[[period]]
name = "next"
begins_day = 120
grow_demand = { all = 1.6 }
"""


@pytest.fixture
def workshop(tmp_path: Path) -> tuple[Path, Path]:
    """The workshop and a plan of it."""
    mast_opt.write(PROBLEM, tmp_path / "shop")
    mast_opt.write_workbook(PROBLEM, PLAN, tmp_path / "plan.xlsx")
    return tmp_path / "shop", tmp_path / "plan.xlsx"


def test_a_day_has_a_date() -> None:
    assert date_of(BEGIN, 0) == "2027-02-26"
    assert date_of(BEGIN, 3) == "2027-03-01"
    assert date_of(BEGIN, None) is date_of(None, 3) is None
    with pytest.raises(UsageError, match="after the year 9999"):
        date_of(BEGIN, 10**9)


def test_steps_have_dates(call: Call, workshop: tuple[Path, Path], tmp_path: Path) -> None:
    record = call("steps", *workshop, "--begin", BEGIN, "--json").record
    assert record["steps"]
    for row in record["steps"]:
        assert row["date"] == (BEGIN + timedelta(days=row["day"])).isoformat()
    assert record["last_date"] == (BEGIN + timedelta(days=record["days"] - 1)).isoformat()
    shown = call("steps", *workshop, "--begin", BEGIN, "--out", tmp_path / "steps.csv").out
    assert f"from {BEGIN} to {record['last_date']}" in shown
    heads, first = (tmp_path / "steps.csv").read_text().splitlines()[:2]
    assert "date" in heads.split(",")
    assert BEGIN.isoformat() in first
    plain = call("steps", *workshop, "--json").record
    assert (plain["last_date"], plain["steps"][0]["date"]) == (None, None)
    assert "expected a date such as 2026-12-07, not 26.02.2027" in call("steps", *workshop, "--begin", "26.02.2027").err


def test_the_report_has_dates(call: Call, workshop: tuple[Path, Path], tmp_path: Path) -> None:
    last = mast_opt.steps(PROBLEM, PLAN, BEGIN).last_date
    assert last is not None
    page, book = tmp_path / "report.html", tmp_path / "report.xlsx"
    assert call("report", *workshop, "--begin", BEGIN, "--out", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert f'<span class="value">{last}</span>' in text  # the answer to when it is done
    compared = report(PROBLEM, PLAN, others={"one": PLAN, "other": PLAN}, begin=BEGIN).compared[0]
    assert ("done on", last, last) in compared.rows
    assert "26 Feb" in text  # the axis of the chart
    assert call("report", *workshop, "--begin", BEGIN, "--out", book).code == 0
    cells = {cell for row in openpyxl.load_workbook(book)[f"{NOTE}Steps"].values for cell in row}
    assert {BEGIN.isoformat(), "date"} <= cells
    assert call("report", *workshop, "--out", tmp_path / "plain.html").code == 0
    assert last not in (tmp_path / "plain.html").read_text(encoding="utf-8")


def test_orders_and_periods_have_dates(call: Call, tmp_path: Path) -> None:
    book, file = tmp_path / "in.xlsx", tmp_path / "growth.toml"
    mast_opt.write_template("data-placement", book)
    file.write_text(PERIODS)
    bought = call("buy", book, "--target", 0.75, "--periods", file, "--begin", BEGIN, "--json").record
    orders = [(one, row) for one in bought["periods"] for row in one["purchases"]]
    assert orders
    for one, row in orders:
        assert one["begins_date"] == date_of(BEGIN, one["begins_day"])
        assert row["order_date"] == date_of(BEGIN, row["order_day"])
        assert row["order_date"] in call("buy", book, "--target", 0.75, "--periods", file, "--begin", BEGIN).out
    plans = tmp_path / "plans"
    kept = ("buy", book, "--target", 0.75, "--periods", file, "--plan-out", plans)
    assert f"{plans}/1" in call(*kept).out
    for number, one in enumerate(bought["periods"], 1):
        folder = plans / f"{number}"
        ratio = call("verify", folder / "instance", folder / "plan", "--json").record["metrics"]["peak_ratio"]
        assert ratio == pytest.approx(one["worst_ratio"], abs=1e-3)
    before, now = ((plans / name).read_text() for name in ("1/plan/placements.csv", "2/instance/replicas.csv"))
    assert sorted(before.splitlines()) == sorted(now.splitlines())
    assert call("steps", plans / "2" / "instance", plans / "2" / "plan").code == 0
    assert "give a new folder" in " ".join(call(*kept).err.split())
    planned = call("periods", book, "--periods", file, "--begin", BEGIN, "--json").record
    assert [one["begins_date"] for one in planned["periods"]] == ["2027-02-26", "2027-06-26"]
    assert "state both" in call("buy", book, "--begin", BEGIN).err
