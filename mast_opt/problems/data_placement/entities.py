"""Entities of data placement: groups of arrays, one class for each entity or relation.

I, W, R, K count datasets, workloads, regions, GPU types; O, N, C, Q, L count options, reads, current runs, quotas,
links.
"""

from dataclasses import dataclass

from mast_opt.core.arrays import Arrays, amounts, flags, positions, reals
from mast_opt.core.units import MB_PER_TB, MICRO, MILLI
from mast_opt.problems.kind.problem_data import Bools, Entities, Floats, Ints, Relation
from mast_opt.problems.kind.schema import Column, boolean, choice, integer, label, need, supply
from mast_opt.problems.kind.stated_columns import stated

RESOURCES = ("gpus", "storage", "link")
"""Resources that a candidate may have."""
GPUS, STORAGE, LINK = range(3)
SHARE = 1000
"""Shares (of a workload, of a read, of a copy) are integers out of this many."""
MOST_STEPS = 100
"""Steps of a candidate that may be bought unless its row says otherwise."""


def price(name: str, text: str) -> Column:
    """A column of prices in USD that may be left out: 0."""
    return need(name, MICRO, default=0, required=False, later=True, help=text)


@dataclass(frozen=True, eq=False, repr=False)
class Regions(Entities):
    """Places with storage, CPUs and GPUs."""

    AXIS = "regions"
    COLUMNS = (
        flags("ingress_limited", "regions"),
        amounts("supply_mgpu", "regions", "gpu_types"),
        amounts("gpu_price_micro", "regions", "gpu_types", total=False),
    )

    ingress_limited: Bools
    """[R] whether there is a limit on what copies bring."""
    supply_mgpu: Ints
    """[R, K] GPUs of each type, in thousandths."""
    gpu_price_micro: Ints
    """[R, K] price of a GPU for an hour, in millionths of a dollar."""
    storage_mb: Ints = stated(supply("storage_tb", MB_PER_TB, help="disk for replicas and outputs, TB"), total=False)
    """[R] storage of the region, headroom included."""
    cpu_mcores: Ints = stated(supply("cpu_cores", MILLI, help="cores for all workloads"))
    """[R] CPU that work may take, in thousandths of a core."""
    ingress_mb_per_day: Ints = stated(
        supply("ingress_tb_per_day", MB_PER_TB, required=False, help="most TB a day copied in; empty = unlimited")
    )
    """[R] most that copies may bring in a day; meaningful where ``ingress_limited``."""
    headroom_milli: Ints = stated(
        need("headroom", MILLI, maximum=1000, default=0, required=False, help="share of storage kept free, 0–1")
    )
    """[R] share of the storage to keep free, in thousandths."""
    storage_price_micro: Ints = stated(
        price("usd_per_tb_month", "price of storing a TB for a month, USD"), total=False, dat="storage_usd_per_tb_month"
    )
    """[R] price of storing a TB for a month, in millionths of a dollar."""
    copy_price_micro: Ints = stated(
        price("usd_per_tb_copied", "price of a TB copied or uploaded to the region, USD"),
        total=False,
        dat="copy_usd_per_tb",
    )
    """[R] price of a TB that is copied or uploaded to the region, in millionths of a dollar."""


@dataclass(frozen=True, eq=False, repr=False)
class Datasets(Entities):
    """Units of data that are placed as a whole, and where they may be."""

    AXIS = "datasets"
    COLUMNS = (
        flags("stored", "datasets", "regions"),
        flags("pinned", "datasets", "regions"),
        flags("forbidden", "datasets", "regions"),
        flags("residency", "datasets", "regions"),
    )

    stored: Bools
    """[I, R] current replicas."""
    pinned: Bools
    """[I, R] regions that have to hold a replica."""
    forbidden: Bools
    """[I, R] regions that may hold none."""
    residency: Bools
    """[I, R] where any region is listed for a dataset, it is stored and read in no other."""
    size_mb: Ints = stated(need("size_tb", MB_PER_TB, help="size of one copy, TB"), total=False)
    """[I] size of one replica."""
    copies_min: Ints = stated(integer("copies_min", default=1, required=False, help="fewest replicas"), total=False)
    """[I] at least 1 for a dataset that is read."""
    copies_max: Ints = stated(
        integer("copies_max", required=False, help="most replicas; empty = one a region"),
        amounts("copies_max", "datasets", total=False),
    )
    """[I] most replicas."""


@dataclass(frozen=True, eq=False, repr=False)
class Workloads(Entities):
    """Recurring work, and where it may run."""

    AXIS = "workloads"
    COLUMNS = (flags("pinned", "workloads", "regions"), flags("forbidden", "workloads", "regions"))

    pinned: Bools
    """[W, R] where any region is pinned, the workload runs in no other."""
    forbidden: Bools
    """[W, R] regions where the workload may not run."""
    tier: Ints = stated(integer("tier", help="importance; 0 is the highest"), positions("tier", "workloads", "tiers"))
    """[W] position in ``tiers``."""
    cpu_mcores: Ints = stated(need("cpu_cores", MILLI, help="cores in use on average"))
    """[W] CPU that the workload needs, in thousandths of a core."""
    app: Ints = stated(
        label("app", "app", required=False, help="application that a CPU quota counts it to"),
        positions("app", "workloads", "apps"),
    )
    """[W] position in ``apps``."""
    splittable: Bools = stated(
        boolean("splittable", default=False, required=False, help="may it run in several regions at once?")
    )
    """[W] whether parts may run in several regions."""
    output_mb: Ints = stated(need("output_tb", MB_PER_TB, default=0, required=False, help="TB it keeps where it runs"))
    """[W] stored where the workload runs."""


@dataclass(frozen=True, eq=False, repr=False)
class Options(Relation):
    """The ways to run workloads, by workload. CPU-only work has one option of type K."""

    AXIS = "options"
    KEY = ("workload", "gpu_type")

    workload: Ints = stated(
        label("workload", "workload"), positions("workload", "options", "workloads", ascending=True)
    )
    """[O] position in ``workloads``, ascending."""
    gpu_type: Ints = stated(label("gpu_type", "gpu_type"), positions("gpu_type", "options", "gpu_types", beyond=1))
    """[O] position in ``gpu_types``, or K for none."""
    mgpu: Ints = stated(need("gpus", MILLI, help="GPUs it needs if it runs on this type"))
    """[O] GPUs of the type that the workload then needs, in thousandths."""


@dataclass(frozen=True, eq=False, repr=False)
class Reads(Relation):
    """Reads of datasets, sorted by workload."""

    AXIS = "reads"
    KEY = ("workload", "dataset")

    workload: Ints = stated(label("workload", "workload"), positions("workload", "reads", "workloads", ascending=True))
    """[N] position in ``workloads``, ascending."""
    dataset: Ints = stated(label("dataset", "dataset"))
    """[N] position in ``datasets``."""
    mb_per_day: Ints = stated(need("tb_per_day", MB_PER_TB, help="TB read a day"), total=False)
    """[N] volume that the workload reads of the dataset."""


@dataclass(frozen=True, eq=False, repr=False)
class CurrentRuns(Relation):
    """Present runs of the workloads."""

    AXIS = "current_runs"
    KEY = ("workload", "region", "gpu_type")

    workload: Ints = stated(label("workload", "workload"))
    """[C] position in ``workloads``."""
    region: Ints = stated(label("region", "region"))
    """[C] position in ``regions``."""
    gpu_type: Ints = stated(label("gpu_type", "gpu_type", required=False, help="empty = not known, or no GPU"))
    """[C] position in ``gpu_types``, or K where it is none or not stated."""
    share: Ints = stated(
        need("share", SHARE, maximum=SHARE, default=SHARE, required=False, help="share that runs there, 0–1"),
        amounts("share", "current_runs", most=SHARE),
    )
    """[C] part of the workload that runs there, out of ``SHARE``."""


@dataclass(frozen=True, eq=False, repr=False)
class CpuQuotas(Relation):
    """The most that the workloads of an application may take in a region."""

    AXIS = "cpu_quotas"
    KEY = ("region", "app")

    region: Ints = stated(label("region", "region"))
    """[Q] position in ``regions``."""
    app: Ints = stated(label("app", "app"))
    """[Q] position in ``apps``."""
    cpu_mcores: Ints = stated(supply("cpu_cores", MILLI, help="cores that the application may use there"))
    """[Q] limit, in thousandths of a core."""


@dataclass(frozen=True, eq=False, repr=False)
class Candidates(Entities):
    """Candidates for purchase, in whole steps: GPUs of a type, storage, or capacity of a link."""

    AXIS = "candidates"

    resource: Ints = stated(choice("resource", *RESOURCES, help="gpus, storage or link"), total=False)
    """[C] position in ``RESOURCES``."""
    region: Ints = stated(label("region", "region", help="where; of a link, the region that data leaves"))
    """[C] where it is bought; of a link, the region that data leaves."""
    gpu_type: Ints = stated(label("gpu_type", "gpu_type", required=False, help="of gpus"))
    """[C] position in ``gpu_types``; K for anything but GPUs."""
    target: Ints = stated(label("dst", "region", required=False, help="of a link, the region that data reaches"))
    """[C] of a link, the region that data reaches; R for anything else."""
    step: Ints = stated(supply("step", MICRO, help="GPUs, TB or TB a day that one step brings"), total=False)
    """[C] what one step brings: milli-GPUs, MB, or MB a day."""
    most_steps: Ints = stated(
        integer("most_steps", default=MOST_STEPS, required=False, help="steps that may be bought"),
        amounts("most_steps", "candidates", total=False),
    )
    """[C] steps that may be bought."""
    price_micro: Ints = stated(need("usd_per_step", MICRO, help="price of one step, USD"), total=False)
    """[C] price of one step, in millionths of a dollar."""
    lead_days: Ints = stated(
        integer("lead_days", default=0, required=False, help="days from order to use"),
        amounts("lead_days", "candidates", total=False),
    )
    """[C] days from order to use."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of purchase candidates: steps of size 0."""
        check.wrong("step", self.step == 0, "more than 0")


@dataclass(frozen=True, eq=False, repr=False)
class Links(Relation):
    """Directed network links between regions; reads and copies cross only these."""

    AXIS = "links"
    KEY = ("source", "target")

    source: Ints = stated(label("src", "region"))
    """[L] region that data leaves."""
    target: Ints = stated(label("dst", "region"))
    """[L] region that it reaches, another one than the source."""
    capacity_mb_per_day: Ints = stated(supply("tb_per_day", MB_PER_TB, help="capacity, TB a day"))
    """[L] most that reads and copies may carry in a day."""
    price_usd_per_tb: Floats = stated(
        need("usd_per_tb", MICRO, default=0, required=False, help="price, USD a TB"), reals("price_usd_per_tb", "links")
    )
    """[L] price of what is carried."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of links from a region to itself."""
        check.wrong("target", self.source == self.target, "another region than the source")
        super()._check_rows(check)
