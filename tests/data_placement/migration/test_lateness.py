"""Migrations that take longer than their days, and what would mend it."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

import mast_opt
from mast_opt.cli.json_record import period_keys
from mast_opt.planner.analysis.goals import figures_of
from mast_opt.planner.analysis.migration_plan import first_steps
from mast_opt.planner.analysis.periods import Periods
from mast_opt.planner.report.html.content import story
from mast_opt.planner.report.result_sections import goal_sections, period_sections, whatif_sections
from mast_opt.planner.report.terminal.analysis import show_whatif
from mast_opt.problems.data_placement import DataPlacement, Plan


def exchange(days: int) -> DataPlacement:
    """Two full regions that exchange a dataset of 3 TB by way of a third one, at 2 TB a day."""
    pins = (("clicks", "west"), ("logs", "east"))
    tables = {
        "regions": [
            {"region": name, "storage_tb": 3, "cpu_cores": 9, "ingress_tb_per_day": 2}
            for name in ("east", "west", "north")
        ],
        "gpu_supply": [{"region": "east", "gpu_type": "A100", "gpus": 1}],
        "gpu_demand": [],
        "datasets": [{"dataset": name, "size_tb": 3} for name in ("clicks", "logs")],
        "replicas": [{"dataset": "clicks", "region": "east"}, {"dataset": "logs", "region": "west"}],
        "rules": [{"dataset": name, "region": region, "rule": "pinned"} for name, region in pins],
        "workloads": [{"workload": "rank", "tier": 0, "cpu_cores": 4}],
        "reads": [{"workload": "rank", "dataset": "clicks", "tb_per_day": 1}],
        "current_runs": [{"workload": "rank", "region": "east"}],
    }
    return mast_opt.from_tables("data-placement", tables, name="exchange", rules={"days": days})


@pytest.fixture(scope="module")
def plan() -> Plan:
    found = mast_opt.solve(exchange(2), "highs", threads=1).plan
    assert found is not None
    return replace(found)  # no longer known as a plan of that instance alone


def test_what_is_late_says_by_how_much_and_what_would_mend_it(plan: Plan) -> None:
    problem = exchange(2)
    order = mast_opt.steps(problem, plan)
    assert order.days == 4
    assert order.late == (
        "the steps take 4 days, 2 days more than the instance states; 'days' = 4, or 2 times the ingress, "
        "or more room meanwhile (3 TB in east, 3 TB in west), would do"
    )
    assert "2 days more" in story(problem, plan).answers[2].detail
    regions = problem.regions
    for repaired in (
        replace(problem, days=Fraction(4)),
        replace(problem, regions=replace(regions, ingress_mb_per_day=regions.ingress_mb_per_day * 2)),
        replace(problem, regions=replace(regions, storage_mb=regions.storage_mb + 3_000_000)),
    ):
        assert mast_opt.steps(repaired, plan).late == ""
    (late,) = goal_sections(problem, figures_of(problem, {"one": plan}))
    (in_time,) = goal_sections(repaired, figures_of(repaired, {"one": plan}))
    (period,) = mast_opt.plan_periods(problem, [mast_opt.Scenario("first", {"days": 2})], solver="highs").periods
    made = Periods("data-placement", (replace(period, solution=replace(period.solution, plan=plan)),), 1)
    section = period_sections(made)[0]
    assert (section.heads[-1].title, section.rows[0][-1]) == ("days until done", "4 (2 over)")
    assert section.note.startswith("first begins today, with its changes in it. Days over: those that the steps take")
    (record,) = period_keys(made)["periods"]
    assert (record["days"], record["days_over"]) == (4, 2.0)
    answer = mast_opt.whatif(problem, [mast_opt.Scenario("growth", {"grow_demand": 1.1})], plan, solver="highs")
    section = whatif_sections(answer)[0]
    cells = dict(zip([head.title for head in section.heads], section.rows[0], strict=True))
    assert (cells["days until done"], "Days over" in section.note) == ("4 (2 over)", True)
    console = Console(file=io.StringIO(), width=80)
    show_whatif(console, "exchange", answer)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"days until done +4 \(2 over\)", printed)
    assert "Days over" in printed
    assert ("days until done, and those over the instance's", "0", "4 (2 over)") in late.rows
    assert any(row[0] == "days until done" and row[1] == "0" and "over" not in str(row[2]) for row in in_time.rows)


def test_the_first_steps_are_not_late(plan: Plan) -> None:
    problem = exchange(2)
    order = mast_opt.steps(problem, plan)
    assert first_steps(problem, plan, len(order.moves) - 1)[0].late == ""
    assert first_steps(problem, plan, len(order.moves))[0].late == order.late


def test_the_first_steps_are_judged_by_the_weights_that_the_plan_was_solved_with() -> None:
    problem = exchange(2)
    found = mast_opt.solve(problem, "highs", threads=1, weights={"copy": 7.0})
    assert found.plan is not None
    assert found.objective != pytest.approx(mast_opt.verify(problem, replace(found.plan)).objective)
    order = mast_opt.steps(problem, found.plan)
    note = first_steps(problem, found.plan, len(order.moves))[0].notes[-1]
    assert float(note.split()[-3]) == pytest.approx(found.objective, rel=1e-3)
