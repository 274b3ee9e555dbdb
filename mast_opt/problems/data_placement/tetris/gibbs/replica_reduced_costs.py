"""Reduced costs of replicas by region (tetris, Gibbs sampling): what a replica costs less what it saves its readers.

The best replicas of a dataset follow from its reduced costs: those that are negative, as long as its limits on copies
allow; the least of the others where they demand more. So where work runs says where data is, and what a reader costs in
a region is exact without any replica being added or dropped: with the *level* below which a replica pays, a read of
volume v costs min(v, (reduced cost − level)⁺) there.

A row holds the reduced costs of a dataset by region, and then those that decide on the level: that of the last replica
that must be, of the one after it, and the same for the last that may be.
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.projections import BARRED, NONE

DECIDING = 4
"""Columns after those of the regions."""
LINE = 16
"""Numbers in a line of the processor's cache; rows are as many lines as they need."""


def reduced_cost_buffers(datasets: int, regions: int) -> Singles:
    """Rows to fill."""
    return np.zeros((datasets, -(-(regions + DECIDING) // LINE) * LINE), np.float32)


@kernel
def find_order_statistics(a: TetrisArrays, reduced_cost: Singles, i: int, least: Singles) -> None:
    """The last columns of a row, once its reduced costs have changed. ``least`` [R + 1] is scratch."""
    regions, fewest, most = a.stored.shape[1], a.copies_min[i], a.copies_max[i]
    wanted, found = min((most if most < regions else fewest) + 1, regions), 0
    for r in range(regions):
        value, at = reduced_cost[i, r], min(found, wanted)
        if at == wanted:
            if least[wanted - 1] <= value:
                continue
            at -= 1
        while at > 0 and least[at - 1] > value:
            least[at] = least[at - 1]
            at -= 1
        least[at] = value
        found = min(found + 1, wanted)
    reduced_cost[i, regions] = least[fewest - 1] if fewest > 0 else -BARRED
    reduced_cost[i, regions + 1] = least[fewest] if fewest < wanted else BARRED
    reduced_cost[i, regions + 2] = least[most - 1] if most < regions else BARRED
    reduced_cost[i, regions + 3] = least[most] if most < regions else BARRED


@kernel
def change_reduced_cost(
    a: TetrisArrays, reduced_cost: Singles, i: int, r: int, change: np.float32, least: Singles
) -> None:
    """Change the reduced cost of a dataset in r. The order statistics are recomputed only where they may differ: a
    reduced cost that is not negative is never the last of those that may be."""
    regions = a.stored.shape[1]
    before, after = reduced_cost[i, r], reduced_cost[i, r] + change
    reduced_cost[i, r] = after
    lower = min(before, after)
    if lower <= reduced_cost[i, regions + 1] or (lower < NONE and lower <= reduced_cost[i, regions + 3]):
        find_order_statistics(a, reduced_cost, i, least)


@kernel
def _level(last_needed: np.float32, last_allowed: np.float32) -> np.float32:
    allowed = last_allowed if last_allowed < NONE else NONE
    return last_needed if last_needed > allowed else allowed


@kernel
def level_without(reduced_cost: Singles, i: int, r: int, volume: np.float32, regions: int) -> np.float32:
    """The level of dataset i if ``volume`` were not read in r."""
    before, after = reduced_cost[i, r], reduced_cost[i, r] + volume
    needed, allowed = reduced_cost[i, regions], reduced_cost[i, regions + 2]
    if before <= needed:
        needed = max(needed, min(after, reduced_cost[i, regions + 1]))
    if before <= allowed:
        allowed = max(allowed, min(after, reduced_cost[i, regions + 3]))
    return _level(needed, allowed)


@kernel
def read_cost(reduced_cost: np.float32, level: np.float32, volume: np.float32) -> np.float32:
    """Cost of a read with that reduced cost."""
    above = reduced_cost - level
    above = above if above > NONE else NONE
    return above if above < volume else volume


@kernel
def add_read_costs(reduced_cost: Singles, i: int, level: np.float32, volume: np.float32, cost: Singles) -> None:
    """Add what a read of dataset i costs in every region to ``cost`` [R]."""
    for r in range(len(cost)):
        cost[r] += read_cost(reduced_cost[i, r], level, volume)


@compiled
def fill_reduced_costs(a: TetrisArrays, volume: Singles, region: Ints, reduced_cost: Singles, least: Singles) -> None:
    """All reduced costs where workloads run in ``region`` [W]; ``volume`` [N] is the price of each remote read."""
    regions = a.stored.shape[1]
    for i in range(len(a.size)):
        for r in range(regions):
            reduced_cost[i, r] = np.float32(a.replica_price[i, r])
            if a.pinned[i, r]:
                reduced_cost[i, r] = -BARRED
            elif a.forbidden[i, r]:
                reduced_cost[i, r] = BARRED
    for w in range(len(region)):
        if region[w] < regions:
            for n in range(a.read_start[w], a.read_start[w + 1]):
                reduced_cost[a.read_dataset[n], region[w]] -= volume[n]
    for i in range(len(a.size)):
        find_order_statistics(a, reduced_cost, i, least)


@compiled
def change_prices(
    a: TetrisArrays,
    reduced_cost: Singles,
    first: int,
    last: int,
    held: FloatArray,
    new: FloatArray,
    least: Singles,
    used: FloatArray,
    arriving: FloatArray,
) -> None:
    """Raise the prices of storage and arrival by ``held`` and ``new`` [R] for datasets first … last − 1, and add what
    their replicas then take to ``used`` and ``arriving`` [R]."""
    for i in range(first, last):
        size = np.float64(a.size[i])
        for r in range(len(held)):
            reduced_cost[i, r] += np.float32(size * (held[r] if a.stored[i, r] else held[r] + new[r]))
        find_order_statistics(a, reduced_cost, i, least)
        count, worst = _chosen(a, reduced_cost, i, least)
        for r in range(len(held)):
            if count > 0 and reduced_cost[i, r] <= worst:
                used[r] += size
                arriving[r] += 0.0 if a.stored[i, r] else size


@kernel
def _chosen(a: TetrisArrays, reduced_cost: Singles, i: int, least: Singles) -> tuple[int, np.float32]:
    """(How many replicas dataset i had best have, the reduced cost of the last of them)."""
    regions, fewest, most = a.stored.shape[1], a.copies_min[i], a.copies_max[i]
    negative = 0
    for r in range(regions):
        negative += 1 if reduced_cost[i, r] < NONE else 0
    count = min(max(negative, fewest), most)
    if count == negative:
        return count, -np.float32(1e-30)
    return count, reduced_cost[i, regions + 2] if count == most and most < regions else reduced_cost[i, regions]


@compiled
def replicas_of(a: TetrisArrays, reduced_cost: Singles, least: Singles, place: Bools) -> None:
    """Fill ``place`` [I, R] with the replicas that the reduced costs say."""
    regions = a.stored.shape[1]
    for i in range(len(a.size)):
        count, worst = _chosen(a, reduced_cost, i, least)
        for r in range(regions):
            place[i, r] = reduced_cost[i, r] < worst if count > 0 else False
            count -= 1 if place[i, r] else 0
        for r in range(regions):
            if count > 0 and not place[i, r] and reduced_cost[i, r] <= worst:
                place[i, r] = True
                count -= 1
