"""Brute force over every assignment: the formulation, the verifier and HiGHS say the same."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.problems.mip import Mip
from mast_opt.problems.task_reassignment import TaskReassignment
from mast_opt.problems.task_reassignment.formulation.formulation import base
from mast_opt.problems.task_reassignment.generate import challenge, containers
from mast_opt.problems.task_reassignment.verification.verifier import verify
from tests.task_reassignment.hand import every_term, hand, plan

RELATIVE = 1e-9


def holds(mip: Mip, x: FloatArray) -> bool:
    """Does x keep every limit of rows and columns? Every number here is whole and below 2^53."""
    row = np.repeat(np.arange(len(mip.row_lower)), np.diff(mip.row_start))
    activity = np.bincount(row, mip.value * x[mip.index], minlength=len(mip.row_lower))
    rows = (activity >= mip.row_lower).all() and (activity <= mip.row_upper).all()
    return bool(rows and (x >= mip.col_lower).all() and (x <= mip.col_upper).all())


def agree(problem: TaskReassignment) -> None:
    formulation = base(problem)
    best = None
    for machine in product(range(len(problem.machines)), repeat=len(problem.processes)):
        candidate = plan(*machine)
        verdict, x = verify(problem, candidate), formulation.encode(candidate)
        assert holds(formulation.mip, x) == verdict.ok, machine
        assert formulation.mip.cost @ x + formulation.mip.offset == pytest.approx(verdict.objective, rel=RELATIVE)
        assert formulation.decode(x).machine.tolist() == list(machine)
        if verdict.ok and (best is None or verdict.objective < best):
            best = verdict.objective
    solution = mast_opt.solve(problem, "highs", gap=0)
    if best is None:
        assert solution.status is mast_opt.Status.INFEASIBLE
        return
    assert solution.status is mast_opt.Status.OPTIMAL
    assert solution.plan is not None
    assert verify(problem, solution.plan).ok
    assert verify(problem, solution.plan).objective == solution.objective == pytest.approx(best, rel=RELATIVE)


def test_the_instance_made_by_hand(tmp_path: Path) -> None:
    agree(hand(tmp_path))


@pytest.mark.parametrize("seed", range(4))
def test_generated_instances_with_every_rule(seed: int) -> None:
    problem = challenge(np.random.default_rng(seed), processes=6, machines=3, resources=3)
    agree(problem if seed % 2 else every_term(problem))


@pytest.mark.parametrize("seed", range(2))
def test_generated_containers(seed: int) -> None:
    agree(containers(np.random.default_rng(seed), processes=6, machines=3, resources=2))
