"""Why a job finds no place: for each cluster, the first constraint that rules it out."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from mast_opt.job_placement.derived import tasks_that_fit
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import RACK, SERVER, Bools, Ints


class Obstacle(enum.Enum):
    """The constraints in the order in which they are looked at."""

    DATA = "its region lacks a dataset that the job reads"
    GPU_TYPE = "it has none of the GPU types that the job accepts"
    TASK = "no server there holds one task even when it is empty"
    LEVEL = "the job is larger than what it must stay within, even when all is empty"
    SIZE = "the job is larger than the cluster, even when it is empty"
    IN_USE = "the cluster would hold the job, but not beside what it holds now"


@dataclass(frozen=True)
class Reason:
    """What rules a cluster out."""

    cluster: int
    obstacle: Obstacle


def reasons(problem: JobPlacement, job: int) -> tuple[Reason, ...]:
    """For each cluster, what rules it out for the job; ``IN_USE`` where only other jobs do."""
    p = problem
    open_region = p.open_region[job]
    accepted = p.accepts[job][p.server_type]
    fits = tasks_that_fit(p.supply, p.need_mgpu[job][p.server_type], p.cpu_mcores[job], p.memory_mib[job])
    fits = np.where(accepted, np.minimum(fits, p.tasks[job]), 0)
    return tuple(
        Reason(c, _obstacle(p, job, np.flatnonzero(p.server_cluster == c), accepted, fits))
        if open_region[p.cluster_region[c]]
        else Reason(c, Obstacle.DATA)
        for c in range(len(p.clusters))
    )


def _obstacle(problem: JobPlacement, job: int, servers: Ints, accepted: Bools, fits: Ints) -> Obstacle:
    p, tasks = problem, int(problem.tasks[job])
    if not accepted[servers].any():
        return Obstacle.GPU_TYPE
    if not fits[servers].any():
        return Obstacle.TASK
    kind = p.server_type[servers]
    if max(_sums(kind, fits[servers]).values()) < tasks:
        return Obstacle.SIZE
    place = {SERVER: servers, RACK: p.server_rack[servers]}.get(int(p.within[job]))
    if place is not None:
        key = place * len(p.gpu_types) + kind
        if max(_sums(key, fits[servers]).values()) < tasks:
            return Obstacle.LEVEL
    return Obstacle.IN_USE


def _sums(key: Ints, amount: Ints) -> dict[int, int]:
    keys, at = np.unique(key, return_inverse=True)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, at.reshape(-1), amount)
    return dict(zip(keys.tolist(), total.tolist()))


def reason_in_words(problem: JobPlacement, job: int) -> str:
    """One sentence that says why the job is nowhere: the obstacle of the clusters that come closest."""
    order = list(Obstacle)
    found = reasons(problem, job)
    worst = max(found, key=lambda reason: order.index(reason.obstacle)).obstacle
    count = sum(reason.obstacle is worst for reason in found)
    closest = "the cluster that comes" if count == 1 else f"the {count} clusters that come"
    return f"{closest} closest: {worst.value}"
