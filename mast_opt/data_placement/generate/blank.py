"""A data-placement problem from its necessary parts; everything optional is absent unless it is given."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mast_opt.data_placement.problem import TERMS, DataPlacement, Ints
from mast_opt.kind.header import Objective


def plain(
    *,
    name: str,
    regions: tuple[str, ...],
    datasets: tuple[str, ...],
    workloads: tuple[str, ...],
    work_tier: Ints,
    **given: Any,  # noqa: ANN401 - fields of different types
) -> DataPlacement:
    """``work_tier`` [W] is each workload's tier as a number; ``given`` are further fields of ``DataPlacement``:
    storage, CPU, supply, sizes, current replicas, needs, options and reads must be among them."""
    tiers, tier = np.unique(work_tier, return_inverse=True)
    at_regions, at_datasets, at_work = len(regions), len(datasets), len(workloads)
    nothing = np.zeros(0, np.int64)
    absent: dict[str, Any] = {
        "apps": ("",),
        "headroom_milli": np.zeros(at_regions, np.int64),
        "ingress_mb_per_day": np.zeros(at_regions, np.int64),
        "ingress_limited": np.zeros(at_regions, np.bool_),
        "copies_min": np.ones(at_datasets, np.int64),
        "copies_max": np.full(at_datasets, at_regions),
        "pinned": np.zeros((at_datasets, at_regions), np.bool_),
        "forbidden": np.zeros((at_datasets, at_regions), np.bool_),
        "residency": np.zeros((at_datasets, at_regions), np.bool_),
        "app": np.zeros(at_work, np.int64),
        "splittable": np.zeros(at_work, np.bool_),
        "output_mb": np.zeros(at_work, np.int64),
        "work_pinned": np.zeros((at_work, at_regions), np.bool_),
        "work_forbidden": np.zeros((at_work, at_regions), np.bool_),
        "current_workload": nothing,
        "current_region": nothing,
        "current_type": nothing,
        "current_share": nothing,
        "quota_region": nothing,
        "quota_app": nothing,
        "quota_mcores": nothing,
        "links": None,
        "objective": Objective(weights=dict(TERMS)),
        "remote_reads": True,
        "may_refuse": False,
        "days": Fraction(1),
    }
    return DataPlacement(
        name=name,
        regions=regions,
        datasets=datasets,
        workloads=workloads,
        tiers=tuple(tiers.tolist()),
        tier=tier.astype(np.int64),
        **(absent | given),
    )
