"""Incremental search state of tetris: runs, replicas, and all sums that price a change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import kernel
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays


@by_reference
class TetrisState(NamedTuple):
    """Arrays that the kernels change in place."""

    option: Ints
    """[W] option of each workload."""
    region: Ints
    """[W] region of each workload; R if it is not served."""
    place: Bools
    """[I, R] whether the region holds a replica."""
    volume: Ints
    """[I, R] volume that workloads in the region read of the dataset."""
    demand: Ints
    """[R, K, P] demand for GPUs, cumulative over tiers."""
    peak: FloatArray
    """[K, P] largest demand over supply, at least the level at which it costs."""
    cpu: Ints
    """[R] CPU in use."""
    quota: Ints
    storage: Ints
    ingress: Ints
    copies: Ints
    """[I] number of replicas of each dataset."""
    random: NDArray[np.uint64]
    """[1] state of the random generator."""

    def copy(self) -> TetrisState:
        """Copy of tetris' state with arrays of its own."""
        arrays: Any = (array.copy() for array in self)
        return TetrisState(*arrays)


def state_of(a: TetrisArrays, option: Ints, region: Ints, place: Bools, seed: int) -> TetrisState:
    """State of a plan of tetris, with every sum recomputed."""
    datasets, regions = place.shape
    kinds, tiers = a.supply.shape[1], len(a.peak_price)
    runs = np.flatnonzero(region < regions)
    at = region[runs]
    demand = np.zeros((regions, kinds + 1, tiers), np.int64)
    np.add.at(demand, (at, a.option_type[option[runs]], a.tier[runs]), a.option_mgpu[option[runs]])
    demand = np.ascontiguousarray(np.cumsum(demand, axis=2)[:, :kinds])
    reads = np.diff(a.read_start)
    where = np.repeat(region, reads)
    here = where < regions
    volume = np.zeros(datasets * regions, np.int64)
    np.add.at(volume, a.read_dataset[here] * regions + where[here], a.read_volume[here])
    quota = np.zeros(len(a.quota), np.int64)
    row = a.quota_row[a.app[runs], at]
    np.add.at(quota, row[row >= 0], a.cpu_need[runs][row >= 0])
    return TetrisState(
        option=option.astype(np.int64),
        region=region.astype(np.int64),
        place=place.copy(),
        volume=volume.reshape(datasets, regions),
        demand=demand,
        peak=peaks_of(a, demand),
        cpu=_total(at, a.cpu_need[runs], regions),
        quota=quota,
        storage=_columns(a.size, place) + _total(at, a.output[runs], regions),
        ingress=_columns(a.size, place & ~a.stored),
        copies=place.sum(axis=1).astype(np.int64),
        random=np.array([(seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64 | 1], np.uint64),
    )


def peaks_of(a: TetrisArrays, demand: Ints) -> FloatArray:
    """[K, P] largest demand over supply, over the regions with supply; at least the level."""
    ratio = np.where((a.supply > 0)[:, :, None], demand / np.maximum(a.supply, 1)[:, :, None], 0.0)
    return np.ascontiguousarray(np.maximum(ratio.max(axis=0, initial=0.0), a.peak_level))


def _total(index: Ints, amount: Ints, size: int) -> Ints:
    """[size] sums of ``amount`` by ``index`` for tetris' state."""
    total = np.zeros(size, np.int64)
    np.add.at(total, index, amount)
    return total


def _columns(size: Ints, place: Bools) -> Ints:
    """Σ_i size[i]·place[i,r] for every r."""
    return np.array([int(size[place[:, r]].sum()) for r in range(place.shape[1])], np.int64)


def cost(a: TetrisArrays, s: TetrisState) -> float:
    """Objective of tetris at the prices of the search, recomputed from the state."""
    regions = s.place.shape[1]
    over = np.maximum(s.demand - a.supply[:, :, None], 0) * (a.supply > 0)[:, :, None]
    idle = np.maximum(a.supply - s.demand[:, :, -1], 0)
    above = s.peak - a.peak_level
    total = float((above * a.peak_price).sum() + (over * a.overload_price).sum() + (idle * a.idle_price).sum())
    total += float(a.replica_price[s.place].sum())
    runs = np.flatnonzero(s.region < regions)
    region, option = s.region[runs], s.option[runs]
    total += float(a.run_price[option, region].sum())
    total += float(s.volume[~s.place].sum()) * a.remote_price
    total += float(a.refuse_price[s.region == regions].sum())
    today = np.repeat(np.arange(len(s.region)), np.diff(a.today_start))
    left = np.where(s.region[today] != a.today_region, a.today_share, 0.0)
    total += float((a.retype_price * a.typed_share).sum() - (a.retype_price[runs] * a.kept_share[option]).sum())
    return total + float((a.move_price[today] * left).sum())


def forbidden(a: TetrisArrays, s: TetrisState) -> float:
    """Part of the cost for forbidden reads. A start may have some, a plan has none."""
    return 0.0 if a.remote_reads else float(s.volume[~s.place].sum()) * a.remote_price


def excess(a: TetrisArrays, s: TetrisState, refuse: bool) -> float:
    """Excess over hard limits, each as a share of its limit; 0 for a feasible state."""
    total = 0.0 if refuse else float((s.region == s.place.shape[1]).sum())
    for used, limit in ((s.cpu, a.cpu), (s.quota, a.quota), (s.storage, a.storage), (s.ingress, a.ingress)):
        total += float((np.maximum(used - limit, 0) / np.maximum(limit, 1)).sum())
    short = np.maximum(a.copies_min - s.copies, 0) + np.maximum(s.copies - a.copies_max, 0)
    total += float(short.sum())
    if not a.remote_reads:
        total += float(s.volume[~s.place].sum())
    return total


@kernel
def set_replica(a: TetrisArrays, s: TetrisState, i: int, r: int, present: bool) -> None:
    """Add the replica of dataset i in region r if ``present``, or drop it."""
    sign = 1 if present else -1
    s.place[i, r] = present
    s.copies[i] += sign
    s.storage[r] += sign * a.size[i]
    if not a.stored[i, r]:
        s.ingress[r] += sign * a.size[i]


@kernel
def replica_fits(a: TetrisArrays, s: TetrisState, i: int, r: int) -> bool:
    """Whether a replica of dataset i may be added in region r, by residency, storage and ingress."""
    if a.forbidden[i, r] or s.storage[r] + a.size[i] > a.storage[r]:
        return False
    return bool(a.stored[i, r] or s.ingress[r] + a.size[i] <= a.ingress[r])
