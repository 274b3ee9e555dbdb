"""Rejection reasons of job placement: for each cluster, the first constraint that rules a job out."""

import enum
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.capacity import tasks_that_fit
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import RACK, REGION, SERVER, Ints


class Obstacle(enum.Enum):
    """Constraints that rule out a cluster, in the order in which they are checked."""

    RESIDENCY = "its region is outside the residency of a dataset that the job reads"
    LOST = "no region holds a dataset that the job reads"
    DATA = "its region lacks a dataset that the job reads"
    GPU_TYPE = "it has none of the GPU types that the job accepts"
    TASK = "no server there holds one task even when it is empty"
    SIZE = "the job is larger than the cluster's servers of one type, even when they are empty"
    LEVEL = "the job is larger than what it must stay within, even when all is empty"
    TOGETHER = "another part of the job fits nowhere within what all its parts must stay within, even when all is empty"
    IN_USE = "the cluster would hold the job, but not with what it holds now"


@dataclass(frozen=True)
class Reason:
    """Reason that rules a cluster out."""

    cluster: int
    obstacle: Obstacle
    part: str = ""
    """Name of the other part of the job, for ``TOGETHER``."""

    @property
    def words(self) -> str:
        """The reason for a pending job's rejection in words."""
        return self.obstacle.value.replace("another part of the job", f"{self.part}, another part of the job,", 1)


def obstacle_when_empty(
    supply: Ints, kind: Ints, rack: Ints, need: tuple[Ints, int, int], tasks: int, within: int
) -> Obstacle | None:
    """The first of GPU_TYPE, TASK, SIZE and LEVEL that keeps a pending job out of an empty cluster.

    Args:
        supply, kind, rack: [S, 3], [S], [S] the cluster's servers.
        need: of one task: [K] milli-GPUs on each type (−1 where it is not accepted), millicores, MiB.
    """
    mgpu, mcores, mib = need
    accepted = mgpu[kind] >= 0
    if not accepted.any():
        return Obstacle.GPU_TYPE
    fits = np.where(accepted, tasks_that_fit(supply, np.maximum(mgpu[kind], 0), mcores, mib), 0)
    fits = np.minimum(fits, tasks)
    if not fits.any():
        return Obstacle.TASK
    if _largest(kind, fits) < tasks:
        return Obstacle.SIZE
    place = {SERVER: np.arange(len(kind)), RACK: rack}.get(within)
    if place is not None and _largest(place * (int(kind.max()) + 1) + kind, fits) < tasks:
        return Obstacle.LEVEL
    return None


def _largest(key: Ints, amount: Ints) -> int:
    """Largest sum of ``amount`` [S] over servers with the same ``key`` [S]."""
    keys, at = np.unique(key, return_inverse=True)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, at.reshape(-1), amount)
    return int(total.max())


def reasons(problem: JobPlacement, job: int) -> tuple[Reason, ...]:
    """Reason for each cluster why it is ruled out for the job; ``IN_USE`` if only other jobs rule it out.

    For a part of a job of several parts, ``TOGETHER`` means that another part rules out the cluster or its region.
    """
    p, own = problem, _alone(problem, job)
    others = np.flatnonzero(p.first_part == p.first_part[job])
    if len(others) == 1:
        return own
    level = p.multipart_jobs.within[p.parts.whole[p.parts.job == job][0]]
    place = p.clusters.region if level == REGION else np.arange(len(p.clusters))
    found = list(own)
    for other in others[others != job].tolist():
        may = np.array([reason.obstacle is Obstacle.IN_USE for reason in _alone(p, other)], np.bool_)
        for c in np.flatnonzero(~np.isin(place, place[may])).tolist():
            if found[c].obstacle is Obstacle.IN_USE:
                found[c] = Reason(c, Obstacle.TOGETHER, p.jobs.labels[other])
    return tuple(found)


def _alone(problem: JobPlacement, job: int) -> tuple[Reason, ...]:
    """Reasons that rule out clusters for a pending job, even without other jobs."""
    p = problem
    need = (np.where(p.accepts[job], p.need_mgpu[job], -1), int(p.jobs.cpu_mcores[job]), int(p.jobs.memory_mib[job]))
    found = []
    for c in range(len(p.clusters)):
        at = np.flatnonzero(p.server_cluster == c)
        outside = p.reads_outside[job, p.clusters.region[c]]
        lacks = Obstacle.LOST if p.reads_lost[job] else Obstacle.DATA
        obstacle: Obstacle | None = Obstacle.RESIDENCY if outside else lacks
        if p.open_region[job, p.clusters.region[c]]:
            here = (p.servers.supply[at], p.servers.gpu_type[at], p.servers.rack[at])
            empty = len(at) == 0
            obstacle = (
                Obstacle.GPU_TYPE
                if empty
                else obstacle_when_empty(*here, need, int(p.jobs.tasks[job]), int(p.jobs.within[job]))
            )
        found.append(Reason(c, obstacle or Obstacle.IN_USE))
    return tuple(found)


def reason_in_words(problem: JobPlacement, job: int) -> str:
    """Sentence that says why the job is not placed: the obstacle of the clusters that come closest."""
    order = list(Obstacle)
    found = reasons(problem, job)
    nearest = max(found, key=lambda reason: order.index(reason.obstacle))
    count = sum(reason.obstacle is nearest.obstacle for reason in found)
    closest = "the cluster that comes" if count == 1 else f"the {count} clusters that come"
    return f"{closest} closest: {nearest.words}"
