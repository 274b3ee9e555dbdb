"""Integer reservation subproblem of ras's Lagrangian relaxation: whole servers, every amount tried, compiled.

Where a reservation has a few servers at each switchboard, thirds of servers make the relaxed minimum too low: in the
buffer, in what is given up to repair a spread limit, in what a level cuts off.

Amounts at a switchboard are counted in units, what all worths of the reservation's servers are multiples of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.ras.lagrangian.reservation_subproblem import PricedItems, ServerPrices
from mast_opt.problems.server_assignment.ras.params import IntegerBoundParams


@kernel
def _add(least: FloatArray, reach: int, cells: int, units: int, number: int, price: float) -> int:
    """Up to ``number`` servers of so many units at one price each, in portions that double: any count is a sum of some.
    Returns how far amounts reach then."""
    portion = 1
    while number > 0:
        count = min(portion, number)
        number -= count
        portion *= 2
        width, cost = count * units, count * price
        if width >= cells:
            return reach
        reach = min(cells - 1, reach + width)
        for c in range(reach, width - 1, -1):
            least[c] = min(least[c], least[c - width] + cost)
    return reach


@kernel
def _amounts(
    o: PricedItems,
    first: int,
    last: int,
    prices: ServerPrices,
    unit: int,
    cells: int,
    least: FloatArray,
) -> None:
    """``least`` [cells]: least cost of holding exactly so many units at a switchboard."""
    reach = 0
    least[0] = 0.0
    for c in range(1, cells):
        least[c] = np.inf
    for n in range(first, last):
        units = o.worth[n] // unit
        if units == 0:
            continue
        reach = _add(least, reach, cells, units, o.in_use[n], prices.each[n] - prices.in_use)
        reach = _add(least, reach, cells, units, o.idle[n], prices.each[n] - prices.idle)
        reach = _add(least, reach, cells, units, o.most[n] - o.in_use[n] - o.idle[n], prices.each[n])


@compiled
def tabulated(
    o: PricedItems,
    first: int,
    end: int,
    prices: ServerPrices,
    unit: int,
    limit: float,
    steep: FloatArray,
    cap: FloatArray,
    base: FloatArray,
) -> None:
    """The rows of ``base`` [·, cells] for the switchboards of the offers from ``first`` to ``end``: the least cost of
    every amount there, with what is above ``limit`` at the price ``steep`` [B] and nothing above ``cap`` [B]."""
    cells, row = base.shape[1], 0
    while first < end:
        last, b = first, o.board[first]
        while last < end and o.board[last] == b:
            last += 1
        _amounts(o, first, last, prices, unit, cells, base[row])
        for c in range(cells):
            held = float(c * unit)
            if held > cap[b]:
                base[row, c] = np.inf
            elif held > limit:
                base[row, c] += steep[b] * (held - limit)
        row += 1
        first = last


@compiled
def raised(base: FloatArray, gain: float, total: FloatArray) -> None:
    """``total`` [cells]: the least cost with at most so many units at a switchboard, each unit worth ``gain``."""
    boards, cells = base.shape
    for c in range(cells):
        total[c] = 0.0
    for b in range(boards):
        lowest = np.inf
        for c in range(cells):
            lowest = min(lowest, base[b, c] - gain * c)
            total[c] += lowest


@kernel
def _corners(row: FloatArray, level: int, corner: Ints) -> int:
    """Find the corners of the lower convex hull of a row's amounts up to a level; returns their number."""
    count = 0
    for c in range(level + 1):
        if row[c] == np.inf:
            continue
        while count >= 2:
            before, last = corner[count - 2], corner[count - 1]
            if (row[last] - row[before]) * (c - before) < (row[c] - row[before]) * (last - before):
                break
            count -= 1
        corner[count] = c
        count += 1
    return count


@compiled
def dearest_gain(base: FloatArray, level: int, needed: float, most: float, bisections: int) -> float:
    """The price of a unit at which a level costs most: where what is held passes what is needed; at most ``most``."""
    corner = np.empty(level + 1, np.int64)
    slope, width = np.empty((2, base.shape[0] * (level + 1)))
    count, units = 0, 0.0
    for b in range(base.shape[0]):
        corners = _corners(base[b], level, corner)
        units += corner[0]
        for k in range(1, corners):
            step = corner[k] - corner[k - 1]
            slope[count], width[count] = (base[b, corner[k]] - base[b, corner[k - 1]]) / step, step
            count += 1
    low, high = 0.0, most
    for _ in range(bisections):
        middle = 0.5 * (low + high)
        held = units
        for k in range(count):
            if slope[k] <= middle:
                held += width[k]
        if held < needed:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True)
class Claim:
    """Demand of one reservation, with the prices of its buffer and of capacity; amounts in mrru."""

    asked: int
    buffer: float
    """Price of a level, per mrru."""
    shortfall: float
    """Largest price of capacity, per mrru."""


def least_cost(
    base: FloatArray, claim: Claim, unit: int, gain: float, beyond: float, params: IntegerBoundParams
) -> tuple[float, list[float]]:
    """Least cost of the reservation with whole servers, what it asks included at its price; and the prices of capacity
    that show it.

    Other than in ``subproblems.cheapest`` capacity has another price at every level, the best that was found for it, so
    a plan cannot be half of one level and half of another.

    Args:
        base: as ``tabulated`` gives it.
        gain: the price of capacity that is tried first, per mrru.
        beyond: what larger levels cost at least; more need not be shown.
    """
    levels = np.arange(base.shape[1]) * unit
    value, total = np.full(len(levels), -np.inf), np.empty(len(levels))
    gains: list[float] = []
    best, before = -np.inf, -1
    for _ in range(params.capacity_prices):
        raised(base, gain * unit, total)
        total += (claim.buffer + gain) * levels + gain * claim.asked
        np.maximum(value, total, out=value)
        at = int(value.argmin())
        if at == before and value[at] <= best + params.price_tolerance * abs(best):
            break
        gains.append(gain)
        best, before = float(value[at]), at
        if best >= beyond:
            return beyond, gains
        needed = (claim.asked + levels[at]) / unit
        gain = dearest_gain(base, at, needed, claim.shortfall * unit, params.bisections) / unit
    return min(best, beyond), gains
