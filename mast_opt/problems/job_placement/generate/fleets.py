"""Generated fleets of job placement, and how full they are."""

import numpy as np

from mast_opt.core.units import MIB_PER_GIB, MILLI
from mast_opt.problems.job_placement.entities import Clusters, Racks, Servers
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Running, labels
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, WHOLE, Ints

SERVERS_PER_RACK = 4
CORES_PER_GPU, GIB_PER_GPU = 12, 128
"""Cores and memory of a server for each of its GPUs; a task asks for somewhat less on average."""
SIZES = np.array([1, 2, 4, 8, 16, 32, 64])
SIZE_SHARE = np.array([0.36, 0.14, 0.16, 0.2, 0.08, 0.04, 0.02])
"""GPUs of a job: powers of two; most jobs are small, most GPUs are in large ones."""
TIERS = np.array([0, 1, 2, 3])
TIER_SHARE = np.array([0.06, 0.22, 0.18, 0.54])
HOURS_AT_RISK = 2.0
"""Mean hours since the last checkpoint."""


def fleet(
    rng: np.random.Generator, regions: int, clusters: int, servers: int, types: tuple[str, ...]
) -> GeneratedFleet:
    """``clusters`` per region with about ``servers`` each (uneven: 0.5 to 1.5 times), one type per cluster mostly.

    Servers have 8 GPUs; in every fourth cluster, half of them have 4.
    """
    total = regions * clusters
    size = np.maximum(1, np.rint(servers * rng.uniform(0.5, 1.5, total)).astype(np.int64))
    first = rng.permutation(np.arange(total) % len(types))
    second = rng.integers(len(types), size=total)
    mixed = rng.random(total) < 0.25
    small = np.arange(total) % 4 == 3
    racks_of = -(-size // SERVERS_PER_RACK)
    rack_cluster = np.repeat(np.arange(total), racks_of)
    cluster_of = np.repeat(np.arange(total), size)
    step = np.arange(len(cluster_of)) - np.repeat(np.cumsum(size) - size, size)
    server_rack = (np.cumsum(racks_of) - racks_of)[cluster_of] + step // SERVERS_PER_RACK
    late = step >= size[cluster_of] // 2
    kind = np.where(mixed[cluster_of] & late, second[cluster_of], first[cluster_of])
    used, server_type = np.unique(kind, return_inverse=True)
    gpus = np.where(small[cluster_of] & (step % 2 == 1), 4, 8)
    names = labels("region", regions)
    cluster_names = tuple(f"{names[c // clusters]}-c{c % clusters + 1}" for c in range(total))
    rack_step = np.arange(len(rack_cluster)) - np.repeat(np.cumsum(racks_of) - racks_of, racks_of)
    return GeneratedFleet(
        regions=names,
        gpu_types=tuple(types[k] for k in used.tolist()),
        clusters=Clusters(cluster_names, np.arange(total) // clusters),
        racks=Racks(
            tuple(f"{cluster_names[c]}-b{n + 1}" for c, n in zip(rack_cluster.tolist(), rack_step.tolist())),
            rack_cluster,
        ),
        servers=Servers(
            tuple(f"{cluster_names[c]}-s{n + 1}" for c, n in zip(cluster_of.tolist(), step.tolist())),
            server_rack,
            server_type.astype(np.int64),
            np.stack([gpus * WHOLE, gpus * CORES_PER_GPU * MILLI, gpus * GIB_PER_GPU * MIB_PER_GIB], axis=1),
        ),
    )


def fill(rng: np.random.Generator, here: GeneratedFleet, percent: int, preemptible: float = 0.75) -> Running:
    """Running jobs that hold ``percent`` of the GPUs: the fleet is packed full, then jobs end at random.

    So what is free is scattered as it is in a fleet that has run for a while. Of the jobs of the lowest tier, where
    over-quota work runs, the share ``preemptible`` may be stopped; no others may.
    """
    jobs = [job for cluster in range(len(here.clusters)) for job in _packed(rng, here, cluster)]
    total = int(here.servers.supply[:, GPU].sum()) // WHOLE
    end = total - total * percent // 100
    size = np.array([sum(n * g for _, n, g in job) for job in jobs])
    order = rng.permutation(len(jobs))
    over = np.cumsum(size[order]) > end
    ended = set(order[: int(over.argmax()) if over.any() else len(order)].tolist())
    free = here.servers.supply.copy()
    running = Running()
    for number, job in enumerate(jobs):
        if number not in ended:
            _start(rng, running, job, free, int(size[number]), preemptible)
    return running


def _packed(rng: np.random.Generator, here: GeneratedFleet, cluster: int) -> list[list[tuple[int, int, int]]]:
    """Jobs that fill the cluster's GPUs: for each, (server, tasks, GPUs per task)."""
    servers = np.flatnonzero(here.server_cluster == cluster)
    free = here.servers.supply[servers, GPU] // WHOLE
    jobs = []
    while (left := int(free.sum())) > 0:
        gpus = int(rng.choice(SIZES, p=SIZE_SHARE))
        if gpus > 8 and (free >= 8).sum() * 8 >= gpus:
            at = np.flatnonzero(free >= 8)[: gpus // 8]
            per_task = 8
        else:
            per_task = min(gpus, 8, left)
            fits = np.flatnonzero(free >= per_task)
            if not len(fits):
                per_task = int(free.max())
                fits = np.flatnonzero(free >= per_task)
            at = fits[np.argsort(free[fits], kind="stable")[:1]]
        free[at] -= per_task
        jobs.append([(int(s), 1, per_task) for s in servers[at]])
    return jobs


def _start(
    rng: np.random.Generator,
    running: Running,
    job: list[tuple[int, int, int]],
    free: Ints,
    gpus: int,
    preemptible: float,
) -> None:
    """Add a running job; its cores and memory are cut to what its servers have left."""
    mcores, mib = task_needs(rng, np.array([job[0][2] * WHOLE]))
    for s, tasks, _ in job:
        mcores = np.minimum(mcores, free[s, CPU] // tasks)
        mib = np.minimum(mib, free[s, MEMORY] // tasks)
    tier = int(rng.choice(TIERS, p=TIER_SHARE))
    number = len(running.tier)
    running.tier.append(tier)
    running.preemptible.append(tier == TIERS[-1] and bool(rng.random() < preemptible))
    running.at_risk.append(int(gpus * MILLI * rng.exponential(HOURS_AT_RISK)))
    for s, tasks, per_task in job:
        row = (number, s, tasks, per_task * WHOLE, int(mcores[0]), int(mib[0]))
        running.held.append(row)
        free[s] -= tasks * np.array(row[3:])


def task_needs(rng: np.random.Generator, mgpu: Ints) -> tuple[Ints, Ints]:
    """(millicores, MiB) of a generated job's task with so many GPUs: on average 70% and 60% of what comes with them, in
    whole cores and GiB, and never more than comes with them.
    """
    share = np.minimum(rng.lognormal(np.log([0.65, 0.5]), 0.4, (len(mgpu), 2)), 1.0)
    mcores = np.maximum(np.floor(share[:, 0] * CORES_PER_GPU * mgpu / WHOLE), 1).astype(np.int64) * MILLI
    mib = np.maximum(np.floor(share[:, 1] * GIB_PER_GPU * mgpu / WHOLE), 1).astype(np.int64) * MIB_PER_GIB
    return mcores, mib
