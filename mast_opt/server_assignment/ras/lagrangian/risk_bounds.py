"""Lower bounds on a reservation's loss at one switchboard (ras), by counting whole servers.

With nothing above L at any switchboard, a switchboard holds at most the largest sum of whole servers up to L, so a
reservation is guaranteed at most Σ of those − L. A continuous relaxation spreads a third of a server over every
switchboard instead, and so makes small buffers look free.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from mast_opt.server_assignment.problem import EMBEDDED, Ints, ServerAssignment

MOST_CELLS = 20_000
"""Amounts that are looked at for one reservation, as many as the check of certificates looks at."""


@dataclass(frozen=True, eq=False)
class MinRiskBounds:
    """Lower bounds on what each reservation with a buffer of its own has at risk; 0 where there is none. In mrru."""

    least: Ints
    """[Q] with less than this at risk …"""
    short: Ints
    """[Q] … a reservation lacks at least this much of what it asks."""


def min_risk_bounds(problem: ServerAssignment, most_servers: int) -> MinRiskBounds:
    """The floors of every reservation, unless they are above so many of its smallest servers."""
    p, stocks = problem, problem.stocks
    room = np.zeros((len(p.types), len(p.switchboards)), np.int64)
    room[p.servers.type[stocks.first], p.server_switchboard[stocks.first]] = stocks.size
    least, short = np.zeros((2, len(p.reservations)), np.int64)
    for q in np.flatnonzero((p.reservations.buffer == EMBEDDED) & (p.reservations.asked_mrru > 0)).tolist():
        least[q], short[q] = _floor(p.reservations.value_mrru[q], room, int(p.reservations.asked_mrru[q]), most_servers)
    return MinRiskBounds(least, short)


def _floor(value: Ints, room: Ints, asked: int, most_servers: int) -> tuple[int, int]:
    """(least, short) of one reservation; ``room`` is [T, B] servers."""
    kinds = np.flatnonzero(value > 0)
    kinds = kinds[room[kinds].any(axis=1)]
    if len(kinds) == 0:
        return 0, 0
    unit = gcd(*value[kinds].tolist())
    room = room[kinds]
    room = room[:, room.any(axis=0)]
    even = asked // max(room.shape[1] - 1, 1)
    cells = min(most_servers * int(value[kinds].min()), even + 3 * int(value[kinds].max())) // unit + 1
    if cells > MOST_CELLS or even > cells * unit:
        return 0, 0
    there = room > 0
    mixes = np.ascontiguousarray(there.T).view(f"S{len(kinds)}")[:, 0]  # np.unique is slow along an axis
    _, first, mix_of = np.unique(mixes, return_index=True, return_inverse=True)
    most = value[kinds] @ room
    guaranteed = -np.arange(cells) * unit
    attained = np.zeros(cells, np.bool_)
    for mix, board in enumerate(first.tolist()):
        sums = _sums(value[kinds[there[:, board]]] // unit, cells)
        attained |= sums
        best = np.maximum.accumulate(np.where(sums, np.arange(cells), 0)) * unit
        caps = np.sort(most[mix_of == mix])
        total = np.concatenate([[0], np.cumsum(caps)])
        full = np.searchsorted(caps, best, side="right")
        guaranteed = guaranteed + total[full] + (len(caps) - full) * best
    enough = np.flatnonzero(attained & (guaranteed >= asked))
    if len(enough) == 0:
        return 0, 0
    before = guaranteed[: enough[0]][attained[: enough[0]]]
    return int(enough[0]) * unit, asked - int(before.max(initial=0))


def _sums(values: Ints, cells: int) -> np.ndarray:
    """[cells] which amounts some whole servers add up to."""
    sums = np.zeros(cells, np.bool_)
    sums[0] = True
    for value in values.tolist():
        reach = value
        while reach < cells:  # doubling: any number of servers of the value
            sums[reach:] |= sums[:-reach].copy()
            reach *= 2
    return sums


def around(problem: ServerAssignment) -> tuple[Ints, Ints]:
    """[Q] the most that whole servers add up to within the spread limit, and the least that they do from it on.

    Where that is too long a list, both are the limit.
    """
    p, limit = problem, problem.spread_limit_mrru
    low, high = limit.copy(), limit.copy()
    for q in np.flatnonzero(p.reservations.spread_limited).tolist():
        values = p.reservations.value_mrru[q][p.reservations.value_mrru[q] > 0]
        if len(values) == 0:
            continue
        unit = gcd(*values.tolist())
        cells = int(limit[q] + values.min()) // unit + 2
        if cells <= MOST_CELLS:
            amounts = np.flatnonzero(_sums(values // unit, cells)) * unit
            low[q] = amounts[amounts <= limit[q]].max()
            high[q] = amounts[amounts >= limit[q]].min()
    return low, high
