"""Reservation subproblem of the server-assignment certificate check: least cost at prices, fractional and whole."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.verification.certificate_knapsack import Choices

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fractions:
    """Offers to a reservation, and what limits it at each switchboard. [N] offers, [B] switchboards."""

    board: Ints
    worth: Ints
    number: Ints
    """Servers; each price below is of one, guaranteed capacity apart."""
    price: Floats
    limit: float
    """mrru from which excess counts"""
    around: tuple[float, float]
    """Sums of whole servers around the limit: the most within it, the least from it on."""
    steep: Floats
    """[B] price of excess, per mrru"""
    cap: Floats
    """[B] mrru that it may hold"""

    def without_level(self, survive: float) -> float:
        """The least cost where nothing is kept as a buffer."""
        begin, end, slope = self._segments(survive)
        return self.worthless() + float(slope @ (end - begin))

    def from_level(self, survive: float, buffer: float, least: int) -> float:
        """The least cost over levels from ``least`` on, at ``buffer`` + ``survive`` for an mrru of the level."""
        begin, end, slope = self._segments(survive)
        at = np.concatenate([begin, end, [0.0, float(least)]])
        turn = np.concatenate([slope, -slope, [buffer + survive, 0.0]])
        order = np.argsort(at, kind="stable")
        at, steps = at[order], np.diff(at[order])
        value = np.concatenate([[0.0], np.cumsum(np.cumsum(turn[order])[:-1] * steps)])
        return self.worthless() + float(value[at >= least].min())

    def worthless(self) -> float:
        """Cost of servers that add nothing and cost nothing: where giving them up costs more they stay."""
        none = self.worth == 0
        return float(np.minimum(self.price[none], 0.0) @ self.number[none])

    def _segments(self, survive: float) -> tuple[Floats, Floats, Floats]:
        """(begin, end, slope): what the amount at a switchboard costs, the best value first, while it saves."""
        some = np.flatnonzero((self.worth > 0) & (self.number > 0))
        some = some[np.lexsort((self.price[some] / self.worth[some], self.board[some]))]
        ratio, width = self.price[some] / self.worth[some] - survive, (self.number * self.worth)[some].astype(float)
        board = self.board[some]
        end = np.cumsum(width)
        first = np.searchsorted(board, board)
        end = end - np.concatenate([[0.0], end])[first]
        begin = end - width
        low, high = self.around
        steep, cap = self.steep[board], self.cap[board]
        part = (high - self.limit) / (high - low) if high > low else 1.0
        parts = []
        for lower, upper, penalty in (
            (np.zeros_like(cap), np.minimum(low, cap), 0.0 * steep),
            (np.minimum(low, cap), np.minimum(high, cap), part * steep),
            (np.minimum(high, cap), cap, steep),
        ):
            parts.append((np.clip(begin, lower, upper), np.clip(end, lower, upper), ratio + penalty))
        begin, end, slope = (np.concatenate(every) for every in zip(*parts, strict=True))
        saves = (slope < 0) & (end > begin)
        return begin[saves], end[saves], slope[saves]


def whole_cost(
    offers: Fractions,
    gains: list[float],
    prices: tuple[float, float],
    asked: int,
    counted_to: int,
    exact_to: float | None,
) -> float:
    """The least cost with whole servers at each level up to ``counted_to``, and in fractions beyond; what is asked
    included. Each level may choose among the ``gains``, prices of guaranteed capacity up to that of shortfall.

    Args:
        prices: of an mrru of the level, and of shortfall.
        exact_to: up to this cost all combinations of amounts are tried; None: none.
    """
    buffer, shortfall = prices
    beyond = max(offers.from_level(gain, buffer, counted_to) + gain * asked for gain in gains)
    unit = int(np.gcd.reduce(offers.worth, initial=0)) or counted_to
    base = _table(offers, unit, counted_to // unit + 1)
    level = np.arange(base.shape[1]) * unit
    best = np.full(len(level), -np.inf)
    for gain in gains:
        held = np.minimum.accumulate(base - gain * level, axis=1).sum(axis=0)
        best = np.maximum(best, held + (buffer + gain) * level + gain * asked)
    within = float(best.min())
    if exact_to is not None:
        target = min(exact_to, beyond) - offers.worthless()
        within = max(within, Choices(base, unit, asked, buffer, shortfall).least(target))
    return min(beyond, within + offers.worthless())


def _table(offers: Fractions, unit: int, cells: int) -> Floats:
    """[boards, cells] the least cost of exactly so many units at each switchboard."""
    boards, row = np.unique(offers.board, return_inverse=True)
    row = row.reshape(-1)
    base = np.full((len(boards), cells), np.inf)
    base[:, 0] = 0.0
    for k in np.lexsort((offers.board, offers.worth)).tolist():
        units = int(offers.worth[k]) // unit
        if units == 0:
            continue
        left, portion = min(int(offers.number[k]), (cells - 1) // units), 1
        cost = base[row[k]]
        while left > 0:  # any number is a sum of portions that double
            count = min(portion, left)
            cost[count * units :] = np.minimum(cost[count * units :], cost[: -count * units] + count * offers.price[k])
            left, portion = left - count, portion * 2
    held = np.arange(cells) * float(unit)
    excess = np.maximum(held - offers.limit, 0.0) if offers.limit < math.inf else np.zeros(cells)
    base += offers.steep[boards][:, None] * excess
    return np.where(held > offers.cap[boards][:, None], np.inf, base)
