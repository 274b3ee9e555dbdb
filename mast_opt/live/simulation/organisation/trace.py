"""The trace of a generated organisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from mast_opt.live.simulation.organisation.jobs import DAY_H, HOUR_S, OrganisationJob, jobs_of
from mast_opt.live.simulation.organisation.params import OrganisationParams
from mast_opt.live.simulation.organisation.structure import GPU_TYPES, GPUS_PER_SERVER, Structure, generator, structure
from mast_opt.live.simulation.traces.tables import Given, TraceTables, trace_tables
from mast_opt.live.simulation.traces.trace import JobTrace, trace_from_tables
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.job_placement.units import WHOLE

SWITCHBOARDS = 4
"""Number of switchboards in each region."""
SECOND_MS = 1000


def organisation_trace(params: OrganisationParams) -> JobTrace:
    """The trace of these parameters."""
    found = organisation_tables(params)
    return trace_from_tables(found.name, found.provenance, found.tables)


def organisation_tables(params: OrganisationParams) -> TraceTables:
    """Its tables, to be written."""
    made = structure(params)
    jobs = jobs_of(params, made)
    regions, spaces = draws.names("r", params.regions), draws.names("ns", len(made.home))
    data = draws.names("d", len(made.size_mb))
    own = ", ".join(f"{item.name} {getattr(params, item.name)}" for item in fields(params))
    tables: dict[str, Mapping[str, Given]] = {
        **_places(params, made, regions),
        "submissions": _submissions(jobs, made, regions, spaces),
        "job_gpu_types": {
            "job": [f"j{at}" for at, job in enumerate(jobs) for _ in job.types],
            "gpu_type": [GPU_TYPES[kind] for job in jobs for kind in job.types],
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
    return trace_tables(f"organisation-{params.seed}", f"Generated, organisation in time: {own}.", tables)


def _places(params: OrganisationParams, made: Structure, regions: tuple[str, ...]) -> dict[str, Mapping[str, Given]]:
    names, clusters, racks, kinds, gpus, boards = [], [], [], [], [], []
    for r, region in enumerate(regions):
        for k, kind in enumerate(GPU_TYPES):
            left = int(made.supply[r, k])
            for at in range(-(-left // GPUS_PER_SERVER)):
                names.append(f"{region}-{kind}-{at}")
                clusters.append(f"{region}-{'abcdefgh'[at % params.clusters]}")
                racks.append(f"{kind}-{at // (2 * params.clusters)}")
                kinds.append(kind)
                gpus.append(min(left - at * GPUS_PER_SERVER, GPUS_PER_SERVER))
                boards.append(f"{region}-msb{at % SWITCHBOARDS}")
    used = sorted(set(clusters))
    home = np.bincount(made.home[made.namespace], weights=made.size_mb, minlength=len(regions)).astype(np.int64)
    free = max(0, int(made.size_mb.sum()) * params.storage_percent // 100 - int(home.sum()))
    supply = made.supply.sum(axis=1)
    share = supply / supply.sum() if params.storage_by == "supply" else None
    rng = generator(params.seed, "storage")
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
    jobs: list[OrganisationJob], made: Structure, regions: tuple[str, ...], spaces: tuple[str, ...]
) -> dict[str, Given]:
    gpus = np.array([job.gpus for job in jobs], np.int64)
    tasks = np.maximum(1, gpus // GPUS_PER_SERVER)
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
