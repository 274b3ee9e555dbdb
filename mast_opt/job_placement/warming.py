"""Kernels made ready before the first real job."""

from __future__ import annotations

from mast_opt.job_placement.fleet import Fleet
from mast_opt.job_placement.offers import Bid, Job, Server


def warm_up_fleet() -> None:
    """Load everything that a live fleet calls (and compile it, the first time after an installation)."""
    servers = [Server(f"s{n}", "r", "c", f"b{n // 2}", "gpu", 2, 8000, 8192) for n in range(4)]
    fleet = Fleet(servers, tiers=(0, 1))
    for n in range(4):
        _admit(fleet, Job(f"old{n}", 1, mgpu=2000, preemptible=True, gpu_hours_at_risk=n))
    _admit(fleet, Job("single", 0, mgpu=1000))
    _admit(fleet, Job("gang", 0, tasks=2, mgpu=2000))
    fleet.place(Job("large", 0, tasks=9, mgpu=2000))
    fleet.explain(Job("fraction", 0, mgpu=500))
    fleet.release("single")
    with fleet.round():
        fleet.fail("s3")
    fleet.uncordon("s3")


def _admit(fleet: Fleet, job: Job) -> None:
    answer = fleet.place(job)
    if isinstance(answer, Bid):
        fleet.commit(answer)
