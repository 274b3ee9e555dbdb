"""Consistency checks of task-reassignment instances: amounts too large to be added up exactly."""

from __future__ import annotations

import numpy as np

from mast_opt.core.arrays import exact_column_sums
from mast_opt.core.errors import Fault
from mast_opt.problems.task_reassignment.problem import TaskReassignment

LARGEST = 2**53
"""Costs and loads up to here are exact both as int64 and as float64."""


def faults(problem: TaskReassignment) -> list[Fault]:
    """Sums and costs that could leave the range of exact integers, one fault for each kind of them."""
    p = problem
    use, capacity = exact_column_sums(p.processes.need), exact_column_sums(p.machines.capacity)
    load = sum(weight * total for weight, total in zip(p.resources.load_weight.tolist(), use, strict=True))
    goals = np.stack([p.balances.first, p.balances.second, p.balances.target, p.balances.weight], axis=1).tolist()
    balance = sum(
        weight * (target * (capacity[first] + use[first]) + capacity[second] + use[second])
        for first, second, target, weight in goals
    )
    moves = exact_column_sums(p.processes.move_cost[:, None])[0] + len(p.processes) * int(
        p.move_groups.move_cost.max(initial=0)
    )
    checks = (
        ("needs", "amount", max(use, default=0), "needs of one resource that add up to"),
        ("capacities", "capacity", max(capacity, default=0), "capacities of one resource that add up to"),
        ("resources", "load_weight", load, "loads that cost together"),
        ("balances", "weight", balance, "balances that cost together"),
        ("move_costs", "cost", moves, "moves that cost together"),
    )
    return [
        Fault(table, f"{what} at most 2^53, so that sums stay exact; use a larger unit", None, column, str(amount))
        for table, column, amount, what in checks
        if amount > LARGEST
    ]
