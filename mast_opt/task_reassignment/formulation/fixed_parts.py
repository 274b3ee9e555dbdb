"""Keeping parts of a task reassignment: processes, services, machines, neighbourhoods, locations."""

from __future__ import annotations

from mast_opt.kind.kind import Freezing
from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.problem import TaskReassignment

FREEZING: Freezing[TaskReassignment, Plan] = Freezing(
    tables=("assignments",),
    blocks={"x": ("process", "machine")},
    groups={
        "service": lambda p: ("process", p.services, p.service),
        "neighbourhood": lambda p: ("machine", p.neighbourhoods, p.neighbourhood),
        "location": lambda p: ("machine", p.locations, p.location),
    },
)
