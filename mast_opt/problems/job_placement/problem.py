"""The job-placement problem (MAST's queue and regional placement): which pending job runs on which servers.

Index letters, here and everywhere: j pending job, v running job, r region, c cluster, b rack, s server, k GPU
type, p tier, d device (one physical GPU of a server).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import Arrays
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.core.ranks import Ranks, Reclaim
from mast_opt.problems.job_placement import entities
from mast_opt.problems.job_placement.gpu_assignment import Devices, read_devices
from mast_opt.problems.job_placement.quota_standing import Standing, standing_of
from mast_opt.problems.job_placement.units import GPU, LARGEST, MOST_GPUS, WHOLE, Bools, Ints
from mast_opt.problems.kind.header import Objective, Term
from mast_opt.problems.kind.problem_data import GroupedProblem

if TYPE_CHECKING:
    from mast_opt.problems.job_placement.plan import Plan  # noqa: F401 - named in a string below


def rank(tier: Ints, credit_milli: Ints, submitted_ms: Ints) -> Ints:
    """Positions in queue order: lowest tier number, then most credit, then oldest, then as listed."""
    return np.lexsort((submitted_ms, -credit_milli, tier)).astype(np.int64)


TOO_MANY = (MOST_GPUS + 1) * WHOLE
"""Milli-GPUs that no server has."""
ADJACENT = "the row of jobs behind that of the part before it"
ALIKE = "a part of the tier, tenant, credit, age, limit and reads of that before"
IN_FIRST = "since what counts once for a job of several parts stands with its first part"
ONE_GANG = "a running job whose tasks are equal, in one cluster and on one GPU type"
ArrayT = TypeVar("ArrayT", bound="NDArray[Any]")

OBJECTIVE: Mapping[str, Term] = {
    "rejected": Term(1000.0, "share of value, weighted"),
    "preemption": Term(10.0, "GPU-hours per GPU, weighted"),
    "balance": Term(1.0, "share of GPUs, weighted"),
    "spread": Term(1.0, "extra racks per task"),
    "remote": Term(10.0, "share of reads"),
    "fragmentation": Term(0.1, "share of GPUs"),
    "cost": Term(1.0, "as table costs"),
}
"""Terms of the objective. What each measures: ``docs/problems/job-placement.md``. "weighted": by tier, or by the supply
of the type. ``cost`` weighs 1 because the term is 0 where there is no ``costs`` table."""
TERMS = {name: term.weight for name, term in OBJECTIVE.items()}
"""Objective term → its default weight."""


_NONE = np.zeros(0, np.int64)
NOTHING_MOVES = entities.Movable(_NONE, _NONE)
NO_MOVE_LIMITS = entities.MoveLimits(_NONE, _NONE)
NO_MULTIPART_JOBS = entities.MultipartJobs((), _NONE)
NO_PARTS = entities.Parts((), _NONE, _NONE)
NO_RUNNING_PARTS = entities.RunningParts(_NONE, _NONE)


@dataclass(frozen=True, eq=False, repr=False)
class JobPlacement(GroupedProblem["Plan"]):
    """One instance, validated and read-only.

    J, V, R, C, B, S, K, P count pending jobs, running jobs, regions, clusters, racks, servers, types, tiers.

    Raises:
        InstanceError: groups that do not fit one another; it lists every fault.
    """

    kind: ClassVar[str] = "job-placement"
    WEIGHTS = TERMS
    LABELS: ClassVar[Mapping[str, bool]] = {
        "regions": False,
        "gpu_types": False,
        "tenants": True,
        "part_names": False,
    }

    name: str
    regions: tuple[str, ...]
    gpu_types: tuple[str, ...]
    """The types that servers have, ``none`` included where a server has no GPU and names no type."""
    tenants: tuple[str, ...]
    """The empty label stands for jobs that name none."""
    tiers: tuple[int, ...]
    """The tiers that occur among pending and running jobs, ascending; 0 is the most important."""
    clusters: entities.Clusters
    racks: entities.Racks
    servers: entities.Servers
    jobs: entities.Jobs
    options: entities.Options
    reads: entities.Reads
    datasets: entities.Datasets
    running: entities.RunningJobs
    allocations: entities.Allocations
    quotas: entities.TenantQuotas
    costs: entities.Costs
    objective: Objective
    remote_reads: bool
    """True if a job may run where its data is not, at a price."""
    provenance: str = ""
    movable: entities.Movable = NOTHING_MOVES
    """Running jobs that may be moved; the others stay where they are, or are stopped."""
    move_limits: entities.MoveLimits = NO_MOVE_LIMITS
    multipart_jobs: entities.MultipartJobs = NO_MULTIPART_JOBS
    parts: entities.Parts = NO_PARTS
    """Rows of ``jobs`` that are parts of a job; every other row is a job of its own."""
    part_names: tuple[str, ...] = ()
    """Names of the parts of running jobs."""
    running_parts: entities.RunningParts = NO_RUNNING_PARTS
    reclaim: Reclaim = Reclaim.ANY
    """Rule for which work may stop work that borrows beyond its quota."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of a job-placement instance that several of its tables show together."""
        options = np.bincount(self.options.job, minlength=len(self.jobs))
        for j in np.flatnonzero(options == 0)[:1].tolist():
            check.fault("options.job", f"a GPU type for each job; none is for {j} ({self.jobs.labels[j]})")
        tasks = self.jobs.tasks.astype(np.float64)
        check.wrong("options.mgpu", self.options.mgpu * tasks[self.options.job] > LARGEST, entities.IN_ALL)
        held, gpus = self.allocations, self.servers.supply[:, GPU]
        named = held.indexed & (held.need[:, GPU] > 0)
        outside = named & (held.gpu_index >= gpus[held.server] // WHOLE)
        check.wrong("allocations.gpu_index", outside, "a GPU that the server has")
        check.wrong("running_parts.allocation", self.running_parts.allocation >= len(held), "a row of allocations")
        if check.faults:
            return
        check.wrong("movable.running", ~self._like_a_gang[self.movable.running], ONE_GANG)
        names = set(self.jobs.labels)
        taken = np.array([self.running.labels[v] in names for v in self.movable.running.tolist()], np.bool_)
        check.wrong("movable.running", taken, "a running job whose label no pending job has")
        self._check_parts(check)

    def _check_parts(self, check: Arrays) -> None:
        """Faults of parts: each job has some, one after another, alike in all that belongs to the job; what counts once
        is in the first."""
        parts, jobs = self.parts, self.jobs
        number = np.bincount(parts.whole, minlength=len(self.multipart_jobs))
        for g in np.flatnonzero(number == 0)[:1].tolist():
            check.fault("parts.whole", f"a part of every job of several parts, {self.multipart_jobs.labels[g]} too")
        if not len(parts):
            return
        again = np.diff(parts.whole, prepend=-1) == 0
        step = np.diff(parts.job, prepend=-1)
        check.wrong("parts.job", np.where(again, step != 1, step < 1), ADJACENT)
        reads = np.zeros((len(jobs), len(self.datasets)), np.bool_)
        reads[self.reads.job, self.reads.dataset] = True
        alike = np.column_stack([jobs.tier, jobs.tenant, jobs.credit_milli, jobs.submitted_ms, jobs.limit_ms, reads])
        differs = (alike[parts.job] != alike[parts.job - again]).any(axis=1)
        check.wrong("parts.job", again & differs, ALIKE)
        further = np.zeros(len(jobs), np.bool_)
        further[parts.job[again]] = True
        check.wrong("jobs.value_milli", further & (jobs.value_milli > 0), f"0, {IN_FIRST}")
        check.wrong("reads.mb_per_day", further[self.reads.job] & (self.reads.mb_per_day > 0), f"0, {IN_FIRST}")
        check.wrong("costs.job", further[self.costs.job], f"the first part of the job, {IN_FIRST}")

    @cached_property
    def first_part(self) -> Ints:
        """[J] the first part of the job of each row; the row itself where the job has no parts."""
        first = np.arange(len(self.jobs))
        begins = np.searchsorted(self.parts.whole, self.parts.whole)
        first[self.parts.job] = self.parts.job[begins]
        return _read_only(first)

    @cached_property
    def counts_once(self) -> Bools:
        """Mask [J] with one row a job: those of jobs without parts, and the first of each job with parts."""
        return _read_only(self.first_part == np.arange(len(self.jobs)))

    @cached_property
    def tier_weight(self) -> NDArray[np.float64]:
        """[P] weight of each tier that occurs; 4 to the power −rank unless stated."""
        weights = self.objective.tier_weights
        return np.array([weights.get(tier, 4.0**-rank) for rank, tier in enumerate(self.tiers)])

    @cached_property
    def server_cluster(self) -> Ints:
        """Cluster [S] of each server."""
        return _read_only(self.racks.cluster[self.servers.rack])

    @cached_property
    def server_region(self) -> Ints:
        """Region [S] of each server."""
        return _read_only(self.clusters.region[self.server_cluster])

    @cached_property
    def need_mgpu(self) -> Ints:
        """[J, K] GPUs of one task on each type, 0 where the type is not accepted (see ``accepts``)."""
        need = np.zeros((len(self.jobs), len(self.gpu_types)), np.int64)
        need[self.options.job, self.options.gpu_type] = self.options.mgpu
        return _read_only(need)

    @cached_property
    def accepts(self) -> Bools:
        """Mask [J, K] of the GPU types that a job accepts."""
        accepted = np.zeros((len(self.jobs), len(self.gpu_types)), np.bool_)
        accepted[self.options.job, self.options.gpu_type] = True
        return _read_only(accepted)

    @cached_property
    def missing_mb(self) -> Ints:
        """[J, R] volume a day that a job in the region would read from elsewhere."""
        far = self.reads.mb_per_day[:, None] * ~self.datasets.stored[self.reads.dataset]
        volume = np.zeros((len(self.jobs), len(self.regions)), np.int64)
        np.add.at(volume, self.reads.job, far)
        return _read_only(volume)

    @cached_property
    def open_region(self) -> Bools:
        """[J, R] where a job may run: in the residency of all its datasets, each of which some region holds, and this
        region unless remote reads are priced."""
        lacks = np.zeros((len(self.jobs), len(self.regions)), np.int64)
        np.add.at(lacks, self.reads.job, ~self.datasets.stored[self.reads.dataset])
        return _read_only(((lacks == 0) | self.remote_reads) & ~self.reads_lost[:, None] & ~self.reads_outside)

    @cached_property
    def reads_lost(self) -> Bools:
        """Mask [J] of the jobs that read a dataset that no region holds."""
        lost = np.zeros(len(self.jobs), np.bool_)
        held: Bools = self.datasets.stored.sum(axis=1) > 0
        np.logical_or.at(lost, self.reads.job, ~held[self.reads.dataset])
        return _read_only(lost)

    @cached_property
    def reads_outside(self) -> Bools:
        """[J, R] the regions outside the residency of a dataset that the job reads."""
        outside = self.datasets.residency.any(axis=1, keepdims=True) & ~self.datasets.residency
        found = np.zeros((len(self.jobs), len(self.regions)), np.bool_)
        np.logical_or.at(found, self.reads.job, outside[self.reads.dataset])
        return _read_only(found)

    @cached_property
    def held(self) -> Ints:
        """[A, 3] what each allocation holds, all its tasks together."""
        return _read_only(self.allocations.need * self.allocations.tasks[:, None])

    @cached_property
    def held_devices(self) -> Devices:
        """GPUs that the running jobs hold."""
        return read_devices(
            self.servers.supply[:, GPU],
            self.allocations.server,
            self.allocations.tasks,
            self.allocations.need,
            self.allocations.gpu_index,
            self.allocations.indexed,
        )

    @cached_property
    def _like_a_gang(self) -> Bools:
        """Mask [V] of the running jobs that hold equal tasks in one cluster and on one GPU type."""
        a = self.allocations
        part = np.full(len(a), -1)
        part[self.running_parts.allocation] = self.running_parts.part
        place = np.stack([self.server_cluster[a.server], self.servers.gpu_type[a.server], part], axis=1)
        return one_gang(len(self.running), a.running, np.concatenate([a.need, place], axis=1))

    @cached_property
    def free(self) -> Ints:
        """[S, 3] supply less what running jobs hold."""
        free = self.servers.supply.copy()
        np.subtract.at(free, self.allocations.server, self.held)
        return _read_only(free)

    @cached_property
    def all_mgpu(self) -> int:
        """The GPUs of the fleet."""
        return int(self.servers.supply[:, GPU].sum())

    @cached_property
    def rights(self) -> Quotas:
        """The quotas of tenants."""
        q, names = self.quotas, (*self.tenants, "")
        kinds = [self.gpu_types[kind] if typed else None for kind, typed in zip(q.gpu_type.tolist(), q.typed.tolist())]
        limits = ([None if one < 0 else one for one in each.tolist()] for each in (q.borrowing_mgpu, q.lending_mgpu))
        tenants, parents = ([names[at] for at in each.tolist()] for each in (q.tenant, q.parent))
        return Quotas.of(zip(tenants, kinds, map(Quota, q.mgpu.tolist(), *limits), parents, strict=True))

    @cached_property
    def standing(self) -> "JobPlacement":
        """Statement without quotas, in which tiers say what quotas do: work that borrows has tiers of its own
        behind all others, and more important work may stop it. A job that is within its tenant's quotas on some of its
        types runs on these only; one for which its tenant may not borrow so much needs more than any server has."""
        if not self.rights:
            return self
        found, tiers = self._stands, len(self.tiers)
        mgpu = np.where(found.barred, TOO_MANY, self.options.mgpu)
        levels = np.union1d(np.arange(tiers), np.concatenate([found.job_level, found.running_level]))
        beyond = self.tiers[-1] + 1 - tiers
        labels = tuple(self.tiers[level] if level < tiers else beyond + level for level in levels.tolist())
        weights = self.tier_weight[np.minimum(levels, tiers - 1)]
        return replace(
            self,
            tiers=labels,
            objective=replace(self.objective, tier_weights=dict(zip(labels, weights.tolist()))),
            jobs=replace(self.jobs, tier=np.searchsorted(levels, found.job_level)),
            options=replace(self.options, mgpu=mgpu).rows(found.kept),
            running=replace(
                self.running,
                tier=np.searchsorted(levels, found.running_level),
                preemptible=self.running.preemptible | found.exposed,
            ),
            quotas=entities.TenantQuotas.none(),
        )

    @cached_property
    def _stands(self) -> Standing:
        """Standing of running and pending jobs against their tenants' quotas."""
        of, amounts = self.running, np.zeros((len(self.running), len(self.gpu_types)), np.int64)
        at = self.allocations.running, self.servers.gpu_type[self.allocations.server]
        np.add.at(amounts, at, self.held[:, GPU])
        return standing_of(
            self.rights,
            Ranks(len(self.tiers), quotas=True, reclaim=self.reclaim),
            list(zip([self.tenants[t] for t in of.tenant.tolist()], of.tier.tolist(), of.preemptible.tolist())),
            amounts,
            [(self.tenants[t], tier) for t, tier in zip(self.jobs.tenant.tolist(), self.jobs.tier.tolist())],
            rank(self.jobs.tier, self.jobs.credit_milli, self.jobs.submitted_ms),
            self.first_part,
            (self.options.job, self.options.gpu_type),
            self.options.mgpu * self.jobs.tasks[self.options.job],
            self.gpu_types,
        )

    @cached_property
    def queue_tier(self) -> Ints:
        """[J] the tier that counts, a position in ``tiers``: a job over its tenant's quota has the lowest."""
        return _read_only(np.minimum(self._stands.job_level, len(self.tiers) - 1) if self.rights else self.jobs.tier)

    @cached_property
    def order(self) -> Ints:
        """[J] the queue: tier, then credit, then age, then place in the table; work over its quota comes last."""
        return _read_only(rank(self.standing.jobs.tier, self.jobs.credit_milli, self.jobs.submitted_ms))


def one_gang(running: int, job: Ints, rows: Ints) -> Bools:
    """Mask [running] of the jobs with at least one row of ``rows`` [A, ·], all of them equal; ``job`` [A] has them."""
    distinct = np.unique(np.concatenate([job[:, None], rows], axis=1), axis=0)[:, 0]
    sound: Bools = np.bincount(distinct, minlength=running) == 1
    return sound


def _read_only(array: ArrayT) -> ArrayT:
    """The array of a job-placement instance itself, made read-only."""
    array.setflags(write=False)
    return array
