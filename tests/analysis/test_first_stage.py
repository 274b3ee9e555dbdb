"""The first stage after the loss of a region: what starts without copies, and the plan from there."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

import mast_opt
from mast_opt import Scenario
from mast_opt.planner.report.change_sections import stopped_sections
from mast_opt.planner.report.html.content import report
from mast_opt.planner.report.result_sections import recovery_sections
from mast_opt.planner.report.terminal.analysis import show_whatif
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.migration.plan_rows import _by_tier
from mast_opt.problems.kind.migration_plan import Move
from mast_opt.problems.kind.presentation import Section
from tests.instance_rows import DataRows

LOST = Scenario("home is lost", {"lose_regions": ["home"]})


def company() -> DataPlacement:
    """Of work at home, that with a copy elsewhere can run there over the supply at once, or two days later within it
    where its data is copied to; ``gone`` has no other copy."""
    builder = DataRows("company", remote_reads="forbid", days=9)
    builder.add_region("home", storage_tb=9, cpu_cores=9, gpus={"a100": 12})
    builder.add_region("full", storage_tb=9, cpu_cores=9, gpus={"a100": 4})
    builder.add_region("free", storage_tb=9, cpu_cores=9, gpus={"a100": 8}, ingress_tb_per_day=1)
    for name, tier, held in (("first", 0, ["home", "full"]), ("second", 1, ["home", "full"]), ("gone", 0, ["home"])):
        builder.add_dataset(f"data-{name}", size_tb=2, replicas=held)
        reads = {f"data-{name}": 1}
        builder.add_workload(name, tier=tier, cpu_cores=0, gpus={"a100": 4}, reads=reads, current_region="home")
    return builder.build()


def recovered(**changes: object) -> tuple[mast_opt.WhatIf[Any], tuple[Section, ...]]:
    answer = mast_opt.whatif(company(), [Scenario("it", {**LOST.changes, **changes})], solver="highs", threads=1)
    return answer, recovery_sections(answer)


def test_work_starts_at_once_over_the_supply_and_moves_once_its_data_is_copied() -> None:
    answer, (work, without) = recovered()
    (one,) = answer.outcomes
    assert work.rows == (
        ("first", 0, 4.0, 1, "first stage"),
        ("second", 1, 4.0, 2, "after room in full"),
        ("1 workload", 0, 4.0, None, "data is lost"),
    )
    assert without.rows == (("second", 1, "full", "a100", 4.0, 4.0, None),)
    assert "GPUs missing: tier 1: 4 then 0." in without.note
    assert one.first is not None
    assert one.solution.plan is not None
    for plan in (one.first, one.solution.plan):
        assert mast_opt.verify(one.problem, plan).ok
    order = mast_opt.steps(one.problem, one.first, then=[one.solution.plan])
    assert sorted((move.day or 0, move.action, move.what) for move in order.moves if move.action != "delete") == [
        (0, "copy", "data-first"),
        (0, "start", "first"),
        (0, "start", "second"),
        (1, "copy", "data-first"),
        (1, "move", "first"),
    ]
    assert one.way.days == order.days
    assert [len(found) for found in order.waiting] == [1, 0]
    assert [move.gpus_missing for move in order.moves if move.action == "start"] == [0.0, 4.0]
    down = stopped_sections(mast_opt.steps(one.problem, one.first))[0]
    assert [row[-3:] for row in down.rows] == [(1, 1, None), (None, None, 4.0), (None, None, None)]
    assert "No GPUs are free for 1 where they start." in down.note


def test_without_copies_there_is_one_stage() -> None:
    """Where copies are forbidden, the plan is the first stage."""
    answer, (work, without) = recovered(limits={"copied_tb": 0})
    assert answer.outcomes[0].first is None
    assert [row[-1] for row in work.rows] == ["at once", "no GPUs free: 4 of 4 wait", "data is lost"]
    assert without.rows == (("second", 1, "full", "a100", 4.0, 4.0),)


def test_the_unavoidable_part_is_that_of_the_plan_from_the_first_stage() -> None:
    """``gone`` is a third of the GPUs: nothing else is left open or over the supply."""
    answer, _ = recovered()
    (one,) = answer.outcomes
    assert one.solution.verdict is not None
    assert one.solution.verdict.terms["unserved"] > 0
    assert one.solution.objective is not None
    assert 0 <= one.solution.objective - one.unavoidable < 1


def test_a_report_goes_through_the_first_stage() -> None:
    answer, _ = recovered()
    (one,) = answer.outcomes
    assert one.order is not None
    assert one.solution.plan is not None
    found = report(one.problem, one.solution.plan, losses=False, first=one.first)
    days = next(answered for answered in found.answers if answered.topic == "When it is done")
    assert days.value == f"{one.order.days} days"
    assert days.detail.startswith(f"{len(one.order.moves)} steps in {one.order.waves} waves")
    assert ("days until done", "0", f"{one.order.days}") in found.compared[0].rows


def test_starts_of_a_first_stage_are_by_tier() -> None:
    """``second`` could start a wave before ``first``, which is more important; the day stays."""
    problem = recovered()[0].outcomes[0].problem
    moves = [
        Move(0, "start", "second", None, "full", day=0),
        Move(1, "start", "first", None, "full", day=0),
        Move(2, "start", "second", None, "free", day=1),
    ]
    found = [(move.wave, move.what, move.day) for move in _by_tier(problem, moves)]
    assert found == [(0, "first", 0), (0, "second", 0), (1, "second", 1)]


def test_work_of_lost_regions_is_said_to_stand_still() -> None:
    answer, _ = recovered()
    console = Console(file=io.StringIO(), width=200)
    show_whatif(console, "company", answer)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "it: with the base plan, work that used 12 GPUs in lost regions stands still." in text
