"""Plans for several periods: each begins with the one before, changes stay, and what takes time is prepared."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InputError, UsageError
from mast_opt.core.solve_result import Status
from mast_opt.planner.report.result_sections import period_sections
from tests.data_placement.migration.handmade import two_regions
from tests.data_placement.workshop import TB, ints
from tests.instance_rows import DataRows

GROWTH = (
    mast_opt.Scenario("first", {"grow_demand": {"all": 1.05}}),
    mast_opt.Scenario("second", {"grow_demand": {"all": 1.04}, "days": 3}),
    mast_opt.Scenario("third", {"grow_demand": {"0": 1.1}}),
)


def test_each_period_begins_with_the_plan_before() -> None:
    problem = mast_opt.generate("data-placement", seed=4, datasets=6, workloads=6, regions=2)
    answer = mast_opt.plan_periods(problem, GROWTH)
    assert answer.complete
    demand = problem.options.mgpu
    now: Any = problem
    for period, factor in zip(answer.periods, (1.05, 1.04, None), strict=True):
        instance: Any = period.instance
        if factor is not None:
            demand = np.ceil(demand * factor - 1e-9)
            np.testing.assert_allclose(instance.options.mgpu, demand, atol=1)
        np.testing.assert_array_equal(instance.datasets.stored, now.datasets.stored)
        alone = mast_opt.solve(instance)
        assert alone.objective == pytest.approx(period.solution.objective)
        plan: Any = period.solution.plan
        copied = instance.datasets.size_mb @ (plan.place & ~instance.datasets.stored).sum(axis=1) / TB
        if period is not answer.periods[0]:  # the instance does not state where work runs today
            assert period.moved["moved_tb"] == pytest.approx(copied)
        now = replace(instance, datasets=replace(instance.datasets, stored=plan.place))
    assert [instance_of(period).days for period in answer.periods] == [1, 3, 3]
    assert answer.moved["moved_tb"] == pytest.approx(sum(one.moved.get("moved_tb", 0) for one in answer.periods))


def instance_of(period: Any) -> Any:
    return period.instance


def test_what_is_over_the_supply_is_said_next_to_the_status() -> None:
    """10 GPUs; 8 of work, then 12, of which 2 are over the supply whatever the plan."""
    builder = DataRows("growing")
    builder.add_region("home", storage_tb=10, cpu_cores=9, gpus={"a100": 10})
    builder.add_dataset("logs", size_tb=1, replicas=["home"])
    builder.add_workload("job", tier=0, cpu_cores=1, gpus={"a100": 8}, reads={"logs": 1}, current_region="home")
    periods = [mast_opt.Scenario("now", {"days": 1}), mast_opt.Scenario("next", {"grow_demand": {"all": 1.5}})]
    planned: list[str] = []
    answer = mast_opt.plan_periods(
        builder.build(), periods, solver="highs", on_period=lambda one: planned.append(one.name), threads=1
    )
    assert planned == ["now", "next"]
    assert {one.solution.status for one in answer.periods} == {Status.OPTIMAL}
    (section, _) = period_sections(answer)
    assert "Over the supply: 2 GPUs in next. The status is that of the objective" in section.note
    assert "'limits = { overload_gpus = 0 }' in a period forbids it" in section.note
    assert (
        period_sections(replace(answer, periods=answer.periods[:1]))[0].note
        == "now begins today, with its changes in it."
    )


def narrow() -> mast_opt.DataPlacement:
    """a (1 TB) and b (100 TB) are in east; west receives 60 TB a day."""
    return two_regions()[0].with_columns(
        {
            "regions.ingress_mb_per_day": ints(0, 60 * TB),
            "regions.ingress_limited": np.array([False, True]),
            "datasets.copies_max": ints(2, 2),
            "days": Fraction(1),
            "links": None,
        }
    )


def test_what_takes_time_is_prepared_in_the_period_before() -> None:
    need = mast_opt.Scenario("need", {"days": 1, "pin": [{"dataset": "b", "region": "west"}]})
    alone = mast_opt.plan_periods(narrow(), [need])
    assert not alone.complete  # 100 TB do not come in a day
    assert alone.periods[-1].solution.status is Status.INFEASIBLE
    answer = mast_opt.plan_periods(narrow(), [mast_opt.Scenario("before", {"days": 2}), need])
    assert answer.complete
    before, after = answer.periods
    assert before.prepares
    assert before.solution.plan is not None
    assert before.solution.plan.place[1, 1]
    assert before.moved["moved_tb"] >= 100
    assert after.moved["moved_tb"] == 0
    too_late = mast_opt.plan_periods(narrow(), [mast_opt.Scenario("before", {"days": 1.5}), need])
    assert not too_late.complete
    assert [one.name for one in too_late.periods] == ["before", "need"]


def test_files_of_periods(tmp_path: Path) -> None:
    path = tmp_path / "periods.toml"
    path.write_text('[[period]]\nname = "q1"\ndays = 2\n[[period]]\nname = "q2"\ngrow_demand = { all = 2 }\n')
    assert [(one.name, dict(one.changes)) for one in mast_opt.read_periods(path)] == [
        ("q1", {"days": 2}),
        ("q2", {"grow_demand": {"all": 2}}),
    ]
    path.write_text('[[scenario]]\nname = "q1"\n')
    with pytest.raises(InputError, match=r"expected one or more tables headed \[\[period\]\]"):
        mast_opt.read_periods(path)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(UsageError, match="two scenarios cannot both be called"):
        mast_opt.plan_periods(narrow(), [GROWTH[0], GROWTH[0]])
    with pytest.raises(UsageError, match="days is -1; expected a number of days above 0"):
        mast_opt.plan_periods(narrow(), [mast_opt.Scenario("x", {"days": -1})])
    with pytest.raises(UsageError, match="task-reassignment is not planned over periods"):
        mast_opt.plan_periods(mast_opt.generate("task-reassignment"), GROWTH)
