"""The aggregate bound against figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mast_opt.problems.task_reassignment import TaskReassignment
from mast_opt.problems.task_reassignment.verification.aggregate_bound import aggregate_bound
from tests.task_reassignment.hand import hand

SAFETY = np.array([[4, 2], [4, 2], [2, 3]])
"""Sums to 10 and 7, where 14 and 12 are needed: 4 · 10 + 5 · 1 of load."""


def weighted(problem: TaskReassignment, order: tuple[str, ...] = (), **weights: float) -> TaskReassignment:
    changed = {**problem.objective.weights, **weights}
    return replace(problem, objective=replace(problem.objective, weights=changed, order=order))


def test_need_and_room_are_summed(tmp_path: Path) -> None:
    """27 − 14 and 24 − 12 are free; 2 · 13 − 12 are missing, at 5 each. The safety capacities sum to 17 and 19."""
    assert aggregate_bound(hand(tmp_path)) == 70
    assert aggregate_bound(hand(tmp_path).with_columns({"machines.safety": SAFETY})) == 45 + 70


def test_both_terms_have_their_weight(tmp_path: Path) -> None:
    problem = hand(tmp_path).with_columns({"machines.safety": SAFETY})
    assert aggregate_bound(weighted(problem, load=3.0, balance=2.0)) == 3 * 45 + 2 * 70


@pytest.mark.parametrize(("first", "bound"), [("load", 45), ("balance", 70), ("machine_move", 0)])
def test_a_lexicographic_objective_is_bounded_in_its_first_term(tmp_path: Path, first: str, bound: float) -> None:
    problem = hand(tmp_path).with_columns({"machines.safety": SAFETY})
    terms = list(problem.objective.weights)
    order = (first, *(term for term in terms if term != first))
    assert aggregate_bound(weighted(problem, order, load=3.0, balance=2.0)) == bound


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        # m0 and m1 have 20 and 16, m2 takes at most 7 and 8 of 14 and 12: least free 6, 4, most free 13, 12
        ({"balances.target": np.array([3])}, 5 * (3 * 6 - 12)),
        ({"balances.target": np.array([2])}, 0),
        # m2 could take all of it: most free 20, 16
        (
            {"balances.target": np.array([3]), "machines.capacity": np.array([[10, 8], [10, 8], [20, 20]])},
            5 * (3 * 6 - 16),
        ),
    ],
)
def test_machines_without_balance_goals_take_what_they_have_room_for(
    tmp_path: Path, changes: dict[str, Any], bound: float
) -> None:
    problem = hand(tmp_path).with_columns({"machines.balanced": np.array([True, True, False]), **changes})
    assert aggregate_bound(problem) == bound
