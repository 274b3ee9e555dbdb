"""Instance families of job placement: what is drawn, in the order in which it is drawn.

Some jobs have two parts, trainers and CPU servers that prepare their input. The shape of the second part is an
assumption, not taken from a trace: a task of 8 cores and 32 GiB for every two GPUs of the trainers. It may be anywhere
in their region.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.entities import Costs, Datasets, MultipartJobs, Options, Parts, Reads, TenantQuotas
from mast_opt.problems.job_placement.generate import fleets
from mast_opt.problems.job_placement.generate.blank import Pending, assemble, labels
from mast_opt.problems.job_placement.problem import TERMS, JobPlacement
from mast_opt.problems.job_placement.units import CLUSTER, GPU, RACK, REGION, SERVER, WHOLE, Bools, Ints
from mast_opt.problems.kind.header import Objective

GPUS_A_READER, READER_MCORES, READER_MIB = 2, 8_000, 32 * 1024
"""GPUs that a task of the second part serves, and what it needs."""
NAMES = ("trainers", "readers")


KEPT = ("tier", "prefer", "tenant", "credit_milli", "submitted_ms", "limit_ms")
"""Columns of a job that its parts share."""


def with_cpu_parts(rng: np.random.Generator, problem: JobPlacement, percent: int) -> JobPlacement:
    """The problem (without costs and quotas) in which about so many percent of the pending jobs that take whole GPUs
    have a part of CPU servers too; with 0, nothing is drawn."""
    if not percent:
        return problem
    p, jobs = problem, problem.jobs
    gpus = p.need_mgpu.max(axis=1) // WHOLE * jobs.tasks
    chosen = (rng.random(len(jobs)) < percent / 100) & (gpus > 0)
    row = np.repeat(np.arange(len(jobs)), 1 + chosen)
    readers = np.diff(row, prepend=-1) == 0
    part = readers | np.append(readers[1:], False)
    names = [NAMES[second] for second in readers[part].astype(int).tolist()]
    labels = [jobs.labels[j] for j in row.tolist()]
    for number, name in zip(np.flatnonzero(part).tolist(), names):
        labels[number] += f"/{name}"
    whole = np.cumsum(chosen)[row] - 1
    first = np.flatnonzero(~readers)
    kinds = np.arange(len(p.gpu_types))
    at, kind = (axis.ravel() for axis in np.meshgrid(np.flatnonzero(readers), kinds, indexing="ij"))
    return replace(
        p,
        jobs=replace(
            jobs,
            labels=tuple(labels),
            value_milli=np.where(readers, 0, jobs.value_milli[row]),
            tasks=np.where(readers, -(-gpus[row] // GPUS_A_READER), jobs.tasks[row]),
            cpu_mcores=np.where(readers, READER_MCORES, jobs.cpu_mcores[row]),
            memory_mib=np.where(readers, READER_MIB, jobs.memory_mib[row]),
            within=np.where(readers, CLUSTER, jobs.within[row]),
            **{name: getattr(jobs, name)[row] for name in KEPT},
        ),
        options=Options(
            *_by_job(
                np.concatenate([first[p.options.job], at]),
                np.concatenate([p.options.gpu_type, kind]),
                np.concatenate([p.options.mgpu, np.zeros(len(at), np.int64)]),
            )
        ),
        reads=_with_same_reads(p, first, chosen),
        multipart_jobs=MultipartJobs(
            tuple(jobs.labels[j] for j in np.flatnonzero(chosen).tolist()), np.full(chosen.sum(), REGION)
        ),
        parts=Parts(tuple(names), np.flatnonzero(part), whole[part]),
    )


def _with_same_reads(problem: JobPlacement, first: Ints, chosen: Bools) -> Reads:
    """Reads of all rows; the volume stands with the first part."""
    reads = problem.reads
    again = np.flatnonzero(chosen[reads.job])
    return Reads(
        *_by_job(
            np.concatenate([first[reads.job], first[reads.job[again]] + 1]),
            np.concatenate([reads.dataset, reads.dataset[again]]),
            np.concatenate([reads.mb_per_day, np.zeros(len(again), np.int64)]),
        )
    )


def _by_job(*columns: Ints) -> list[Ints]:
    """The columns of a generated relation of jobs, sorted by the first."""
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]


def with_queue_for(problem: JobPlacement, ratio: float) -> JobPlacement:
    """The problem with as many of its jobs, from the first on, as ask for ``ratio`` times what can be admitted."""
    asked, taken = asked_and_taken(problem)
    within = np.flatnonzero(asked <= ratio * taken)
    return first_jobs(problem, int(within[-1]) + 1 if len(within) else 1)


def first_jobs(problem: JobPlacement, count: int) -> JobPlacement:
    """The problem with only the first ``count`` jobs."""
    p = problem
    return replace(
        p,
        jobs=p.jobs.rows(np.arange(count)),
        options=p.options.rows(p.options.job < count),
        reads=p.reads.rows(p.reads.job < count),
        costs=p.costs.rows(p.costs.job < count),
    )


def asked_and_taken(problem: JobPlacement) -> tuple[Ints, Ints]:
    """Milli-GPUs that the first 1, 2, … jobs ask for, and those that they get: each job in turn as much as is there
    in the region and type with most left for its tier."""
    p = problem
    room = _room(p)
    asked, taken = np.zeros(len(p.jobs), np.int64), np.zeros(len(p.jobs), np.int64)
    for j in range(len(p.jobs)):
        asked[j] = p.jobs.tasks[j] * p.need_mgpu[j].max()
        left = room[:, :, : p.jobs.tier[j] + 1].min(axis=2)
        left = np.where(p.open_region[j][:, None] & p.accepts[j], left, 0)
        at = np.unravel_index(int(left.argmax()), left.shape)
        taken[j] = min(asked[j], left[at])
        room[at][: p.jobs.tier[j] + 1] -= taken[j]
    return np.cumsum(asked), np.cumsum(taken)


def _room(problem: JobPlacement) -> Ints:
    """[R, K, P] milli-GPUs for work of tier p and less important work: what is free, and what victims of lower
    tiers hold."""
    p = problem
    room = np.zeros((len(p.regions), len(p.gpu_types), len(p.tiers)), np.int64)
    np.add.at(room, (p.server_region, p.servers.gpu_type), p.free[:, GPU, None])
    for tier in range(len(p.tiers)):
        rows = np.flatnonzero(
            p.running.preemptible[p.allocations.running] & (p.running.tier[p.allocations.running] > tier)
        )
        server = p.allocations.server[rows]
        np.add.at(room[:, :, tier], (p.server_region[server], p.servers.gpu_type[server]), p.held[rows, GPU])
    return room


def pending(
    rng: np.random.Generator, types: int, gpus: Ints, tier_share: NDArray[np.float64] = fleets.TIER_SHARE
) -> Pending:
    """Generated pending jobs with so many GPUs each; beyond 8 as tasks of 8. Two thirds accept one type, the others
    any.
    """
    count = len(gpus)
    tasks = np.where(gpus > 8, gpus // 8, 1)
    mgpu = np.minimum(gpus, 8) * WHOLE
    mcores, mib = fleets.task_needs(rng, mgpu)
    choosy = rng.random(count) < 2 / 3
    wanted = rng.integers(types, size=count)
    job, kind = np.nonzero(~choosy[:, None] | (np.arange(types) == wanted[:, None]))
    return Pending(
        tier=rng.choice(fleets.TIERS, size=count, p=tier_share),
        tasks=tasks,
        mgpu=mgpu,
        mcores=mcores,
        mib=mib,
        value_milli=tasks * mgpu,
        options=(job, kind),
    )


PHILLY = {1: 76_627, 2: 1_818, 4: 1_870, 8: 1_643, 16: 199, 32: 67}
"""GPUs of a job → jobs in the Philly trace (CC BY 4.0), up to 32 GPUs and powers of two."""


def sizes(rng: np.random.Generator, count: int, most: int = 64) -> Ints:
    """GPUs of ``count`` generated jobs: powers of two up to ``most``."""
    share = np.where(most >= fleets.SIZES, fleets.SIZE_SHARE, 0)
    return rng.choice(fleets.SIZES, size=count, p=share / share.sum())


def philly_sizes(rng: np.random.Generator, count: int) -> Ints:
    """GPUs of ``count`` generated jobs as in the Philly trace: nine in ten ask for one."""
    number = np.array(list(PHILLY.values()), np.float64)
    return rng.choice(np.array(list(PHILLY)), size=count, p=number / number.sum())


def reads(
    rng: np.random.Generator, regions: int, jobs: int, datasets: int, least: float = 0.25
) -> tuple[Datasets, Reads]:
    """Generated datasets of jobs, in one to all regions (each in a share between ``least`` and 0.85), and for 60% of
    the jobs one or two that they read.
    """
    share = rng.uniform(least, 0.85, (datasets, 1))
    stored = rng.random((datasets, regions)) < share
    stored[np.arange(datasets), rng.integers(regions, size=datasets)] = True
    first = rng.integers(datasets, size=jobs)
    step = rng.integers(1, max(datasets, 2), size=jobs)
    second = np.where(rng.random(jobs) < 0.3, (first + step) % datasets, first)
    has = rng.random(jobs) < 0.6
    rows = np.concatenate([np.stack([np.arange(jobs), first], 1)[has], np.stack([np.arange(jobs), second], 1)[has]])
    rows = np.unique(rows, axis=0)
    volume = np.maximum(np.rint(rng.lognormal(np.log(200_000), 1.0, len(rows))), 1).astype(np.int64)
    return Datasets(labels("data", datasets), stored, np.zeros_like(stored)), Reads(rows[:, 0], rows[:, 1], volume)


def levels(rng: np.random.Generator, here: Pending) -> dict[str, Ints]:
    """Some gangs must stay within a rack; some jobs are content with one."""
    draw = rng.random(len(here.tasks))
    within = np.where((draw < 0.15) & (here.tasks <= 4), RACK, CLUSTER)
    return {"within": within, "prefer": np.where(draw > 0.8, RACK, SERVER)}


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
    here = fleets.fleet(rng, regions, clusters, servers, TYPES)
    running = fleets.fill(rng, here, fill_percent)
    waiting = pending(rng, len(here.gpu_types), sizes(rng, jobs))
    data = reads(rng, regions, jobs, max(2, jobs // 4))
    problem = assemble("standard", here, running, waiting, data, **levels(rng, waiting))
    return with_cpu_parts(rng, problem, parts_percent)


def study(rng: np.random.Generator, *, regions: int, clusters: int, servers: int, fill_percent: int) -> JobPlacement:
    """Small enough to prove an optimum: pending jobs ask for 110–150% of the GPUs that can be admitted."""
    here = fleets.fleet(rng, regions, clusters, servers, TYPES[:2])
    running = fleets.fill(rng, here, fill_percent, preemptible=0.4)
    most = int(here.servers.supply[:, GPU].sum()) // WHOLE
    waiting = pending(rng, len(here.gpu_types), philly_sizes(rng, most), STUDY_TIER_SHARE)
    data = reads(rng, regions, most, max(2, most // 3), least=0.6)
    problem = assemble("study", here, running, waiting, data, **levels(rng, waiting))
    return with_queue_for(problem, rng.uniform(1.1, 1.5))


def shared_gpus(
    rng: np.random.Generator, *, regions: int, clusters: int, servers: int, jobs: int, fill_percent: int
) -> JobPlacement:
    """Fractions of a GPU, single GPUs and CPU-only work in the shares of the Alibaba 2023 trace."""
    here = fleets.fleet(rng, regions, clusters, servers, TYPES[:2])
    running = fleets.fill(rng, here, fill_percent)
    kind = rng.choice(4, size=jobs, p=[0.13, 0.38, 0.48, 0.01])
    share = rng.integers(10, 91, size=jobs) * 10
    mgpu = np.select([kind == 0, kind == 1, kind == 2], [0, share, WHOLE], 8 * WHOLE)
    mcores, mib = fleets.task_needs(rng, np.where(mgpu > 0, mgpu, WHOLE))
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
    here = fleets.fleet(rng, regions, clusters, servers, TYPES)
    running = fleets.fill(rng, here, fill_percent)
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
            parent=np.full(3, len(tenants)),
            **dict.fromkeys(("borrowing_mgpu", "lending_mgpu"), np.full(3, -1)),
        ),
        costs=Costs(costs[:, 0], costs[:, 1], rng.integers(1, 100, size=len(costs)) * 1000),
        remote_reads=bool(rng.random() < 0.5),
        objective=Objective(dict(TERMS), {0: 1.0, 1: 0.3}),
    )
