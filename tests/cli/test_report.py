"""``mast-opt report``."""

from __future__ import annotations

import csv
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

import mast_opt
from mast_opt.planner.analysis.region_loss import RegionLosses
from mast_opt.planner.io.read import read_plan_of
from tests.analysis.test_goals import dearer_at_home
from tests.cli.conftest import Call


@pytest.fixture
def plan(call: Call, instance: Path, tmp_path: Path) -> Path:
    assert call("solve", instance, "--out", tmp_path / "plan").code == 0
    return tmp_path / "plan"


def test_report(call: Call, instance: Path, plan: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "r.html", tmp_path / "r.png"
    record = call("report", instance, plan, "--out", page, "--png", picture, "--json").record
    assert record["terms"] == call("verify", instance, plan, "--json").record["terms"]
    assert (record["out"], record["png"]) == (str(page), str(picture))
    assert "two-regions" in page.read_text()
    assert "How the search went" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "'whatif'" in call("report", instance, plan, "--first", plan, "--out", tmp_path / "later.html").out


def test_what_is_there_is_kept(call: Call, instance: Path, plan: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text("mine")
    ended = call("report", instance, plan, "--out", page)
    assert ended.code == 2
    assert "exists already" in ended.err
    assert page.read_text() == "mine"
    assert call("report", instance, plan, "--out", page, "--force").code == 0
    assert page.read_text() != "mine"


def test_losses_of_regions_are_those_that_the_solve_found(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report solves for no loss that was proven with the plan, and does again where the file says nonsense."""
    problem = mast_opt.generate("data-placement", "organisation", seed=2, datasets=6, workloads=8, regions=3)
    company, page, plans = tmp_path / "company", tmp_path / "r.html", tmp_path / "plans"
    mast_opt.write(problem, company)
    shared = ("solve", company, "--solver", "highs", "--threads", "1")
    found = call(*shared, "--goals", "--out", plans, "--json").record["goals"]
    alone = call(*shared, "--out", tmp_path / "plan", "--json").record["worst_region_loss"]
    with monkeypatch.context() as patched:
        patched.setattr(RegionLosses, "prove_worst", None)
        for plan in (plans, tmp_path / "plan"):
            assert call("report", company, plan, "--out", page, "--force").code == 0
            assert "at most" not in page.read_text()
    found, alone = json.loads(json.dumps((found, alone)), parse_float=Decimal)
    losses = {name: one["worst_region_loss"] for name, one in found.items()}
    for loss in (alone, *losses.values()):
        for one in (loss, *loss["regions"]):
            assert one.pop("missing_gpus_at_most") == one["overload_gpus"] + one["unserved_gpus"]
    for name in ("least-change", "safest"):
        stored = read_plan_of(problem, plans / name).fields["region_losses"]
        assert stored == {"do nothing": losses["do nothing"], "this plan": losses[name]}
    assert read_plan_of(problem, tmp_path / "plan").fields["region_losses"]["this plan"] == alone
    text = (tmp_path / "plan" / "plan.toml").read_text()
    (tmp_path / "plan" / "plan.toml").write_text(text.replace("lost_gpus = ", "gpus = "))
    assert call("report", company, tmp_path / "plan", "--out", page, "--force").code == 0


def test_the_goal_cheapest_says_that_changes_count_too(call: Call, tmp_path: Path) -> None:
    instance, plans = tmp_path / "instance", tmp_path / "plans"
    mast_opt.write(dearer_at_home(), instance)
    words = "cheapest: OPTIMAL, gap 0.00%; changes count too (moving all work: "
    solved = call("solve", instance, "--solver", "highs", "--goals", "--out", plans)
    assert words in " ".join(solved.out.split())
    notes = call("report", instance, plans, "--out", tmp_path / "r.html", "--json").record["notes"]
    assert any(note.startswith("cheapest: changes count too (moving all work: ") for note in notes)


def test_another_ending(call: Call, instance: Path, plan: Path, tmp_path: Path) -> None:
    ended = call("report", instance, plan, "--out", tmp_path / "r.pdf")
    assert ended.code == 2
    assert ".html" in ended.err


@pytest.mark.parametrize(
    ("line", "code"), [("objective = 'a'", 2), ("bound = 1" + "0" * 400, 2), ("bound = [1]", 2), ("solver = 1.5", 0)]
)
def test_a_plan_that_says_nonsense_of_itself(
    call: Call, instance: Path, plan: Path, tmp_path: Path, line: str, code: int
) -> None:
    text = (plan / "plan.toml").read_text(encoding="utf-8")
    name = line.split(" ", 1)[0]
    (plan / "plan.toml").write_text(re.sub(rf"(?m)^{name} = .*$", line, text), encoding="utf-8")
    for ended in (
        call("report", instance, plan, "--out", tmp_path / "r.html", "--json"),
        call("verify", instance, plan, "--json"),
    ):
        assert ended.code == code
        assert code == 0 or f"plan.toml, column {name}" in ended.record["error"]


def test_what_a_plan_says_of_itself_is_left_out_where_it_is_wrong(
    call: Call, instance: Path, plan: Path, tmp_path: Path
) -> None:
    page = tmp_path / "r.html"
    assert call("report", instance, plan, "--out", page, "--json").record["notes"] == []
    assert "OPTIMAL" in page.read_text()
    verdict = call("verify", instance, plan, "--json").record
    text = (plan / "plan.toml").read_text(encoding="utf-8")
    (plan / "plan.toml").write_text(re.sub(r"(?m)^objective = .*$", "objective = 0.125", text), encoding="utf-8")
    record = call("report", instance, plan, "--out", page, "--force", "--json").record
    assert record["objective"] == verdict["objective"]
    assert "states another objective" in record["notes"][0]
    assert record["notes"][0][1:] in page.read_text()
    assert "0.125" not in page.read_text()
    assert "OPTIMAL" not in page.read_text()


def test_a_plan_for_another_instance(call: Call, instance: Path, plan: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    with (instance / "regions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows[0]["storage_tb"] = str(float(rows[0]["storage_tb"]) + 1)
    with (instance / "regions.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    ended = call("report", instance, plan, "--out", page)
    assert ended.code == 0
    assert "has changed since" in ended.out
    assert "has changed since" in page.read_text()
    assert "OPTIMAL" not in page.read_text()


def test_broken_plans(call: Call, instance: Path, plan: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "r.html")
    assert "nothing at this path" in call("report", instance, tmp_path / "nothing", *out).err
    (plan / "events.jsonl").write_text("{\n")
    ended = call("report", instance, plan, *out)
    assert ended.code == 2
    assert "events.jsonl, row 1" in ended.err
    (plan / "runs.csv").write_text("workload\nnobody\n")
    ended = call("report", instance, plan, *out)
    assert ended.code == 2
    assert "runs.csv" in ended.err
    assert not (tmp_path / "r.html").exists()


def test_usage_of_a_run(call: Call, tmp_path: Path) -> None:
    trace = str(Path(__file__).parents[2] / "instances" / "traces" / "philly-small")
    assert call("simulate", trace, "--policy", "fifo", "--out", tmp_path / "run").code == 0
    table = tmp_path / "usage.csv"
    assert call("report", tmp_path / "run", "--out", table, "--price.gpu", "2.5").code == 0
    head, *rows = (line.split(",") for line in table.read_text().splitlines())
    assert head[-1] == "cost"
    assert all(float(row[-1]) == 2.5 * float(row[3]) for row in rows)
    refused = call("report", tmp_path / "run", tmp_path / "plan", "--out", table, "--price.gpu", "2.5")
    assert "--price is for runs" in refused.err
