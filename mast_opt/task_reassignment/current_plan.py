"""The state of today as a plan."""

from __future__ import annotations

from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.problem import TaskReassignment


def today(problem: TaskReassignment) -> Plan:
    """Every process where it runs."""
    return Plan(problem.initial.copy())
