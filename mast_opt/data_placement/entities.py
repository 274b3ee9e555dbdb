"""What a data-placement problem is made of: its groups of arrays, one class for each entity or relation.

I, W, R, K count datasets, workloads, regions, GPU types; O, N, C, Q, L count options, reads, current runs, quotas,
links.
"""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.core.arrays import Arrays, amounts, flags, positions, reals
from mast_opt.kind.problem_data import Bools, Entities, Floats, Ints, Relation

RESOURCES = ("gpus", "storage", "link")
"""What a candidate may be."""
GPUS, STORAGE, LINK = range(3)
SHARE = 1000
"""Shares (of a workload, of a read, of a copy) are integers out of this many."""


@dataclass(frozen=True, eq=False, repr=False)
class Regions(Entities):
    """Places with storage, CPUs and GPUs."""

    AXIS = "regions"
    COLUMNS = (
        amounts("storage_mb", "regions", total=False),
        amounts("headroom_milli", "regions", most=1000),
        amounts("cpu_mcores", "regions"),
        amounts("ingress_mb_per_day", "regions"),
        flags("ingress_limited", "regions"),
        amounts("supply_mgpu", "regions", "gpu_types"),
        amounts("storage_price_micro", "regions", total=False),
        amounts("copy_price_micro", "regions", total=False),
        amounts("gpu_price_micro", "regions", "gpu_types", total=False),
    )

    storage_mb: Ints
    """[R] storage of the region, headroom included."""
    headroom_milli: Ints
    """[R] share of the storage to keep free, in thousandths."""
    cpu_mcores: Ints
    """[R] CPU that work may take, in thousandths of a core."""
    ingress_mb_per_day: Ints
    """[R] most that copies may bring in a day; meaningful where ``ingress_limited``."""
    ingress_limited: Bools
    """[R] whether there is a limit on what copies bring."""
    supply_mgpu: Ints
    """[R, K] GPUs of each type, in thousandths."""
    storage_price_micro: Ints
    """[R] price of storing a TB for a month, in millionths of a dollar."""
    copy_price_micro: Ints
    """[R] price of a TB that is copied or uploaded to the region, in millionths of a dollar."""
    gpu_price_micro: Ints
    """[R, K] price of a GPU for an hour, in millionths of a dollar."""


@dataclass(frozen=True, eq=False, repr=False)
class Datasets(Entities):
    """Units of data that are placed as a whole, and where they may be."""

    AXIS = "datasets"
    COLUMNS = (
        amounts("size_mb", "datasets", total=False),
        amounts("copies_min", "datasets", total=False),
        amounts("copies_max", "datasets", total=False),
        flags("stored", "datasets", "regions"),
        flags("pinned", "datasets", "regions"),
        flags("forbidden", "datasets", "regions"),
        flags("residency", "datasets", "regions"),
    )

    size_mb: Ints
    """[I] size of one replica."""
    copies_min: Ints
    """[I] at least 1 for a dataset that is read."""
    copies_max: Ints
    """[I] most replicas."""
    stored: Bools
    """[I, R] current replicas."""
    pinned: Bools
    """[I, R] regions that have to hold a replica."""
    forbidden: Bools
    """[I, R] regions that may hold none."""
    residency: Bools
    """[I, R] where any region is listed for a dataset, it is stored and read in no other."""


@dataclass(frozen=True, eq=False, repr=False)
class Workloads(Entities):
    """Recurring work, and where it may run."""

    AXIS = "workloads"
    COLUMNS = (
        positions("tier", "workloads", "tiers"),
        amounts("cpu_mcores", "workloads"),
        positions("app", "workloads", "apps"),
        flags("splittable", "workloads"),
        amounts("output_mb", "workloads"),
        flags("pinned", "workloads", "regions"),
        flags("forbidden", "workloads", "regions"),
    )

    tier: Ints
    """[W] position in ``tiers``."""
    cpu_mcores: Ints
    """[W] CPU that the workload needs, in thousandths of a core."""
    app: Ints
    """[W] position in ``apps``."""
    splittable: Bools
    """[W] whether parts may run in several regions."""
    output_mb: Ints
    """[W] stored where the workload runs."""
    pinned: Bools
    """[W, R] where any region is pinned, the workload runs in no other."""
    forbidden: Bools
    """[W, R] regions where the workload may not run."""


@dataclass(frozen=True, eq=False, repr=False)
class Options(Relation):
    """The ways to run workloads, by workload. CPU-only work has one option of type K."""

    AXIS = "options"
    KEY = ("workload", "gpu_type")
    COLUMNS = (
        positions("workload", "options", "workloads", ascending=True),
        positions("gpu_type", "options", "gpu_types", beyond=1),
        amounts("mgpu", "options"),
    )

    workload: Ints
    """[O] position in ``workloads``, ascending."""
    gpu_type: Ints
    """[O] position in ``gpu_types``, or K for none."""
    mgpu: Ints
    """[O] GPUs of the type that the workload then needs, in thousandths."""


@dataclass(frozen=True, eq=False, repr=False)
class Reads(Relation):
    """What workloads read, by workload."""

    AXIS = "reads"
    KEY = ("workload", "dataset")
    COLUMNS = (
        positions("workload", "reads", "workloads", ascending=True),
        positions("dataset", "reads", "datasets"),
        amounts("mb_per_day", "reads", total=False),
    )

    workload: Ints
    """[N] position in ``workloads``, ascending."""
    dataset: Ints
    """[N] position in ``datasets``."""
    mb_per_day: Ints
    """[N] volume that the workload reads of the dataset."""


@dataclass(frozen=True, eq=False, repr=False)
class CurrentRuns(Relation):
    """Where work runs today."""

    AXIS = "current_runs"
    KEY = ("workload", "region", "gpu_type")
    COLUMNS = (
        positions("workload", "current_runs", "workloads"),
        positions("region", "current_runs", "regions"),
        positions("gpu_type", "current_runs", "gpu_types", beyond=1),
        amounts("share", "current_runs", most=SHARE),
    )

    workload: Ints
    """[C] position in ``workloads``."""
    region: Ints
    """[C] position in ``regions``."""
    gpu_type: Ints
    """[C] position in ``gpu_types``, or K where it is none or not stated."""
    share: Ints
    """[C] part of the workload that runs there, out of ``SHARE``."""


@dataclass(frozen=True, eq=False, repr=False)
class CpuQuotas(Relation):
    """The most that the workloads of an application may take in a region."""

    AXIS = "cpu_quotas"
    KEY = ("region", "app")
    COLUMNS = (
        positions("region", "cpu_quotas", "regions"),
        positions("app", "cpu_quotas", "apps"),
        amounts("cpu_mcores", "cpu_quotas"),
    )

    region: Ints
    """[Q] position in ``regions``."""
    app: Ints
    """[Q] position in ``apps``."""
    cpu_mcores: Ints
    """[Q] limit, in thousandths of a core."""


@dataclass(frozen=True, eq=False, repr=False)
class Candidates(Entities):
    """What may be bought, in whole steps: GPUs of a type, storage, or capacity of a link."""

    AXIS = "candidates"
    COLUMNS = (
        amounts("resource", "candidates", most=len(RESOURCES) - 1, total=False),
        positions("region", "candidates", "regions"),
        positions("gpu_type", "candidates", "gpu_types", beyond=1),
        positions("target", "candidates", "regions", beyond=1),
        amounts("step", "candidates", total=False),
        amounts("most_steps", "candidates", total=False),
        amounts("price_micro", "candidates", total=False),
        amounts("lead_days", "candidates", total=False),
    )

    resource: Ints
    """[C] position in ``RESOURCES``."""
    region: Ints
    """[C] where it is bought; of a link, the region that data leaves."""
    gpu_type: Ints
    """[C] position in ``gpu_types``; K for anything but GPUs."""
    target: Ints
    """[C] of a link, the region that data reaches; R for anything else."""
    step: Ints
    """[C] what one step brings: milli-GPUs, MB, or MB a day."""
    most_steps: Ints
    """[C] steps that may be bought."""
    price_micro: Ints
    """[C] price of one step, in millionths of a dollar."""
    lead_days: Ints
    """[C] days from order to use."""

    def _check_rows(self, check: Arrays) -> None:
        check.wrong("step", self.step == 0, "more than 0")


@dataclass(frozen=True, eq=False, repr=False)
class Links(Relation):
    """Directed network links between regions; reads and copies cross only these."""

    AXIS = "links"
    KEY = ("source", "target")
    COLUMNS = (
        positions("source", "links", "regions"),
        positions("target", "links", "regions"),
        amounts("capacity_mb_per_day", "links"),
        reals("price_usd_per_tb", "links"),
    )

    source: Ints
    """[L] region that data leaves."""
    target: Ints
    """[L] region that it reaches, another one than the source."""
    capacity_mb_per_day: Ints
    """[L] most that reads and copies may carry in a day."""
    price_usd_per_tb: Floats
    """[L] price of what is carried."""

    def _check_rows(self, check: Arrays) -> None:
        check.wrong("target", self.source == self.target, "another region than the source")
        super()._check_rows(check)
