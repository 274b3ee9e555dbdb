"""Keeping parts of a job placement: jobs, running jobs, and what starts on a server, in a rack, cluster or region."""

from __future__ import annotations

from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.kind.kind import Freezing

FREEZING: Freezing[JobPlacement, Plan] = Freezing(
    tables=("assignments", "preemptions"),
    blocks={
        "assign": ("job", None, None),
        "count": ("job", "server"),
        "on": ("job", "server", None),
        "preempt": ("running",),
    },
    groups={
        "rack": lambda p: ("server", p.racks, p.server_rack),
        "cluster": lambda p: ("server", p.clusters, p.server_cluster),
        "region": lambda p: ("server", p.regions, p.server_region),
    },
)
