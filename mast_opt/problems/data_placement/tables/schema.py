"""Table schemas of data-placement instances and plans, column by column, and an example of three regions."""

from fractions import Fraction

from mast_opt.core.units import MILLI
from mast_opt.problems.data_placement import entities
from mast_opt.problems.kind.header import Rule
from mast_opt.problems.kind.schema import Axis, Schema, Table, choice, label, need, supply

PINNED, FORBIDDEN = 0, 1
_RULE = choice("rule", "pinned", "forbidden", help="pinned: must be there; forbidden: must not")

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
        entities.Regions.table("region", help="a place with storage, CPUs and GPUs"),
        Table(
            "gpu_supply",
            (
                label("region", "region"),
                label("gpu_type", "gpu_type"),
                supply("gpus", MILLI, help="GPUs of this type in the region"),
                entities.price("usd_per_gpu_hour", "price of a GPU for an hour, USD"),
            ),
            key=("region", "gpu_type"),
            help="how many GPUs of which type each region has",
        ),
        entities.Datasets.table("dataset", help="a unit of data that is placed as a whole"),
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
        entities.Workloads.table("workload", help="recurring work that needs CPUs, perhaps GPUs, and datasets"),
        Table(
            "workload_rules",
            (label("workload", "workload"), label("region", "region"), _RULE),
            key=("workload", "region"),
            required=False,
            help="where a workload must or must not run",
        ),
        entities.Options.table("gpu_demand", help="a row per GPU type that a workload accepts; none for CPU-only work"),
        entities.Reads.table("reads", help="which workload reads which dataset"),
        entities.CurrentRuns.table("current_runs", required=False, help="where work runs today"),
        entities.CpuQuotas.table("cpu_quota", required=False, help="cores per application and region"),
        entities.Links.table(
            "links",
            required=False,
            missing="any region reaches any other freely",
            help="network links; without this table any region reaches any other freely",
        ),
        entities.Candidates.table(
            "candidate",
            required=False,
            later=True,
            missing="nothing may be bought",
            help="what may be bought, for mast-opt buy",
        ),
    ),
)

_SHARE = need("share", entities.SHARE, maximum=entities.SHARE, help="share, 0–1")

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


EXAMPLE = {
    "regions": (
        ("us-east", 100, 4000, 20, 0.1, 21),
        ("us-west", 80, 3000, 20, 0.1, 21),
        ("eu-west", 60, 2000, None, None, 23),
    ),
    "gpu_supply": (
        ("us-east", "H100", 64, 11),
        ("us-east", "A100", 32, 3.5),
        ("us-west", "H100", 32, 11),
        ("eu-west", "A100", 64, 3.9),
    ),
    "datasets": (("clicks", 20, 1, 2), ("images", 12.5, 1, None), ("logs", 30, None, 2), ("profiles", 4, 1, 3)),
    "replicas": (("clicks", "us-east"), ("images", "us-east"), ("logs", "us-west"), ("profiles", "eu-west")),
    "rules": (("profiles", "eu-west", "pinned"), ("clicks", "eu-west", "forbidden")),
    "residency": (("profiles", "eu-west"), ("profiles", "us-east")),
    "workloads": (
        ("ranking", 0, 800, "ads", False, 2),
        ("vision", 1, 500, "search", False, None),
        ("cleaning", 2, 1200, None, True, 1),
        ("embeddings", 0, 300, "ads", False, None),
    ),
    "workload_rules": (("embeddings", "us-west", "forbidden"),),
    "gpu_demand": (("ranking", "H100", 32), ("vision", "H100", 16), ("vision", "A100", 32), ("embeddings", "A100", 24)),
    "reads": (
        ("ranking", "clicks", 6),
        ("ranking", "profiles", 0.5),
        ("vision", "images", 3),
        ("cleaning", "logs", 8),
        ("embeddings", "profiles", 1),
    ),
    "current_runs": (
        ("ranking", "us-east", "H100", 1),
        ("vision", "us-east", "A100", 1),
        ("cleaning", "us-west", None, 1),
        ("embeddings", "eu-west", "A100", 1),
    ),
    "cpu_quota": (("us-east", "ads", 2000),),
    "links": (
        ("us-east", "us-west", 20, 10),
        ("us-west", "us-east", 20, 10),
        ("us-east", "eu-west", 8, 50),
        ("eu-west", "us-east", 8, 50),
        ("us-west", "eu-west", 5, 50),
        ("eu-west", "us-west", 5, 50),
    ),
    "candidates": (
        ("H100 in us-east", "gpus", "us-east", "H100", None, 8, 8, 250000, 90),
        ("A100 in eu-west", "gpus", "eu-west", "A100", None, 8, 4, 90000, 30),
        ("disks in us-west", "storage", "us-west", None, None, 10, 10, 12000, 14),
        ("us-east to eu-west", "link", "us-east", None, "eu-west", 4, 5, 30000, 60),
    ),
}
