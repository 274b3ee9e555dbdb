"""The table of a task-reassignment plan, and the way between it and the plan."""

from __future__ import annotations

import numpy as np

from mast_opt.core.errors import Fault, PlanError
from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.task_reassignment.plan import Plan
from mast_opt.problems.task_reassignment.problem import TaskReassignment
from mast_opt.problems.task_reassignment.tables.problem_tables import problem_axes


def plan_from_tables(problem: TaskReassignment, tables: Tables) -> Plan:
    """The plan that the table states. Raises PlanError where a process has no machine."""
    machine = np.full(len(problem.processes), -1, np.int64)
    machine[tables.get("assignments", "process")] = tables.get("assignments", "machine")
    left_out = np.flatnonzero(machine < 0).tolist()
    if left_out:
        raise PlanError(
            Fault("assignments", f"a row that gives process {problem.processes.labels[p]} a machine", column="process")
            for p in left_out
        )
    return Plan(machine)


def plan_to_tables(problem: TaskReassignment, plan: Plan) -> Tables:
    """The table that ``plan_from_tables`` turns into this plan."""
    values = {"assignments": {"process": np.arange(len(problem.processes)), "machine": plan.machine}}
    return Tables(problem_axes(problem), values)
