"""Which amounts whole servers add up to, and what follows for a reservation: the checker's half.

Amounts are bits of a long integer: bit c is set where c units are a sum of whole servers.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from mast_opt.server_assignment.problem import Bools, Ints

MOST_CELLS = 20_000
"""Longer lists of amounts are not made; what they would add to a bound is next to nothing."""


def sums(units: list[int], cells: int) -> Bools:
    """[cells] is the amount a sum of any numbers of servers of these sizes?"""
    every = (1 << cells) - 1
    reached = 1
    for size in units:
        shift = size
        while shift < cells:
            reached |= (reached << shift) & every
            shift *= 2
    raw = np.frombuffer(reached.to_bytes(-(-cells // 8), "little"), np.uint8)
    return np.unpackbits(raw, bitorder="little")[:cells].astype(np.bool_)


def around(values: Ints, limit: int) -> tuple[int, int]:
    """The most that whole servers of these values add up to within the limit, and the least from the limit on; the
    limit itself where that is too long a list."""
    useful = values[values > 0].tolist()
    if not useful:
        return limit, limit
    unit = gcd(*useful)
    cells = (limit + min(useful)) // unit + 2
    if cells > MOST_CELLS:
        return limit, limit
    amounts = np.flatnonzero(sums([value // unit for value in useful], cells)) * unit
    return int(amounts[amounts <= limit].max()), int(amounts[amounts >= limit].min())


def floor(worth: Ints, board: Ints, size: Ints, asked: int) -> tuple[int, int]:
    """(least, lacking): with less than ``least`` at every switchboard a reservation lacks at least ``lacking``.

    With L at the fullest switchboard each holds at most the largest sum of whole servers up to L, and no more than all
    that is there; what is guaranteed is the sum of those, less L.

    Args:
        worth, board, size: [K] of the stocks that are worth something to the reservation.
        asked: what it asks, mrru.
    """
    if len(worth) == 0:
        return 0, 0
    unit = gcd(*worth.tolist())
    places, place = np.unique(board, return_inverse=True)
    everything = np.bincount(place, worth * size).astype(np.int64)
    even = asked // max(len(places) - 1, 1)
    cells = (even + 3 * int(worth.max())) // unit + 1
    if cells > MOST_CELLS:
        return 0, 0
    level = np.arange(cells) * unit
    guaranteed, attained = -level, np.zeros(cells, np.bool_)
    mixes: dict[tuple[int, ...], list[int]] = {}
    for at in range(len(places)):
        mixes.setdefault(tuple(sorted(set((worth[place == at] // unit).tolist()))), []).append(at)
    for mix, members in mixes.items():
        reached = sums(list(mix), cells)
        attained |= reached
        most = np.maximum.accumulate(np.where(reached, level, 0))
        for at in members:
            guaranteed = guaranteed + np.minimum(most, everything[at])
    enough = np.flatnonzero(attained & (guaranteed >= asked))
    if len(enough) == 0:
        return 0, 0
    below = guaranteed[: enough[0]][attained[: enough[0]]]
    return int(level[enough[0]]), asked - int(below.max(initial=0))
