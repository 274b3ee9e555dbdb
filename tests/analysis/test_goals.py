"""Goals that stand for weights: what each puts first, side by side with doing nothing, and where one means nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.planner.report.result_sections import goal_sections
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.goals import money_weights
from mast_opt.problems.kind.problem import Problem

MOVES = ("process_move", "service_move", "machine_move")


def dearer_at_home() -> DataPlacement:
    """Three jobs of 4 GPUs in a region that has 10, while an empty one with a copy of the data costs half."""
    builder = mast_opt.DataPlacementBuilder("expensive-at-home")
    builder.add_region("home", storage_tb=10, cpu_cores=100, gpus={"a100": 10}, usd_per_gpu_hour={"a100": 4})
    builder.add_region("away", storage_tb=10, cpu_cores=100, gpus={"a100": 12}, usd_per_gpu_hour={"a100": 2})
    builder.add_dataset("logs", size_tb=1, replicas=["home", "away"])
    for name in ("one", "two", "three"):
        builder.add_workload(name, tier=0, cpu_cores=1, gpus={"a100": 4}, reads={"logs": 1}, current_region="home")
    return builder.build()


def test_each_goal_gets_what_it_names() -> None:
    answer = mast_opt.solve_goals(dearer_at_home(), solver="highs", threads=1)
    assert {found.status for found in answer.solutions.values()} == {Status.OPTIMAL}
    assert list(answer.figures) == ["do nothing", "least-change", "balanced", "cheapest"]
    metrics = {name: one.verdict.metrics for name, one in answer.figures.items()}
    terms = {name: one.verdict.terms for name, one in answer.figures.items()}
    assert [one["overload_gpus"] for one in metrics.values()] == [2, 0, 0, 0]
    assert [round(one["moved_work"], 3) for one in terms.values()] == [0, 0.333, 0.333, 1]
    assert terms["cheapest"]["running_cost"] == pytest.approx(2 * 12 * 730)
    assert terms["do nothing"]["running_cost"] == pytest.approx(4 * 12 * 730)
    section = goal_sections(dearer_at_home(), answer.figures)[0]
    assert [head.title for head in section.heads] == ["figure", *answer.figures]
    rows = {row[0]: row[1:] for row in section.rows}
    assert rows["GPUs over the supply"] == ("2", "0", "0", "0")
    assert rows["work that changes region"] == ("0.0%", "33.3%", "33.3%", "100.0%")
    assert rows["USD a month, of what fits"] == ("29,200", "29,200", "29,200", "17,520")
    assert rows["USD a month more, if GPUs over the supply existed"] == ("5,840", "0", "0", "0")


def test_a_plan_of_a_goal_is_verified_by_its_own_weights(tmp_path: Path) -> None:
    problem = dearer_at_home()
    solution = mast_opt.solve(problem, "highs", goal="balanced", limits={"moved_work": 0.5})
    mast_opt.write_plan(problem, solution, tmp_path / "plan")
    from mast_opt.planner.io import read_plan_of

    reading = read_plan_of(problem, tmp_path / "plan")
    assert reading.overrides.peak_levels == {0: 0.9}
    assert solution.verdict is not None
    assert mast_opt.verify(reading.problem, reading.plan).objective == pytest.approx(solution.verdict.objective)


def test_without_prices_nothing_is_cheapest() -> None:
    problem = mast_opt.generate("data-placement", seed=1, datasets=5, workloads=6, regions=3)
    with pytest.raises(UsageError, match="states no prices"):
        mast_opt.solve(problem, goal="cheapest")
    answer = mast_opt.solve_goals(problem, solver="highs", time_limit_s=20.0)
    assert list(answer.solutions) == ["least-change", "balanced"]
    assert "no prices" in answer.refused["cheapest"]


@pytest.mark.parametrize(
    ("kind", "sizes", "counted"),
    [
        ("job-placement", {"jobs": 4, "clusters": 2}, {"rejected", "preemption", "remote"}),
        ("server-assignment", {"servers": 12}, {"shortfall", "repair", "moves_in_use", "moves_idle"}),
        (
            "task-reassignment",
            {"processes": 6, "machines": 3},
            {"load", "process_move", "service_move", "machine_move"},
        ),
    ],
)
def test_other_kinds_have_the_goals_that_mean_something(kind: str, sizes: dict[str, int], counted: set[str]) -> None:
    problem: Problem[Any] = mast_opt.generate(kind, None, seed=1, **sizes)
    answer = mast_opt.solve_goals(problem, solver="highs", time_limit_s=20.0)
    assert set(answer.solutions) == {"least-change", "balanced"}
    weights = answer.solutions["least-change"].overrides.weights
    assert {term for term, weight in weights.items() if weight} == counted
    assert not answer.solutions["balanced"].overrides
    assert ("cheapest" in answer.refused) == (kind == "job-placement")


def test_a_goal_states_the_objective() -> None:
    problem = dearer_at_home()
    with pytest.raises(UsageError, match="leave out weights and order"):
        mast_opt.solve(problem, goal="cheapest", weights={"copy": 1.0})
    with pytest.raises(UsageError, match="no goal called 'cheep': it has least-change, balanced, cheapest"):
        mast_opt.solve(problem, goal="cheep")
    policy = mast_opt.generate("resource-allocation", seed=1)
    with pytest.raises(UsageError, match="its objective is a policy"):
        mast_opt.solve(policy, goal="balanced")
    with pytest.raises(UsageError, match="has no goals"):
        mast_opt.solve_goals(policy)


def test_money_weighs_what_the_whole_fleet_costs() -> None:
    weights = money_weights(dearer_at_home(), 1.0)
    assert weights["running_cost"] == pytest.approx(1 / ((4 * 10 + 2 * 12) * 730), rel=0.2)
    assert weights["migration_cost"] == pytest.approx(weights["running_cost"] / 12, rel=0.25)
