"""Conversion of a job-placement problem into a live fleet."""

from collections.abc import Iterable

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.capacity import remote_mb_price
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Running
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.running_allocations import allocations_of
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, WHOLE


def servers_of(problem: JobPlacement) -> list[Server]:
    """The servers of an instance, as a live fleet has them."""
    p = problem
    return [
        Server(
            name=p.servers.labels[s],
            region=p.regions[p.server_region[s]],
            cluster=p.clusters.labels[p.server_cluster[s]],
            rack=p.racks.labels[p.servers.rack[s]],
            gpu_type=p.gpu_types[p.servers.gpu_type[s]],
            gpus=int(p.servers.supply[s, GPU]) // WHOLE,
            cpu_mcores=int(p.servers.supply[s, CPU]),
            memory_mib=int(p.servers.supply[s, MEMORY]),
        )
        for s in range(len(p.servers))
    ]


def books_of(problem: JobPlacement, tiers: Iterable[int] = (), mix: ArrivalMix | None = None) -> FleetInventory:
    """The servers and datasets of an instance, with its running jobs; its tiers and perhaps others. ``mix``: what has
    come or is expected, None for best fit."""
    p = problem
    servers = servers_of(p)
    replicas = {
        dataset: {p.regions[r] for r in np.flatnonzero(holders).tolist()}
        for dataset, holders in zip(p.datasets.labels, p.datasets.stored)
    }
    residency = {
        p.datasets.labels[i]: {p.regions[r] for r in np.flatnonzero(p.datasets.residency[i]).tolist()}
        for i in np.flatnonzero(p.datasets.residency.any(axis=1)).tolist()
    }
    price = remote_mb_price(p) if p.remote_reads else None
    every_tier = tuple(sorted({*p.tiers, *tiers}))
    books = FleetInventory(servers, every_tier, replicas, residency, price, mix, quotas=p.rights, reclaim=p.reclaim)
    held = allocations_of(p)
    running: dict[str, Running] = {}
    holdings: dict[str, tuple[Holding, ...]] = {}
    for v, name in enumerate(p.running.labels):
        rows = range(int(held.first[v]), int(held.first[v + 1]))
        holdings[name] = tuple(
            Holding(p.servers.labels[s], int(amount[CPU]), int(amount[MEMORY]), device)
            for s, amount, device in ((held.server[at], held.amount[at], held.device[at]) for at in rows)
        )
        shares = tuple(
            Share(one.server, int(held.tasks[at]), {d: int(one.device[d]) for d in np.flatnonzero(one.device).tolist()})
            for at, one in zip(rows, holdings[name])
        )
        job = Job(
            name,
            p.tiers[p.running.tier[v]],
            tasks=max(1, sum(share.tasks for share in shares)),
            preemptible=bool(p.running.preemptible[v]),
            gpu_hours_at_risk=int(p.running.at_risk_mgpu_hours[v]) / MILLI,
            tenant=p.tenants[p.running.tenant[v]],
            limit_ms=int(p.running.ends_within_ms[v]) or None,
        )
        running[name] = Running(job, books.tiers.index(job.tier), shares, False, v, 0)
    books.load_running(running, holdings)
    return books
