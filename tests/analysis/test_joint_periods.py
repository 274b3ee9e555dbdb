"""All periods in one program: never worse than one after another, verified in a row, and what it cannot state."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.problems.data_placement.analysis.scenarios import carried
from tests.data_placement.migration.handmade import two_regions
from tests.data_placement.workshop import TB, ints


def growing(problem: mast_opt.DataPlacement) -> tuple[mast_opt.Scenario, ...]:
    cores = dict.fromkeys(problem.regions.labels, 2000)
    gpus = [{"region": problem.regions.labels[0], "gpu_type": problem.gpu_types[0], "gpus": 64}]
    return (
        mast_opt.Scenario("first", {"grow_demand": {"all": 1.05}, "add_cpu_cores": cores}),
        mast_opt.Scenario("second", {"grow_demand": {"all": 1.2}, "days": 3, "add_gpus": gpus}),
        mast_opt.Scenario("third", {"grow_demand": {"all": 1.1}}),
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_no_run_one_after_another_is_better(seed: int) -> None:
    problem = mast_opt.generate("data-placement", seed=seed, datasets=5, workloads=6, regions=3)
    periods = growing(problem)
    rolling = mast_opt.plan_periods(problem, periods, threads=1)
    joint = mast_opt.plan_periods_jointly(problem, periods, threads=1)
    assert joint.status is Status.OPTIMAL
    assert joint.objective is not None
    assert joint.bound is not None
    assert rolling.objective is not None
    assert joint.objective <= rolling.objective * (1 + 2e-4)
    assert joint.bound <= joint.objective
    begun = mast_opt.plan_periods_jointly(problem, periods, start=rolling, threads=1)
    assert begun.objective == pytest.approx(joint.objective, rel=2e-4)
    before: Any = None
    total = 0.0
    for period in joint.periods:
        instance: Any = period.instance
        plan: Any = period.solution.plan
        verdict = mast_opt.verify(instance, plan)
        assert verdict.ok
        total += verdict.objective
        if before is not None:
            np.testing.assert_array_equal(instance.datasets.stored, before.datasets.stored)
            np.testing.assert_array_equal(instance.current_runs.region, before.current_runs.region)
        before = carried(instance, plan)
    assert total == pytest.approx(joint.objective)


def test_one_period_is_the_problem_itself() -> None:
    problem = mast_opt.generate("data-placement", seed=2, datasets=5, workloads=6, regions=3)
    joint = mast_opt.plan_periods_jointly(problem, [mast_opt.Scenario("now", {"days": 1})], threads=1)
    assert joint.objective == pytest.approx(mast_opt.solve(problem, "highs").objective, rel=2e-4)


def crowded() -> mast_opt.DataPlacement:
    """a and b (50 TB each) are in east; west receives 60 TB a day."""
    return two_regions()[0].with_columns(
        {
            "datasets.size_mb": ints(50 * TB, 50 * TB),
            "regions.ingress_mb_per_day": ints(0, 60 * TB),
            "regions.ingress_limited": np.array([False, True]),
            "datasets.copies_max": ints(2, 2),
            "days": Fraction(1),
            "links": None,
        }
    )


def test_copies_are_spread_over_periods_where_one_period_back_is_too_late() -> None:
    need = [{"dataset": name, "region": "west"} for name in ("a", "b")]
    periods = [mast_opt.Scenario("before", {"days": 1}), mast_opt.Scenario("need", {"pin": need})]
    assert not mast_opt.plan_periods(crowded(), periods).complete
    joint = mast_opt.plan_periods_jointly(crowded(), periods)
    assert [period.moved["moved_tb"] for period in joint.periods] == [50, 50]
    late = mast_opt.plan_periods_jointly(crowded(), periods[1:])
    assert late.status is Status.INFEASIBLE
    assert late.periods == ()
    assert late.objective is None


def test_what_cannot_be_stated_together_is_named() -> None:
    problem = mast_opt.generate("data-placement", "links", seed=1, datasets=4, workloads=5, regions=3)
    now = [mast_opt.Scenario("now", {"limits": {"copied_tb": 5}}), mast_opt.Scenario("lost", {"lose_regions": ["r0"]})]
    with pytest.raises(UsageError, match=r"links.*limits on what moves \(copied_tb\), regions that are lost"):
        mast_opt.plan_periods_jointly(problem, now)
    with pytest.raises(UsageError, match="tetris searches"):
        mast_opt.plan_periods_jointly(problem, now, solver="tetris")
    with pytest.raises(UsageError, match="task-reassignment has no program of several periods"):
        mast_opt.plan_periods_jointly(mast_opt.generate("task-reassignment", processes=6, machines=3), now)
