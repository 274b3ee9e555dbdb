"""The .mod and the base formulation are the same program, entry by entry, by name, and GLPK agrees with HiGHS."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.kind.mathprog import with_symbols
from mast_opt.problems.task_reassignment import TaskReassignment
from mast_opt.problems.task_reassignment.formulation.formulation import base
from mast_opt.problems.task_reassignment.generate import challenge, containers
from mast_opt.problems.task_reassignment.tables.mathprog import AXES, write_dat
from mast_opt.problems.task_reassignment.twine.instance_arrays import base_levels, twine_arrays_of
from mast_opt.problems.task_reassignment.twine.params import OperatorParams
from mast_opt.problems.task_reassignment.verification.aggregate_bound import aggregate_bound
from tests.mathprog import assert_same, optimum, stated, statement
from tests.narrowing import some
from tests.task_reassignment.hand import every_term, hand

MODEL = Path(__file__).parents[3] / "models" / "task_reassignment.mod"


def same(problem: TaskReassignment, folder: Path) -> Path:
    data = folder / "instance.dat"
    write_dat(problem, data)
    assert_same(statement(MODEL, data), stated(base(with_symbols(problem, AXES)).mip))
    return data


def test_the_instance_made_by_hand(tmp_path: Path) -> None:
    problem = hand(tmp_path)
    data = same(problem, tmp_path)
    assert optimum(MODEL, data) == pytest.approx(mast_opt.solve(problem, "highs", gap=0).objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_generated_instances(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    problem = challenge(rng, processes=3 + 2 * seed, machines=2 + seed, resources=1 + seed % 4)
    same(problem if seed % 2 else every_term(problem), tmp_path)
    same(every_term(containers(rng, processes=4 + seed, machines=2 + seed, resources=1 + seed % 3)), tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_machines_without_balance_goals(seed: int, tmp_path: Path) -> None:
    """One drained machine that would lack memory, and one that has some: .mod, solver, verifier, bound agree."""
    rng = np.random.default_rng(seed)
    problem = challenge(rng, processes=6, machines=4, resources=3)
    problem = replace(
        problem,
        machines=replace(problem.machines, balanced=np.array([False, True, True, seed % 2 > 0])),
        balances=replace(
            problem.balances,
            first=np.array([0, 1]),
            second=np.array([1, 2]),
            target=np.array([5, 3]),
            weight=np.array([7, 2]),
        ),
    )
    data = same(problem, tmp_path)
    solution = mast_opt.solve(problem, "highs", gap=0, threads=1)
    assert optimum(MODEL, data) == pytest.approx(solution.objective, rel=1e-9)
    assert aggregate_bound(problem) <= some(solution.objective) + 1e-6
    free = problem.machines.capacity.copy()
    np.subtract.at(free, some(solution.plan).machine, problem.processes.need)
    lacks = [
        weight * max(0, target * free[m, first] - free[m, second])
        for first, second, target, weight in ((0, 1, 5, 7), (1, 2, 3, 2))
        for m in np.flatnonzero(problem.machines.balanced)
    ]
    assert some(solution.verdict).terms["balance"] == sum(lacks)
    level = base_levels(problem)
    fleet = twine_arrays_of(problem, OperatorParams())
    np.add.at(level, some(solution.plan).machine, fleet.feature)
    goals = slice(len(problem.resources), None)
    assert (np.maximum(level[:, goals], 0) @ problem.balances.weight).sum() == sum(lacks)


def test_labels_of_any_kind_and_services_without_processes(tmp_path: Path) -> None:
    problem = hand(tmp_path)
    odd = replace(
        problem,
        machines=replace(problem.machines, labels=("a b", "a_b", "ä")),
        move_groups=replace(problem.move_groups, labels=("", "0", "g 1")),
        services=replace(problem.services, labels=("data;", "end", "'", "empty"), spread_min=np.array([2, 1, 0, 5])),
        dependencies=replace(problem.dependencies, service=np.array([1, 1, 2]), needs=np.array([0, 1, 3])),
    )
    same(odd, tmp_path)
