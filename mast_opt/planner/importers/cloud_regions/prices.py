"""Prices of cloud regions: GPU-hours from the machines that a region sells, storage and egress from public lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MICRO
from mast_opt.planner.importers.traces.georegions import CloudRegions

STORAGE_USD_PER_TB_MONTH = {
    "us-east-1": 23.0,
    "us-east-2": 23.0,
    "us-west-2": 23.0,
    "us-west-1": 26.0,
    "ca-central-1": 25.0,
    "eu-west-1": 23.0,
    "eu-west-2": 24.0,
    "eu-central-1": 24.5,
    "ap-northeast-1": 25.0,
    "ap-northeast-2": 25.0,
    "ap-south-1": 25.0,
    "ap-southeast-1": 25.0,
    "ap-southeast-2": 25.0,
}
"""AWS S3 Standard, first 50 TB a month, public list price of 2025; 1 TB is 1,000 GB."""
OTHER_USD_PER_TB_MONTH = 25.0
"""Assumed for every other region."""
PRICED_AS = "V100"
"""Assumed for models that no region sells under their name: what this GPU costs there."""


def prices(regions: CloudRegions, models: tuple[str, ...], sold_as: dict[str, str]) -> dict[str, Any]:
    """Columns of prices: GPU-hours by region and model, storage by region, copies at the mean egress price of the
    other regions."""
    count = len(regions.names)
    others = ~np.eye(count, dtype=np.bool_)
    storage = [STORAGE_USD_PER_TB_MONTH.get(name.partition(":")[2], OTHER_USD_PER_TB_MONTH) for name in regions.names]
    gpu = [_filled(regions.usd_per_gpu_hour[sold_as.get(model, PRICED_AS)]) for model in models]
    return {
        "regions.storage_price_micro": _micro(np.array(storage)),
        "regions.copy_price_micro": _micro((regions.usd_per_tb * others).sum(axis=0) / max(count - 1, 1)),
        "regions.gpu_price_micro": _micro(np.column_stack(gpu)),
    }


def _filled(usd: NDArray[np.float64]) -> NDArray[np.float64]:
    """The price of each region; where a GPU is not sold, the mean of the regions that sell it."""
    sold = usd > 0
    return np.where(sold, usd, usd[sold].mean() if sold.any() else 0.0)


def _micro(usd: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(usd * MICRO).astype(np.int64)
