"""Blank job-placement problem to fill in: every array of the right shape, every option at its default."""

from dataclasses import dataclass, field

import numpy as np

from mast_opt.problems.job_placement import entities
from mast_opt.problems.job_placement.problem import TERMS, JobPlacement
from mast_opt.problems.job_placement.units import CLUSTER, SERVER, Ints
from mast_opt.problems.kind.header import Objective


@dataclass(frozen=True, eq=False)
class GeneratedFleet:
    """Servers in racks in clusters in regions."""

    regions: tuple[str, ...]
    gpu_types: tuple[str, ...]
    clusters: entities.Clusters
    racks: entities.Racks
    servers: entities.Servers

    @property
    def server_cluster(self) -> Ints:
        """Cluster [S] of each generated server."""
        return self.racks.cluster[self.servers.rack]


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


def assemble(
    name: str,
    fleet: GeneratedFleet,
    running: Running,
    pending: Pending,
    data: tuple[entities.Datasets, entities.Reads] | None = None,
    *,
    within: Ints | None = None,
    prefer: Ints | None = None,
) -> JobPlacement:
    """The problem with this fleet, these running and these pending jobs.

    Args:
        name: of the problem.
        fleet: its servers.
        running: what runs.
        pending: what waits.
        data: datasets, and what pending jobs read; none unless given.
        within: [J] limit of each pending job; ``CLUSTER`` unless given.
        prefer: [J] level that is close enough; ``SERVER`` unless given.
    """
    jobs, count = len(pending.tier), len(running.tier)
    held = np.array(running.held, np.int64).reshape(-1, 6)
    tiers, at = np.unique(np.concatenate([pending.tier, np.array(running.tier, np.int64)]), return_inverse=True)
    none = np.zeros(0, np.int64)
    nowhere = np.zeros((0, len(fleet.regions)), np.bool_)
    datasets, reads = data or (entities.Datasets((), nowhere, nowhere), entities.Reads(none, none, none))
    return JobPlacement(
        name=name,
        regions=fleet.regions,
        gpu_types=fleet.gpu_types,
        tenants=("",),
        tiers=tuple(tiers.tolist()),
        clusters=fleet.clusters,
        racks=fleet.racks,
        servers=fleet.servers,
        jobs=entities.Jobs(
            labels=labels("job", jobs),
            tier=at[:jobs].astype(np.int64),
            value_milli=pending.value_milli,
            tasks=pending.tasks,
            cpu_mcores=pending.mcores,
            memory_mib=pending.mib,
            within=np.full(jobs, CLUSTER) if within is None else within,
            prefer=np.full(jobs, SERVER) if prefer is None else prefer,
            tenant=np.zeros(jobs, np.int64),
            submitted_ms=np.arange(jobs) * 60_000,
        ),
        options=entities.Options(*pending.options, pending.mgpu[pending.options[0]]),
        reads=reads,
        datasets=datasets,
        running=entities.RunningJobs(
            labels=labels("run", count),
            tier=at[jobs:].astype(np.int64),
            preemptible=np.array(running.preemptible, np.bool_),
            at_risk_mgpu_hours=np.array(running.at_risk, np.int64),
            tenant=np.zeros(count, np.int64),
        ),
        allocations=entities.Allocations(
            running=held[:, 0],
            server=held[:, 1],
            tasks=held[:, 2],
            need=held[:, 3:],
            gpu_index=np.zeros(len(held), np.int64),
            indexed=np.zeros(len(held), np.bool_),
        ),
        quotas=entities.TenantQuotas.none(),
        costs=entities.Costs(none, none, none),
        objective=Objective(dict(TERMS)),
        remote_reads=False,
    )


def labels(stem: str, count: int) -> tuple[str, ...]:
    """stem-1, stem-2, …, labels of generated jobs and servers, padded so that they sort by number."""
    width = len(str(count))
    return tuple(f"{stem}-{number:0{width}d}" for number in range(1, count + 1))
