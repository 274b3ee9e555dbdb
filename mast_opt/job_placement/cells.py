"""The sparse index sets of the formulation: which (job, server), (job, cluster, type), … exist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.job_placement.derived import tasks_that_fit
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import GPU, SERVER, WHOLE, Bools, Ints


def job_servers(problem: JobPlacement) -> tuple[Ints, Ints]:
    """(job, server) pairs, sorted: an accepted type in an open region, and room for a task on the empty server."""
    p = problem
    servers = []
    for j in range(len(p.jobs)):
        may: Bools = p.accepts[j][p.server_type] & p.open_region[j][p.server_region]
        at = np.flatnonzero(may)
        mgpu = p.need_mgpu[j][p.server_type[at]]
        servers.append(at[tasks_that_fit(p.supply[at], mgpu, p.cpu_mcores[j], p.memory_mib[j]) > 0])
    job = np.repeat(np.arange(len(servers)), [len(at) for at in servers])
    return job, np.concatenate(servers).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Cells:
    """Index sets; every set is sorted by its first index, then the second."""

    job: Ints
    """[c] the cells of count[j,s]."""
    server: Ints
    need: Ints
    """[c, 3] of one task there."""
    option: Ints
    """[c] position in the options below."""

    option_job: Ints
    """[o] the cells of assign[j,c,k]."""
    option_cluster: Ints
    option_type: Ints

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


def cells_of(problem: JobPlacement) -> Cells:
    p = problem
    job, server = job_servers(p)
    kind = p.server_type[server]
    need = np.stack([p.need_mgpu[job, kind], p.cpu_mcores[job], p.memory_mib[job]], axis=1)
    options, option = np.unique(np.stack([job, p.server_cluster[server], kind], axis=1), axis=0, return_inverse=True)

    gang = np.flatnonzero(p.tasks[job] > 1)
    pairs = np.stack([job[gang], p.server_rack[server[gang]]], axis=1)
    racks, gang_rack = np.unique(pairs, axis=0, return_inverse=True)
    tied = gang[p.within[job[gang]] == SERVER]

    is_fraction = (need[:, GPU] > 0) & (need[:, GPU] < WHOLE)
    shared = np.zeros(len(p.servers), np.bool_)
    shared[server[is_fraction]] = True
    running_fraction = (p.held_need[:, GPU] > 0) & (p.held_need[:, GPU] < WHOLE)
    shared[p.held_server[running_fraction]] = True
    devices = np.where(shared, p.supply[:, GPU] // WHOLE, 0)
    device_start = np.cumsum(devices) - devices
    device_server = np.repeat(np.arange(len(p.servers)), devices)

    fraction = np.flatnonzero(is_fraction)
    count = devices[server[fraction]]
    part_fraction = np.repeat(np.arange(len(fraction)), count)
    step = np.arange(len(part_fraction)) - np.repeat(np.cumsum(count) - count, count)

    rows = np.unique(np.stack([server, p.queue_tier[job]], axis=1), axis=0)
    return Cells(
        job=job,
        server=server,
        need=need,
        option=option.reshape(-1),
        option_job=options[:, 0],
        option_cluster=options[:, 1],
        option_type=options[:, 2],
        gang=gang,
        gang_rack=gang_rack.reshape(-1),
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
