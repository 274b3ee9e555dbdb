"""A live fleet from an instance, and its pending jobs as the fleet takes them; and kernels made ready."""

from __future__ import annotations

import numpy as np

from mast_opt.job_placement.allocations import allocations_of
from mast_opt.job_placement.books import Holding, Running
from mast_opt.job_placement.fleet import Fleet
from mast_opt.job_placement.offers import Bid, Job, Server, Share
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import CPU, GPU, LEVELS, MEMORY, WHOLE

MILLI = 1000


def fleet_of(problem: JobPlacement) -> Fleet:
    """The servers, datasets and quotas (of all types together) of an instance, with its running jobs on them."""
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
    quotas = {
        p.tenants[tenant]: int(mgpu)
        for tenant, mgpu, typed in zip(p.quota_tenant.tolist(), p.quota_mgpu.tolist(), p.quota_typed.tolist())
        if not typed
    }
    fleet = Fleet(servers, tiers=p.tiers, replicas=replicas, quotas=quotas)
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
        running[name] = Running(job, int(p.running_tier[v]), shares)
    fleet._books.adopt(running, holdings)
    return fleet


def job_of(problem: JobPlacement, j: int) -> Job:
    """A pending job of an instance as the fleet takes it. It may be stopped once it runs if it is not of tier 0."""
    p = problem
    accepted = np.flatnonzero(p.accepts[j]).tolist()
    return Job(
        name=p.jobs[j],
        tier=p.tiers[p.tier[j]],
        tasks=int(p.tasks[j]),
        gpu_types={p.gpu_types[k]: int(p.need_mgpu[j, k]) for k in accepted},
        cpu_mcores=int(p.cpu_mcores[j]),
        memory_mib=int(p.memory_mib[j]),
        datasets=tuple(p.datasets[i] for i in p.read_dataset[p.read_job == j].tolist()),
        within=LEVELS[p.within[j]],
        prefer=LEVELS[p.prefer[j]],
        preemptible=bool(p.tier[j] > 0),
        tenant=p.tenants[p.tenant[j]],
    )


def warm_up() -> None:
    """Load everything that is compiled (and compile it, the first time on a machine), so that the first real job does
    not wait for it."""
    servers = [Server(f"s{n}", "r", "c", f"b{n // 2}", "gpu", 2, 8000, 8192) for n in range(4)]
    fleet = Fleet(servers, tiers=(0, 1))
    for n in range(4):
        _admit(fleet, Job(f"old{n}", 1, mgpu=2000, preemptible=True, gpu_hours_at_risk=n))
    _admit(fleet, Job("single", 0, mgpu=1000))
    _admit(fleet, Job("gang", 0, tasks=2, mgpu=2000))
    fleet.place(Job("large", 0, tasks=9, mgpu=2000))
    fleet.explain(Job("fraction", 0, mgpu=500))
    fleet.release("single")
    with fleet.round():
        fleet.fail("s3")
    fleet.uncordon("s3")


def _admit(fleet: Fleet, job: Job) -> None:
    answer = fleet.place(job)
    if isinstance(answer, Bid):
        fleet.commit(answer)
