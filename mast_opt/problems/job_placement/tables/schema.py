"""Table schemas of job-placement instances and plans, and an example instance as a planner would type it."""

from dataclasses import replace

from mast_opt.core.ranks import Reclaim
from mast_opt.core.units import MIB_PER_GIB, MILLI
from mast_opt.core.units import MICRO as MICRO  # the solvers price costs with the same scale
from mast_opt.problems.job_placement.entities import Clusters, Costs, Jobs, Movable, MoveLimits, Reads, RunningJobs
from mast_opt.problems.job_placement.units import CLUSTER, LEVELS, WHOLE_JOB_LEVELS
from mast_opt.problems.kind.header import Rule
from mast_opt.problems.kind.schema import Axis, Schema, Table, choice, integer, label, need, supply

_PER_TASK = (
    need("gpus", MILLI, help="GPUs of one task: a whole number, or less than one"),
    need("cpu_cores", MILLI, help="cores of one task"),
    need("memory_gb", MIB_PER_GIB, help="memory of one task, GiB"),
)

_STATED_BY_PARTS = "; empty = job_parts states it"
_OF_A_JOB = (
    integer("tasks", minimum=1, required=False, help=f"equal tasks that run together or not at all{_STATED_BY_PARTS}"),
    *(replace(column, required=False, help=column.help + _STATED_BY_PARTS) for column in _PER_TASK),
)
"""Columns that a job without parts must state."""

_PREFER, *_FURTHER = Jobs.columns()

SCHEMA = Schema(
    axes=(
        Axis("region", "regions"),
        Axis("cluster", "clusters"),
        Axis("rack"),
        Axis("server", "servers"),
        Axis("gpu_type", offered="servers"),
        Axis("job", "jobs"),
        Axis("running", "running"),
        Axis("dataset"),
        Axis("tenant"),
        Axis("part", later=True),
    ),
    tables=(
        Table("regions", (label("region", "region"),), key=("region",), rows_required=True, help="the regions"),
        Table(
            "clusters",
            (label("cluster", "cluster"), *Clusters.columns()),
            key=("cluster",),
            rows_required=True,
            help="which region each cluster is in",
        ),
        Table(
            "servers",
            (
                label("server", "server"),
                label("cluster", "cluster"),
                label("rack", "rack", help="rack within the cluster"),
                label("gpu_type", "gpu_type", required=False, help="may be empty for a server without GPUs"),
                supply("gpus", MILLI, help="GPUs of the server, a whole number"),
                supply("cpu_cores", MILLI, help="cores of the server"),
                supply("memory_gb", MIB_PER_GIB, help="memory of the server, GiB"),
            ),
            key=("server",),
            rows_required=True,
            help="a machine, empty or not",
        ),
        Table(
            "jobs",
            (
                label("job", "job"),
                integer("tier", help="importance; 0 is the highest"),
                need("value", MILLI, required=False, help="worth of admitting it; empty = tasks · gpus"),
                *_OF_A_JOB,
                choice(
                    "within", *WHOLE_JOB_LEVELS, default=CLUSTER, required=False, help="level that it must stay within"
                ),
                _PREFER,
                label("tenant", "tenant", required=False, help="who a GPU quota counts it to"),
                *_FURTHER,
            ),
            key=("job",),
            rows_required=True,
            order_counts_with="quotas",
            order_within=("tier", "credit", "submitted_s"),
            help="a gang that waits to be placed",
        ),
        Table(
            "job_gpu_types",
            (
                label("job", "job"),
                label("gpu_type", "gpu_type"),
                need("gpus", MILLI, required=False, help="GPUs of one task on this type; empty = as in jobs"),
                label("part", "part", required=False, later=True, help="the part of a job of several parts"),
            ),
            key=("job", "gpu_type", "part"),
            order_counts_with="quotas",
            order_within=("job",),
            help="a row per GPU type that a job accepts; a job without rows takes any",
        ),
        Table(
            "job_datasets",
            Reads.columns(),
            key=("job", "dataset"),
            help="what a job reads; a job without rows runs in any region",
        ),
        Table(
            "replicas",
            (label("dataset", "dataset"), label("region", "region")),
            key=("dataset", "region"),
            help="which region holds which dataset",
        ),
        Table(
            "residency",
            (label("dataset", "dataset"), label("region", "region")),
            key=("dataset", "region"),
            required=False,
            later=True,
            missing="jobs may read any dataset in any region",
            help="a job that reads a dataset listed here runs only in the regions listed for it",
        ),
        Table(
            "running",
            (label("job", "running"), *RunningJobs.columns()),
            key=("job",),
            help="the jobs that run now",
        ),
        Table(
            "allocations",
            (
                label("job", "running"),
                label("server", "server"),
                integer("tasks", minimum=1, help="tasks that run there"),
                *_PER_TASK,
                integer("gpu_index", required=False, help="first GPU that they hold, counted from 0"),
                label("part", "part", required=False, later=True, help="the part of a job of several parts"),
            ),
            key=("job", "server", "gpu_index", "part"),
            help="what running jobs hold",
        ),
        Table(
            "quotas",
            (
                label("tenant", "tenant"),
                supply("gpus", MILLI, help="GPUs before its work counts less than all work within quotas"),
                label("gpu_type", "gpu_type", required=False, help="empty = all types together"),
                label("parent", "tenant", required=False, later=True, help="the group above; empty = none"),
                supply(
                    "borrowing_limit",
                    MILLI,
                    required=False,
                    later=True,
                    help="GPUs that it may hold beyond its quota; empty = whatever is free",
                ),
                supply(
                    "lending_limit",
                    MILLI,
                    required=False,
                    later=True,
                    help="GPUs of its quota that others may hold; empty = all",
                ),
            ),
            key=("tenant", "gpu_type"),
            required=False,
            help="GPUs per tenant, or per group of those that share, lend and borrow them",
        ),
        Table(
            "costs",
            Costs.columns(),
            key=("job", "cluster"),
            required=False,
            help="what a job costs in a cluster; 0 where there is no row",
        ),
        Table(
            "movable",
            Movable.columns(),
            key=("job",),
            required=False,
            later=True,
            missing="running jobs stay where they are, or are stopped",
            help="a running job that may be moved within its region",
        ),
        Table(
            "move_limits",
            MoveLimits.columns(),
            key=("limit",),
            required=False,
            later=True,
            missing="any number of movable jobs may be moved",
            help="the most that all moves together may be",
        ),
        Table(
            "job_parts",
            (
                label("job", "job"),
                label("part", "part", help="name of the part, such as trainers or servers"),
                integer("tasks", minimum=1, help="equal tasks of the part"),
                *_PER_TASK,
                choice("within", *LEVELS, default=CLUSTER, required=False, help="level that the part must stay within"),
            ),
            key=("job", "part"),
            required=False,
            later=True,
            missing="every job is one gang of equal tasks",
            help="a part of a job of several parts, which run together or not at all",
        ),
    ),
)

PLAN_SCHEMA = Schema(
    axes=tuple(axis for axis in SCHEMA.axes if axis.name in ("cluster", "server", "job", "running", "part")),
    tables=(
        Table(
            "assignments",
            (
                label("job", "job"),
                label("cluster", "cluster"),
                label("server", "server"),
                integer("tasks", minimum=1, help="tasks of the job that run there"),
                integer("gpu_index", required=False, help="for fractions of a GPU, the one that they share"),
                label("part", "part", required=False, later=True, help="the part of a job of several parts"),
            ),
            key=("job", "server", "gpu_index", "part"),
            help="where the tasks of each job that starts run",
        ),
        Table("preemptions", (label("job", "running"),), key=("job",), help="running jobs that are stopped"),
        Table(
            "moves",
            (
                label("job", "running"),
                label("cluster", "cluster"),
                label("server", "server"),
                integer("tasks", minimum=1, help="tasks of the job that run there after its move"),
                integer("gpu_index", required=False, help="for fractions of a GPU, the one that they share"),
            ),
            key=("job", "server", "gpu_index"),
            required=False,
            later=True,
            help="where the tasks of running jobs go that are moved",
        ),
    ),
)

RULES = (
    Rule("remote_reads", "forbid", ("forbid", "price"), "may a job run where its data is not?"),
    Rule("reclaim", "any", tuple(Reclaim), "which work within its quota may stop work that borrows?"),
)


EXAMPLE = {
    "regions": (("us-east",), ("eu-west",)),
    "clusters": (("east-1", "us-east"), ("eu-1", "eu-west")),
    "servers": (
        ("east-1-a", "east-1", "rack-1", "H100", 8, 96, 1024),
        ("east-1-b", "east-1", "rack-1", "H100", 8, 96, 1024),
        ("east-1-c", "east-1", "rack-2", "A100", 4, 64, 512),
        ("eu-1-a", "eu-1", "rack-1", "A100", 8, 96, 1024),
    ),
    "jobs": (
        ("ranking", 0, None, 2, 8, 48, 256, "cluster", "rack", "ads", 10, 0, 86400),
        ("vision", 1, 20, 1, 4, 16, 128, "server", None, "search", None, 60, None),
        ("notebook", 2, None, 1, 0.5, 4, 16, None, None, None, None, 90, 28800),
    ),
    "job_gpu_types": (("ranking", "H100", None, None), ("vision", "A100", None, None), ("vision", "H100", 2, None)),
    "job_datasets": (("ranking", "clicks", 6), ("vision", "images", None)),
    "replicas": (("clicks", "us-east"), ("images", "us-east"), ("images", "eu-west")),
    "running": (("cleaning", 2, True, 1.5, "ads", 7200),),
    "allocations": (("cleaning", "east-1-b", 1, 4, 32, 128, None, None),),
    "quotas": (("ads", 24, None, "products", 4, None), ("products", 8, None, None, 0, None)),
    "costs": (("vision", "eu-1", 1.5),),
    "residency": (("clicks", "us-east"),),
    "movable": (),
    "move_limits": (),
    "job_parts": (),
}
