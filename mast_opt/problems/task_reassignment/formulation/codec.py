"""Codec of the task-reassignment MIP: between a plan and the columns, both ways; columns fixed to a plan's values."""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.problems.kind.formulation import FixedParts
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment


@dataclass(frozen=True, eq=False)
class Codec:
    """Column ids of the formulation and what they stand for."""

    problem: TaskReassignment
    width: int
    x: IntArray
    """[P, M]"""
    over: IntArray
    """[M, K]"""
    missing: IntArray
    """[B, M]"""
    most_moved: IntArray
    """[] one column."""
    hosts: IntArray
    """[·, L] for the services that must spread."""
    spread: IntArray
    """[·] those services."""

    def decode(self, x: FloatArray) -> Plan:
        """The machine with the largest value, for each process."""
        return Plan(x[self.x].argmax(axis=1))

    def encode(self, plan: Plan) -> FloatArray:
        """The columns of the formulation at a plan of processes."""
        p = self.problem
        values = np.zeros(self.width)
        values[self.x[np.arange(len(p.processes)), plan.machine]] = 1
        use = p.used(plan.machine)
        values[self.over] = np.maximum(use - p.machines.safety, 0)
        free = p.machines.capacity - use
        missing = p.balances.target * free[:, p.balances.first] - free[:, p.balances.second]
        values[self.missing] = (np.maximum(missing, 0) * p.machines.balanced[:, None]).T
        moved = p.processes.service[plan.machine != p.processes.initial]
        values[self.most_moved] = np.bincount(moved, minlength=1).max()
        hosted = np.zeros((len(p.services), len(p.locations)), np.bool_)
        hosted[p.processes.service, p.machines.location[plan.machine]] = True
        values[self.hosts] = hosted[self.spread]
        return values


FREEZING: FixedParts[TaskReassignment, Plan] = FixedParts(
    tables=("assignments",),
    blocks={"x": ("process", "machine")},
    groups={
        "service": lambda p: ("process", p.services.labels, p.processes.service),
        "neighbourhood": lambda p: ("machine", p.neighbourhoods, p.machines.neighbourhood),
        "location": lambda p: ("machine", p.locations, p.machines.location),
    },
)
