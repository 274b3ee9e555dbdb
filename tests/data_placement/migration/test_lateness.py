"""Migrations that take longer than their days, and what would mend it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import mast_opt
from mast_opt.planner.analysis.goals import figures_of
from mast_opt.planner.analysis.migration_plan import first_steps
from mast_opt.planner.report.html.content import story
from mast_opt.planner.report.result_sections import goal_sections
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
    assert ("days until done, and those over the instance's", "0", "4 (2 over)") in late.rows
    assert any(row[0] == "days until done" and row[1] == "0" and "over" not in str(row[2]) for row in in_time.rows)


def test_the_first_steps_are_not_late(plan: Plan) -> None:
    problem = exchange(2)
    order = mast_opt.steps(problem, plan)
    assert first_steps(problem, plan, len(order.moves) - 1)[0].late == ""
    assert first_steps(problem, plan, len(order.moves))[0].late == order.late
