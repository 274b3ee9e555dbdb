"""The .mod and the base formulation are the same program, entry by entry, by name, and GLPK agrees with HiGHS."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.task_reassignment import TaskReassignment
from mast_opt.task_reassignment.dat import printable, write_dat
from mast_opt.task_reassignment.formulation import base
from mast_opt.task_reassignment.generate import challenge, containers
from tests.mathprog import assert_same, optimum, stated, statement
from tests.task_reassignment.hand import hand

MODEL = Path(__file__).parents[2] / "models" / "task_reassignment.mod"


def same(problem: TaskReassignment, folder: Path) -> Path:
    data = folder / "instance.dat"
    write_dat(problem, data)
    assert_same(statement(MODEL, data), stated(base(printable(problem)).mip))
    return data


def test_the_instance_made_by_hand(tmp_path: Path) -> None:
    problem = hand(tmp_path)
    data = same(problem, tmp_path)
    assert optimum(MODEL, data) == pytest.approx(mast_opt.solve(problem, "highs", gap=0).objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_generated_instances(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    same(challenge(rng, processes=3 + 2 * seed, machines=2 + seed, resources=1 + seed % 4), tmp_path)
    same(containers(rng, processes=4 + seed, machines=2 + seed, resources=1 + seed % 3), tmp_path)


def test_labels_of_any_kind_and_services_without_processes(tmp_path: Path) -> None:
    problem = hand(tmp_path)
    odd = replace(
        problem,
        machines=("a b", "a_b", "ä"),
        move_groups=("", "0", "g 1"),
        services=("data;", "end", "'", "empty"),
        spread_min=np.array([2, 1, 0, 5]),
        dependent=np.array([1, 1, 2]),
        dependency=np.array([0, 1, 3]),
    )
    same(odd, tmp_path)
