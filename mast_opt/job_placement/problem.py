"""The job-placement problem (MAST's queue and regional placement): which pending job runs on which servers.

Index letters, here and everywhere: j pending job, v running job, r region, c cluster, b rack, s server, k GPU
type, p tier, d device (one physical GPU of a server).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import Arrays, amounts, flags, positions, scalars, tier_faults
from mast_opt.core.errors import InstanceError
from mast_opt.job_placement.gpu_assignment import Devices, read_devices
from mast_opt.job_placement.queue_order import Quotas, quota_tiers, rank
from mast_opt.job_placement.units import GPU, LARGEST, LEVELS, MOST_GPUS, MOST_TASKS, RESOURCES, WHOLE, Bools, Ints
from mast_opt.kind.header import Objective, term_faults
from mast_opt.kind.problem import Problem

if TYPE_CHECKING:
    from mast_opt.job_placement.plan import Plan  # noqa: F401 - named in a string below

ArrayT = TypeVar("ArrayT", bound="NDArray[Any]")
_GPU_COLUMN = np.arange(len(RESOURCES)) == GPU

TERMS: Mapping[str, float] = {
    "rejected": 1000.0,
    "preemption": 10.0,
    "balance": 1.0,
    "spread": 1.0,
    "remote": 10.0,
    "fragmentation": 0.1,
    "cost": 1.0,
}
"""Objective term → its default weight. What each measures: ``docs/problems/job-placement.md``.

``cost`` weighs 1 because the term is 0 where there is no ``costs`` table.
"""
LABELS = ("regions", "clusters", "racks", "servers", "gpu_types", "jobs", "running", "datasets")
SCALARS = {"name": str, "objective": Objective, "remote_reads": bool, "provenance": str}
COLUMNS = (
    positions("cluster_region", "clusters", "regions"),
    positions("rack_cluster", "racks", "clusters"),
    positions("server_rack", "servers", "racks"),
    positions("server_type", "servers", "gpu_types"),
    amounts("supply", "servers", len(RESOURCES), most=LARGEST),
    positions("tier", "jobs", "tiers"),
    amounts("value_milli", "jobs"),
    amounts("tasks", "jobs", least=1, most=MOST_TASKS),
    amounts("cpu_mcores", "jobs"),
    amounts("memory_mib", "jobs"),
    amounts("within", "jobs", most=len(LEVELS) - 1),
    amounts("prefer", "jobs", most=len(LEVELS) - 1),
    positions("tenant", "jobs", "tenants"),
    amounts("credit_milli", "jobs", least=None, total=False),
    amounts("submitted_ms", "jobs", least=None, total=False),
    positions("option_job", "options", "jobs", ascending=True),
    positions("option_type", "options", "gpu_types"),
    amounts("option_mgpu", "options"),
    positions("read_job", "reads", "jobs", ascending=True),
    positions("read_dataset", "reads", "datasets"),
    amounts("read_mb_per_day", "reads"),
    flags("stored", "datasets", "regions"),
    flags("residency", "datasets", "regions"),
    positions("running_tier", "running", "tiers"),
    flags("preemptible", "running"),
    amounts("at_risk", "running"),
    positions("running_tenant", "running", "tenants"),
    flags("held_indexed", "allocations"),
    positions("held_job", "allocations", "running"),
    positions("held_server", "allocations", "servers"),
    amounts("held_tasks", "allocations", least=1, most=MOST_TASKS),
    amounts("held_need", "allocations", len(RESOURCES)),
    amounts("held_index", "allocations", most=MOST_GPUS - 1, where="held_indexed", total=False),
    flags("quota_typed", "quotas"),
    positions("quota_tenant", "quotas", "tenants"),
    positions("quota_type", "quotas", "gpu_types", where="quota_typed"),
    amounts("quota_mgpu", "quotas"),
    positions("cost_job", "costs", "jobs"),
    positions("cost_cluster", "costs", "clusters"),
    amounts("cost_micro", "costs"),
)


@dataclass(frozen=True, eq=False)
class JobPlacement(Problem["Plan"]):
    """One instance, validated. Arrays are read-only.

    J, V, R, C, B, S, K, P count pending jobs, running jobs, regions, clusters, racks, servers, types, tiers.

    Raises:
        InstanceError: arrays that do not fit one another or hold values out of range; it lists every fault.
    """

    kind: ClassVar[str] = "job-placement"

    name: str
    regions: tuple[str, ...]
    clusters: tuple[str, ...]
    racks: tuple[str, ...]
    """A rack belongs to one cluster."""
    servers: tuple[str, ...]
    gpu_types: tuple[str, ...]
    """The types that servers have, ``none`` included where a server has no GPU and names no type."""
    jobs: tuple[str, ...]
    running: tuple[str, ...]
    datasets: tuple[str, ...]
    tenants: tuple[str, ...]
    """The empty label stands for jobs that name none."""
    tiers: tuple[int, ...]
    """The tiers that occur among pending and running jobs, ascending; 0 is the most important."""

    cluster_region: Ints
    """[C]"""
    rack_cluster: Ints
    """[B]"""
    server_rack: Ints
    """[S]"""
    server_type: Ints
    """[S]"""
    supply: Ints
    """[S, 3] what a server has when it is empty; its GPUs are whole."""

    tier: Ints
    """[J] position in ``tiers``, as stated; ``queue_tier`` is the one that counts."""
    value_milli: Ints
    """[J]"""
    tasks: Ints
    """[J] at least 1."""
    cpu_mcores: Ints
    """[J] per task."""
    memory_mib: Ints
    """[J] per task."""
    within: Ints
    """[J] position in ``LEVELS``: a hard limit."""
    prefer: Ints
    """[J] position in ``LEVELS``: any plan within it is close enough for the fast path."""
    tenant: Ints
    """[J] position in ``tenants``."""
    credit_milli: Ints
    """[J] more goes first within a tier."""
    submitted_ms: Ints
    """[J] earlier goes first within a tier and credit."""

    option_job: Ints
    """[O] a GPU type that a job accepts; ascending. Every job has at least one; the first ones count first against
    quotas."""
    option_type: Ints
    option_mgpu: Ints
    """[O] per task, on that type: whole GPUs, or less than one."""

    read_job: Ints
    """[N] ascending."""
    read_dataset: Ints
    read_mb_per_day: Ints
    stored: Bools
    """[I, R] which region holds which dataset."""
    residency: Bools
    """[I, R] where any region is listed for a dataset, jobs that read it run in no other."""

    running_tier: Ints
    """[V] position in ``tiers``."""
    preemptible: Bools
    """[V]"""
    at_risk: Ints
    """[V] thousandths of the GPU-hours that are lost if the job is preempted now."""
    running_tenant: Ints
    """[V] position in ``tenants``."""
    held_job: Ints
    """[A] what running jobs hold: ``tasks`` equal tasks on one server; position in ``running``."""
    held_server: Ints
    held_tasks: Ints
    held_need: Ints
    """[A, 3] per task."""
    held_index: Ints
    """[A] the first device held; meaningful where ``held_indexed``."""
    held_indexed: Bools
    """[A]"""

    quota_tenant: Ints
    quota_type: Ints
    """[Q] meaningful where ``quota_typed``; elsewhere the quota is on all types together."""
    quota_typed: Bools
    quota_mgpu: Ints

    cost_job: Ints
    cost_cluster: Ints
    cost_micro: Ints
    """[·] millionths, for a job in a cluster; 0 for those that are not listed."""

    objective: Objective
    remote_reads: bool
    """May a job run where its data is not, at a price?"""
    provenance: str = ""

    def __post_init__(self) -> None:
        check = Arrays(self)
        for name in LABELS:
            check.labels(name)
        check.labels("tenants", empty=True)
        check.faults += tier_faults(self.tiers)
        check.faults += scalars(self, SCALARS)
        check.faults += term_faults(self.objective, TERMS)
        check.axes["tiers"] = len(self.tiers) if isinstance(self.tiers, tuple) else 0
        check.take(*COLUMNS)
        if not check.faults:
            self._check_rows(check)
        if check.faults:
            raise InstanceError(check.faults)

    def _check_rows(self, check: Arrays) -> None:
        """Faults of sound arrays that only several of them show."""
        check.key("option_job", "option_type")
        check.key("read_job", "read_dataset")
        check.key("cost_job", "cost_cluster")
        check.key("quota_tenant", "quota_type", where={"quota_type": "quota_typed"})
        options = np.bincount(self.option_job, minlength=len(self.jobs))
        for j in np.flatnonzero(options == 0)[:1].tolist():
            check.fault("option_job", f"a GPU type for each job; none is for {j} ({self.jobs[j]})")
        gpus = self.supply[:, GPU]
        check.wrong("supply", (gpus % WHOLE != 0)[:, None] & _GPU_COLUMN, "whole GPUs, in thousandths")
        check.wrong("supply", (gpus > MOST_GPUS * WHOLE)[:, None] & _GPU_COLUMN, f"at most {MOST_GPUS} GPUs, × {WHOLE}")
        for name in ("option_mgpu", "held_need"):
            needed = getattr(self, name)
            broken = (needed > WHOLE) & (needed % WHOLE != 0)
            check.wrong(name, broken if broken.ndim == 1 else broken & _GPU_COLUMN, "whole GPUs, or less than one")
        in_all = f"a product with the number of tasks of at most {LARGEST}"
        tasks = self.tasks.astype(np.float64)
        check.wrong("cpu_mcores", self.cpu_mcores * tasks > LARGEST, in_all)
        check.wrong("memory_mib", self.memory_mib * tasks > LARGEST, in_all)
        check.wrong("option_mgpu", self.option_mgpu * tasks[self.option_job] > LARGEST, in_all)
        held = self.held_need * self.held_tasks.astype(np.float64)[:, None]
        check.wrong("held_need", held > LARGEST, in_all)
        named = self.held_indexed & (self.held_need[:, GPU] > 0)
        outside = named & (self.held_index >= gpus[self.held_server] // WHOLE)
        check.wrong("held_index", outside, "a GPU that the server has")

    @cached_property
    def tier_weight(self) -> NDArray[np.float64]:
        """[P] weight of each tier that occurs; 4 to the power −rank unless stated."""
        weights = self.objective.tier_weights
        return np.array([weights.get(tier, 4.0**-rank) for rank, tier in enumerate(self.tiers)])

    @cached_property
    def server_cluster(self) -> Ints:
        """Cluster [S] of each server."""
        return _read_only(self.rack_cluster[self.server_rack])

    @cached_property
    def server_region(self) -> Ints:
        """Region [S] of each server."""
        return _read_only(self.cluster_region[self.server_cluster])

    @cached_property
    def need_mgpu(self) -> Ints:
        """[J, K] GPUs of one task on each type, 0 where the type is not accepted (see ``accepts``)."""
        need = np.zeros((len(self.jobs), len(self.gpu_types)), np.int64)
        need[self.option_job, self.option_type] = self.option_mgpu
        return _read_only(need)

    @cached_property
    def accepts(self) -> Bools:
        """Mask [J, K] of the GPU types that a job accepts."""
        accepted = np.zeros((len(self.jobs), len(self.gpu_types)), np.bool_)
        accepted[self.option_job, self.option_type] = True
        return _read_only(accepted)

    @cached_property
    def missing_mb(self) -> Ints:
        """[J, R] volume a day that a job in the region would read from elsewhere."""
        far = self.read_mb_per_day[:, None] * ~self.stored[self.read_dataset]
        volume = np.zeros((len(self.jobs), len(self.regions)), np.int64)
        np.add.at(volume, self.read_job, far)
        return _read_only(volume)

    @cached_property
    def open_region(self) -> Bools:
        """[J, R] where a job may run: in the residency of all its datasets, each of which some region holds, and this
        region unless remote reads are priced."""
        lacks = np.zeros((len(self.jobs), len(self.regions)), np.int64)
        np.add.at(lacks, self.read_job, ~self.stored[self.read_dataset])
        return _read_only(((lacks == 0) | self.remote_reads) & ~self.reads_lost[:, None] & ~self.reads_outside)

    @cached_property
    def reads_lost(self) -> Bools:
        """Mask [J] of the jobs that read a dataset that no region holds."""
        lost = np.zeros(len(self.jobs), np.bool_)
        held: Bools = self.stored.sum(axis=1) > 0
        np.logical_or.at(lost, self.read_job, ~held[self.read_dataset])
        return _read_only(lost)

    @cached_property
    def reads_outside(self) -> Bools:
        """[J, R] the regions outside the residency of a dataset that the job reads."""
        outside = self.residency.any(axis=1, keepdims=True) & ~self.residency
        found = np.zeros((len(self.jobs), len(self.regions)), np.bool_)
        np.logical_or.at(found, self.read_job, outside[self.read_dataset])
        return _read_only(found)

    @cached_property
    def held(self) -> Ints:
        """[A, 3] what each allocation holds, all its tasks together."""
        return _read_only(self.held_need * self.held_tasks[:, None])

    @cached_property
    def held_devices(self) -> Devices:
        """Which GPUs the running jobs hold."""
        return read_devices(
            self.supply[:, GPU], self.held_server, self.held_tasks, self.held_need, self.held_index, self.held_indexed
        )

    @cached_property
    def free(self) -> Ints:
        """[S, 3] supply less what running jobs hold."""
        free = self.supply.copy()
        np.subtract.at(free, self.held_server, self.held)
        return _read_only(free)

    @cached_property
    def all_mgpu(self) -> int:
        """The GPUs of the fleet."""
        return int(self.supply[:, GPU].sum())

    @cached_property
    def queue_tier(self) -> Ints:
        """[J] the tier that counts, a position in ``tiers``: a job over its tenant's quota has the lowest."""
        shape = (len(self.tenants), len(self.gpu_types))
        used = np.zeros(shape, np.int64)
        at = (self.running_tenant[self.held_job], self.server_type[self.held_server])
        np.add.at(used, at, self.held[:, GPU])
        return _read_only(
            quota_tiers(
                self.tier,
                rank(self.tier, self.credit_milli, self.submitted_ms),
                self.tenant,
                self.need_mgpu * self.tasks[:, None],
                (self.option_job, self.option_type),
                used,
                Quotas.of(*shape, self.quota_tenant, self.quota_type, self.quota_typed, self.quota_mgpu),
                len(self.tiers) - 1,
            )
        )

    @cached_property
    def order(self) -> Ints:
        """[J] the queue: ``queue_tier``, then credit, then age, then place in the table."""
        return _read_only(rank(self.queue_tier, self.credit_milli, self.submitted_ms))


def _read_only(array: ArrayT) -> ArrayT:
    array.setflags(write=False)
    return array
