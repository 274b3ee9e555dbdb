"""Set exchange: a machine too small for its largest process is freed; no change of two or three processes does it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.problems.task_reassignment.twine.operators.set_exchange import exchange_sets
from mast_opt.problems.task_reassignment.twine.params import OperatorParams
from mast_opt.problems.task_reassignment.verification.verifier import verify
from tests.task_reassignment.hand import hand, plan

PARAMS = OperatorParams()
SMALL = 30
"""Processes that need 5 units, all on m1."""
TRAPPED = plan(0, *[1] * SMALL)


def trap(folder: Path, *, transient: int = 0, first_service: int = 1) -> TaskReassignment:
    """p0 needs 90 units, of the 80 that are safe on m0; on m1 150 of 160 are used. A unit above costs 10, a move 1."""
    machines = ["0 0  100  80  0 0", "0 0  200  160  0 0"]
    services = ["0 0"] * (SMALL + 1)
    processes = ["0 90 1", f"{first_service} 5 1", *(f"{at} 5 1" for at in range(2, SMALL + 1))]
    lines = ["1", f"{transient} 10", "2", *machines, str(len(services)), *services]
    lines += [str(len(processes)), *processes, "0", "1 0 0", ""]
    return hand(folder, "\n".join(lines), " ".join(map(str, TRAPPED.machine)) + "\n")


def exchanged(problem: TaskReassignment, machine: Ints = TRAPPED.machine) -> tuple[Ints, float]:
    found = exchange_sets(problem, machine, PARAMS)
    assert found is not None
    assert verify(problem, Plan(found[0])).objective == found[1]
    return found


def test_the_large_process_goes_and_sixteen_come(tmp_path: Path) -> None:
    """m1 lacks 80 units, which 16 processes leave; they need the 80 units of m0. 17 moves instead of 10 units above."""
    problem = trap(tmp_path)
    machine, cost = exchanged(problem)
    assert (machine[0], (machine[1:] == 0).sum(), cost) == (1, 16, 17.0)
    assert verify(problem, TRAPPED).objective == 100.0


def test_the_conflicting_machine_is_no_target(tmp_path: Path) -> None:
    """p1 is of the service of p0, and on m1."""
    assert exchange_sets(trap(tmp_path, first_service=0), TRAPPED.machine, PARAMS) is None


def test_transient_room_stays_held_at_home(tmp_path: Path) -> None:
    """What leaves m1 for the first time gives no transient room there, and p0 none on m0."""
    assert exchange_sets(trap(tmp_path, transient=1), TRAPPED.machine, PARAMS) is None


@pytest.mark.parametrize("capacity", [59, 60])
def test_no_process_comes_that_does_not_fit(tmp_path: Path, capacity: int) -> None:
    """m0 with 60 safe units takes 12 processes, of which m1 has to lose 12 if it has 20 units more; not with 59."""
    problem = trap(tmp_path).with_columns(
        {
            "machines.safety": np.array([[capacity], [180]]),
            "machines.capacity": np.array([[100], [180]]),
        }
    )
    found = exchange_sets(problem, TRAPPED.machine, PARAMS)
    assert (found is not None) == (capacity == 60)


def test_a_small_share_of_the_cost_is_left_alone(tmp_path: Path) -> None:
    """m0 causes all of the cost; with an exchange share of 1 no machine causes more."""
    assert exchange_sets(trap(tmp_path), TRAPPED.machine, OperatorParams(exchange_share=1.0)) is None


@pytest.mark.parametrize("seed", range(3))
def test_twine_leaves_the_trap(tmp_path: Path, seed: int) -> None:
    """It ended at 100 before there were set exchanges."""
    solution = mast_opt.solve(trap(tmp_path), "twine", iterations=20, seed=seed, threads=1)
    assert solution.objective == 17.0
