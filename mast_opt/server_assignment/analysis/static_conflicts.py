"""Limits of an instance that no plan can meet: there are none."""

from __future__ import annotations

from mast_opt.core.verdict import Conflict
from mast_opt.server_assignment.problem import ServerAssignment


def conflicts(problem: ServerAssignment) -> tuple[Conflict, ...]:
    """Always empty: what is missing has its price, and every other limit is kept by today's assignment."""
    return ()
