"""What depends on each region, against the loss that ``whatif`` states and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.planner.analysis.risk import risk
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.analysis.hooks import QUESTIONS
from mast_opt.problems.registry import kind_of
from tests.data_placement.strategies import plans, problems
from tests.data_placement.support import serves_nothing_twice
from tests.data_placement.workshop import IMAGES, LOGS, PLAN, PROBLEM, A, B, grid, ints
from tests.examples import examples


@examples(40)
@given(problem=problems(refuse=True), data=st.data())
def test_what_a_region_would_take_is_what_losing_it_takes(problem: DataPlacement, data: st.DataObject) -> None:
    plan = data.draw(st.none() | plans(problem).filter(serves_nothing_twice))
    answer = risk(problem, plan)
    held = problem.datasets.stored if plan is None else plan.place
    there = [name for name, gone in zip(problem.regions.labels, problem.gone.tolist(), strict=True) if not gone]
    assert [one.region for one in answer.regions] == there
    for one in answer.regions:
        changes = {"lose_regions": [one.region]}
        scenario = kind_of(problem).analysis.hooks().changes["lose_regions"].apply(problem, [one.region])
        assert QUESTIONS.loss is not None
        # the risk is of what is gone, not of what is left with fewer copies
        assert one.loss == replace(QUESTIONS.loss(problem, scenario, changes, plan)[1], fewer_copies=())
    single = {
        problem.datasets.labels[i]: problem.regions.labels[held[i].argmax()]
        for i in range(len(held))
        if held[i].sum() == 1
    }
    assert {one.dataset: one.region for one in answer.single_copies} == single


def test_the_work_of_a_plan_and_of_today() -> None:
    answer = risk(PROBLEM, PLAN)
    assert (answer.of, answer.complete, answer.gpus) == ("plan", True, 12)
    assert [one.running for one in answer.regions] == [("etl",), ("train",), ("etl", "view")]
    assert [one.running_gpus for one in answer.regions] == [0, 8, 4]
    assert [one.loss.gpus for one in answer.regions] == [0, 8, 4]
    assert [(one.dataset, one.tb, one.work, one.gpus) for one in answer.single_copies] == [
        ("images", 6, ("train",), 8),
        ("video", 9, ("view",), 4),
    ]
    least = risk(PROBLEM, replace(PLAN, run_share=ints(1000, 999, 1, 1000)))
    assert [one.running for one in least.regions] == [("etl",), ("train",), ("etl", "view")]
    none = risk(PROBLEM, replace(PLAN, run_share=ints(1000, 1000, 0, 1000)))
    assert [one.running for one in none.regions] == [("etl",), ("train",), ("view",)]
    now = risk(PROBLEM)
    assert (now.of, now.complete) == ("today", False)
    assert [one.running_gpus for one in now.regions] == [8, 0, 0]
    assert [one.loss.work for one in now.regions] == [("train", "etl"), ("train",), ()]
    more = risk(replace(PROBLEM, datasets=replace(PROBLEM.datasets, stored=grid((LOGS, A), (LOGS, B), (IMAGES, B)))))
    assert {one.dataset for one in more.single_copies} == {"images"}
    silent = risk(
        PROBLEM.with_columns(
            {
                "current_runs.workload": np.zeros(0, np.int64),
                "current_runs.region": np.zeros(0, np.int64),
                "current_runs.gpu_type": np.zeros(0, np.int64),
                "current_runs.share": np.zeros(0, np.int64),
            }
        )
    )
    assert [one.running for one in silent.regions] == [None] * 3


def test_kinds_without_replicas() -> None:
    with pytest.raises(mast_opt.UsageError, match="no replicas"):
        risk(mast_opt.generate("server-assignment", seed=1))
