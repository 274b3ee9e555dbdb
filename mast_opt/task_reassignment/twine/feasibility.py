"""The rules that no change of the search may break: one process of a service on a machine, transient capacities.

The kernels refuse what would break them and so need not count them. What a search begins with may break them.
"""

from __future__ import annotations

import numpy as np

from mast_opt.task_reassignment.problem import Ints, TaskReassignment


def spare(problem: TaskReassignment, machine: Ints) -> Ints:
    """[M, ·] capacity of the transient resources less what is held, by moved processes too."""
    p = problem
    firm = np.flatnonzero(p.transient)
    moved = np.flatnonzero(machine != p.initial)
    room = (p.capacity - p.held)[:, firm]
    np.subtract.at(room, machine[moved], p.need[moved][:, firm])
    return room


def uncounted(problem: TaskReassignment, machine: Ints) -> int:
    """Machines short of a transient resource, and processes beyond the first of their service on a machine."""
    short = (spare(problem, machine) < 0).any(axis=1).sum()
    place = problem.service * len(problem.machines) + machine
    return int(short) + len(place) - len(np.unique(place))
