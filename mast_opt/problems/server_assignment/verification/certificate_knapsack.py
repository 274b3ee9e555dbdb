"""Knapsacks of the server-assignment certificate check: amounts that whole servers add up to, and their least cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.server_assignment.problem import Bools, Ints

MOST_CELLS = 20_000
"""Longer lists of amounts are not made; what they would add to a bound is next to nothing."""


def sums(units: list[int], cells: int) -> Bools:
    """Mask [cells] of the amounts that are a sum of any numbers of servers of these sizes."""
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


Floats = NDArray[np.float64]

HALVINGS = 50
ROUNDING = 1e-12
"""Rounding error of sums, relative to the largest of them; the bound allows for more."""


@dataclass(frozen=True, eq=False)
class Choices:
    """Amounts that one reservation may hold at its switchboards, and what each costs there."""

    cost: Floats
    """[boards, cells], infinite where servers do not add up to the amount"""
    unit: int
    """mrru of a cell"""
    asked: int
    """Amount asked, in mrru."""
    buffer: float
    """Price of an mrru of the level."""
    shortfall: float
    """Price of an mrru that is short."""

    def least(self, target: float) -> float:
        """The least cost over all levels, or ``target`` where that is less."""
        amounts = np.union1d([0], np.flatnonzero(np.isfinite(self.cost).any(axis=0)))
        table = self.cost[:, amounts]
        open_ranges, least = [(0, len(amounts) - 1)], target
        while open_ranges:
            low, high = open_ranges.pop()
            level = int(amounts[low]) * self.unit
            bound = self.buffer * level + self._reaching(
                table[:, : high + 1], amounts[: high + 1], self.asked + level, least - self.buffer * level
            )
            if bound >= least:
                continue
            if low == high:
                least = bound
            else:
                middle = (low + high) // 2
                open_ranges += [(low, middle), (middle + 1, high)]
        return least

    def _reaching(self, table: Floats, amounts: Ints, need: int, target: float) -> float:
        """The least cost of holding ``need`` mrru, or paying for what is short; ``target`` where that is less."""
        held = amounts * self.unit
        price = self._price(table, held, need)
        reduced = table - price * held
        lowest = reduced.min(axis=1)
        bound = float(lowest.sum()) + price * need
        rounding = ROUNDING * (float(np.abs(lowest).sum()) + price * need)
        room = target - bound - rounding
        if room <= 0:
            return target
        over = reduced - lowest[:, None]
        reached, first = np.zeros(1), 0
        for row in over:
            chosen = np.flatnonzero(row < room)
            step = amounts[chosen] - amounts[chosen[0]]
            longer = np.full(len(reached) + int(step[-1]), np.inf)
            for by, extra in zip(step.tolist(), row[chosen].tolist(), strict=True):
                part = longer[by : by + len(reached)]
                np.minimum(part, reached + extra, out=part)
            kept = np.flatnonzero(longer < room)
            reached = longer[kept[0] : kept[-1] + 1]
            first += int(amounts[chosen[0]] + kept[0])
        more = (first + np.arange(len(reached))) * self.unit - need
        rest = np.where(more > 0, price * more, (price - self.shortfall) * more)
        found = float((reached + rest).min())
        return bound + found if found < room else target

    def _price(self, table: Floats, held: Ints, need: int) -> float:
        """Price of an mrru, near the one that makes the bound largest; any up to that of shortfall would do."""
        low, high = 0.0, self.shortfall
        every = np.arange(len(table))
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            best = np.argmin(table - middle * held, axis=1)
            enough = int(held[best].sum()) >= need and bool(np.isfinite(table[every, best]).all())
            low, high = (low, middle) if enough else (middle, high)
        return high
