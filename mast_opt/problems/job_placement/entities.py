"""Entities of job placement: groups of arrays, one class for each entity or relation.

J, V, R, C, B, S, K, P count pending jobs, running jobs, regions, clusters, racks, servers, types, tiers.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from mast_opt.core.arrays import Arrays, amounts, flags, positions
from mast_opt.core.units import MB_PER_TB, MICRO, MILLI
from mast_opt.problems.job_placement import units
from mast_opt.problems.kind.problem_data import Entities, Relation
from mast_opt.problems.kind.schema import boolean, choice, integer, label, need, supply
from mast_opt.problems.kind.stated_columns import array, stated

_GPU_COLUMN = np.arange(len(units.RESOURCES)) == units.GPU
MOST_AT_RISK = 10**12
"""A thousand million GPU-hours; sums and comparisons of what is lost stay exact in 64 bits."""
MOST_LIMIT_MS = 10**15
LEAST_CREDIT = -(10**15)
"""A tenant may be in debt, down to a trillion."""
IN_ALL = f"a product with the number of tasks of at most {units.LARGEST}"


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Entities):
    """Servers that one cluster manager runs."""

    AXIS = "clusters"

    region: units.Ints = stated(label("region", "region"), positions("region", "clusters", "regions"))
    """[C] region of each cluster."""


@dataclass(frozen=True, eq=False, repr=False)
class Racks(Entities):
    """Racks; each belongs to one cluster."""

    AXIS = "racks"

    cluster: units.Ints = array(positions, "clusters")
    """[B] cluster of each rack."""


@dataclass(frozen=True, eq=False, repr=False)
class Servers(Entities):
    """Servers, and what they have when they are empty."""

    AXIS = "servers"

    rack: units.Ints = array(positions, "racks")
    """[S] rack of each server."""
    gpu_type: units.Ints = array(positions, "gpu_types")
    """[S] position in ``gpu_types``."""
    supply: units.Ints = array(amounts, len(units.RESOURCES), most=units.LARGEST)
    """[S, 3] milli-GPUs, CPU millicores, MiB of memory of an empty server; its GPUs are whole."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of servers: parts of GPUs, or too many of them."""
        gpus = self.supply[:, units.GPU]
        check.wrong("supply", (gpus % units.WHOLE != 0)[:, None] & _GPU_COLUMN, "whole GPUs, in thousandths")
        check.wrong(
            "supply",
            (gpus > units.MOST_GPUS * units.WHOLE)[:, None] & _GPU_COLUMN,
            f"at most {units.MOST_GPUS} GPUs, × {units.WHOLE}",
        )


@dataclass(frozen=True, eq=False, repr=False)
class Jobs(Entities):
    """Pending jobs, and the parts of jobs of several parts; what they need is per task."""

    AXIS = "jobs"

    tier: units.Ints = array(positions, "tiers")
    """[J] position in ``tiers``, as stated; ``queue_tier`` is the one that counts."""
    value_milli: units.Ints = array(amounts)
    """[J] what admitting the job is worth, in thousandths."""
    tasks: units.Ints = array(amounts, least=1, most=units.MOST_TASKS)
    """[J] at least 1."""
    cpu_mcores: units.Ints = array(amounts)
    """[J] per task."""
    memory_mib: units.Ints = array(amounts)
    """[J] per task."""
    within: units.Ints = array(amounts, most=len(units.LEVELS) - 1)
    """[J] hard limit, a position in ``LEVELS``; 0 for one server, 1 for one rack, 2 for one cluster."""
    tenant: units.Ints = array(positions, "tenants")
    """[J] position in ``tenants``."""
    prefer: units.Ints = stated(
        choice("prefer", *units.LEVELS, required=False, help="level that is close enough; empty = the closest")
    )
    """[J] level at which a plan is close enough for the fast path, as in ``within``."""
    credit_milli: units.Ints = stated(
        need("credit", MILLI, minimum=LEAST_CREDIT, default=0, required=False, help="more goes first"), total=False
    )
    """[J] more goes first within a tier."""
    submitted_ms: units.Ints = stated(
        need("submitted_s", MILLI, default=0, required=False, help="seconds; earlier goes first"),
        amounts("submitted_ms", "jobs", least=None, total=False),
    )
    """[J] earlier goes first within a tier and credit."""
    limit_ms: units.Ints = stated(
        need(
            "limit_s",
            MILLI,
            maximum=MOST_LIMIT_MS,
            default=0,
            required=False,
            later=True,
            help="seconds after its start at which it is ended if it still runs; 0 = no limit",
        )
    )
    """[J] time after its start at which it is ended if it still runs; 0 for no limit."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of jobs whose tasks together need more than a number can hold."""
        tasks = self.tasks.astype(np.float64)
        check.wrong("cpu_mcores", self.cpu_mcores * tasks > units.LARGEST, IN_ALL)
        check.wrong("memory_mib", self.memory_mib * tasks > units.LARGEST, IN_ALL)


@dataclass(frozen=True, eq=False, repr=False)
class MultipartJobs(Entities):
    """Pending jobs of several parts, such as trainers and parameter servers: all parts are admitted, or none."""

    AXIS = "multipart_jobs"

    within: units.Ints = array(amounts, most=len(units.WHOLE_JOB_LEVELS) - 1)
    """[G] hard limit on all parts together, a position in ``WHOLE_JOB_LEVELS``; 3 for one region."""


@dataclass(frozen=True, eq=False, repr=False)
class Parts(Entities):
    """Parts of jobs: each is a row of ``jobs``, with its own tasks, shape and GPU types. The parts of a job stand one
    after another; the first of them has its value, its reads and its costs."""

    AXIS = "parts"
    MAY_REPEAT = True

    job: units.Ints = array(positions, "jobs", ascending=True)
    """[N] the row of ``jobs`` that has the part, ascending."""
    whole: units.Ints = array(positions, "multipart_jobs", ascending=True)
    """[N] position in ``multipart_jobs``, ascending."""


@dataclass(frozen=True, eq=False, repr=False)
class Options(Relation):
    """The GPU types that jobs accept, by job. Every job has at least one; the first ones count first against quotas."""

    AXIS = "options"
    KEY = ("job", "gpu_type")

    job: units.Ints = array(positions, "jobs", ascending=True)
    """[O] job of each option, ascending."""
    gpu_type: units.Ints = array(positions, "gpu_types")
    """[O] position in ``gpu_types``."""
    mgpu: units.Ints = array(amounts)
    """[O] per task on that type; whole GPUs, or less than one."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of a job's options: a part of a GPU beyond one."""
        check.wrong("mgpu", _in_part(self.mgpu), "whole GPUs, or less than one")
        super()._check_rows(check)


@dataclass(frozen=True, eq=False, repr=False)
class Reads(Relation):
    """Reads of datasets, sorted by job."""

    AXIS = "reads"
    KEY = ("job", "dataset")

    job: units.Ints = stated(label("job", "job"), positions("job", "reads", "jobs", ascending=True))
    """[N] job of each entry, ascending."""
    dataset: units.Ints = stated(label("dataset", "dataset"), positions("dataset", "reads", "datasets"))
    """[N] what it reads."""
    mb_per_day: units.Ints = stated(
        need("tb_per_day", MB_PER_TB, default=0, required=False, help="TB read a day"), amounts("mb_per_day", "reads")
    )
    """[N] how much of it."""


@dataclass(frozen=True, eq=False, repr=False)
class Datasets(Entities):
    """Datasets, and where they are."""

    AXIS = "datasets"

    stored: units.Bools = array(flags, "regions")
    """[I, R] which region holds which dataset."""
    residency: units.Bools = array(flags, "regions")
    """[I, R] where any region is listed for a dataset, jobs that read it run in no other."""


@dataclass(frozen=True, eq=False, repr=False)
class RunningJobs(Entities):
    """Jobs that run now."""

    AXIS = "running"

    tier: units.Ints = stated(
        integer("tier", help="importance; 0 is the highest"), positions("tier", "running", "tiers")
    )
    """[V] position in ``tiers``."""
    preemptible: units.Bools = stated(boolean("preemptible", help="may it be stopped for a more important job?"))
    """[V] whether the job may be stopped."""
    at_risk_mgpu_hours: units.Ints = stated(
        need("gpu_hours_at_risk", MILLI, maximum=MOST_AT_RISK, help="GPU-hours of work lost if it is stopped now"),
        amounts("at_risk_mgpu_hours", "running"),
    )
    """[V] thousandths of the GPU-hours that are lost if the job is preempted now."""
    tenant: units.Ints = stated(
        label("tenant", "tenant", required=False, help="who a GPU quota counts it to"),
        positions("tenant", "running", "tenants"),
    )
    """[V] position in ``tenants``."""
    ends_within_ms: units.Ints = stated(
        need(
            "ends_within_s",
            MILLI,
            maximum=MOST_LIMIT_MS,
            default=0,
            required=False,
            later=True,
            help="seconds from now at which it is ended if it still runs; 0 = no limit",
        )
    )
    """[V] time from now at which it is ended if it still runs; 0 for no limit."""


@dataclass(frozen=True, eq=False, repr=False)
class Allocations(Relation):
    """Allocations of running jobs: equal tasks on one server."""

    AXIS = "allocations"

    running: units.Ints = array(positions, "running")
    """[A] position in ``running``."""
    server: units.Ints = array(positions, "servers")
    """[A] server of each allocation."""
    tasks: units.Ints = array(amounts, least=1, most=units.MOST_TASKS)
    """[A] how many tasks."""
    need: units.Ints = array(amounts, len(units.RESOURCES))
    """[A, 3] milli-GPUs, CPU millicores, MiB of memory of one task."""
    gpu_index: units.Ints = array(amounts, most=units.MOST_GPUS - 1, where="indexed", total=False)
    """[A] the first device held; meaningful where ``indexed``."""
    indexed: units.Bools = array(flags)
    """[A] whether the devices are known."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of allocations: a part of a GPU beyond one, or more than a number can hold."""
        check.wrong("need", _in_part(self.need) & _GPU_COLUMN, "whole GPUs, or less than one")
        check.wrong("need", self.need * self.tasks.astype(np.float64)[:, None] > units.LARGEST, IN_ALL)


@dataclass(frozen=True, eq=False, repr=False)
class RunningParts(Relation):
    """Parts of running jobs of several parts to which allocations belong."""

    AXIS = "running_parts"
    KEY = ("allocation",)

    allocation: units.Ints = array(amounts, total=False)
    """[·] position in ``allocations``."""
    part: units.Ints = array(positions, "part_names")
    """[·] position in ``part_names``."""


@dataclass(frozen=True, eq=False, repr=False)
class Movable(Relation):
    """Running jobs that may be moved to other servers: stopped at a checkpoint and started again there."""

    AXIS = "movable"
    KEY = ("running",)

    running: units.Ints = stated(label("job", "running"), positions("running", "movable", "running", ascending=True))
    """[M] position in ``running``, ascending."""
    restart_mgpu_hours: units.Ints = stated(
        need(
            "restart_gpu_hours",
            MILLI,
            maximum=MOST_AT_RISK,
            help="GPU-hours that a move costs: work since the checkpoint, and the restart",
        ),
        amounts("restart_mgpu_hours", "movable"),
    )
    """[M] thousandths of the GPU-hours that a move costs: work since the checkpoint, and the restart."""


@dataclass(frozen=True, eq=False, repr=False)
class MoveLimits(Relation):
    """The most that all moves together may be."""

    AXIS = "move_limits"
    KEY = ("limit",)

    limit: units.Ints = stated(
        choice("limit", *units.MOVE_LIMITS, help="what is limited, of all moves together"), total=False
    )
    """[·] position in ``MOVE_LIMITS``: the number of moved jobs, or their ``restart_mgpu_hours``."""
    most_milli: units.Ints = stated(supply("most", MILLI, help="moved jobs, or GPU-hours that their moves cost"))
    """[·] thousandths of moves, or of GPU-hours."""


@dataclass(frozen=True, eq=False, repr=False)
class TenantQuotas(Relation):
    """The most GPUs of a tenant that count as what their jobs' tiers say."""

    AXIS = "quotas"
    KEY = ("tenant", "gpu_type")

    tenant: units.Ints = array(positions, "tenants")
    """[·] position in ``tenants``."""
    gpu_type: units.Ints = array(positions, "gpu_types", where="typed")
    """[·] meaningful where ``typed``; elsewhere the quota is on all types together."""
    typed: units.Bools = array(flags)
    """[·] whether the quota is on one type."""
    mgpu: units.Ints = array(amounts)
    """[·] the most milli-GPUs."""
    parent: units.Ints = array(positions, "tenants", beyond=1)
    """[·] the group above, a position in ``tenants``; their number where there is none."""
    borrowing_mgpu: units.Ints = array(amounts, least=-1)
    """[·] the most milli-GPUs beyond the quota; −1 for no limit."""
    lending_mgpu: units.Ints = array(amounts, least=-1)
    """[·] the most milli-GPUs of the quota that others may use; −1 for all."""

    @classmethod
    def none(cls) -> Self:
        """Quotas of nobody: no tenant is limited."""
        rows = np.zeros(0, np.int64)
        return cls(rows, rows, np.zeros(0, np.bool_), rows, rows, rows, rows)


@dataclass(frozen=True, eq=False, repr=False)
class Costs(Relation):
    """Costs of jobs in clusters; 0 for pairs that are not listed."""

    AXIS = "costs"
    KEY = ("job", "cluster")

    job: units.Ints = stated(label("job", "job"), positions("job", "costs", "jobs"))
    """[·] job of each entry."""
    cluster: units.Ints = stated(label("cluster", "cluster"), positions("cluster", "costs", "clusters"))
    """[·] cluster that it would run in."""
    cost_micro: units.Ints = stated(need("cost", MICRO, help="price of running it there"))
    """[·] what that costs, in millionths."""


def _in_part(mgpu: units.Ints) -> units.Bools:
    """More than one GPU, and not whole ones."""
    return np.asarray((mgpu > units.WHOLE) & (mgpu % units.WHOLE != 0))
