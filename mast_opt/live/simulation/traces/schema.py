"""Table schema of job traces."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mast_opt.core.units import MB_PER_TB, MIB_PER_GIB, MILLI
from mast_opt.planner.io.plain_tables import JOB_TRACE
from mast_opt.problems.job_placement.tables.schema import SCHEMA as PLACEMENT
from mast_opt.problems.job_placement.units import LEVELS, MOST_TASKS, SERVER
from mast_opt.problems.kind.schema import Axis, Column, Schema, Table, boolean, choice, integer, label, need, supply

KIND = JOB_TRACE
MOST_S = 10**11
"""Three thousand years; sums of times in ms stay exact in 64 bits."""
MOST_MS = MOST_S * MILLI
CHECKPOINT_S, RESTART_S = 3600, 60
QUOTA = "quota"
HAPPENINGS = ("server_down", "server_up", "switchboard_down", "switchboard_up", "region_down", "region_up", QUOTA)
"""Kinds of happenings in a trace, apart from submissions."""
MICRO = 10**6
MOST_STEPS = 10**12
FASTEST = 10**9 * MICRO
"""Millionths of a step a second."""

_OPTIONAL = [
    replace(PLACEMENT.table(name), required=False, later=False, missing=missing)
    for name, missing in (
        ("job_parts", "every job is one gang of equal tasks"),
        ("job_gpu_types", "jobs take any GPU type"),
        ("job_datasets", "jobs read nothing"),
        ("replicas", "there are no datasets"),
        ("residency", "any dataset may be copied to any region, and read there"),
        ("quotas", "there are no quotas"),
    )
]

REGIONS = replace(
    PLACEMENT.table("regions"),
    columns=(
        *PLACEMENT.table("regions").columns,
        supply("storage_tb", MB_PER_TB, required=False, help="what it can store, TB; empty = no limit"),
        supply(
            "ingress_tb_per_day",
            MB_PER_TB,
            required=False,
            help="most that copies bring in, TB a day; empty = any",
        ),
    ),
)
OF_A_GANG: Mapping[str, Mapping[str, Any]] = {"tasks": {"maximum": MOST_TASKS}, "gpus": {"field": "mgpu"}}
"""Columns that a job without parts must state, and how those of a trace differ from job placement's."""
_SURROUNDINGS = (
    Table(
        "datasets",
        (
            label("dataset", "dataset"),
            need("size_tb", MB_PER_TB, help="size of a replica, TB"),
            label("namespace", "namespace", required=False, help="whose data it is"),
            need(
                "created_s",
                MILLI,
                maximum=MOST_MS,
                default=0,
                required=False,
                help="second from which it is there",
            ),
        ),
        key=("dataset",),
        required=False,
        missing="sizes are unknown: data stays where it is",
        help="a unit of data that is copied as a whole; replicas says where it is when it appears",
    ),
    Table(
        "links",
        (
            label("src", "region"),
            label("dst", "region"),
            supply("tb_per_day", MB_PER_TB, help="capacity, TB a day"),
        ),
        key=("src", "dst"),
        required=False,
        missing="any region reaches any other, without a limit",
        help="network links; copies cross only these",
    ),
    Table(
        "switchboards",
        (label("server", "server"), label("switchboard", "switchboard")),
        key=("server",),
        required=False,
        missing="no switchboard is known",
        help="the switchboard that a server hangs from; its servers fail together",
    ),
    Table(
        "happenings",
        (
            need("at_s", MILLI, maximum=MOST_MS, help="seconds since the trace began"),
            choice("what", *HAPPENINGS, help="what happens"),
            label("name", "happening", help="the server, switchboard, region or tenant"),
            need("value", MILLI, required=False, help="of a quota: GPUs; empty = there is no limit any more"),
        ),
        key=("at_s", "what", "name"),
        required=False,
        missing="nothing fails and no quota changes",
        help="failures and changed quotas",
    ),
)

SUBMISSIONS = Table(
    "submissions",
    (
        label("job", "job"),
        need("submitted_s", MILLI, field="submitted_ms", maximum=MOST_MS, help="seconds since the trace began"),
        integer("tier", help="importance; 0 is the highest"),
        *(replace(PLACEMENT.table("jobs").column(name), **given) for name, given in OF_A_GANG.items()),
        need("cpu_cores", MILLI, field="cpu_mcores", default=0, required=False, help="cores of one task"),
        need("memory_gb", MIB_PER_GIB, field="memory_mib", default=0, required=False, help="memory of one task, GiB"),
        need(
            "duration_s",
            MILLI,
            field="duration_ms",
            minimum=1,
            maximum=MOST_MS,
            required=False,
            help="seconds that it runs on its reference type; empty = nobody knows",
        ),
        need(
            "limit_s",
            MILLI,
            field="limit_ms",
            minimum=1,
            maximum=MOST_MS,
            required=False,
            help="seconds after each start at which it is ended if it still runs; empty = no limit",
        ),
        label("tenant", "tenant", required=False, help="who a GPU quota counts it to"),
        label("workload", "workload", required=False, help="what it is a run of, where work recurs"),
        label("namespace", "namespace", required=False, help="whose data it reads"),
        label("home_region", "region", required=False, help="where its owner would run it"),
        PLACEMENT.table("jobs").column("within"),
        choice("prefer", *LEVELS, default=SERVER, required=False, help="level that is close enough"),
        boolean("preemptible", required=False, help="may it be stopped? empty = if its tier is not 0"),
        need(
            "checkpoint_s",
            MILLI,
            field="checkpoint_ms",
            maximum=MOST_MS,
            default=CHECKPOINT_S * MILLI,
            required=False,
            help="seconds between two checkpoints; 0 = its work is saved whenever it is stopped",
        ),
        need(
            "restart_s",
            MILLI,
            field="restart_ms",
            maximum=MOST_MS,
            default=RESTART_S * MILLI,
            required=False,
            help="seconds that it takes to get going again after it was stopped",
        ),
        integer("min_tasks", minimum=1, required=False, help="fewest tasks that it may have; empty = tasks"),
        integer("max_tasks", minimum=1, required=False, help="most tasks that it may have; empty = tasks"),
        label("model", "model", required=False, help="kind of work of the table speeds; empty = as fast everywhere"),
        integer(
            "steps",
            minimum=1,
            maximum=MOST_STEPS,
            required=False,
            help="steps that it runs, in place of duration_s, for a job with a model",
        ),
    ),
    key=("job",),
    rows_required=True,
    help="a job, when it was handed in, and what it asks for",
)


def _speed(help: str) -> Column:
    """Column of a trace's schema for speeds, in training steps a second."""
    return supply("steps_per_s", MICRO, maximum=FASTEST, help=help)


SPEEDS = Table(
    "speeds",
    (
        label("model", "model"),
        label("gpu_type", "gpu_type"),
        integer("tasks", minimum=1, maximum=MOST_TASKS, help="tasks of the job"),
        _speed("steps a second of the whole job; 0 = it cannot run"),
    ),
    key=("model", "gpu_type", "tasks"),
    required=False,
    missing="jobs are as fast on every GPU type",
    help="how fast jobs of a model run; the fastest type for a number of tasks is their reference type",
)
PAIR_SPEEDS = Table(
    "pair_speeds",
    (
        label("model", "model"),
        label("other", "model", help="what runs on the same GPUs, with as many tasks"),
        label("gpu_type", "gpu_type"),
        integer("tasks", minimum=1, maximum=MOST_TASKS, help="tasks of each of the two jobs"),
        _speed("steps a second of the first; 0 = the two cannot share GPUs"),
    ),
    key=("model", "other", "gpu_type", "tasks"),
    required=False,
    missing="no two jobs share GPUs",
    help="how fast jobs of a model run while another job shares their GPUs",
)

SCHEMA = Schema(
    axes=(
        *(axis for axis in PLACEMENT.axes if axis.name in ("region", "cluster", "rack", "server", "gpu_type")),
        Axis("job", "submissions"),
        Axis("dataset"),
        Axis("tenant"),
        Axis("workload"),
        Axis("namespace"),
        Axis("switchboard"),
        Axis("happening"),
        Axis("model"),
        Axis("part"),
    ),
    tables=(
        REGIONS,
        *(PLACEMENT.table(name) for name in ("clusters", "servers")),
        SUBMISSIONS,
        *_OPTIONAL,
        *_SURROUNDINGS,
        SPEEDS,
        PAIR_SPEEDS,
    ),
)
"""Units: as in job placement, and ms."""
