"""Capacity of empty servers in job placement: tasks that fit, and the fewest racks."""

from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, WHOLE, Ints

MANY = 2**53
"""Tasks that need nothing of a resource fit this often."""


def tasks_that_fit(room: Ints, mgpu: Ints | int, mcores: Ints | int, mib: Ints | int) -> Ints:
    """Number of equal tasks that empty servers hold; the arguments broadcast, ``room`` has a last axis of resources."""
    devices = room[..., GPU] // WHOLE
    whole = devices // np.maximum(mgpu // WHOLE, 1)
    shared = devices * (WHOLE // np.maximum(mgpu, 1))
    mgpu, mcores, mib = np.asarray(mgpu), np.asarray(mcores), np.asarray(mib)
    by_gpu = np.where(mgpu == 0, MANY, np.where(mgpu < WHOLE, shared, whole))
    by_cpu = np.where(mcores == 0, MANY, room[..., CPU] // np.maximum(mcores, 1))
    by_memory = np.where(mib == 0, MANY, room[..., MEMORY] // np.maximum(mib, 1))
    fits: Ints = np.minimum(np.minimum(by_gpu, by_cpu), by_memory)
    return fits


def fewest_racks(problem: JobPlacement) -> Ints:
    """[J] the smallest number of racks of one cluster and type that would hold the job if all were empty.

    1 for a job of one task, and for one that fits nowhere (it is never admitted).
    """
    p = problem
    fewest = np.ones(len(p.jobs), np.int64)
    gangs = np.flatnonzero(p.jobs.tasks[p.options.job] > 1)
    if not len(gangs):
        return fewest
    shapes, shape = np.unique(p.servers.supply, axis=0, return_inverse=True)
    shape = shape.reshape(-1)
    need = np.stack(
        [p.options.mgpu, p.jobs.cpu_mcores[p.options.job], p.jobs.memory_mib[p.options.job], p.options.gpu_type], axis=1
    )
    kinds, kind = np.unique(need[gangs], axis=0, return_inverse=True)
    best = np.full(len(p.jobs), MANY)
    for number, (mgpu, mcores, mib, gpu_type) in enumerate(kinds.tolist()):
        fits = np.minimum(tasks_that_fit(shapes, mgpu, mcores, mib), p.jobs.tasks.max())
        of_type = p.servers.gpu_type == gpu_type
        in_rack = np.zeros(len(p.racks), np.int64)
        np.add.at(in_rack, p.servers.rack[of_type], fits[shape[of_type]])
        options = gangs[kind.reshape(-1) == number]
        _fewest(p, in_rack, p.options.job[options], best)
    return np.where((p.jobs.tasks > 1) & (best < MANY), best, fewest)


def _fewest(problem: JobPlacement, in_rack: Ints, jobs: Ints, best: Ints) -> None:
    """Lower ``best`` of each job to the racks it needs in its best cluster, filling the largest racks first."""
    p = problem
    order = np.lexsort((-in_rack, p.racks.cluster))
    cluster = p.racks.cluster[order]
    total = np.cumsum(in_rack[order])
    first = np.searchsorted(cluster, np.arange(len(p.clusters)))
    last = np.searchsorted(cluster, np.arange(len(p.clusters)), side="right")
    before = np.where(first > 0, total[first - 1], 0)
    after = np.where(last > first, total[last - 1], before)
    for j in jobs.tolist():
        reached = np.searchsorted(total, before + p.jobs.tasks[j]) + 1 - first
        holds = (after - before >= p.jobs.tasks[j]) & p.open_region[j][p.clusters.region]
        if holds.any():
            best[j] = min(best[j], int(reached[holds].min()))


def remote_mb_price(problem: JobPlacement) -> float:
    """Contribution to the objective of one MB a day from another region."""
    return problem.objective.weights["remote"] / max(int(problem.reads.mb_per_day.sum()), 1)


@dataclass(frozen=True, eq=False)
class WholeServerTasks:
    """The commonest pending task that takes all GPUs of a server, for servers of each type and size."""

    servers: Ints
    """[N] servers for which there is such a task; ascending."""
    need: Ints
    """[N, 3] what it needs: all the server's GPUs, and cores and memory."""


def whole_server_tasks(problem: JobPlacement) -> WholeServerTasks:
    """Commonest counts tasks of jobs that accept the type; of equals, the one of the job listed first."""
    p = problem
    tasks = p.jobs.tasks[p.options.job]
    commonest: dict[tuple[int, int], tuple[int, int]] = {}
    count: dict[tuple[int, int, int, int], int] = {}
    first: dict[tuple[int, int, int, int], int] = {}
    sizes = {(k, n) for k, n in zip(p.servers.gpu_type.tolist(), p.servers.supply[:, GPU].tolist()) if n}
    for j, k, mgpu, n in zip(
        p.options.job.tolist(), p.options.gpu_type.tolist(), p.options.mgpu.tolist(), tasks.tolist()
    ):
        if (k, mgpu) in sizes:
            key = (k, mgpu, int(p.jobs.cpu_mcores[j]), int(p.jobs.memory_mib[j]))
            count[key] = count.get(key, 0) + n
            first.setdefault(key, j)
    for key in sorted(count, key=lambda key: (-count[key], first[key])):
        commonest.setdefault(key[:2], key[2:])
    rows = [
        (s, n, *commonest[k, n])
        for s, (k, n) in enumerate(zip(p.servers.gpu_type.tolist(), p.servers.supply[:, GPU].tolist()))
        if (k, n) in commonest
    ]
    table = np.array(rows, np.int64).reshape(-1, 4)
    return WholeServerTasks(table[:, 0], table[:, 1:])
