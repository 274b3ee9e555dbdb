"""Bin-packing bound on the peak of data placement: the smallest that whole GPU gangs allow, per GPU type and tier."""

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.data_placement.problem import DataPlacement, Ints

FloatArray = NDArray[np.float64]


def bin_packing_peak_bound(problem: DataPlacement) -> FloatArray:
    """[K, P] lower bounds on the ratio in the worst region, or the level of the tier where that is higher.

    With every region filled to at most t times its supply, region r holds at most ⌊t·supply[r]/g⌋ · g milli-GPUs
    of work whose sizes are multiples of g; work of another size counts as the multiple below it. Work that may be
    split, be left out or run on another type counts for nothing.
    """
    p = problem
    floor = np.tile(p.peak_level, (len(p.gpu_types), 1))
    if p.may_refuse:
        return floor
    options = np.bincount(p.options.workload, minlength=len(p.workloads))
    bound = (options == 1)[p.options.workload] & ~p.workloads.splittable[p.options.workload]
    for k in range(len(p.gpu_types)):
        supply = p.regions.supply_mgpu[p.regions.supply_mgpu[:, k] > 0, k]
        if not len(supply):
            continue
        for tier in range(len(p.tiers)):
            mine = (
                bound
                & (p.options.gpu_type == k)
                & (p.options.mgpu > 0)
                & (p.workloads.tier[p.options.workload] <= tier)
            )
            floor[k, tier] = max(floor[k, tier], _smallest_peak(p.options.mgpu[mine], supply))
    return floor


def _smallest_peak(sizes: Ints, supply: Ints) -> float:
    """Smallest peak of demand over supply that bins of these supplies allow for undivided workloads."""
    best = 0.0
    for g in np.unique(sizes).tolist():
        best = max(best, _peak_for_units(int((sizes // g).sum()), supply / g))
    return best


def _peak_for_units(units: int, room: FloatArray) -> float:
    """Peak of data placement: the smallest t with Σ_r ⌊t·room[r]⌋ ≥ units, a hair below so that rounding cannot lift
    it.
    """
    low, high = 0.0, (units + len(room)) / float(room.sum())
    for _ in range(60):
        middle = (low + high) / 2
        if int(np.floor(middle * room * (1 + 1e-12)).sum()) >= units:
            high = middle
        else:
            low = middle
    return low * (1 - 1e-9)
