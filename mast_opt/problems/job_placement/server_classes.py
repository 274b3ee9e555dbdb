"""Classes of equal servers in job placement, and the jobs that may run on them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.capacity import tasks_that_fit
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import Bools, Ints

PAIRS_AT_ONCE = 1 << 20
"""Number of pairs of a job and a class that are looked at together; bounds the memory that this takes."""


@dataclass(frozen=True, eq=False)
class ServerClasses:
    """Servers that agree in cluster, GPU type and supply; E classes, by cluster, then type."""

    cluster: Ints
    """Cluster of each class, [E]."""
    type: Ints
    """GPU type of each class, [E]."""
    supply: Ints
    """[E, 3]"""
    size: Ints
    """[E] servers, at least 1."""
    of: Ints
    """[S] the class of each server."""

    def __len__(self) -> int:
        return len(self.size)


def server_classes(problem: JobPlacement) -> ServerClasses:
    """The classes of all servers."""
    p = problem
    keys = np.column_stack([p.server_cluster, p.servers.gpu_type, p.servers.supply])
    rows, of, size = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    return ServerClasses(rows[:, 0], rows[:, 1], rows[:, 2:], size, of.reshape(-1))


def jobs_at_once(problem: JobPlacement, classes: ServerClasses) -> Iterator[Ints]:
    """All jobs, in parts that are small enough for arrays of [jobs, E]."""
    step = max(1, PAIRS_AT_ONCE // max(1, len(classes)))
    for begin in range(0, len(problem.jobs), step):
        yield np.arange(begin, min(begin + step, len(problem.jobs)))


def may_run(problem: JobPlacement, classes: ServerClasses, jobs: Ints) -> Bools:
    """Mask [jobs, E]: the job accepts the type, the region is open to it, and an empty server has room for a task."""
    p = problem
    reach: Bools = p.accepts[jobs][:, classes.type] & p.open_region[jobs][:, p.clusters.region[classes.cluster]]
    row, at = np.nonzero(reach)
    job = jobs[row]
    mgpu = p.need_mgpu[job, classes.type[at]]
    reach[row, at] = tasks_that_fit(classes.supply[at], mgpu, p.jobs.cpu_mcores[job], p.jobs.memory_mib[job]) > 0
    return reach
