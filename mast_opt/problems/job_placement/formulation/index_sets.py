"""Sparse index sets of the job-placement MIP: options of a job, and which (job, server), (job, rack), … exist."""

from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.capacity import tasks_that_fit
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.server_classes import jobs_at_once, may_run, server_classes
from mast_opt.problems.job_placement.units import GPU, SERVER, WHOLE, Bools, Ints


@dataclass(frozen=True, eq=False)
class JobOptions:
    """The cells of assign[j,c,k]: the job accepts the type, the region is open to it, and some server of the type in
    the cluster has room for a task when it is empty. Sorted by job, cluster, type."""

    job: Ints
    """Job of each option, [o]."""
    cluster: Ints
    """Cluster of each option, [o]."""
    type: Ints
    """GPU type of each option, [o]."""
    need: Ints
    """[o, 3] of one task there."""


def options_of(problem: JobPlacement) -> JobOptions:
    """The options of all jobs, counted over classes of equal servers."""
    p, classes = problem, server_classes(problem)
    group, first = np.unique(classes.cluster * len(p.gpu_types) + classes.type, return_index=True)
    parts = []
    for jobs in jobs_at_once(p, classes):
        row, at = np.nonzero(np.logical_or.reduceat(may_run(p, classes, jobs), first, axis=1))
        parts.append((jobs[row], group[at]))
    job, place = (np.concatenate([part[at] for part in parts]) for at in range(2))
    cluster, kind = place // len(p.gpu_types), place % len(p.gpu_types)
    need = np.stack([p.need_mgpu[job, kind], p.jobs.cpu_mcores[job], p.jobs.memory_mib[job]], axis=1)
    return JobOptions(job, cluster, kind, need)


PAIRS_AT_ONCE = 1 << 22
"""Number of pairs of a job and a server that are looked at together; bounds the memory that this takes."""


def job_servers(problem: JobPlacement) -> tuple[Ints, Ints]:
    """(job, server) pairs, sorted: an accepted type in an open region, and room for a task on the empty server."""
    p = problem
    step = max(1, PAIRS_AT_ONCE // max(1, len(p.servers)))
    parts = [_pairs_of(p, np.arange(begin, min(begin + step, len(p.jobs)))) for begin in range(0, len(p.jobs), step)]
    job, server = (np.concatenate([part[at] for part in parts]).astype(np.int64) for at in range(2))
    return job, server


def _pairs_of(problem: JobPlacement, jobs: Ints) -> tuple[Ints, Ints]:
    """(job, server) pairs such that at least one task of the job fits on the empty server and may run there."""
    p = problem
    row, server = np.nonzero(p.accepts[jobs][:, p.servers.gpu_type] & p.open_region[jobs][:, p.server_region])
    job = jobs[row]
    mgpu = p.need_mgpu[job, p.servers.gpu_type[server]]
    fits = tasks_that_fit(p.servers.supply[server], mgpu, p.jobs.cpu_mcores[job], p.jobs.memory_mib[job]) > 0
    return job[fits], server[fits]


def unique_rows(*columns: Ints) -> tuple[Ints, Ints]:
    """([n, columns] the rows of job-placement indices that occur, sorted; [rows] position of each row among them).

    Numbers are at least 0. Each row becomes one number, which sorts many times as fast as a row.
    """
    key = columns[0].astype(np.int64)
    for column in columns[1:]:
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, at = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1), at.reshape(-1)


@dataclass(frozen=True, eq=False)
class IndexSets:
    """Index sets; every set is sorted by its first index, then the second."""

    job: Ints
    """[c] the cells of count[j,s]."""
    server: Ints
    need: Ints
    """[c, 3] of one task there."""
    option: Ints
    """[c] position in the options."""

    gang: Ints
    """[·] positions of the cells of jobs with more than one task."""
    gang_rack: Ints
    """[·] for each of those, the position in the job-rack pairs below."""
    rack_job: Ints
    """[·] the cells of uses_rack[j,b]."""
    rack: Ints
    tied: Ints
    """[·] positions of the cells of gangs that must stay within one server."""

    shared: Bools
    """[S] servers with device variables: some fraction of a GPU runs or may run there."""
    device_server: Ints
    """[d] their devices."""
    device: Ints
    device_start: Ints
    """[S] position of a shared server's first device."""

    fraction: Ints
    """[f] positions of the cells whose tasks need less than one GPU."""
    part_fraction: Ints
    """[·] the cells of on[j,s,d]: position in ``fraction``, and device."""
    part_device: Ints
    whole: Ints
    """[·] positions of the cells on shared servers whose tasks need whole GPUs."""

    row_server: Ints
    """[·] (server, tier) pairs for which some job of just that tier may use the server."""
    row_tier: Ints


def cells_of(problem: JobPlacement, options: JobOptions) -> IndexSets:
    """The index sets of a problem with these options."""
    p = problem
    job, server = job_servers(p)
    kind = p.servers.gpu_type[server]
    need = np.stack([p.need_mgpu[job, kind], p.jobs.cpu_mcores[job], p.jobs.memory_mib[job]], axis=1)
    clusters, types = len(p.clusters), len(p.gpu_types)
    known = (options.job * clusters + options.cluster) * types + options.type
    option = np.searchsorted(known, (job * clusters + p.server_cluster[server]) * types + kind)

    gang = np.flatnonzero(p.jobs.tasks[job] > 1)
    racks, gang_rack = unique_rows(job[gang], p.servers.rack[server[gang]])
    tied = gang[p.jobs.within[job[gang]] == SERVER]

    is_fraction = (need[:, GPU] > 0) & (need[:, GPU] < WHOLE)
    shared = np.zeros(len(p.servers), np.bool_)
    shared[server[is_fraction]] = True
    running_fraction = (p.allocations.need[:, GPU] > 0) & (p.allocations.need[:, GPU] < WHOLE)
    shared[p.allocations.server[running_fraction]] = True
    devices = np.where(shared, p.servers.supply[:, GPU] // WHOLE, 0)
    device_start = np.cumsum(devices) - devices
    device_server = np.repeat(np.arange(len(p.servers)), devices)

    fraction = np.flatnonzero(is_fraction)
    count = devices[server[fraction]]
    part_fraction = np.repeat(np.arange(len(fraction)), count)
    step = np.arange(len(part_fraction)) - np.repeat(np.cumsum(count) - count, count)

    rows, _ = unique_rows(server, p.queue_tier[job])
    return IndexSets(
        job=job,
        server=server,
        need=need,
        option=option,
        gang=gang,
        gang_rack=gang_rack,
        rack_job=racks[:, 0],
        rack=racks[:, 1],
        tied=tied,
        shared=shared,
        device_server=device_server,
        device=np.arange(len(device_server)) - device_start[device_server],
        device_start=device_start,
        fraction=fraction,
        part_fraction=part_fraction,
        part_device=device_start[server[fraction[part_fraction]]] + step,
        whole=np.flatnonzero((need[:, GPU] >= WHOLE) & shared[server]),
        row_server=rows[:, 0],
        row_tier=rows[:, 1],
    )
