"""A data-placement problem from its necessary parts; everything optional is absent unless it is given."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from mast_opt.problems.data_placement.entities import CpuQuotas, CurrentRuns
from mast_opt.problems.data_placement.problem import TERMS, DataPlacement, Ints
from mast_opt.problems.kind.header import Objective

WEIGHTS = {**TERMS, "remote": 5.0, "moved_work": 0.0, "unserved": 1000.0}
"""Weights of the families whose readers are drawn from all work alike, where much has to be read remotely."""


def plain(*, work_tier: Ints, columns: Mapping[str, Any]) -> DataPlacement:
    """``work_tier`` [W] is each workload's tier as a number. ``columns`` maps ``regions.storage_mb`` and so on to
    arrays, and other fields to their values: the name, labels, storage, CPU, supply, sizes, current replicas, needs,
    options and reads must be among them."""
    tiers, tier = np.unique(work_tier, return_inverse=True)
    at_regions, at_datasets, at_work = (len(columns[f"{axis}.labels"]) for axis in ("regions", "datasets", "workloads"))
    nothing, no_data = np.zeros(0, np.int64), np.zeros((at_datasets, at_regions), np.bool_)
    absent: dict[str, Any] = {
        "apps": ("",),
        "regions.ingress_limited": np.zeros(at_regions, np.bool_),
        "regions.gpu_price_micro": np.zeros((at_regions, len(columns["gpu_types"])), np.int64),
        "datasets.copies_max": np.full(at_datasets, at_regions),
        **dict.fromkeys(("datasets.pinned", "datasets.forbidden", "datasets.residency"), no_data),
        "workloads.app": np.zeros(at_work, np.int64),
        **dict.fromkeys(("workloads.pinned", "workloads.forbidden"), np.zeros((at_work, at_regions), np.bool_)),
        "current_runs": CurrentRuns(nothing, nothing, nothing, nothing),
        "cpu_quotas": CpuQuotas(nothing, nothing, nothing),
        "links": None,
        "objective": Objective(weights=WEIGHTS),
        "remote_reads": True,
        "may_refuse": False,
        "days": Fraction(1),
    }
    ranks = {"tiers": tuple(tiers.tolist()), "workloads.tier": tier.astype(np.int64)}
    return DataPlacement.from_columns(absent | ranks | dict(columns))
