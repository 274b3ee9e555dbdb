"""Conversion between a job-placement problem and a live fleet, and between engine positions and names of bids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.capacity import remote_mb_price
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix
from mast_opt.problems.job_placement.engine.best_bid import BestBid
from mast_opt.problems.job_placement.engine.state import J_COST, VICTIM
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.part_gangs import gangs_of
from mast_opt.problems.job_placement.live_fleet.running_job import Holding, Running
from mast_opt.problems.job_placement.live_fleet.types import Job, Server, Share
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.running_allocations import allocations_of
from mast_opt.problems.job_placement.units import CPU, GPU, LEVELS, MEMORY, WHOLE


def books_of(problem: JobPlacement, tiers: Iterable[int] = (), mix: ArrivalMix | None = None) -> FleetInventory:
    """The servers and datasets of an instance, with its running jobs; its tiers and perhaps others. ``mix``: what has
    come or is expected, None for best fit."""
    p = problem
    servers = [
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
    replicas = {
        dataset: {p.regions[r] for r in np.flatnonzero(holders).tolist()}
        for dataset, holders in zip(p.datasets.labels, p.datasets.stored)
    }
    residency = {
        p.datasets.labels[i]: {p.regions[r] for r in np.flatnonzero(p.datasets.residency[i]).tolist()}
        for i in np.flatnonzero(p.datasets.residency.any(axis=1)).tolist()
    }
    price = remote_mb_price(p) if p.remote_reads else None
    books = FleetInventory(servers, tuple(sorted({*p.tiers, *tiers})), replicas, residency, price, mix)
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
        )
        running[name] = Running(job, books.tiers.index(job.tier), shares, False, v)
    books.load_running(running, holdings)
    return books


def quotas_of(problem: JobPlacement) -> Limits:
    """The quotas of an instance."""
    p, limits = problem, Limits({}, {})
    for row, tenant in enumerate(p.quotas.tenant.tolist()):
        name, mgpu = p.tenants[tenant], int(p.quotas.mgpu[row])
        if p.quotas.typed[row]:
            limits.typed.setdefault(name, {})[p.gpu_types[p.quotas.gpu_type[row]]] = mgpu
        else:
            limits.total[name] = mgpu
    return limits


@dataclass(frozen=True)
class Limits:
    """Quotas of tenants, in milli-GPUs."""

    total: dict[str, int]
    """Tenant → limit for all types together."""
    typed: dict[str, dict[str, int]]
    """Tenant → GPU type → limit for that type."""

    def copy(self) -> Limits:
        """Quotas that can go their own way."""
        return Limits(dict(self.total), {tenant: dict(typed) for tenant, typed in self.typed.items()})

    def set(self, tenant: str, gpu_type: str | None, mgpu: int | None) -> None:
        """A new limit, or (None) no limit, for one type or all together."""
        limits = self.total if gpu_type is None else self.typed.setdefault(tenant, {})
        key = tenant if gpu_type is None else gpu_type
        if mgpu is None:
            limits.pop(key, None)
        else:
            limits[key] = mgpu


def over_quota(job: Job, books: FleetInventory, quotas: Limits, old: Running | None = None) -> bool:
    """Whether the job would take its tenant over its quotas on every type of the fleet that it accepts; one of several
    parts if one of them would, where those before it count on the first type that holds them. ``old``: what runs in
    its place so far."""
    total, typed = quotas.total.get(job.tenant), quotas.typed.get(job.tenant)
    if total is None and typed is None:
        return False
    used = {kind: books.used_by(job.tenant, kind) for kind in books.types}
    for share in () if old is None or old.over_quota else old.shares:
        used[books.servers[share.server].gpu_type] -= sum(share.gpus.values())
    for gang in gangs_of(job):
        needs = dict.fromkeys(used, gang.mgpu) if gang.gpu_types is None else gang.gpu_types
        asked = {kind: gang.tasks * mgpu for kind, mgpu in needs.items() if kind in used}
        if not asked:
            continue
        for kind, mgpu in asked.items():
            within_typed = not typed or kind not in typed or used[kind] + mgpu <= typed[kind]
            if within_typed and (total is None or sum(used.values()) + mgpu <= total):
                used[kind] += mgpu
                break
        else:
            return True
    return False


def bid_of(
    offer: BestBid,
    job: Job,
    over: bool,
    price: NDArray[np.float64] | None,
    books: FleetInventory,
    version: int,
    fleet: str,
) -> Bid:
    """An offer in names. ``over``: the job is over its tenant's quota. ``price`` [G]: see ``price_of``."""
    layout = books.layout
    region = int(layout.group_region[offer.group])
    cost = sum(int(books.state.job[J_COST, at]) // VICTIM for at in offer.victims.tolist())
    rows = zip(offer.placed.server.tolist(), offer.placed.tasks.tolist(), offer.placed.device.tolist())
    return Bid(
        job=job,
        tier=books.tiers[-1] if over else job.tier,
        over_quota=over,
        region=books.region_names[region],
        cluster=books.cluster_names[int(layout.group_cluster[offer.group])],
        gpu_type=books.type_names[int(layout.group_type[offer.group])],
        shares=tuple(
            Share(books.server_at(at), tasks, {d: mgpu for d, mgpu in enumerate(device) if mgpu})
            for at, tasks, device in rows
        ),
        level=LEVELS[offer.level],
        victims=books.names_of(offer.victims),
        victim_tier=None if offer.threshold is None else books.tiers[offer.threshold],
        gpu_hours_lost=cost / MILLI,
        price=0.0 if price is None else float(price[offer.group]),
        load=books.load_of(region),
        proven=offer.proven,
        version=version,
        fleet=fleet,
    )
