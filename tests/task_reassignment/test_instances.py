"""The hand-made instances: HiGHS and GLPK find the answer that is worked out next to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from mast_opt.problems.task_reassignment import TaskReassignment
from mast_opt.problems.task_reassignment.analysis.static_conflicts import conflicts
from mast_opt.problems.task_reassignment.tables.mathprog import write_dat
from mast_opt.problems.task_reassignment.verification.verifier import verify
from tests.mathprog import optimum
from tests.task_reassignment.hand import plan

ROOT = Path(__file__).parents[2]
OPTIMUM = 219


@pytest.fixture
def crowded() -> TaskReassignment:
    problem = mast_opt.read(ROOT / "instances" / "task_reassignment" / "crowded-machine")
    assert isinstance(problem, TaskReassignment)
    return problem


def test_the_answer_is_the_one_worked_out(crowded: TaskReassignment, tmp_path: Path) -> None:
    assert conflicts(crowded) == ()
    solution = mast_opt.solve(crowded, "highs", gap=0)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == OPTIMUM
    assert solution.plan is not None
    assert [crowded.machines.labels[m] for m in solution.plan.machine] == ["a1", "b1", "b1", "a2"]
    write_dat(crowded, tmp_path / "instance.dat")
    assert optimum(ROOT / "models" / "task_reassignment.mod", tmp_path / "instance.dat") == pytest.approx(OPTIMUM)


def test_the_other_ways_out_are_barred_as_told(crowded: TaskReassignment) -> None:
    today = verify(crowded, plan(*crowded.processes.initial.tolist()))
    assert (today.ok, today.objective) == (True, 308)
    barred = {
        "capacity[a2,disk]": plan(0, 2, 1, 2),
        "spread[web]": plan(1, 2, 0, 1),
        "dependency[cache-1,web,west]": plan(0, 1, 2, 1),
    }
    for name, way_out in barred.items():
        assert [violation.name for violation in verify(crowded, way_out).violations] == [name]


def test_disk_that_is_free_at_once_opens_a_cheaper_way(crowded: TaskReassignment) -> None:
    """cache-1 to a2 and batch-1 to a1: two services move one process each, within east."""
    solution = mast_opt.solve(
        replace(crowded, resources=replace(crowded.resources, transient=np.zeros(2, np.bool_))), "highs", gap=0
    )
    assert solution.status is Status.OPTIMAL
    assert solution.objective == 8 + 2 + 10
