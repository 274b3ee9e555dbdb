"""``mast-opt periods``: table, plans of each period, endings."""

from __future__ import annotations

from pathlib import Path

import mast_opt
from tests.cli.conftest import Call

GROWTH = '[[period]]\nname = "q1"\ngrow_demand = { all = 1.5 }\n[[period]]\nname = "q2"\ngrow_demand = { all = 1.2 }\n'


def test_plans_of_each_period(tmp_path: Path, call: Call) -> None:
    book, file, plans = tmp_path / "in.xlsx", tmp_path / "growth.toml", tmp_path / "plans"
    mast_opt.write_template("data-placement", book)
    file.write_text(GROWTH)
    ended = call("periods", book, "--periods", file, "--plans", plans, "--out", tmp_path / "p.csv")
    assert ended.code == 0, ended.err
    assert "q1" in ended.out
    assert [line.split(",")[0] for line in ended.err.splitlines() if "planned" in line] == [
        "planned: q1",
        "planned: q2",
    ]
    for number in ("1", "2"):
        assert call("verify", plans / number / "instance", plans / number / "plan").code == 0
    again = call("periods", book, "--periods", file, "--plans", plans)
    assert again.code == 2
    assert "give a new folder" in again.err
    record = call("periods", book, "--periods", file, "--json").record
    assert record["complete"]
    assert [one["name"] for one in record["periods"]] == ["q1", "q2"]
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("q1,0,OPTIMAL,")


def test_a_period_without_a_plan(tmp_path: Path, call: Call) -> None:
    book, file = tmp_path / "in.xlsx", tmp_path / "growth.toml"
    mast_opt.write_template("data-placement", book)
    file.write_text(GROWTH.replace("all = 1.2", "all = 20"))
    ended = call("periods", book, "--periods", file, "--json")
    assert ended.code == 3
    assert ended.record["error"].startswith("The period q2 has no plan")
    assert not ended.record["complete"]


def test_all_periods_together(tmp_path: Path, call: Call) -> None:
    instance, file, plans = tmp_path / "in", tmp_path / "growth.toml", tmp_path / "plans"
    made = ("generate", "data-placement", instance, "--datasets", 5, "--workloads", 6, "--regions", 3, "--seed", 2)
    assert call(*made).code == 0
    file.write_text(GROWTH.replace("1.5", "1.01").replace("1.2", "1.01"))
    ended = call("periods", instance, "--periods", file, "--joint", "--plans", plans, "--json")
    assert ended.code == 0, ended.err
    joint = ended.record["joint"]
    assert joint["status"] == "OPTIMAL"
    assert joint["bound"] <= joint["objective"] <= joint["one_after_another"] * (1 + 1e-4)
    assert [one["name"] for one in joint["periods"]] == ["q1", "q2"]
    worth = [
        call("verify", plans / number / "instance", plans / number / "plan", "--json").record["objective"]
        for number in ("1", "2")
    ]
    assert abs(sum(worth) - joint["objective"]) < 1e-6 * joint["objective"]
    shown = call("periods", instance, "--periods", file, "--joint")
    assert "All periods in one program" in shown.out
    assert "together" in shown.out
    refused = call("periods", instance, "--periods", file, "--joint", "--solver", "tetris")
    assert refused.code == 2
    assert "tetris searches for plans" in refused.err
