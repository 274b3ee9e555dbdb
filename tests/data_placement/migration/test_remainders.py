"""Parts of work that are too small to be moved are in no step, and in no plan that is as good without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.planner.analysis.migration_plan import REMAINDERS, first_steps
from mast_opt.planner.solving.dispatch import _whole
from mast_opt.planner.solving.request import Request
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.migration.remainders import without_remainders
from mast_opt.problems.data_placement.plan import today
from tests.data_placement.workshop import ints
from tests.instance_rows import DataRows

EAST, WEST = 0, 1


def company() -> DataPlacement:
    """Two jobs of 32 GPUs that run in the east; the west has as many."""
    builder = DataRows("small-parts")
    for name in ("east", "west"):
        builder.add_region(name, storage_tb=9, cpu_cores=9, gpus={"a100": 64})
    builder.add_dataset("logs", size_tb=1, replicas=["east", "west"])
    for name in ("rank", "spam"):
        reads = {"logs": 1}
        builder.add_workload(
            name, tier=0, cpu_cores=1, gpus={"a100": 32}, reads=reads, current_region="east", splittable=True
        )
    return builder.build()


def plan_of(problem: DataPlacement, *rows: tuple[int, int, int]) -> Plan:
    """The plan with runs (workload, region, share)."""
    found = today(problem)
    assert found is not None
    workload, region, share = zip(*rows, strict=True)
    return found.with_rows(run=(ints(*workload), ints(*region), ints(*([0] * len(rows))), ints(*share)))


@pytest.mark.parametrize(
    ("rows", "whole"),
    [
        pytest.param([(0, EAST, 999), (0, WEST, 1)], [(0, EAST, 1000)], id="a hundredth of a GPU stays"),
        pytest.param([(0, EAST, 1), (0, WEST, 999)], [(0, WEST, 1000)], id="or goes with the rest"),
        pytest.param([(0, EAST, 900), (0, WEST, 100)], [(0, EAST, 900), (0, WEST, 100)], id="3 GPUs may move"),
    ],
)
def test_parts_of_less_than_a_gpu_are_not_moved(
    rows: list[tuple[int, int, int]], whole: list[tuple[int, int, int]]
) -> None:
    problem = company()
    plan, wanted = (plan_of(problem, *one, (1, EAST, 1000)) for one in (rows, whole))
    assert without_remainders(problem, plan) == wanted
    order = mast_opt.steps(problem, plan)
    assert all((move.amount or 0.0) >= 1 for move in order.moves if move.unit == "GPUs")
    assert (REMAINDERS in order.notes) is (rows != whole)
    assert order.moves == mast_opt.steps(problem, wanted).moves
    assert first_steps(problem, plan, len(order.moves))[1].rows("run")[3].tolist() == wanted.rows("run")[3].tolist()


def test_work_that_reads_remotely_is_left_as_it_is() -> None:
    problem = company()
    plan = plan_of(problem, (0, EAST, 999), (0, WEST, 1), (1, EAST, 1000))
    elsewhere = replace(plan, place=np.array([[True, False]]))
    assert without_remainders(problem, elsewhere) is elsewhere


def test_a_small_difference_from_today_is_no_step() -> None:
    problem = company().with_columns({"current_runs.share": ints(500, 1000)})
    half = replace(
        problem,
        current_runs=replace(
            problem.current_runs,
            workload=ints(0, 0, 1),
            region=ints(EAST, WEST, EAST),
            gpu_type=ints(0, 0, 0),
            share=ints(500, 500, 1000),
        ),
    )
    plan = plan_of(half, (0, EAST, 510), (0, WEST, 490), (1, EAST, 1000))
    assert without_remainders(half, plan).rows("run")[3].tolist() == [500, 500, 1000]
    assert not mast_opt.steps(half, plan).moves


@pytest.mark.parametrize("overload", [1000.0, 1e-3])
@pytest.mark.parametrize("lacks_mgpu", [0, 32, 200])
def test_a_plan_keeps_a_part_where_it_would_be_worse_without(overload: float, lacks_mgpu: int) -> None:
    """The east lacks a fifth of a GPU, a thirtieth, which is not shown, or none; the weight of overload is large or
    small, next to storage."""
    crowded = company().with_columns({"regions.supply_mgpu": ints((64_000 - lacks_mgpu,), (64_000,))})
    problem = crowded.with_objective({"overload": overload, "storage": 1.0, "moved_work": 0.0})
    plan = plan_of(problem, (0, EAST, 999), (0, WEST, 1), (1, EAST, 1000))
    verdict = mast_opt.verify(problem, plan)
    assert verdict.ok
    solved = mast_opt.solve(problem, "highs", threads=1)
    worse = replace(
        solved, plan=plan, verdict=verdict, objective=verdict.objective, status=Status.FEASIBLE, last_pass=None
    )
    request: Request[Plan] = Request(problem, "highs", None, SolveParams(gap=1e-4), None, None, "base", None)
    assert _whole(None, worse, replace(request, freeze={"region": ["east"]})) is worse
    found = _whole(None, worse, request)
    kept = lacks_mgpu > 100 or (lacks_mgpu > 0 and overload > 1)
    assert (found.plan == plan) is kept
    if not kept:
        assert found.plan == without_remainders(problem, plan)
        assert found.verdict == mast_opt.verify(problem, found.plan)
        assert found.objective == found.verdict.objective
    order, carried_out = first_steps(problem, plan, 9)
    wanted = plan if lacks_mgpu > 100 else without_remainders(problem, plan)
    assert mast_opt.verify(problem, carried_out).terms == mast_opt.verify(problem, wanted).terms
    assert (REMAINDERS in order.notes) is (lacks_mgpu <= 100)
