"""``mast-opt buy``: what to order, files, and its endings."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.cli.commands.buy import _proven
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.purchases_in_time import PurchasesInTime
from tests.cli.conftest import Call


@pytest.fixture(scope="module")
def growth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("buy") / "growth.xlsx"
    mast_opt.write_template("data-placement", path)
    return path


def test_purchases_are_shown_and_written(growth: Path, tmp_path: Path, call: Call) -> None:
    made, plan, table = tmp_path / "made", tmp_path / "plan", tmp_path / "buy.csv"
    ended = call("buy", growth, "--target", "0.4", "--instance-out", made, "--plan-out", plan, "--out", table)
    assert ended.code == 0, ended.err
    assert "USD; proven: none is cheaper than" in ended.out
    assert "worst ratio 0.4, target 0.4" in ended.out
    assert "What it costs to run" in ended.out
    assert call("verify", made, plan).code == 0
    again = ("buy", growth, "--target", "0.45", "--instance-out", made, "--plan-out", plan)
    assert call(*again).code == 2
    assert call(*again, "--force").code == 0
    assert call("verify", made, plan).code == 0
    record = call("buy", growth, "--target", "0.4", "--json").record
    assert record["status"] == "OPTIMAL"
    assert record["usd"] == sum(row["usd"] for row in record["purchases"])
    assert record["worst_ratio"] <= 0.4
    assert record["usd_a_month"]["after"] > record["usd_a_month"]["bought"] > 0
    by_hand = mast_opt.buy(mast_opt.read(growth), target=0.4)
    assert record["purchases"] == [
        {
            "candidate": row.offer.name,
            "what": row.offer.what,
            "place": row.offer.place,
            "steps": row.steps,
            "amount": row.amount,
            "unit": row.offer.unit,
            "usd": float(row.usd),
            "lead_days": row.offer.lead_days,
        }
        for row in by_hand.bought
    ]
    rows = table.read_text().splitlines()
    assert rows[0].startswith("candidate,what,where,steps")
    assert len(rows) == 1 + len(record["purchases"])


def test_what_is_proven_of_price_dates_and_plans_is_said_apart() -> None:
    open_dates = PurchasesInTime[Any]("data-placement", Status.FEASIBLE, (), Fraction(33), 33.0, "33 USD")
    words = "Price: proven the least for plans from today. Order dates: {}proven the latest. "
    words += "Plans: 0 of 0 proven within 0.10%."
    assert _proven(open_dates, 1e-3) == words.format("not ")
    assert _proven(replace(open_dates, status=Status.OPTIMAL), 1e-3) == words.format("")
    few = _proven(replace(open_dates, bound_usd=20.0), 1e-3)
    assert "not proven the least; for plans from today none is less than 20 USD" in few


def test_endings(growth: Path, call: Call) -> None:
    assert "Nothing has to be bought" in call("buy", growth).out
    small = call("buy", growth, "--target", "0.4", "--budget", "10", "--json")
    assert small.code == 3
    assert small.record["least_usd"] == call("buy", growth, "--target", "0.4", "--json").record["usd"]
    assert small.record["least_proven"]
    assert "the budget of 10 USD is too small" in small.record["error"]
    assert "out of reach" in call("buy", growth, "--target", "0.001").err + call("buy", growth, "--target", "0.001").out
    assert call("buy", growth, "--target", "-1").code == 2
    assert call("buy", growth, "--budget", "-1").code == 2
