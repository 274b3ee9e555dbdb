"""The table of a server-assignment plan, and the way between it and the plan."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import ServerAssignment
from mast_opt.problems.server_assignment.tables.problem_tables import problem_axes


def plan_from_tables(problem: ServerAssignment, tables: Tables) -> Plan:
    """The plan that the table states; a server without a row belongs to no reservation."""
    reservation = np.full(len(problem.servers), len(problem.reservations), np.int64)
    reservation[tables.get("assignments", "server")] = tables.get("assignments", "reservation")
    return Plan(reservation)


def plan_to_tables(problem: ServerAssignment, plan: Plan) -> Tables:
    """The table that ``plan_from_tables`` turns into this plan."""
    given = np.flatnonzero(plan.reservation < len(problem.reservations))
    values = {"assignments": {"server": given, "reservation": plan.reservation[given]}}
    return Tables(problem_axes(problem), values)
