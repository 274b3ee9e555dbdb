"""The state of today as a plan."""

from __future__ import annotations

from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import ServerAssignment


def today(problem: ServerAssignment) -> Plan:
    """Nobody gains or loses a server. It breaks no limit: nothing is worse than today."""
    return Plan(problem.owner.copy())
