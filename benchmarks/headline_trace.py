"""The trace of a generated organisation.

The next job comes when the work submitted so far is what the target makes of the time that has passed, so that the
demand keeps close to the target, as under quotas. Jobs that would run at the beginning come then, with what is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from benchmarks import headline_structure as st
from mast_opt.live.simulation.traces.schema import HAPPENINGS
from mast_opt.live.simulation.traces.tables import Given, TraceTables, trace_tables
from mast_opt.live.simulation.traces.trace import JobTrace, trace_from_tables
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.published import PARETO_INDEX as GPU_INDEX
from mast_opt.problems.job_placement.units import WHOLE
from mast_opt.problems.kind.problem_data import Ints

HOURS_SIGMA = 1.3
"""Lognormal σ of the hours of a job."""
MOST_HOURS = 120.0
MORE_TABLES = 1.5
"""Mean of the Poisson number of partitions that a job reads beyond the first."""
MOST_TABLES = 5
ELSEWHERE = 0.1
"""Share of the first-time jobs that read a partition of another namespace of their team."""
EITHER_TYPE = 0.25
"""Share of the recurring workloads that accept a second type."""
HOUR_S = 3600
DAY_H = 24


@dataclass(frozen=True)
class OrganisationJob:
    """A job."""

    submitted_s: int
    duration_s: int
    namespace: int
    tier: int
    gpus: int
    workload: int
    """-1 for first-time work."""
    types: tuple[int, ...]
    """Empty for any."""
    reads: tuple[int, ...]


def jobs_of(params: st.OrganisationParams, made: st.Structure) -> list[OrganisationJob]:
    """All jobs of a generated organisation, by submission."""
    jobs: list[OrganisationJob] = []
    namespaces, tiers, _ = made.target.shape
    for n in range(namespaces):
        workloads = _recurring(params, made, n)
        for tier in range(tiers):
            jobs += _paced(params, made, n, tier, workloads)
    return sorted(jobs, key=lambda job: (job.submitted_s, job.namespace, job.tier, job.gpus, job.duration_s))


_Workload = tuple[tuple[int, ...], tuple[int, ...]]
"""Types and partitions."""


def _recurring(params: st.OrganisationParams, made: st.Structure, n: int) -> list[_Workload]:
    """Recurring workloads of a namespace of the organisation: GPU types, and the partitions that each reads."""
    rng = st.generator(params.seed, "recurring", n)
    old = made.partitions(n)
    old = old[made.created_day[old] == 0]
    found = []
    for w in range(st.RECURRING):
        kind = int(made.nominal[n, w])
        other = (kind + int(rng.integers(1, len(st.GPU_TYPES)))) % len(st.GPU_TYPES)
        types = (kind, other) if rng.random() < EITHER_TYPE else (kind,)
        found.append((tuple(sorted(types)), _some(rng, old)))
    return found


def _some(rng: np.random.Generator, partitions: Ints) -> tuple[int, ...]:
    """Partitions that a workload of the organisation reads, drawn at random."""
    wanted = 1 + min(MOST_TABLES - 1, int(rng.poisson(MORE_TABLES)))
    chosen = rng.choice(partitions, min(wanted, len(partitions)), replace=False)
    return tuple(sorted(chosen.tolist()))


def _largest(params: st.OrganisationParams, made: st.Structure, n: int, tier: int) -> int:
    """Largest gang of a namespace: no more than what it has on average, nor than the smallest part of its home."""
    most = min(float(made.target[n, tier].mean()), float(made.supply[made.home[n]].min()), params.largest_gpus)
    return 1 << max(0, int(np.log2(max(1.0, most))))


def _paced(
    params: st.OrganisationParams, made: st.Structure, n: int, tier: int, workloads: list[_Workload]
) -> list[OrganisationJob]:
    """Jobs of a namespace and tier of the organisation, which come as its target has room for their work."""
    rng = st.generator(params.seed, "jobs", n * 16 + tier)
    days = np.arange(made.target.shape[2] * st.WEEK_DAYS + 1) - st.WEEK_DAYS
    target = np.repeat(made.target[n, tier], st.WEEK_DAYS) * np.where(
        days[:-1] < params.ramp_days, params.ramp_load, 1.0
    )
    asked_h = np.concatenate([[0.0], (target * DAY_H).cumsum()])  # GPU-hours by then
    largest = _largest(params, made, n, tier)
    gpus, hours = np.zeros(0, np.int64), np.zeros(0)
    while (gpus * hours).sum() < asked_h[-1] * 1.1:
        gpus = np.concatenate([gpus, draws.pareto_powers_of_two(rng, 64, largest, GPU_INDEX)])
        drawn = rng.lognormal(np.log(params.median_hours), HOURS_SIGMA, 64)
        hours = np.concatenate([hours, np.minimum(drawn, MOST_HOURS)])
    work = gpus * hours
    due = np.concatenate([[0.0], work.cumsum()[:-1]]) - rng.random() * work[0]
    begin_h: NDArray[np.float64] = np.interp(due, asked_h, days * DAY_H)
    jobs = []
    for at in np.flatnonzero((due >= 0) & (due < asked_h[-1])).tolist():
        left_h = float(hours[at]) + min(0.0, float(begin_h[at]))
        submitted_s = max(0, round(float(begin_h[at]) * HOUR_S))
        first_time = rng.random() * 100 < params.first_time_percent
        which = int(rng.integers(st.RECURRING))
        reads = _fresh(rng, made, n, submitted_s / (DAY_H * HOUR_S)) if first_time else workloads[which][1]
        if left_h <= 0 or submitted_s >= params.days * DAY_H * HOUR_S:
            continue
        duration_s = max(60, round(left_h * HOUR_S))
        types = () if first_time else workloads[which][0]
        workload = -1 if first_time else n * st.RECURRING + which
        jobs.append(OrganisationJob(submitted_s, duration_s, n, tier, int(gpus[at]), workload, types, reads))
    return jobs


def _fresh(rng: np.random.Generator, made: st.Structure, n: int, day: float) -> tuple[int, ...]:
    """Partitions that first-time work reads: some of the hot ones that there are."""

    def hot(namespace: int) -> Ints:
        own = made.partitions(namespace)
        return own[made.hot[own] & (made.created_day[own] <= day)]

    reads = _some(rng, hot(n))
    if rng.random() < ELSEWHERE:
        reads = tuple(sorted({*reads[1:], int(rng.choice(hot(int(made.partner[n]))))}))
    return reads


SWITCHBOARDS = 4
"""Number of switchboards in each region."""
SECOND_MS = 1000


def organisation_trace(params: st.OrganisationParams) -> JobTrace:
    """The trace of a generated organisation with these parameters."""
    found = organisation_tables(params)
    return trace_from_tables(found.name, found.provenance, found.tables)


def organisation_tables(params: st.OrganisationParams) -> TraceTables:
    """Tables of the trace of a generated organisation, to be written."""
    made = st.structure(params)
    jobs = jobs_of(params, made)
    regions, spaces = draws.names("r", params.regions), draws.names("ns", len(made.home))
    data = draws.names("d", len(made.size_mb))
    own = ", ".join(f"{item.name} {getattr(params, item.name)}" for item in fields(params))
    tables: dict[str, Mapping[str, Given]] = {
        **_places(params, made, regions),
        "submissions": _submissions(jobs, made, regions, spaces),
        "job_gpu_types": {
            "job": [f"j{at}" for at, job in enumerate(jobs) for _ in job.types],
            "gpu_type": [st.GPU_TYPES[kind] for job in jobs for kind in job.types],
        },
        "job_datasets": {
            "job": [f"j{at}" for at, job in enumerate(jobs) for _ in job.reads],
            "dataset": [data[i] for job in jobs for i in job.reads],
        },
        "datasets": {
            "dataset": data,
            "size_tb": made.size_mb,
            "namespace": [spaces[n] for n in made.namespace.tolist()],
            "created_s": np.round(made.created_day * DAY_H * HOUR_S).astype(np.int64) * SECOND_MS,
        },
        "replicas": {"dataset": data, "region": [regions[made.home[n]] for n in made.namespace.tolist()]},
    }
    if params.failures:
        tables["happenings"] = _failures(params, tables["servers"]["server"])
    if params.quotas:
        tables["quotas"] = _quotas(made, spaces)
        tables["submissions"] = {**tables["submissions"], "tenant": tables["submissions"]["namespace"]}
    return trace_tables(f"organisation-{params.seed}", f"Generated, organisation in time: {own}.", tables)


def _places(
    params: st.OrganisationParams, made: st.Structure, regions: tuple[str, ...]
) -> dict[str, Mapping[str, Given]]:
    """Tables of the organisation's regions, clusters, servers and switchboards."""
    names, clusters, racks, kinds, gpus, boards = [], [], [], [], [], []
    for r, region in enumerate(regions):
        for k, kind in enumerate(st.GPU_TYPES):
            left = int(made.supply[r, k])
            for at in range(-(-left // st.GPUS_PER_SERVER)):
                names.append(f"{region}-{kind}-{at}")
                clusters.append(f"{region}-{'abcdefgh'[at % params.clusters]}")
                racks.append(f"{kind}-{at // (2 * params.clusters)}")
                kinds.append(kind)
                gpus.append(min(left - at * st.GPUS_PER_SERVER, st.GPUS_PER_SERVER))
                boards.append(f"{region}-msb{at % SWITCHBOARDS}")
    used = sorted(set(clusters))
    home = np.bincount(made.home[made.namespace], weights=made.size_mb, minlength=len(regions)).astype(np.int64)
    free = max(0, int(made.size_mb.sum()) * params.storage_percent // 100 - int(home.sum()))
    supply = made.supply.sum(axis=1)
    share = supply / supply.sum() if params.storage_by == "supply" else None
    rng = st.generator(params.seed, "storage")
    storage = home + (draws.dirichlet(rng, 4.0, len(regions), free) if share is None else draws.shared_out(free, share))
    ingress = int(made.size_mb.sum() / params.copy_days / len(regions))
    none = np.zeros(len(names), np.int64)
    return {
        "regions": {
            "region": regions,
            "storage_tb": storage,
            "ingress_tb_per_day": np.full(len(regions), ingress, np.int64),
        },
        "clusters": {"cluster": used, "region": [name.rpartition("-")[0] for name in used]},
        "servers": {
            "server": names,
            "cluster": clusters,
            "rack": racks,
            "gpu_type": kinds,
            "gpus": np.array(gpus, np.int64) * WHOLE,
            "cpu_cores": none,
            "memory_gb": none,
        },
        "switchboards": {"server": names, "switchboard": boards},
    }


def _submissions(
    jobs: list[OrganisationJob], made: st.Structure, regions: tuple[str, ...], spaces: tuple[str, ...]
) -> dict[str, Given]:
    """Table of the organisation's submissions."""
    gpus = np.array([job.gpus for job in jobs], np.int64)
    tasks = np.maximum(1, gpus // st.GPUS_PER_SERVER)
    return {
        "job": [f"j{at}" for at in range(len(jobs))],
        "submitted_s": np.array([job.submitted_s for job in jobs], np.int64) * SECOND_MS,
        "tier": np.array([job.tier for job in jobs], np.int64),
        "tasks": tasks,
        "gpus": gpus // tasks * WHOLE,
        "duration_s": np.array([job.duration_s for job in jobs], np.int64) * SECOND_MS,
        "workload": ["" if job.workload < 0 else f"w{job.workload}" for job in jobs],
        "namespace": [spaces[job.namespace] for job in jobs],
        "home_region": [regions[made.home[job.namespace]] for job in jobs],
        "prefer": np.full(len(jobs), 2, np.int64),
    }


def _failures(params: st.OrganisationParams, servers: Given) -> dict[str, Given]:
    """Table of what fails: servers by themselves, at a steady rate while they serve, and back after repair."""
    rng = st.generator(params.seed, "failures")
    found: list[tuple[int, int, str]] = []
    for server in servers:
        day = rng.exponential(1000 / params.failures)
        while day < params.days:
            back = day + rng.exponential(params.repair_hours / DAY_H)
            for at, what in ((day, "server_down"), (back, "server_up")):
                found.append((round(at * DAY_H * HOUR_S) * SECOND_MS, HAPPENINGS.index(what), str(server)))
            day = back + rng.exponential(1000 / params.failures)
    found.sort()
    return {
        "at_s": np.array([at_ms for at_ms, _, _ in found], np.int64),
        "what": np.array([what for _, what, _ in found], np.int64),
        "name": [server for _, _, server in found],
    }


def _quotas(made: st.Structure, spaces: tuple[str, ...]) -> dict[str, Given]:
    """Table of the quotas of namespaces, which together are the supply, below teams and the organisation."""
    teams = draws.names("t", int(made.team[-1]) + 1)
    share = made.target[:, :, 0].sum(axis=1)
    own = draws.shared_out(int(made.supply.sum()), share / share.sum())
    groups = np.zeros(1 + len(teams), np.int64)
    return {
        "tenant": [*spaces, *teams, "organisation"],
        "gpus": np.concatenate([own, groups]) * WHOLE,
        "parent": [*(teams[t] for t in made.team.tolist()), *["organisation"] * len(teams), ""],
    }
