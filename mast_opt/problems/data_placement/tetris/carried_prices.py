"""Prices of a certificate of data placement as those of another instance: labels and reads are matched, boxes kept."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.kept_certificate import kept_certificate
from mast_opt.problems.data_placement.verification.certificate import Certificate, bounded_weights
from mast_opt.problems.data_placement.verification.certificate_bound import LEVELS
from mast_opt.problems.kind.carried_axes import Match, taken


def carried(problem: DataPlacement, arrays: Mapping[str, NDArray[Any]], match: Match) -> Mapping[str, NDArray[Any]]:
    """Arrays of a certificate for this instance, with the prices of an earlier one's where it had the row; 0 elsewhere.

    Trees and a spectrum are left out. Tiers are matched by rank, and not at all where their number differs.

    Raises:
        PlanError: the arrays are no certificate.
    """
    old = Certificate.from_arrays(arrays)
    region, kind, reads = match.axis("region"), match.axis("gpu_type"), match.rows("reads")
    supplied = problem.regions.supply_mgpu > 0
    tiers = old.worst.shape[2] == len(problem.tiers)
    worst, over = (
        taken(taken(of, region), kind, axis=1) * supplied[:, :, None, None]
        if tiers
        else np.zeros((*supplied.shape, len(problem.tiers), 1 + old.gang.shape[1]))
        for of in (old.worst, old.over)
    )
    weights = bounded_weights(problem)
    idle = weights["idle"] / np.maximum(problem.regions.supply_mgpu.sum(axis=0), 1)
    price = (old.read_cap / LEVELS * (1 + 2e-7)).astype(np.float32)  # a price between two levels would be rounded down
    prices = SimpleNamespace(
        read=taken(taken(old.read_level, reads) * taken(price, reads)[:, None], region, axis=1),
        worst=worst,
        over=over,
        under=np.minimum(taken(taken(old.under, region), kind, axis=1), idle) * supplied,
        cpu=taken(old.cpu, region),
        storage=taken(old.storage, region),
        ingress=taken(old.ingress, region) * problem.regions.ingress_limited,
        quota=taken(old.quota, match.rows("cpu_quota")),
    )
    return kept_certificate(problem, weights, prices, np.maximum(taken(old.gang, kind), 1)).arrays()
