"""Blank job-placement problem to fill in: every array of the right shape, every option at its default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mast_opt.job_placement.problem import TERMS, JobPlacement
from mast_opt.job_placement.units import CLUSTER, SERVER, Ints
from mast_opt.kind.header import Objective


@dataclass(frozen=True, eq=False)
class GeneratedFleet:
    """Servers in racks in clusters in regions; GPUs in milli-GPUs, cores in millicores, memory in MiB."""

    regions: tuple[str, ...]
    clusters: tuple[str, ...]
    racks: tuple[str, ...]
    servers: tuple[str, ...]
    gpu_types: tuple[str, ...]
    cluster_region: Ints
    rack_cluster: Ints
    server_rack: Ints
    server_type: Ints
    supply: Ints

    @property
    def server_cluster(self) -> Ints:
        """Cluster [S] of each server."""
        return self.rack_cluster[self.server_rack]


@dataclass
class Running:
    """Running jobs under construction; one entry per job, and one per allocation."""

    tier: list[int] = field(default_factory=list)
    preemptible: list[bool] = field(default_factory=list)
    at_risk: list[int] = field(default_factory=list)
    held: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    """(job, server, tasks, milli-GPUs, millicores, MiB), needs per task."""


@dataclass(frozen=True, eq=False)
class Pending:
    """Pending jobs; every array has one entry per job."""

    tier: Ints
    tasks: Ints
    mgpu: Ints
    mcores: Ints
    mib: Ints
    value_milli: Ints
    options: tuple[Ints, Ints]
    """(job, type) pairs, sorted."""


def assemble(name: str, fleet: GeneratedFleet, running: Running, pending: Pending, **more: Any) -> JobPlacement:  # noqa: ANN401 - fields of different types
    """The problem with this fleet, these running and these pending jobs. ``more`` sets any other field."""
    jobs, count = len(pending.tier), len(running.tier)
    held = np.array(running.held, np.int64).reshape(-1, 6)
    tiers, at = np.unique(np.concatenate([pending.tier, np.array(running.tier, np.int64)]), return_inverse=True)
    none = np.zeros(0, np.int64)
    given: dict[str, Any] = {
        "name": name,
        "regions": fleet.regions,
        "clusters": fleet.clusters,
        "racks": fleet.racks,
        "servers": fleet.servers,
        "gpu_types": fleet.gpu_types,
        "jobs": labels("job", jobs),
        "running": labels("run", count),
        "datasets": (),
        "tenants": ("",),
        "tiers": tuple(tiers.tolist()),
        "cluster_region": fleet.cluster_region,
        "rack_cluster": fleet.rack_cluster,
        "server_rack": fleet.server_rack,
        "server_type": fleet.server_type,
        "supply": fleet.supply,
        "tier": at[:jobs].astype(np.int64),
        "value_milli": pending.value_milli,
        "tasks": pending.tasks,
        "cpu_mcores": pending.mcores,
        "memory_mib": pending.mib,
        "within": np.full(jobs, CLUSTER),
        "prefer": np.full(jobs, SERVER),
        "tenant": np.zeros(jobs, np.int64),
        "credit_milli": np.zeros(jobs, np.int64),
        "submitted_ms": np.arange(jobs) * 60_000,
        "option_job": pending.options[0],
        "option_type": pending.options[1],
        "option_mgpu": pending.mgpu[pending.options[0]],
        "read_job": none,
        "read_dataset": none,
        "read_mb_per_day": none,
        "stored": np.zeros((0, len(fleet.regions)), np.bool_),
        "residency": np.zeros((len(more.get("datasets", ())), len(fleet.regions)), np.bool_),
        "running_tier": at[jobs:].astype(np.int64),
        "preemptible": np.array(running.preemptible, np.bool_),
        "at_risk": np.array(running.at_risk, np.int64),
        "running_tenant": np.zeros(count, np.int64),
        "held_job": held[:, 0],
        "held_server": held[:, 1],
        "held_tasks": held[:, 2],
        "held_need": held[:, 3:],
        "held_index": np.zeros(len(held), np.int64),
        "held_indexed": np.zeros(len(held), np.bool_),
        "quota_tenant": none,
        "quota_type": none,
        "quota_typed": np.zeros(0, np.bool_),
        "quota_mgpu": none,
        "cost_job": none,
        "cost_cluster": none,
        "cost_micro": none,
        "objective": Objective(dict(TERMS)),
        "remote_reads": False,
    }
    return JobPlacement(**(given | more))


def labels(stem: str, count: int) -> tuple[str, ...]:
    """stem-1, stem-2, …, padded so that they sort by number."""
    width = len(str(count))
    return tuple(f"{stem}-{number:0{width}d}" for number in range(1, count + 1))
