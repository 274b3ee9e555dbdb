"""Conflicts of resource allocation that show without solving."""

from __future__ import annotations

import numpy as np

from mast_opt.core.verdict import Conflict
from mast_opt.problems.resource_allocation.policies import EVERY_JOB_RUNS
from mast_opt.problems.resource_allocation.problem import ResourceAllocation


def conflicts(problem: ResourceAllocation) -> tuple[Conflict, ...]:
    """Jobs whose floor is above every rate that they can have, and jobs that have to run and cannot."""
    p = problem
    most = np.zeros(len(p.jobs))
    np.maximum.at(most, p.members.job, p.members.rate)
    found = [
        Conflict(
            "floor",
            (p.jobs.labels[j],),
            f"{p.jobs.labels[j]} is to have a rate of at least {p.jobs.min_rate[j]:g}, and its best configuration "
            f"gives {most[j]:g}",
        )
        for j in np.flatnonzero(p.jobs.min_rate > most * (1 + 1e-9)).tolist()
    ]
    if p.objective.policy in EVERY_JOB_RUNS:
        words = f"makes no progress in any configuration, and {p.objective.policy} needs every job to run"
        found += [
            Conflict("runs", (p.jobs.labels[j],), f"{p.jobs.labels[j]} {words}")
            for j in np.flatnonzero(most <= 0).tolist()
        ]
    return tuple(found)
