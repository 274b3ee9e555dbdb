"""The same minimum over whole servers, for reservations small enough to try every amount, compiled.

Where a reservation has a few servers at each switchboard, thirds of servers make the relaxed minimum too low: in the
buffer, in what is given up to repair a spread limit, in what a level cuts off.
"""

from __future__ import annotations

import numpy as np

from mast_opt.compiled import compiled, kernel
from mast_opt.server_assignment.subproblems import Limits, Offers

ROUNDS = 60
"""Prices of capacity that are tried for a reservation, at most."""
BISECTIONS = 30


@kernel
def _price(o: Offers, n, count, cost, in_use_price, idle_price):
    """Of so many servers of a pair, as compared with none: the cheaper of those it has are given up first."""
    if in_use_price >= idle_price:
        dear, cheap, first = in_use_price, idle_price, o.in_use[n]
    else:
        dear, cheap, first = idle_price, in_use_price, o.idle[n]
    saved = min(count, first) * dear + min(max(count - first, 0), o.in_use[n] + o.idle[n] - first) * cheap
    return cost[n] * count - saved


@kernel
def _amounts(o: Offers, first, last, cost, in_use_price, idle_price, unit, cells, least, before):
    """``least`` [cells]: least cost of holding exactly so many units at a switchboard; ``before`` is scratch."""
    reach = 0
    least[0] = 0.0
    for c in range(1, cells):
        least[c] = np.inf
    for n in range(first, last):
        worth = o.worth[n] // unit
        if worth == 0:
            continue
        most = min(o.most[n], (cells - 1) // worth)
        for c in range(reach + 1):
            before[c] = least[c]
        old = reach
        reach = min(cells - 1, reach + most * worth)
        for count in range(1, most + 1):
            price = _price(o, n, count, cost, in_use_price, idle_price)
            for c in range(min(old, cells - 1 - count * worth) + 1):
                value = before[c] + price
                if value < least[c + count * worth]:
                    least[c + count * worth] = value
    return reach


@kernel
def _all_levels(base, boards, cells, gain, total):
    """``total`` [cells]: the least cost with at most so many units at a switchboard, each unit worth ``gain``."""
    for c in range(cells):
        total[c] = 0.0
    for b in range(boards):
        lowest = np.inf
        for c in range(cells):
            lowest = min(lowest, base[b, c] - gain * c)
            total[c] += lowest


@kernel
def _at_level(base, boards, level, gain):
    """The same for one level, and the units held there."""
    total, units = 0.0, 0
    for b in range(boards):
        lowest, at = np.inf, 0
        for c in range(level + 1):
            value = base[b, c] - gain * c
            if value < lowest:
                lowest, at = value, c
        total += lowest
        units += at
    return total, units


@kernel
def _best_gain(base, boards, level, needed, most, start):
    """The price of a unit at which a level costs most: where it holds what is needed."""
    low, high, gain = 0.0, most, min(start, most)
    for _ in range(BISECTIONS):
        if gain >= high or gain <= low:
            gain = 0.5 * (low + high)
        units = _at_level(base, boards, level, gain)[1]
        if units < needed:
            low = gain
            gain = min(2.0 * gain, 0.5 * (gain + high)) if high >= most else 0.5 * (low + high)
        elif units > needed:
            high = gain
            gain = max(0.5 * gain, 0.5 * (gain + low)) if low <= 0.0 else 0.5 * (low + high)
        else:
            return gain
    return low


@compiled
def cheapest_whole(
    o: Offers, bounds: Limits, cost, in_use_price, idle_price, asked, survive, prices, lacking, unit, top
):
    """[Q] what each reservation costs at least with whole servers and at most ``top`` at a switchboard.

    Other than in ``subproblems.cheapest`` capacity has another price at every level, the best that is found for it, so
    a plan cannot be half of one level and half of another. ``cost`` [N] is without the price of capacity; ``survive``
    [Q] is where the search for that price begins; ``prices`` are those of L and of shortfall, per mrru; ``lacking`` [Q]
    is what lacks at least below ``bounds.least``. What is asked is included at its price. ``unit`` [Q]: what all its
    servers' worths are multiples of; 0 for a reservation that is left out (0 is returned).
    """
    reservations = len(o.start) - 1
    best = np.zeros(reservations)
    widest = 1
    for q in range(reservations):
        if unit[q] > 0:
            widest = max(widest, int(top[q]) // unit[q] + 1)
    least, before = np.empty(widest), np.empty(widest)
    total, value = np.empty(widest), np.empty(widest)
    base = np.empty((bounds.cap.shape[1], widest))
    for q in range(reservations):
        if unit[q] == 0:
            continue
        cells, boards = int(top[q]) // unit[q] + 1, 0
        first = o.start[q]
        while first < o.start[q + 1]:
            last, b = first, o.board[first]
            while last < o.start[q + 1] and o.board[last] == b:
                last += 1
            reach = _amounts(o, first, last, cost, in_use_price, idle_price, unit[q], cells, least, before)
            for c in range(cells):
                held = float(c * unit[q])
                base[boards, c] = least[c] if c <= reach and held <= bounds.cap[q, b] else np.inf
                if held > bounds.limit[q]:
                    base[boards, c] += bounds.steep[q, b] * (held - bounds.limit[q])
            boards += 1
            first = last
        for c in range(cells):
            value[c] = -np.inf
        gain, last_at = survive[q], -1
        for _ in range(ROUNDS):
            _all_levels(base, boards, cells, gain * unit[q], total)
            lowest, at = np.inf, 0
            for c in range(cells):
                level = c * unit[q]
                new = prices[0] * level + gain * (asked[q] + level) + total[c]
                if level < bounds.least[q]:
                    new += (prices[1] - gain) * lacking[q]
                value[c] = max(value[c], new)
                if value[c] < lowest:
                    lowest, at = value[c], c
            stands = at == last_at and lowest <= best[q] + 1e-9 * abs(lowest)
            best[q], last_at = lowest, at
            if stands:
                break
            needed = (asked[q] + at * unit[q] - (lacking[q] if at * unit[q] < bounds.least[q] else 0)) / unit[q]
            gain = _best_gain(base, boards, at, needed, prices[1] * unit[q], gain * unit[q]) / unit[q]
    return best
