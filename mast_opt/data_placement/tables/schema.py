"""Table schemas of data-placement instances and plans: what they mean, column by column."""

from __future__ import annotations

from fractions import Fraction

from mast_opt.core.units import MB_PER_TB, MICRO, MILLI
from mast_opt.data_placement.entities import RESOURCES
from mast_opt.data_placement.problem import SHARE
from mast_opt.kind.header import Rule
from mast_opt.kind.schema import Axis, Column, Schema, Table, boolean, choice, integer, label, need, supply

PINNED, FORBIDDEN = 0, 1
MOST_STEPS = 100
"""Steps of a candidate that may be bought unless its row says otherwise."""
_RULE = choice("rule", "pinned", "forbidden", help="pinned: must be there; forbidden: must not")


def _price(name: str, text: str) -> Column:
    """A column of prices in USD that may be left out: 0."""
    return need(name, MICRO, default=0, required=False, later=True, help=text)


SCHEMA = Schema(
    axes=(
        Axis("region", "regions"),
        Axis("dataset", "datasets"),
        Axis("workload", "workloads"),
        Axis("gpu_type", offered="gpu_supply"),
        Axis("app"),
        Axis("candidate", "candidates", later=True),
    ),
    tables=(
        Table(
            "regions",
            (
                label("region", "region"),
                supply("storage_tb", MB_PER_TB, help="disk for replicas and outputs, TB"),
                supply("cpu_cores", MILLI, help="cores for all workloads"),
                supply(
                    "ingress_tb_per_day", MB_PER_TB, required=False, help="most TB a day copied in; empty = unlimited"
                ),
                need(
                    "headroom", MILLI, maximum=1000, default=0, required=False, help="share of storage kept free, 0–1"
                ),
                _price("usd_per_tb_month", "price of storing a TB for a month, USD"),
                _price("usd_per_tb_copied", "price of a TB copied or uploaded to the region, USD"),
            ),
            key=("region",),
            rows_required=True,
            help="a place with storage, CPUs and GPUs",
        ),
        Table(
            "gpu_supply",
            (
                label("region", "region"),
                label("gpu_type", "gpu_type"),
                supply("gpus", MILLI, help="GPUs of this type in the region"),
                _price("usd_per_gpu_hour", "price of a GPU for an hour, USD"),
            ),
            key=("region", "gpu_type"),
            help="how many GPUs of which type each region has",
        ),
        Table(
            "datasets",
            (
                label("dataset", "dataset"),
                need("size_tb", MB_PER_TB, help="size of one copy, TB"),
                integer("copies_min", default=1, required=False, help="fewest replicas"),
                integer("copies_max", required=False, help="most replicas; empty = one a region"),
            ),
            key=("dataset",),
            rows_required=True,
            help="a unit of data that is placed as a whole",
        ),
        Table(
            "replicas",
            (label("dataset", "dataset"), label("region", "region")),
            key=("dataset", "region"),
            help="which region holds which dataset today",
        ),
        Table(
            "rules",
            (label("dataset", "dataset"), label("region", "region"), _RULE),
            key=("dataset", "region"),
            required=False,
            help="where a dataset must or must not be",
        ),
        Table(
            "residency",
            (label("dataset", "dataset"), label("region", "region")),
            key=("dataset", "region"),
            required=False,
            missing="any region may store and read any dataset",
            later=True,
            help="a dataset listed here is stored and read only in the regions listed for it",
        ),
        Table(
            "workloads",
            (
                label("workload", "workload"),
                integer("tier", help="importance; 0 is the highest"),
                need("cpu_cores", MILLI, help="cores in use on average"),
                label("app", "app", required=False, help="application that a CPU quota counts it to"),
                boolean("splittable", default=False, required=False, help="may it run in several regions at once?"),
                need("output_tb", MB_PER_TB, default=0, required=False, help="TB it keeps where it runs"),
            ),
            key=("workload",),
            rows_required=True,
            help="recurring work that needs CPUs, perhaps GPUs, and datasets",
        ),
        Table(
            "workload_rules",
            (label("workload", "workload"), label("region", "region"), _RULE),
            key=("workload", "region"),
            required=False,
            help="where a workload must or must not run",
        ),
        Table(
            "gpu_demand",
            (
                label("workload", "workload"),
                label("gpu_type", "gpu_type"),
                need("gpus", MILLI, help="GPUs it needs if it runs on this type"),
            ),
            key=("workload", "gpu_type"),
            help="a row per GPU type that a workload accepts; none for CPU-only work",
        ),
        Table(
            "reads",
            (
                label("workload", "workload"),
                label("dataset", "dataset"),
                need("tb_per_day", MB_PER_TB, help="TB read a day"),
            ),
            key=("workload", "dataset"),
            help="which workload reads which dataset",
        ),
        Table(
            "current_runs",
            (
                label("workload", "workload"),
                label("region", "region"),
                label("gpu_type", "gpu_type", required=False, help="empty = not known, or no GPU"),
                need("share", SHARE, maximum=SHARE, default=SHARE, required=False, help="share that runs there, 0–1"),
            ),
            key=("workload", "region", "gpu_type"),
            required=False,
            help="where work runs today",
        ),
        Table(
            "cpu_quota",
            (
                label("region", "region"),
                label("app", "app"),
                supply("cpu_cores", MILLI, help="cores that the application may use there"),
            ),
            key=("region", "app"),
            required=False,
            help="cores per application and region",
        ),
        Table(
            "links",
            (
                label("src", "region"),
                label("dst", "region"),
                supply("tb_per_day", MB_PER_TB, help="capacity, TB a day"),
                need("usd_per_tb", MICRO, default=0, required=False, help="price, USD a TB"),
            ),
            key=("src", "dst"),
            required=False,
            missing="any region reaches any other freely",
            help="network links; without this table any region reaches any other freely",
        ),
        Table(
            "candidates",
            (
                label("candidate", "candidate"),
                choice("resource", *RESOURCES, help="gpus, storage or link"),
                label("region", "region", help="where; of a link, the region that data leaves"),
                label("gpu_type", "gpu_type", required=False, help="of gpus"),
                label("dst", "region", required=False, help="of a link, the region that data reaches"),
                supply("step", MICRO, help="GPUs, TB or TB a day that one step brings"),
                integer("most_steps", default=MOST_STEPS, required=False, help="steps that may be bought"),
                need("usd_per_step", MICRO, help="price of one step, USD"),
                integer("lead_days", default=0, required=False, help="days from order to use"),
            ),
            key=("candidate",),
            required=False,
            later=True,
            missing="nothing may be bought",
            help="what may be bought, for mast-opt buy",
        ),
    ),
)

_SHARE = need("share", SHARE, maximum=SHARE, help="share, 0–1")

PLAN_SCHEMA = Schema(
    axes=SCHEMA.axes,
    tables=(
        Table(
            "placements",
            (label("dataset", "dataset"), label("region", "region")),
            key=("dataset", "region"),
            help="which region holds which dataset after the plan",
        ),
        Table(
            "runs",
            (
                label("workload", "workload"),
                label("region", "region"),
                label("gpu_type", "gpu_type", required=False, help="empty for work without GPUs"),
                _SHARE,
            ),
            key=("workload", "region", "gpu_type"),
            help="where each workload runs, and on what",
        ),
        Table(
            "copies",
            (label("dataset", "dataset"), label("src", "region"), label("dst", "region"), _SHARE),
            key=("dataset", "src", "dst"),
            help="where the bytes of each new replica come from; it must be there, and may have no rows",
        ),
        Table(
            "remote_reads",
            (
                label("workload", "workload"),
                label("dataset", "dataset"),
                label("src", "region"),
                label("dst", "region"),
                _SHARE,
            ),
            key=("workload", "dataset", "src", "dst"),
            help="what work reads from another region; it must be there, and may have no rows",
        ),
    ),
)

RULES = (
    Rule("remote_reads", "price", ("price", "forbid"), "may work read data that its region does not hold?"),
    Rule("unserved", "forbid", ("forbid", "price"), "may work be left out, at a price?"),
    Rule("days", Fraction(1), (), "days that the copies may take"),
)
