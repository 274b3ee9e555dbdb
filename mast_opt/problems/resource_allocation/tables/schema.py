"""Table schemas of resource-allocation instances and plans: column by column, and an example instance."""

from mast_opt.problems.kind.schema import Axis, Schema, Table, label, real
from mast_opt.problems.resource_allocation.entities import Configurations, Groups, Jobs, Members, Resources, Uses

SCHEMA = Schema(
    axes=(
        Axis("resource", "resources"),
        Axis("group", "groups"),
        Axis("job", "jobs"),
        Axis("configuration", "configurations"),
    ),
    tables=(
        Resources.table("resource", help="what the configurations use together: GPUs of a type, cores, memory"),
        Groups.table("group", required=False, missing="no groups", help="a set of jobs, such as a tenant"),
        Jobs.table("job", help="a job that shares the resources"),
        Configurations.table("configuration", help="a way to run one job, or several packed together"),
        Members.table("members", rows_required=True, help="the jobs that a configuration runs, and how fast"),
        Uses.table("uses", help="the resources that a configuration holds"),
    ),
)

PLAN_SCHEMA = Schema(
    axes=SCHEMA.axes,
    tables=(
        Table(
            "shares",
            (label("configuration", "configuration"), real("share", help="of the time; no row = 0")),
            key=("configuration",),
            help="the part of the time that each configuration runs",
        ),
        Table(
            "rates",
            (
                label("job", "job"),
                real("rate", help="before what a mechanism takes"),
                real("kept", maximum=1, required=False, help="the part that a mechanism leaves; empty = 1"),
            ),
            key=("job",),
            help="the rate of each job under these shares",
        ),
    ),
)


EXAMPLE = {
    "resources": (("v100", 1), ("p100", 1), ("k80", 1)),
    "groups": (("research", 1, 0), ("product", 1, 0)),
    "jobs": (
        ("bert", 1, "research", False, 0, 1.1667, 300, 0, 0, 0),
        ("resnet", 1, "product", False, 0, 2, 500, 0, 0, 60),
    ),
    "configurations": (
        ("bert-v100", 3.1),
        ("bert-p100", 2),
        ("bert-k80", 0.8),
        ("resnet-v100", 3.1),
        ("resnet-p100", 2),
        ("resnet-k80", 0.8),
    ),
    "members": (
        ("bert-v100", "bert", 2),
        ("bert-p100", "bert", 1),
        ("bert-k80", "bert", 0.5),
        ("resnet-v100", "resnet", 3),
        ("resnet-p100", "resnet", 2),
        ("resnet-k80", "resnet", 1),
    ),
    "uses": (
        ("bert-v100", "v100", 1),
        ("bert-p100", "p100", 1),
        ("bert-k80", "k80", 1),
        ("resnet-v100", "v100", 1),
        ("resnet-p100", "p100", 1),
        ("resnet-k80", "k80", 1),
    ),
}
