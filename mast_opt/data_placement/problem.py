"""The data-placement problem (Tetris): which region holds which replica, and where each workload runs.

Index letters, here and everywhere: i dataset, w workload, r and q region, k GPU type, p tier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import Arrays, amounts, flags, positions, reals, scalars, tier_faults
from mast_opt.core.errors import Fault, InstanceError
from mast_opt.kind.header import Objective, term_faults
from mast_opt.kind.problem import Problem

if TYPE_CHECKING:
    from mast_opt.data_placement.plan import Plan  # noqa: F401 - named in a string below

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
ArrayT = TypeVar("ArrayT", bound=NDArray[Any])

TERMS: Mapping[str, float] = {
    "peak": 1.0,
    "overload": 10.0,
    "idle": 0.0,
    "remote": 5.0,
    "egress": 0.0,
    "copy": 0.5,
    "storage": 0.1,
    "moved_work": 0.0,
    "unserved": 1000.0,
}
"""Objective term → its default weight. What each measures: ``docs/problems/data-placement.md``."""
SHARE = 1000
"""Shares (of a workload, of a read, of a copy) are integers out of this many."""
NO_GPU = "none"
"""Label of the type that CPU-only work runs on; its position is len(gpu_types)."""

LINKS = (
    amounts("source", "links", total=False),
    amounts("target", "links", total=False),
    amounts("capacity_mb_per_day", "links"),
    reals("price_usd_per_tb", "links"),
)
SCALARS = {
    "name": str,
    "objective": Objective,
    "remote_reads": bool,
    "may_refuse": bool,
    "days": Fraction,
    "provenance": str,
}
COLUMNS = (
    amounts("storage_mb", "regions", total=False),
    amounts("headroom_milli", "regions", most=1000),
    amounts("cpu_mcores", "regions"),
    amounts("ingress_mb_per_day", "regions"),
    flags("ingress_limited", "regions"),
    amounts("supply_mgpu", "regions", "gpu_types"),
    amounts("size_mb", "datasets", total=False),
    amounts("copies_min", "datasets", total=False),
    amounts("copies_max", "datasets", total=False),
    flags("stored", "datasets", "regions"),
    flags("pinned", "datasets", "regions"),
    flags("forbidden", "datasets", "regions"),
    flags("residency", "datasets", "regions"),
    positions("tier", "workloads", "tiers"),
    amounts("cpu_need_mcores", "workloads"),
    positions("app", "workloads", "apps"),
    flags("splittable", "workloads"),
    amounts("output_mb", "workloads"),
    flags("work_pinned", "workloads", "regions"),
    flags("work_forbidden", "workloads", "regions"),
    positions("option_workload", "options", "workloads", ascending=True),
    positions("option_type", "options", "gpu_types", beyond=1),
    amounts("option_mgpu", "options"),
    positions("read_workload", "reads", "workloads", ascending=True),
    positions("read_dataset", "reads", "datasets"),
    amounts("read_mb_per_day", "reads", total=False),
    positions("current_workload", "current runs", "workloads"),
    positions("current_region", "current runs", "regions"),
    positions("current_type", "current runs", "gpu_types", beyond=1),
    amounts("current_share", "current runs", most=SHARE),
    positions("quota_region", "quotas", "regions"),
    positions("quota_app", "quotas", "apps"),
    amounts("quota_mcores", "quotas"),
)


@dataclass(frozen=True, eq=False)
class Links:
    """Directed network links between regions; reads and copies cross only these.

    Raises:
        InstanceError: arrays that are not sound by themselves; ``DataPlacement`` checks the positions.
    """

    source: Ints
    target: Ints
    capacity_mb_per_day: Ints
    price_usd_per_tb: NDArray[np.float64]

    def __post_init__(self) -> None:
        check = Arrays(self)
        check.take(*LINKS)
        if not check.faults:
            check.wrong("target", self.source == self.target, "another region than the source")
            check.key("source", "target")
        if check.faults:
            raise InstanceError(check.faults)


@dataclass(frozen=True, eq=False)
class DataPlacement(Problem["Plan"]):
    """One instance, validated. Arrays are read-only; I, W, R, K count datasets, workloads, regions, types.

    Raises:
        InstanceError: arrays that do not fit one another or hold values out of range; it lists every fault.
    """

    kind: ClassVar[str] = "data-placement"

    name: str
    regions: tuple[str, ...]
    gpu_types: tuple[str, ...]
    datasets: tuple[str, ...]
    workloads: tuple[str, ...]
    apps: tuple[str, ...]
    """Applications; an empty label, the last, stands for workloads that name none."""
    tiers: tuple[int, ...]
    """The tiers that occur, ascending; 0 is the most important."""

    storage_mb: Ints
    """[R]"""
    headroom_milli: Ints
    """[R] share of the storage to keep free, in thousandths."""
    cpu_mcores: Ints
    """[R]"""
    ingress_mb_per_day: Ints
    """[R] meaningful where ``ingress_limited``."""
    ingress_limited: Bools
    """[R]"""
    supply_mgpu: Ints
    """[R, K]"""

    size_mb: Ints
    """[I]"""
    copies_min: Ints
    """[I] at least 1 for a dataset that is read."""
    copies_max: Ints
    """[I]"""
    stored: Bools
    """[I, R] current replicas."""
    pinned: Bools
    """[I, R]"""
    forbidden: Bools
    """[I, R]"""
    residency: Bools
    """[I, R] where any region is listed for a dataset, it is stored and read in no other."""

    tier: Ints
    """[W] position in ``tiers``."""
    cpu_need_mcores: Ints
    """[W]"""
    app: Ints
    """[W] position in ``apps``."""
    splittable: Bools
    """[W]"""
    output_mb: Ints
    """[W] stored where the workload runs."""
    work_pinned: Bools
    """[W, R] where any region is pinned, the workload runs in no other."""
    work_forbidden: Bools
    """[W, R]"""

    option_workload: Ints
    """[O] a way to run a workload; ascending. CPU-only work has one option of type K."""
    option_type: Ints
    """[O] 0..K−1, or K for none."""
    option_mgpu: Ints
    """[O]"""

    read_workload: Ints
    """[N] ascending."""
    read_dataset: Ints
    """[N]"""
    read_mb_per_day: Ints
    """[N]"""

    current_workload: Ints
    """[C] where work runs today."""
    current_region: Ints
    current_type: Ints
    """[C] 0..K−1, or K where it is none or not stated."""
    current_share: Ints
    """[C] out of SHARE."""

    quota_region: Ints
    quota_app: Ints
    quota_mcores: Ints

    links: Links | None
    """None: any region may read or copy from any other, at no price and without a limit."""

    objective: Objective
    remote_reads: bool
    """May work read a dataset that its region does not hold?"""
    may_refuse: bool
    """May work stay unserved, at a price?"""
    days: Fraction
    """Time for the copies."""
    provenance: str = ""

    def __post_init__(self) -> None:
        check = Arrays(self)
        for name in ("regions", "gpu_types", "datasets", "workloads"):
            check.labels(name)
        check.labels("apps", empty=True)
        check.faults += tier_faults(self.tiers)
        check.faults += scalars(self, SCALARS)
        check.faults += term_faults(self.objective, TERMS)
        check.axes["tiers"] = len(self.tiers) if isinstance(self.tiers, tuple) else 0
        check.take(*COLUMNS)
        if isinstance(self.links, Links):
            links = Arrays(self.links, check.axes)
            links.take(positions("source", "links", "regions"), positions("target", "links", "regions"))
            check.faults += [replace(fault, file=f"links.{fault.file}") for fault in links.faults]
        elif self.links is not None:
            check.fault("links", "Links, or None for no limit", type(self.links).__name__)
        if not check.faults:
            self._check_rows(check)
        if check.faults:
            raise InstanceError(check.faults)

    def _check_rows(self, check: Arrays) -> None:
        """Faults of sound arrays that only several of them show."""
        check.key("option_workload", "option_type")
        check.key("read_workload", "read_dataset")
        check.key("current_workload", "current_region", "current_type")
        check.key("quota_region", "quota_app")
        if self.days <= 0:
            check.fault("days", "a positive number", str(self.days))
        options = np.bincount(self.option_workload, minlength=len(self.workloads))
        for w in np.flatnonzero(options == 0)[:1].tolist():
            check.fault("option_workload", f"an option for each workload; none is for {w} ({self.workloads[w]})")
        share = np.bincount(self.current_workload, weights=self.current_share, minlength=len(self.workloads))
        for w in np.flatnonzero(share > SHARE)[:1].tolist():
            words = f"shares of workload {w} ({self.workloads[w]}) that add up to at most {SHARE}"
            check.fault("current_share", words, f"{share[w]:g}")

    @cached_property
    def tier_weight(self) -> NDArray[np.float64]:
        """[P] weight of each tier that occurs; 1 unless stated."""
        weights = self.objective.tier_weights
        return read_only(np.array([weights.get(tier, 1.0) for tier in self.tiers]))

    @cached_property
    def usable_storage_mb(self) -> Ints:
        """[R] storage less headroom, rounded down."""
        limits = zip(self.storage_mb.tolist(), self.headroom_milli.tolist())
        return read_only(np.array([size * (1000 - keep) // 1000 for size, keep in limits], np.int64))

    @cached_property
    def ingress_mb(self) -> Ints:
        """[R] what may be copied in during ``days``, rounded down; meaningful where ``ingress_limited``.

        No more than 64 bits hold, which is no less than all datasets together.
        """
        most = np.iinfo(np.int64).max
        volumes = [min(int(rate * self.days), most) for rate in self.ingress_mb_per_day.tolist()]
        return read_only(np.array(volumes, np.int64))

    @cached_property
    def outside(self) -> Bools:
        """[I, R] the regions outside a dataset's residency; none for a dataset without residency."""
        return read_only(self.residency.any(axis=1, keepdims=True) & ~self.residency)

    @cached_property
    def closed(self) -> Bools:
        """[I, R] the regions that may not hold a replica: forbidden, or outside the residency."""
        return read_only(self.forbidden | self.outside)

    @cached_property
    def reads_outside(self) -> Bools:
        """[W, R] the regions outside the residency of a dataset that the workload reads."""
        found = np.zeros(self.work_forbidden.shape, np.bool_)
        restricted = self.residency.sum(axis=1) > 0
        resident = restricted[self.read_dataset]
        workload, dataset = self.read_workload[resident], self.read_dataset[resident]
        for r in range(len(self.regions)):
            found[workload[self.outside[dataset, r]], r] = True
        return read_only(found)

    @cached_property
    def ruled(self) -> Bools:
        """[W, R] the regions that pins and bans leave to a workload."""
        pins = self.work_pinned.sum(axis=1, keepdims=True)
        return read_only(~self.work_forbidden & ((pins == 0) | (self.work_pinned & (pins == 1))))

    @cached_property
    def allowed(self) -> Bools:
        """[W, R] the regions that pins, bans and the residency of its datasets leave to a workload."""
        return read_only(self.ruled & ~self.reads_outside)

    @cached_property
    def option_regions(self) -> Bools:
        """[O, R] where each option may run: allowed, and the GPU type (if any is needed) is supplied."""
        supplied = np.concatenate([self.supply_mgpu > 0, np.ones((len(self.regions), 1), np.bool_)], axis=1)
        has_type = supplied.T[self.option_type] | (self.option_mgpu == 0)[:, None]
        return read_only(self.allowed[self.option_workload] & has_type)

    @cached_property
    def demand_mgpu(self) -> Ints:
        """[W] the size of a workload for the terms ``unserved`` and ``moved_work``.

        Its smallest acceptable number of GPUs. CPU-only work counts the GPUs that would take its share of
        the fleet's cores (at least one milli-GPU), so that refusing it is never free.

        Raises:
            InstanceError: the sizes together do not fit in 64 bits, as where regions have GPUs and next to no cores.
        """
        gpus = np.full(len(self.workloads), np.iinfo(np.int64).max, np.int64)
        np.minimum.at(gpus, self.option_workload, self.option_mgpu)
        per_core = self.supply_mgpu.sum() / max(int(self.cpu_mcores.sum()), 1)
        equivalent = np.maximum(np.floor(self.cpu_need_mcores * per_core + 0.5), 1)
        equivalent[gpus > 0] = 0
        total = float((gpus + equivalent).sum())
        if total >= 2.0**63:
            words = f"work that is worth less than {2.0**63 / 1000:.3g} GPUs together, at the regions' GPUs per core"
            raise InstanceError([Fault("workloads", words, column="cpu_cores", value=f"{total / 1000:.3g} GPUs")])
        return read_only(gpus + equivalent.astype(np.int64))


def read_only(array: ArrayT) -> ArrayT:
    """The same array, closed to writing."""
    array.setflags(write=False)
    return array
