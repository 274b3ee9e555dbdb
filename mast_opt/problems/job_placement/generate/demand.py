"""Fluid estimate of how much of a job queue a fleet can take; used to size queues of generated instances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, Ints


def with_queue_for(problem: JobPlacement, ratio: float) -> JobPlacement:
    """The problem with as many of its jobs, from the first on, as ask for ``ratio`` times what can be admitted."""
    asked, taken = asked_and_taken(problem)
    within = np.flatnonzero(asked <= ratio * taken)
    return first_jobs(problem, int(within[-1]) + 1 if len(within) else 1)


def first_jobs(problem: JobPlacement, count: int) -> JobPlacement:
    """The problem with only the first ``count`` jobs."""
    p = problem
    return replace(
        p,
        jobs=p.jobs.rows(np.arange(count)),
        options=p.options.rows(p.options.job < count),
        reads=p.reads.rows(p.reads.job < count),
        costs=p.costs.rows(p.costs.job < count),
    )


def asked_and_taken(problem: JobPlacement) -> tuple[Ints, Ints]:
    """Milli-GPUs that the first 1, 2, … jobs ask for, and those that they get: each job in turn as much as is there
    in the region and type with most left for its tier."""
    p = problem
    room = _room(p)
    asked, taken = np.zeros(len(p.jobs), np.int64), np.zeros(len(p.jobs), np.int64)
    for j in range(len(p.jobs)):
        asked[j] = p.jobs.tasks[j] * p.need_mgpu[j].max()
        left = room[:, :, : p.jobs.tier[j] + 1].min(axis=2)
        left = np.where(p.open_region[j][:, None] & p.accepts[j], left, 0)
        at = np.unravel_index(int(left.argmax()), left.shape)
        taken[j] = min(asked[j], left[at])
        room[at][: p.jobs.tier[j] + 1] -= taken[j]
    return np.cumsum(asked), np.cumsum(taken)


def _room(problem: JobPlacement) -> Ints:
    """[R, K, P] milli-GPUs for work of tier p and less important work: what is free, and what victims of lower
    tiers hold."""
    p = problem
    room = np.zeros((len(p.regions), len(p.gpu_types), len(p.tiers)), np.int64)
    np.add.at(room, (p.server_region, p.servers.gpu_type), p.free[:, GPU, None])
    for tier in range(len(p.tiers)):
        rows = np.flatnonzero(
            p.running.preemptible[p.allocations.running] & (p.running.tier[p.allocations.running] > tier)
        )
        server = p.allocations.server[rows]
        np.add.at(room[:, :, tier], (p.server_region[server], p.servers.gpu_type[server]), p.held[rows, GPU])
    return room
