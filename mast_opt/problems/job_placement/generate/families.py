"""Instance families of job placement: what is drawn, in the order in which it is drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.problems.job_placement.entities import Costs, TenantQuotas
from mast_opt.problems.job_placement.generate.blank import Pending, assemble, labels
from mast_opt.problems.job_placement.generate.fleets import fill, fleet, task_needs
from mast_opt.problems.job_placement.generate.jobs import (
    levels,
    pending,
    philly_sizes,
    reads,
    sizes,
    with_cpu_parts,
    with_queue_for,
)
from mast_opt.problems.job_placement.problem import TERMS, JobPlacement
from mast_opt.problems.job_placement.units import GPU, WHOLE
from mast_opt.problems.kind.header import Objective

TYPES = ("a100", "h100", "v100")
STUDY_TIER_SHARE = np.array([0.15, 0.3, 0.25, 0.3])


def standard(
    rng: np.random.Generator,
    *,
    regions: int,
    clusters: int,
    servers: int,
    jobs: int,
    fill_percent: int,
    parts_percent: int,
) -> JobPlacement:
    """A fleet that has run for a while, and a queue of jobs of every size, some of them with a part of CPU servers."""
    here = fleet(rng, regions, clusters, servers, TYPES)
    running = fill(rng, here, fill_percent)
    waiting = pending(rng, len(here.gpu_types), sizes(rng, jobs))
    data = reads(rng, regions, jobs, max(2, jobs // 4))
    problem = assemble("standard", here, running, waiting, data, **levels(rng, waiting))
    return with_cpu_parts(rng, problem, parts_percent)


def study(rng: np.random.Generator, *, regions: int, clusters: int, servers: int, fill_percent: int) -> JobPlacement:
    """Small enough to prove an optimum: pending jobs ask for 110–150% of the GPUs that can be admitted."""
    here = fleet(rng, regions, clusters, servers, TYPES[:2])
    running = fill(rng, here, fill_percent, preemptible=0.4)
    most = int(here.servers.supply[:, GPU].sum()) // WHOLE
    waiting = pending(rng, len(here.gpu_types), philly_sizes(rng, most), STUDY_TIER_SHARE)
    data = reads(rng, regions, most, max(2, most // 3), least=0.6)
    problem = assemble("study", here, running, waiting, data, **levels(rng, waiting))
    return with_queue_for(problem, rng.uniform(1.1, 1.5))


def shared_gpus(
    rng: np.random.Generator, *, regions: int, clusters: int, servers: int, jobs: int, fill_percent: int
) -> JobPlacement:
    """Fractions of a GPU, single GPUs and CPU-only work in the shares of the Alibaba 2023 trace."""
    here = fleet(rng, regions, clusters, servers, TYPES[:2])
    running = fill(rng, here, fill_percent)
    kind = rng.choice(4, size=jobs, p=[0.13, 0.38, 0.48, 0.01])
    share = rng.integers(10, 91, size=jobs) * 10
    mgpu = np.select([kind == 0, kind == 1, kind == 2], [0, share, WHOLE], 8 * WHOLE)
    mcores, mib = task_needs(rng, np.where(mgpu > 0, mgpu, WHOLE))
    waiting = pending(rng, len(here.gpu_types), np.ones(jobs, np.int64))
    tasks = np.where(mgpu <= WHOLE, rng.choice([1, 2], size=jobs, p=[0.9, 0.1]), 1)
    value = tasks * np.where(mgpu > 0, mgpu, 100)
    waiting = replace(waiting, tasks=tasks, mgpu=mgpu, mcores=mcores, mib=mib, value_milli=value)
    return assemble("shared-gpus", here, running, waiting)


def lexicographic(
    rng: np.random.Generator, *, regions: int, clusters: int, servers: int, fill_percent: int
) -> JobPlacement:
    """``study`` with its terms minimised one after another."""
    problem = study(rng, regions=regions, clusters=clusters, servers=servers, fill_percent=fill_percent)
    order = ("rejected", "preemption", "spread", "balance")
    return replace(problem, name="lexicographic", objective=Objective(dict(TERMS), order=order))


def features(
    rng: np.random.Generator, *, regions: int, clusters: int, servers: int, jobs: int, fill_percent: int
) -> JobPlacement:
    """Every optional table, column and rule at once; for tests."""
    here = fleet(rng, regions, clusters, servers, TYPES)
    running = fill(rng, here, fill_percent)
    mixed: Pending = pending(rng, len(here.gpu_types), sizes(rng, jobs, 16))
    share = rng.integers(1, 10, size=jobs) * 100
    few = rng.random(jobs)
    mgpu = np.where((mixed.tasks == 1) & (few < 0.3), share, np.where(few > 0.95, 0, mixed.mgpu))
    waiting = replace(mixed, mgpu=mgpu, value_milli=rng.integers(1, 20, size=jobs) * 500)
    tenants = (*labels("tenant", 3), "")
    problem = assemble("features", here, running, waiting, reads(rng, regions, jobs, max(2, jobs // 3)))
    costs = np.argwhere(rng.random((jobs, len(here.clusters))) < 0.4)
    within, prefer = rng.choice(3, size=jobs, p=[0.15, 0.25, 0.6]), rng.integers(3, size=jobs)
    tenant, running_tenant = (rng.integers(len(tenants), size=count) for count in (jobs, len(running.tier)))
    changed = replace(
        problem.jobs,
        within=within,
        prefer=prefer,
        tenant=tenant,
        credit_milli=rng.integers(-5, 6, size=jobs) * 1000,
        submitted_ms=rng.integers(0, 10, size=jobs) * 1000,
    )
    return replace(
        problem,
        tenants=tenants,
        jobs=changed,
        running=replace(problem.running, tenant=running_tenant),
        quotas=TenantQuotas(
            tenant=np.array([0, 1, 1]),
            gpu_type=np.array([0, 0, len(here.gpu_types) - 1]),
            typed=np.array([False, True, len(here.gpu_types) > 1]),
            mgpu=rng.integers(1, 30, size=3) * WHOLE,
        ),
        costs=Costs(costs[:, 0], costs[:, 1], rng.integers(1, 100, size=len(costs)) * 1000),
        remote_reads=bool(rng.random() < 0.5),
        objective=Objective(dict(TERMS), {0: 1.0, 1: 0.3}),
    )
