"""Multiple-choice knapsack of ras: what a reservation costs exactly, with whole servers, at given prices.

At a level L each switchboard holds one of the amounts that whole servers add up to, at most L, and all of them add up
to what is asked and L, or something lacks. Prices of capacity bound the cost of a level from below; what is left
between that bound and the cost of a plan is found by dynamic programming over the sum, in which only amounts count
whose reduced cost fits in between (Pisinger, "A minimal algorithm for the multiple-choice knapsack problem", EJOR 83,
1995). Levels are tried in ranges: with what the largest allows and what the least needs, a range costs no more than any
of its levels.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled
from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.ras.lagrangian.integer_subproblem import Claim

PORTION = 10_000_000
"""Steps between two looks at the clock, about."""


@compiled
def best_gain(
    base: FloatArray, units: Ints, last: int, needed: float, most: float, bisections: int
) -> tuple[float, float]:
    """(price of a unit, least cost at it): the price, of at most ``most``, at which amounts up to position ``last``
    cost most when so many units are needed."""
    low, high = 0.0, most
    for _ in range(bisections):
        gain, held = 0.5 * (low + high), 0.0
        for b in range(len(base)):
            best, at = np.inf, 0
            for k in range(last + 1):
                reduced = base[b, k] - gain * units[k]
                if reduced < best:
                    best, at = reduced, k
            held += units[at]
        if held < needed:
            low = gain
        else:
            high = gain
    value = high * needed
    for b in range(len(base)):
        best = np.inf
        for k in range(last + 1):
            best = min(best, base[b, k] - high * units[k])
        value += best
    return high, value


@compiled
def extended(sums: FloatArray, units: Ints, price: FloatArray, after: FloatArray) -> None:
    """Lowers ``after``, the least costs of all sums, by adding one of the amounts ``units``, each at its price."""
    for k in range(len(units)):
        for s in range(len(sums)):
            after[s + units[k]] = min(after[s + units[k]], sums[s] + price[k])


@dataclass
class _Steps:
    most: float
    taken: int = 0


@dataclass(frozen=True, eq=False)
class Knapsack:
    """Multiple-choice knapsack of one reservation: an amount in whole servers at each switchboard."""

    base: FloatArray
    """[boards, K] the least cost of holding each amount at each switchboard"""
    units: Ints
    """[K] the amounts, rising, those only that servers of some switchboard add up to"""
    unit: int
    """Unit of the knapsack, in mrru."""
    claim: Claim
    bisections: int
    """Steps of a bisection for a price of capacity"""

    @classmethod
    def of(cls, base: FloatArray, unit: int, claim: Claim, bisections: int) -> Knapsack:
        """``base`` as ``whole.tabulated`` gives it."""
        attained = np.union1d([0], np.flatnonzero(np.isfinite(base).any(axis=0)))
        return cls(np.ascontiguousarray(base[:, attained]), attained, unit, claim, bisections)

    def least_cost(self, target: float, work: float, look: Callable[[], None]) -> tuple[float, int]:
        """(cost, steps): what the reservation costs at least, or ``target`` where that is less, what it asks included
        at its price; and the steps that it took. Where that is more than ``work`` the cost is a lower bound, maybe
        minus infinity.

        Args:
            target: what some plan pays.
            work: a step is about a nanosecond.
            look: is called every few hundredths of a second.
        """
        steps = _Steps(work)
        last = len(self.units) - 1
        ranges = [(self._range(0, last, target, steps, look), 0, last)]
        while True:
            cost, i, j = heapq.heappop(ranges)
            if steps.taken > work or i == j or cost >= target:
                return min(cost, target), steps.taken
            middle = (i + j) // 2
            for part in ((i, middle), (middle + 1, j)):
                heapq.heappush(ranges, (max(cost, self._range(*part, target, steps, look)), *part))

    def _range(self, i: int, j: int, target: float, steps: _Steps, look: Callable[[], None]) -> float:
        """Levels from the i-th to the j-th amount cost at least this, or ``target`` where that is less; minus infinity
        where that takes too many steps."""
        claim, least = self.claim, int(self.units[i]) * self.unit
        needed = claim.asked + least
        highest_price = claim.shortfall * self.unit
        gain, value = best_gain(self.base, self.units, j, needed / self.unit, highest_price, self.bisections)
        value += claim.buffer * least
        most = target - value
        if most <= 0.0:
            return target
        sums, first = np.zeros(1), 0
        for b in range(len(self.base)):
            over = self.base[b, : j + 1] - gain * self.units[: j + 1]
            over -= over.min()
            some = np.flatnonzero(over <= most)
            units = self.units[some]
            after = np.empty(len(sums) + int(units[-1] - units[0]))
            steps.taken += len(sums) * len(some)
            if steps.taken > steps.most:
                return -np.inf
            after.fill(np.inf)
            at_once = 1 + PORTION // len(sums)
            for k in range(0, len(some), at_once):
                part = slice(k, k + at_once)
                extended(sums, units[part] - units[0], over[some[part]], after)
                look()
            kept = np.flatnonzero(after <= most)
            sums, first = after[kept[0] : kept[-1] + 1], first + int(units[0] + kept[0])
        held = (first + np.arange(len(sums))) * self.unit - needed
        spare = np.where(held >= 0, gain / self.unit * held, (gain / self.unit - claim.shortfall) * held)
        return float(value + min((sums + spare).min(), most))
