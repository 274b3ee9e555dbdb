"""Sources of copies: the cheapest link with room, chosen once, and the same in the steps."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

import mast_opt
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.migration.plan_rows import migration_plan
from mast_opt.problems.data_placement.plan import filled
from mast_opt.problems.data_placement.prices import with_cheapest_sources
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
