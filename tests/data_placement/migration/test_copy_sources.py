"""Sources of copies: the cheapest link with room, chosen once, and the same in the steps; relays where cheaper."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.planner.analysis.goals import figures_of
from mast_opt.planner.analysis.migration_plan import first_steps
from mast_opt.planner.report.html.content import report
from mast_opt.planner.report.result_sections import goal_sections
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.migration.plan_rows import migration_plan
from mast_opt.problems.data_placement.migration.planner import steps
from mast_opt.problems.data_placement.migration.relays import relays
from mast_opt.problems.data_placement.migration.replica_moves import Moving
from mast_opt.problems.data_placement.plan import filled
from mast_opt.problems.data_placement.prices import with_cheapest_sources
from mast_opt.problems.kind.migration_plan import COPIES_TO_MAKE
from mast_opt.problems.registry import kind_of
from tests.data_placement.migration.strategies import exchanges
from tests.data_placement.migrations import replay
from tests.data_placement.workshop import ints
from tests.instance_rows import DataRows

NEAR, DEAR, NEW = 0, 1, 2


def two_sources(days: int = 2, names: tuple[str, str] = ("near", "dear")) -> tuple[DataPlacement, Plan]:
    """x and y, 10 TB each, are in two regions; 10 TB a day reach a third from each, for 5 USD a TB from dear and 1 from
    near. The plan copies both from dear."""
    builder = DataRows("two-sources", days=days)
    for name in (*names, "new"):
        builder.add_region(name, storage_tb=40, cpu_cores=9, gpus={"a100": 8})
    for name, usd in zip(names, (1, 5), strict=True):
        builder.add_link(name, "new", tb_per_day=10, usd_per_tb=usd)
    for name in ("x", "y"):
        builder.add_dataset(name, size_tb=10, replicas=names, copies_min=3)
    builder.add_workload("job", tier=0, cpu_cores=1, gpus={"a100": 4}, reads={"x": 1}, current_region=names[0])
    problem = builder.build()
    plan = filled(problem, np.ones((2, 3), np.bool_), [ints(0), ints(0), ints(0), ints(1000)])
    return problem, plan.with_rows(copy=(ints(0, 1), ints(DEAR, DEAR), ints(NEW, NEW), ints(1000, 1000)))


def test_copies_come_over_the_cheapest_link_with_room() -> None:
    problem, plan = two_sources()
    cheapest = with_cheapest_sources(problem, plan)
    assert cheapest.copy_source.tolist() == [NEAR, NEAR]
    assert mast_opt.verify(problem, cheapest).ok
    usd = [mast_opt.verify(problem, one).terms["migration_cost"] for one in (plan, cheapest)]
    assert usd == [100, 20]
    assert with_cheapest_sources(problem, cheapest) is cheapest
    hasty = replace(problem, days=Fraction(1))
    assert sorted(with_cheapest_sources(hasty, plan).copy_source.tolist()) == [NEAR, DEAR]
    assert with_cheapest_sources(replace(hasty, days=Fraction(1, 2)), plan) == plan  # neither fits a link
    other, same = two_sources(names=("zebra", "aardvark"))
    assert with_cheapest_sources(other, same).copy_source.tolist() == [NEAR, NEAR]
    weightless = problem.with_objective({"running_cost": 0.0, "migration_cost": 0.0, "egress": 0.0})
    for start in (plan, None):
        found = mast_opt.solve(weightless, "highs", start=start, threads=1)
        assert found.plan is not None
        assert found.plan.copy_source.tolist() == [NEAR, NEAR]
        assert found.verdict is not None
        assert found.verdict.terms["migration_cost"] == 20


def test_steps_copy_from_where_the_plan_does() -> None:
    """Both wait for the link from near, one day each; in a single day one of them has to come from dear."""
    problem, plan = two_sources()
    cheapest = with_cheapest_sources(problem, plan)
    order = mast_opt.steps(problem, cheapest)
    assert [(move.source, move.day) for move in order.moves] == [("near", 0), ("near", 1)]
    assert order.notes == ()
    order = migration_plan(replace(problem, days=Fraction(1)), cheapest)
    assert sorted((move.source or "", move.day) for move in order.moves) == [("dear", 0), ("near", 0)]
    (note,) = order.notes
    assert note.startswith("10 TB are copied from other regions than in the plan")
    assert note.endswith("copies cost 60 USD instead of 20 USD")


def far_pair(
    days: int = 4, names: tuple[str, str, str] = ("old", "b", "c"), usd: int = 20
) -> tuple[DataPlacement, Plan]:
    """x, 10 TB, goes to two regions at 20 USD a TB each; a TB costs 1 USD between the two. Links take 10 TB a day."""
    builder = DataRows("far-pair", days=days)
    for name in names:
        builder.add_region(name, storage_tb=40, cpu_cores=9, gpus={"a100": 8})
    old, b, c = names
    for source, target, price in ((old, b, 20), (old, c, usd), (b, c, 1), (c, b, 1)):
        builder.add_link(source, target, tb_per_day=10, usd_per_tb=price)
    builder.add_dataset("x", size_tb=10, replicas=(old,), copies_min=1)
    builder.add_workload("job", tier=0, cpu_cores=1, gpus={"a100": 4}, reads={"x": 0.1}, current_region=old)
    problem = builder.build()
    plan = filled(problem, np.ones((1, 3), np.bool_), [ints(0), ints(0), ints(0), ints(1000)])
    assert mast_opt.verify(problem, plan).ok
    return problem, plan


@pytest.mark.parametrize("names", [("old", "b", "c"), ("z", "y", "x")])
def test_a_new_replica_relays_where_that_costs_less(names: tuple[str, str, str]) -> None:
    problem, plan = far_pair(names=names, usd=21)
    order = mast_opt.steps(problem, plan)
    old, near, far = names
    assert [(move.source, move.target, move.day, move.usd) for move in order.moves] == [
        (old, near, 0, 200),
        (near, far, 1, 10),
    ]
    assert order.usd == 210
    assert order.notes == ("10 TB come from new replicas: over links, copies cost 210 USD instead of 410 USD",)
    replay(problem, plan, steps(problem, plan))
    cut, partial = first_steps(problem, plan, 1)
    assert cut.usd == 200
    assert mast_opt.verify(problem, partial).ok
    assert partial.place.tolist() == [[True, True, False]]


def test_plans_are_compared_with_what_their_steps_cost() -> None:
    problem, plan = far_pair()
    (section, *_) = goal_sections(problem, figures_of(problem, {"plan": plan}))
    rows = {row[0]: row[-1] for row in section.rows}
    assert rows["USD once"] == "210"
    assert "USD once is what the steps cost" in section.note
    assert section.note.startswith(
        "USD once is what the steps cost; the term migration_cost, for copies from today's replicas alone, is 400."
    )
    (section, *_) = goal_sections(problem, figures_of(replace(problem, days=Fraction(1)), {"plan": plan}))
    assert {row[0]: row[-1] for row in section.rows}["USD once"] == "400"
    assert "USD once" not in section.note


def test_a_report_shows_the_copies_and_the_price_of_the_steps() -> None:
    """Both copies of the plan come from old for 400 USD; of its steps one comes from b."""
    problem, plan = far_pair()
    found = report(problem, plan)
    by_steps = (("old", "b", 10.0), ("b", "c", 10.0))
    tables = [one for one in (*(table for _, table in found.pictures), *found.sections) if one.title == COPIES_TO_MAKE]
    assert [tuple(row[:3] for row in one.rows) for one in tables] == [by_steps, by_steps]
    assert tables[1].note.endswith("By the steps, 20.0 TB for 210 USD.")
    words = {one.topic: one.detail for one in found.answers}
    assert "Copies cost 210 USD." in words["When it is done"]
    assert "400" not in words["Cost"]
    (note,) = kind_of(problem).presentation.change_notes(*(mast_opt.verify(problem, plan),) * 2)
    assert note.startswith("migration_cost (400) is for copies from today's replicas")


def test_relays_take_no_longer_than_copies_may() -> None:
    """The second copy begins on the day after the first has arrived, so that both take two days."""
    problem, plan = far_pair(days=2)
    assert mast_opt.steps(problem, plan).days == 2
    hasty = replace(problem, days=Fraction(1))
    order = mast_opt.steps(hasty, plan)
    assert (order.usd, order.days, order.notes) == (400, 1, ())
    free = problem.with_columns({"links.price_usd_per_tb": np.zeros(4)})
    assert relays(Moving(free, plan)) == {}
    narrow = problem.with_columns({"links.capacity_mb_per_day": ints(10**7, 10**7, 10**6, 10**6)})
    assert relays(Moving(narrow, plan)) == {}  # in two days, no link between the two takes the whole


@given(exchanges(), st.data())
def test_steps_with_relays_keep_every_limit(case: tuple[DataPlacement, Plan], data: st.DataObject) -> None:
    problem, plan = case
    links = 0 if problem.links is None else len(problem.links)
    prices = np.array([data.draw(st.integers(0, 3)) * 10**6 for _ in range(links)], np.float64)
    problem = problem.with_columns({"links.price_usd_per_tb": prices} if links else {})
    plan = with_cheapest_sources(problem, plan)
    order = steps(problem, plan)
    replay(problem, plan, order)
    found = relays(Moving(problem, plan))
    whole = {(one.dataset, one.region): one.day + one.days for one in order.steps if not one.deletes}
    relayed = [one for one in order.steps if found.get((one.dataset, one.region), -1) == one.source]
    if order.days <= problem.days and not order.stops:
        assert all(whole[one.dataset, found[one.dataset, one.region]] <= one.day for one in relayed)
