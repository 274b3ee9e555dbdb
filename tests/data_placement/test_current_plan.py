"""The present state as a plan, and as what an exact solve begins with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError
from mast_opt.problems.data_placement.entities import CurrentRuns
from mast_opt.problems.data_placement.migration.workload_moves import todays_cells
from mast_opt.problems.data_placement.plan import filled, today
from tests.data_placement.support import begun_with
from tests.data_placement.workshop import A100, NO_GPU, PLAN, PROBLEM, A, B, C, ints
from tests.narrowing import some


def settled() -> mast_opt.DataPlacement:
    """An instance in which all work runs, somewhere, where what it needs fits."""
    problem = mast_opt.generate("data-placement", "standard", seed=2, datasets=6, workloads=6, regions=2)
    return begun_with(problem, some(mast_opt.solve(problem).plan))


def test_nothing_changes_in_todays_plan() -> None:
    problem = settled()
    plan = today(problem)
    assert plan is not None
    verdict = mast_opt.verify(problem, plan)
    assert verdict.ok
    assert np.array_equal(plan.place, problem.datasets.stored)
    assert verdict.terms["copy"] == 0
    assert verdict.terms["moved_work"] == 0


def test_a_type_that_is_not_stated_is_the_first_accepted_one_that_the_region_has() -> None:
    problem = settled()
    vague = problem.with_columns(
        {"current_runs.gpu_type": np.full_like(problem.current_runs.gpu_type, len(problem.gpu_types))}
    )
    plan = today(vague)
    assert plan is not None
    for workload, region, kind in zip(plan.run_workload, plan.run_region, plan.run_type, strict=True):
        accepted = problem.options.gpu_type[problem.options.workload == workload].tolist()
        there = [k for k in accepted if k < len(problem.gpu_types) and problem.regions.supply_mgpu[region, k]]
        assert kind == [*there, *accepted][0]


def test_empty_shares_count_for_nothing() -> None:
    problem = settled()
    first = problem.current_runs.workload[0]
    rows = np.append(np.arange(len(problem.current_runs)), 0)
    share, region = problem.current_runs.share[rows], problem.current_runs.region[rows]
    share[-1], region[-1] = 0, 1 - region[0]
    padded = problem.with_columns(
        {
            "current_runs.workload": problem.current_runs.workload[rows],
            "current_runs.region": region,
            "current_runs.gpu_type": problem.current_runs.gpu_type[rows],
            "current_runs.share": share,
        }
    )
    plan = today(padded)
    assert plan is not None
    assert plan.run_share[plan.run_workload == first].tolist() == [1000]
    assert mast_opt.verify(padded, plan).ok


def test_a_row_that_occurs_twice_is_a_fault() -> None:
    problem = settled()
    rows = np.append(np.arange(len(problem.current_runs)), 0)
    with pytest.raises(InstanceError, match=r"current_runs\.workload\[.*workload, region, gpu_type that differ"):
        CurrentRuns(*(getattr(problem.current_runs, column.name)[rows] for column in CurrentRuns.COLUMNS))


def test_what_no_region_holds_is_read_from_nowhere() -> None:
    problem = settled()
    lost = int(problem.reads.dataset[0])
    stored = problem.datasets.stored.copy()
    stored[lost] = False
    plan = today(replace(problem, datasets=replace(problem.datasets, stored=stored)))
    assert plan is not None
    assert lost not in plan.remote_dataset.tolist()
    assert (plan.remote_source >= 0).all()


def test_a_run_that_cannot_read_breaks_one_limit_for_each_read() -> None:
    problem = replace(settled(), remote_reads=False)
    plan = filled(problem, np.zeros_like(problem.datasets.stored), some(today(problem)).rows("run"))
    broken = [one.name for one in mast_opt.verify(problem, plan).violations]
    assert sum(name.startswith("local") for name in broken) == len(problem.reads)
    assert not any(name.startswith("remote") for name in broken)
    assert not len(filled(replace(problem, remote_reads=True), plan.place, plan.rows("run")).remote_source)


def test_an_instance_that_does_not_tell_has_none() -> None:
    assert today(mast_opt.generate("data-placement", "standard", datasets=6, workloads=6, regions=2)) is None


@pytest.mark.parametrize("solver", ["highs", "cpsat"])
def test_no_plan_is_worse_than_changing_nothing(solver: str) -> None:
    problem = settled()
    plan = today(problem)
    assert plan is not None
    now = mast_opt.verify(problem, plan).objective
    solution = mast_opt.solve(problem, solver)
    assert solution.events[0].incumbent == pytest.approx(now, rel=1e-4)
    assert solution.objective is not None
    assert solution.objective <= now * (1 + 1e-9)


def test_a_type_that_is_not_stated_is_guessed_alike_by_today_and_by_steps() -> None:
    """train accepts h100 first and a100 too. Region c has no h100, so its run there is taken to be on a100."""
    untyped = PROBLEM.with_columns({"current_runs.region": ints(C, A), "current_runs.gpu_type": ints(NO_GPU, NO_GPU)})
    found = today(untyped)
    assert found is not None
    assert found.run_type.tolist() == [A100, NO_GPU]
    elsewhere = replace(PLAN, run_region=ints(B, A, B, C))
    cells = {(w, *cell) for w, there in todays_cells(untyped, elsewhere).items() for cell in there}
    assert cells == set(zip(found.run_workload.tolist(), found.run_region.tolist(), found.run_type.tolist()))
