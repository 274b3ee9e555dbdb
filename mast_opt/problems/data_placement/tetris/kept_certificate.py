"""Prices of the search as a certificate keeps them: within their boxes, and those of reads in steps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.verification import certificate_bound
from mast_opt.problems.data_placement.verification.certificate import Certificate
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KeptTrees
from mast_opt.problems.data_placement.verification.spectral_bound import Spectrum

NAMES = ("under", "cpu", "storage", "ingress", "quota")
"""Prices that are kept as they are where they are above 0."""


def kept_certificate(
    problem: DataPlacement,
    weights: Mapping[str, float],
    prices: Any,  # noqa: ANN401 - anything with these fields
    gang: NDArray[np.int64],
    trees: KeptTrees | None = None,
    spectrum: Spectrum | None = None,
) -> Certificate:
    """Prices of the search, whose rows are rounded by ``gang``, as they are kept; its trees; and a spectrum."""
    cap = certificate_bound.remote_cap(problem, weights)
    if cap is None:
        cap = prices.read.max(axis=1, initial=0.0).astype(np.float64)
    level = np.empty(prices.read.shape, np.uint16)
    for first in range(0, len(level), certificate_bound.CHUNK):
        rows = slice(first, first + certificate_bound.CHUNK)
        steps = np.floor(
            prices.read[rows] / np.where(cap[rows] > 0, cap[rows], 1.0)[:, None] * certificate_bound.LEVELS
        )
        level[rows] = np.clip(steps, 0, certificate_bound.LEVELS)
    peak = weights["peak"] * problem.tier_weight
    total = prices.worst.sum(axis=(0, 3))
    inside = np.minimum(1.0, peak * (1 - 1e-12) / np.where(total > 0, total, 1.0))
    highest = (
        weights["overload"] * problem.tier_weight / np.maximum(problem.regions.supply_mgpu.sum(axis=0), 1)[:, None]
    )
    over = np.maximum(prices.over, 0.0)
    total = over.sum(axis=3)
    over *= np.minimum(1.0, highest * (1 - 1e-12) / np.where(total > 0, total, 1.0))[..., None]
    return Certificate(
        weights=dict(weights),
        read_level=level,
        read_cap=cap,
        worst=prices.worst * inside[:, :, None],
        over=over,
        **{name: np.maximum(getattr(prices, name), 0.0) for name in NAMES},
        gang=gang,
        trees=trees or KeptTrees.none(),
        spectrum=spectrum,
    )
