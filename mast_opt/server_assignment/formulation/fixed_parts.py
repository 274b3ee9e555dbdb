"""Keeping parts of a server assignment: what a reservation has, or who has the servers of a switchboard.

The program counts equal servers, so only what is as today can be kept server by server.
"""

from __future__ import annotations

from mast_opt.kind.kind import Freezing
from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import ServerAssignment

FREEZING: Freezing[ServerAssignment, Plan] = Freezing(
    tables=("assignments",),
    blocks={"n": (None, "switchboard", "reservation")},
    groups={"switchboard": lambda p: ("server", p.switchboards, p.server_switchboard)},
)
