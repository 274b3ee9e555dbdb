"""Dataset subproblems of tetris's Lagrangian relaxation: the replicas each would have at what its readers pay."""

from __future__ import annotations

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.dual_step import Multipliers
from mast_opt.problems.data_placement.tetris.lagrangian.projections import BARRED, NONE, SINGLE, WHOLE, copies_shift
from mast_opt.problems.data_placement.tetris.lagrangian.workload_step import PrimalIterate, RowPrices


@kernel
def _replica_costs(a: TetrisArrays, i: int, charges: RowPrices, point: PrimalIterate, cost: Singles) -> None:
    size = SINGLE(a.size[i])
    for r in range(len(cost)):
        charge = charges.held[r] if a.stored[i, r] else charges.new[r]
        cost[r] = SINGLE(a.replica_price[i, r]) + size * charge - point.asked[i, r]


@kernel
def _add_lifts(prices: Multipliers, i: int, cost: Singles) -> None:
    if len(prices.data_lift) > 0:
        for r in range(len(cost)):
            cost[r] += SINGLE(prices.data_lift[i, r])


@kernel
def _cheapest_set(a: TetrisArrays, i: int, cost: Singles, rest: FloatArray) -> float:
    """Least cost of a set of replicas of i within its limits.

    ``rest`` is scratch: the cheapest of what is free, sorted, as many as there may be copies.
    """
    total, count, free = 0.0, 0, 0
    most = a.copies_max[i]
    for r in range(len(cost)):
        if a.pinned[i, r]:
            total += cost[r]
            count += 1
        elif not a.forbidden[i, r]:
            at = min(free, most)
            if at == most and (most == 0 or rest[most - 1] <= cost[r]):
                continue
            at -= at == most
            while at > 0 and rest[at - 1] > cost[r]:
                rest[at] = rest[at - 1]
                at -= 1
            rest[at] = cost[r]
            free = min(free + 1, most)
    for j in range(free):
        if count < a.copies_min[i] or (count < a.copies_max[i] and rest[j] < 0.0):
            total += rest[j]
            count += 1
    return total


@kernel
def _go_down(a: TetrisArrays, i: int, place: Singles, pace: np.float32, cost: Singles) -> None:
    """Costs become where the replicas would be without limits."""
    for r in range(len(cost)):
        value = place[i, r] - pace * cost[r]
        value = -BARRED if a.forbidden[i, r] else value
        cost[r] = BARRED if a.pinned[i, r] else value


@kernel
def _place_greedily(i: int, place: Singles, places: Singles, shift: np.float32, values: Singles) -> None:
    for r in range(len(values)):
        new = values[r] - shift
        new = new if new > NONE else NONE
        new = new if new < WHOLE else WHOLE
        places[i, r] = new + new - place[i, r]
        place[i, r] = new


@kernel
def _ask(a: TetrisArrays, i: int, places: Singles, held: FloatArray, new: FloatArray) -> None:
    size = np.float64(a.size[i])
    for r in range(len(held)):
        amount = places[i, r] * size
        held[r] += amount
        new[r] += 0.0 if a.stored[i, r] else amount


@compiled
def dataset_pass(
    a: TetrisArrays, prices: Multipliers, charges: RowPrices, point: PrimalIterate, pace: Singles
) -> tuple[FloatArray, FloatArray]:
    """Primal step of the replicas by ``pace`` [I]; returns MB held and MB new [R] of the extrapolated point."""
    datasets, regions = a.stored.shape
    held, new = np.zeros(regions), np.zeros(regions)
    cost = np.empty(regions, np.float32)
    for i in range(datasets):
        _replica_costs(a, i, charges, point, cost)
        _add_lifts(prices, i, cost)
        _go_down(a, i, point.place, pace[i], cost)
        shift = copies_shift(cost, regions, a.copies_min[i], a.copies_max[i])
        _place_greedily(i, point.place, point.places, shift, cost)
        _ask(a, i, point.places, held, new)
    return held, new


@compiled
def dataset_value(a: TetrisArrays, prices: Multipliers, charges: RowPrices, point: PrimalIterate) -> float:
    """Σ_i cheapest set, at what the last pass over the workloads has found their readers to pay."""
    datasets, regions = a.stored.shape
    cost, rest = np.empty(regions, np.float32), np.empty(regions)
    cheapest = 0.0
    for i in range(datasets):
        _replica_costs(a, i, charges, point, cost)
        _add_lifts(prices, i, cost)
        cheapest += _cheapest_set(a, i, cost, rest)
    return cheapest
