"""The books of a live fleet from an instance."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mast_opt.job_placement.capacity import remote_mb_price
from mast_opt.job_placement.live_fleet.bid_conversion import Limits
from mast_opt.job_placement.live_fleet.inventory import MILLI, Books, Holding, Running
from mast_opt.job_placement.live_fleet.types import Job, Server, Share
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.running_allocations import allocations_of
from mast_opt.job_placement.units import CPU, GPU, MEMORY, WHOLE


def books_of(problem: JobPlacement, tiers: Iterable[int] = ()) -> Books:
    """The servers and datasets of an instance, with its running jobs; its tiers and perhaps others."""
    p = problem
    servers = [
        Server(
            name=p.servers[s],
            region=p.regions[p.server_region[s]],
            cluster=p.clusters[p.server_cluster[s]],
            rack=p.racks[p.server_rack[s]],
            gpu_type=p.gpu_types[p.server_type[s]],
            gpus=int(p.supply[s, GPU]) // WHOLE,
            cpu_mcores=int(p.supply[s, CPU]),
            memory_mib=int(p.supply[s, MEMORY]),
        )
        for s in range(len(p.servers))
    ]
    replicas = {
        dataset: {p.regions[r] for r in np.flatnonzero(holders).tolist()}
        for dataset, holders in zip(p.datasets, p.stored)
    }
    residency = {
        p.datasets[i]: {p.regions[r] for r in np.flatnonzero(p.residency[i]).tolist()}
        for i in np.flatnonzero(p.residency.any(axis=1)).tolist()
    }
    books = Books(
        servers, tuple(sorted({*p.tiers, *tiers})), replicas, residency, remote_mb_price(p) if p.remote_reads else None
    )
    held = allocations_of(p)
    running: dict[str, Running] = {}
    holdings: dict[str, tuple[Holding, ...]] = {}
    for v, name in enumerate(p.running):
        rows = range(int(held.first[v]), int(held.first[v + 1]))
        holdings[name] = tuple(
            Holding(p.servers[s], int(amount[CPU]), int(amount[MEMORY]), device)
            for s, amount, device in ((held.server[at], held.amount[at], held.device[at]) for at in rows)
        )
        shares = tuple(
            Share(one.server, int(held.tasks[at]), {d: int(one.device[d]) for d in np.flatnonzero(one.device).tolist()})
            for at, one in zip(rows, holdings[name])
        )
        job = Job(
            name,
            p.tiers[p.running_tier[v]],
            tasks=max(1, sum(share.tasks for share in shares)),
            preemptible=bool(p.preemptible[v]),
            gpu_hours_at_risk=int(p.at_risk[v]) / MILLI,
            tenant=p.tenants[p.running_tenant[v]],
        )
        running[name] = Running(job, books.tiers.index(job.tier), shares)
    books.adopt(running, holdings)
    return books


def quotas_of(problem: JobPlacement) -> Limits:
    """The quotas of an instance."""
    p, limits = problem, Limits({}, {})
    for row, tenant in enumerate(p.quota_tenant.tolist()):
        name, mgpu = p.tenants[tenant], int(p.quota_mgpu[row])
        if p.quota_typed[row]:
            limits.typed.setdefault(name, {})[p.gpu_types[p.quota_type[row]]] = mgpu
        else:
            limits.total[name] = mgpu
    return limits
