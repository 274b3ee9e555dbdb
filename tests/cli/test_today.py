"""The block "Today" in validate, solve, diff and the report, and the key ``today`` with the same content."""

from __future__ import annotations

from pathlib import Path

import openpyxl

import mast_opt
from tests.cli.conftest import Call, write_tables

RUNS = "workload,region,gpu_type,share\nrank,east,A100,1\n"
REGIONS = "region,storage_tb,cpu_cores\neast,1,10\nwest,10,10\n"


def test_today_in_every_command(call: Call, tmp_path: Path) -> None:
    instance = write_tables(tmp_path / "instance", {"current_runs.csv": RUNS, "regions.csv": REGIONS})
    problem = mast_opt.read(instance)
    work, plan = len(problem.workloads), tmp_path / "plan"
    solved = call("solve", instance, "--out", plan, "--json")
    assert solved.code == 0
    records = [
        solved.record,
        call("validate", instance, "--json").record,
        call("diff", instance, plan, "--json").record,
    ]
    for record in records:
        today = record["today"]
        assert today == records[0]["today"]
        assert today["known"]["workloads"] == {"known": 1, "of": work, "share": 1 / work}
        assert not today["complete"]
        assert ("storage", ["east"]) in [(one["constraint"], one["index"]) for one in today["violations"]]
    for tokens in (("solve", instance), ("validate", instance), ("diff", instance, plan)):
        out = " ".join(call(*tokens).out.split())
        assert "Today" in out
        assert f"Known: 1 of {work} workloads" in out
        assert "storage of east" in out
    assert "known part" in " ".join(call("diff", instance, plan).out.split())
    page = tmp_path / "page.html"
    assert call("report", instance, plan, "--out", page).code == 0
    assert "storage of east" in page.read_text(encoding="utf-8")


def test_today_is_judged_without_what_a_goal_adds(call: Call, tmp_path: Path) -> None:
    runs = "workload,region,gpu_type,share\nrank,west,A100,1\n"
    instance = write_tables(
        tmp_path / "instance", {"current_runs.csv": runs, "regions.csv": REGIONS.replace("1,", "9,")}
    )
    validated = call("validate", instance, "--json").record["today"]
    goals = call("solve", instance, "--goals", "--out", tmp_path / "goals", "--json")
    assert goals.code == 0
    assert set(goals.record["goals"]) >= {"least-change", "balanced", "safest"}
    assert all(one["steps"] >= 0 for one in goals.record["goals"].values())
    assert call("report", instance, tmp_path / "goals", "--out", tmp_path / "goals.xlsx").code == 0
    sheet = openpyxl.load_workbook(tmp_path / "goals.xlsx")["# Plans side by side"]
    heads = next(row for row in sheet.iter_rows(values_only=True) if row[0] == "figure")
    assert heads[1:] == tuple(goals.record["goals"])
    notes = call("report", instance, tmp_path / "goals", "--out", tmp_path / "page.html", "--json").record["notes"]
    assert any(note.startswith("gaps that the plans state: least-change 0.00%, balanced 0.00%") for note in notes)
    solved = call("solve", instance, "--goal", "safest", "--json")
    assert solved.record["today"] == validated
    assert solved.record["overrides"]["copies_min"]
