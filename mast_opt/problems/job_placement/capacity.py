"""Capacity of empty servers in job placement: tasks that fit, the fewest racks, and classes of equal servers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, WHOLE, Bools, Ints

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
