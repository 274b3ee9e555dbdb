"""The data-placement problem (Tetris): which region holds which replica, and where each workload runs.

Index letters, here and everywhere: i dataset, w workload, r and q region, k GPU type, p tier.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import Arrays
from mast_opt.core.errors import Fault, InstanceError, UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.problems.data_placement import entities
from mast_opt.problems.data_placement.entities import SHARE, Links
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.kind.header import Objective, Term
from mast_opt.problems.kind.limits import MOST_LIMIT, limit_faults, limit_value
from mast_opt.problems.kind.problem_data import Bools, Group, GroupedProblem, Ints

if TYPE_CHECKING:
    from mast_opt.problems.data_placement.plan import Plan  # noqa: F401 - named in a string below

__all__ = ["NO_GPU", "OBJECTIVE", "SHARE", "TERMS", "Bools", "DataPlacement", "Ints", "Links", "read_only"]

ArrayT = TypeVar("ArrayT", bound=NDArray[Any])

OBJECTIVE: Mapping[str, Term] = {
    "peak": Term(1.0, "demand/supply above the level, weighted"),
    "overload": Term(10.0, "share of GPUs, weighted"),
    "idle": Term(0.0, "sum over GPU types of the share that is idle"),
    "remote": Term(2000.0, "share of reads"),
    "egress": Term(0.0, "USD a day"),
    "copy": Term(0.5, "copies of everything"),
    "storage": Term(0.1, "copies of everything"),
    "moved_work": Term(1.0, "share of GPU work"),
    "unserved": Term(4000.0, "share of GPU work, weighted"),
    "running_cost": Term(0.0, "USD a month", later=True),
    "migration_cost": Term(0.0, "USD", later=True),
    "retyped_work": Term(0.1, "share of GPU work", later=True, unstated=True),
    "moved_items": Term(0.0, "share of datasets and workloads", later=True, unstated=True),
}
"""Terms of the objective. What each measures: ``docs/problems/data-placement.md``. Units are by tier where "weighted";
marginal values take the first in dollars with a weight, what is paid each day last."""
TERMS = {name: term.weight for name, term in OBJECTIVE.items()}
"""Objective term → its default weight."""
PEAK_LEVEL, PEAK_LEVEL_OF_TIER_0 = 1.0, 0.9
"""Ratio of demand to supply above which the term ``peak`` counts by default."""
NO_GPU = "none"
"""Label of the type that CPU-only work runs on; its position is len(gpu_types)."""


@dataclass(frozen=True, eq=False, repr=False)
class DataPlacement(GroupedProblem["Plan"]):
    """One instance, validated and read-only. I, W, R, K count datasets, workloads, regions, types.

    Raises:
        InstanceError: groups that do not fit one another; it lists every fault.
    """

    kind: ClassVar[str] = "data-placement"
    WEIGHTS = TERMS
    LABELS: ClassVar[Mapping[str, bool]] = {"gpu_types": False, "apps": True}

    name: str
    regions: entities.Regions
    gpu_types: tuple[str, ...]
    datasets: entities.Datasets
    workloads: entities.Workloads
    apps: tuple[str, ...]
    """Applications; an empty label, the last, stands for workloads that name none."""
    tiers: tuple[int, ...]
    """The tiers that occur, ascending; 0 is the most important."""
    options: entities.Options
    reads: entities.Reads
    current_runs: entities.CurrentRuns
    cpu_quotas: entities.CpuQuotas
    links: Links | None
    """None: any region may read or copy from any other, at no price and without a limit."""
    objective: Objective
    remote_reads: bool
    """True if work may read a dataset that its region does not hold."""
    may_refuse: bool
    """True if work may stay unserved, at a price."""
    days: Fraction
    """Time for the copies."""
    provenance: str = ""
    limits: Mapping[str, Fraction] = field(default_factory=dict)
    """The most that a whole plan may have of something (``LIMITS``), each in its own unit: hard limits."""

    candidates: entities.Candidates | None = None
    """Candidates for purchase that would bring the worst ratio down; None: nothing is offered."""

    def __post_init__(self) -> None:
        """State the levels of all tiers, so that a file means the same when a default changes."""
        if isinstance(self.objective, Objective) and isinstance(self.tiers, tuple):
            levels = {tier: PEAK_LEVEL if tier else PEAK_LEVEL_OF_TIER_0 for tier in self.tiers}
            stated = replace(self.objective, peak_levels=levels | dict(self.objective.peak_levels))
            object.__setattr__(self, "objective", stated)
        super().__post_init__()

    def with_limits(self, limits: Mapping[str, float | str | Fraction | None]) -> Self:  # noqa: D102 - see the base
        values: dict[str, Fraction | None] = {}
        for name, value in limits.items():
            if name not in LIMITS:
                known, near = ", ".join(LIMITS), did_you_mean(name, LIMITS)
                raise UsageError(f"{self.kind} has no limit called {name!r}; expected some of: {known}{near}")
            values[name] = None if value is None else limit_value(value)
            if value is not None and values[name] is None:
                unit = f" ({LIMITS[name].unit})" if LIMITS[name].unit else ""
                raise UsageError(f"the limit {name} is {value}; expected a number from 0 to {MOST_LIMIT:g}{unit}")
        return replace(
            self, limits={name: value for name, value in {**self.limits, **values}.items() if value is not None}
        )

    def with_copies_min(self, copies: Mapping[str, int]) -> Self:  # noqa: D102 - see the base
        if not copies:
            return self
        at = {label: i for i, label in enumerate(self.datasets.labels)}
        fewest = self.datasets.copies_min.copy()
        for label, number in copies.items():
            if label not in at:
                raise UsageError(f"{self.name} has no dataset called {label!r}{did_you_mean(label, tuple(at))}")
            if not 0 <= number <= len(self.regions):
                raise UsageError(f"copies_min of {label} is {number}; expected a number from 0 to {len(self.regions)}")
            fewest[at[label]] = number
        return replace(self, datasets=replace(self.datasets, copies_min=fewest))

    def with_replicas(self, replicas: Mapping[str, Sequence[str]]) -> Self:  # noqa: D102 - see the base
        if not replicas:
            return self
        pinned, closed = self.datasets.pinned.copy(), self.closed
        known = {"dataset": self.datasets.labels, "region": self.regions.labels}
        for dataset, regions in replicas.items():
            for what, label in (("dataset", dataset), *(("region", region) for region in regions)):
                if label not in known[what]:
                    raise UsageError(f"{self.name} has no {what} called {label!r}{did_you_mean(label, known[what])}")
            i = self.datasets.labels.index(dataset)
            here = [self.regions.labels.index(region) for region in regions]
            if closed[i, here].any():
                raise UsageError(f"{dataset} may not be in all of {', '.join(regions)}")
            pinned[i, here] = True
        return replace(self, datasets=replace(self.datasets, pinned=pinned))

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of a data placement that several of its tables show together."""
        check.faults += limit_faults(self.limits, LIMITS)
        if self.days <= 0:
            check.fault("days", "a positive number", str(self.days))
        options = np.bincount(self.options.workload, minlength=len(self.workloads))
        for w in np.flatnonzero(options == 0)[:1].tolist():
            label = self.workloads.labels[w]
            check.fault("options.workload", f"an option for each workload; none is for {w} ({label})")
        share = np.bincount(self.current_runs.workload, weights=self.current_runs.share, minlength=len(self.workloads))
        for w in np.flatnonzero(share > SHARE)[:1].tolist():
            words = f"shares of workload {w} ({self.workloads.labels[w]}) that add up to at most {SHARE}"
            check.fault("current_runs.share", words, f"{share[w]:g}")

        if self.candidates is not None:
            self._check_candidates(check, self.candidates)

    def _check_candidates(self, check: Arrays, offered: entities.Candidates) -> None:
        """Faults of candidates for GPUs without a type, and for links that are not there."""
        needs_type = (offered.resource == entities.GPUS) & (offered.gpu_type == len(self.gpu_types))
        link_of = np.zeros((len(self.regions), len(self.regions) + 1), np.bool_)
        if self.links is not None:
            link_of[self.links.source, self.links.target] = True
        no_link = (offered.resource == entities.LINK) & ~link_of[offered.region, offered.target]
        for wrong, words in ((needs_type, "a GPU type"), (no_link, "two regions that a row of links joins")):
            for at in np.flatnonzero(wrong)[:1].tolist():
                check.fault("candidates", f"{words} for the candidate {offered.labels[at]}")

    @cached_property
    def tier_weight(self) -> NDArray[np.float64]:
        """[P] weight of each tier that occurs; 1 unless stated."""
        weights = self.objective.tier_weights
        return read_only(np.array([weights.get(tier, 1.0) for tier in self.tiers]))

    @cached_property
    def peak_level(self) -> NDArray[np.float64]:
        """[P] ratio of demand to supply above which the term ``peak`` counts, for each tier that occurs."""
        return read_only(np.array([self.objective.peak_levels[tier] for tier in self.tiers], np.float64))

    @cached_property
    def usable_storage_mb(self) -> Ints:
        """[R] storage less headroom, rounded down."""
        limits = zip(self.regions.storage_mb.tolist(), self.regions.headroom_milli.tolist())
        return read_only(np.array([size * (1000 - keep) // 1000 for size, keep in limits], np.int64))

    @cached_property
    def ingress_mb(self) -> Ints:
        """[R] what may be copied in during ``days``, rounded down; meaningful where ``ingress_limited``.

        No more than 64 bits hold, which is no less than all datasets together.
        """
        most = np.iinfo(np.int64).max
        volumes = [min(int(rate * self.days), most) for rate in self.regions.ingress_mb_per_day.tolist()]
        return read_only(np.array(volumes, np.int64))

    @property
    def has_prices(self) -> bool:
        """Whether anything has a price: GPUs, or what a column in USD that may be left out states, of any table."""
        groups = (group for group in vars(self).values() if isinstance(group, Group))
        prices = (getattr(group, one.array.name) for group in groups for one in group.STATED if one.is_price)
        return bool(self.regions.gpu_price_micro.any()) or any(price.any() for price in prices)

    @cached_property
    def outside(self) -> Bools:
        """[I, R] the regions outside a dataset's residency; none for a dataset without residency."""
        return read_only(self.datasets.residency.any(axis=1, keepdims=True) & ~self.datasets.residency)

    @cached_property
    def gone(self) -> Bools:
        """[R] the regions without storage, cores and GPUs, such as those that a scenario loses."""
        r = self.regions
        return read_only((r.storage_mb == 0) & (r.cpu_mcores == 0) & ~r.supply_mgpu.any(axis=1))

    @cached_property
    def closed(self) -> Bools:
        """[I, R] the regions that may not hold a replica: forbidden, or outside the residency."""
        return read_only(self.datasets.forbidden | self.outside)

    @cached_property
    def reads_outside(self) -> Bools:
        """[W, R] the regions outside the residency of a dataset that the workload reads."""
        found = np.zeros(self.workloads.forbidden.shape, np.bool_)
        restricted = self.datasets.residency.sum(axis=1) > 0
        resident = restricted[self.reads.dataset]
        workload, dataset = self.reads.workload[resident], self.reads.dataset[resident]
        for r in range(len(self.regions)):
            found[workload[self.outside[dataset, r]], r] = True
        return read_only(found)

    @cached_property
    def ruled(self) -> Bools:
        """[W, R] the regions that pins and bans leave to a workload."""
        pins = self.workloads.pinned.sum(axis=1, keepdims=True)
        return read_only(~self.workloads.forbidden & ((pins == 0) | (self.workloads.pinned & (pins == 1))))

    @cached_property
    def allowed(self) -> Bools:
        """[W, R] the regions that pins, bans and the residency of its datasets leave to a workload."""
        return read_only(self.ruled & ~self.reads_outside)

    @cached_property
    def option_regions(self) -> Bools:
        """[O, R] where each option may run: allowed, and the GPU type (if any is needed) is supplied."""
        supplied = np.concatenate([self.regions.supply_mgpu > 0, np.ones((len(self.regions), 1), np.bool_)], axis=1)
        has_type = supplied.T[self.options.gpu_type] | (self.options.mgpu == 0)[:, None]
        return read_only(self.allowed[self.options.workload] & has_type)

    @cached_property
    def option_mgpu(self) -> Ints:
        """[W, K + 1] GPUs that a workload needs on each type; 0 where it does not accept the type."""
        gpus = np.zeros((len(self.workloads), len(self.gpu_types) + 1), np.int64)
        gpus[self.options.workload, self.options.gpu_type] = self.options.mgpu
        return read_only(gpus)

    @cached_property
    def fewest_mgpu(self) -> Ints:
        """[W] the smallest number of GPUs that a workload accepts, 0 for CPU-only work."""
        fewest = np.full(len(self.workloads), np.iinfo(np.int64).max, np.int64)
        np.minimum.at(fewest, self.options.workload, self.options.mgpu)
        return read_only(fewest)

    @cached_property
    def demand_mgpu(self) -> Ints:
        """[W] the size of a workload for the terms ``unserved``, ``moved_work`` and ``retyped_work``.

        Its smallest acceptable number of GPUs. CPU-only work counts the GPUs that would take its share of
        the fleet's cores (at least one milli-GPU), so that refusing it is never free.

        Raises:
            InstanceError: the sizes together do not fit in 64 bits, as where regions have GPUs and next to no cores.
        """
        gpus = self.fewest_mgpu
        per_core = self.regions.supply_mgpu.sum() / max(int(self.regions.cpu_mcores.sum()), 1)
        equivalent = np.maximum(np.floor(self.workloads.cpu_mcores * per_core + 0.5), 1)
        equivalent[gpus > 0] = 0
        total = float((gpus + equivalent).sum())
        if total >= 2.0**63:
            words = f"work that is worth less than {2.0**63 / 1000:.3g} GPUs together, at the regions' GPUs per core"
            raise InstanceError([Fault("workloads", words, column="cpu_cores", value=f"{total / 1000:.3g} GPUs")])
        return read_only(gpus + equivalent.astype(np.int64))


def read_only(array: ArrayT) -> ArrayT:
    """The array itself, closed to writing."""
    array.setflags(write=False)
    return array
