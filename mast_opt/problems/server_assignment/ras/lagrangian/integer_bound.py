"""Integer Lagrangian bound of ras: the cost of small reservations in whole servers instead of fractions.

At a level L each switchboard holds one of the amounts that whole servers add up to, at most L, and all of them add up
to what is asked and L, or something lacks: a multiple-choice knapsack. Prices of capacity bound the cost of a level
from below; what is left between that bound and the cost of a plan is found by dynamic programming over the sum, in
which only amounts count whose reduced cost fits in between (Pisinger, "A minimal algorithm for the multiple-choice
knapsack problem", EJOR 83, 1995). Levels are tried in ranges: with what the largest allows and what the least needs, a
range costs no more than any of its levels.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled
from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.ras.lagrangian.integer_subproblem import Claim, least_cost, tabulated
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed, SearchStopped
from mast_opt.problems.server_assignment.ras.lagrangian.reservation_subproblem import ServerPrices
from mast_opt.problems.server_assignment.ras.params import IntegerBoundParams
from mast_opt.problems.server_assignment.verification.certificate import MOST_CELLS, Certificate, Prices

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
        """``base`` as ``tabulated`` gives it."""
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


def never(raised: float) -> bool:
    """Return False: no rise of the bound is enough."""
    return False


def integer_bound(
    r: Relaxed,
    c: Prices,
    solved: tuple[FloatArray, FloatArray],
    servers: Ints,
    params: IntegerBoundParams,
    work: float = np.inf,
    enough: Callable[[float], bool] = never,
    most: int | None = None,
) -> tuple[FloatArray, Certificate]:
    """[Q] the least cost at prices ``c`` with whole servers, where a reservation is small enough to try all amounts,
    the others' in fractions; and what certifies it.

    Reservations for which a plan pays most beyond their least come first: each level at the price of capacity that
    makes it most expensive, and where that leaves something, the knapsack.

    Args:
        solved: in fractions, as ``Relaxed.solved`` gives it.
        servers: [N] the plan's, in the order of the offers.
        work: steps for one knapsack at most, and for all of them ``params.total_work`` times as many.
        most: reservations that are looked at; None for all.
        enough: is asked after each reservation, with the rise of the bound so far. What has been proven
            when it is, or when the search is halted in the middle of a reservation, is kept.
    """
    counting = _Counting(r, c, *solved, params, work)
    for phase in (counting.count, counting.solve):
        wasted = r.wasted(c, counting.least, servers)
        order = np.argsort(-wasted, kind="stable")[:most]
        missing = np.cumsum(np.maximum(wasted[order], 0.0)[::-1])[::-1]
        for q, rest in zip(order.tolist(), missing.tolist(), strict=True):
            if phase == counting.solve and (rest <= params.least_waste * missing[0] or counting.left <= 0):
                break
            try:
                phase(q, float(wasted[q]))
            except SearchStopped:
                return counting.least, counting.certificate()
            if enough(counting.raised):
                return counting.least, counting.certificate()
    return counting.least, counting.certificate()


class _Counting:
    """Integer bounds of the reservations, one after another.

    Up to a level ``top`` somewhat above the relaxed one all amounts are tried; beyond it, the relaxed cost is a bound.
    """

    def __init__(
        self, r: Relaxed, c: Prices, least: FloatArray, level: FloatArray, params: IntegerBoundParams, work: float
    ) -> None:
        p, self.params = r.problem, params
        self.r, self.c, self.least = r, c, least.copy()
        self.unit = np.maximum(r.unit, 1)
        reach = np.maximum(level, r.now.largest)
        top = np.minimum(reach + params.margin * r.widest, params.cells * self.unit).astype(np.int64)
        top = top // self.unit * self.unit
        small = (r.limits.embedded > 0) & (r.unit > 0) & (top > reach) & ~r.worthless
        self.top = np.where(small & (p.reservations.asked_mrru > 0) & (c.survive <= r.shortfall), top, 0)
        self.uncharged = r.cost(c) + c.survive[r.reservation] * r.offers.worth
        self.beyond, self.gain = self._beyond(0, len(top))
        self.raised = 0.0
        """Rise of the bound so far."""
        self.counted_to = np.zeros(len(top), np.int64)
        self.others: list[tuple[int, float]] = []
        self.exact: dict[int, float] = {}
        self.work, self.left = work, params.total_work * work

    def count(self, q: int, wasted: float) -> None:
        """Bound a reservation by every amount, and each level at the price of capacity that makes it most expensive."""
        if self.top[q]:
            gain, beyond = float(self.c.survive[q]), float(self.beyond[q])
            best, gains = least_cost(self._base(q), self._claim(q), int(self.unit[q]), gain, beyond, self.params)
            if self._raise(q, best):
                self.counted_to[q] = self.top[q]
                self.others += [(q, price) for price in (float(self.gain[q]), *gains)]

    def solve(self, q: int, wasted: float) -> None:
        """Bound a reservation by its least cost, of all plans that cost no more than what is ``wasted`` beyond the
        bound."""
        if self.counted_to[q] and wasted > 0:
            target = self._own(q) + wasted
            self._reach(q, target)
            target = min(target, float(self.beyond[q]))
            knapsack = Knapsack.of(self._base(q), int(self.unit[q]), self._claim(q), self.params.bisections)
            best, steps = knapsack.least_cost(target, min(self.work, self.left), self.r.look)
            self.left -= steps
            if self._raise(q, best):
                self.exact[q] = best
                self.counted_to[q] = self.top[q]
                self.others.append((q, float(self.gain[q])))

    def _reach(self, q: int, target: float) -> None:
        """Try so many amounts that more must cost ``target``, if as many can be tried."""
        lacking = target - float(self.beyond[q])
        if lacking > 0:
            unit = int(self.unit[q])
            top = int(self.top[q]) + int(self.params.reach * lacking / self.r.buffer) if self.r.buffer else np.inf
            self.top[q] = min(top, MOST_CELLS * unit) // unit * unit
            (self.beyond[q],), (self.gain[q],) = self._beyond(q, q + 1)

    def certificate(self) -> Certificate:
        """Certificate of ``least``."""
        of, price = zip(*self.others, strict=True) if self.others else ((), ())
        return Certificate(
            self.c,
            self.counted_to,
            np.array(of, np.int64),
            np.array(price, np.float64),
            np.array(list(self.exact), np.int64),
            np.array(list(self.exact.values()), np.float64),
        )

    def _own(self, q: int) -> float:
        """The least cost so far, with what is asked at its price."""
        return float(self.least[q] + self.c.survive[q] * self.r.problem.reservations.asked_mrru[q])

    def _raise(self, q: int, cost: float) -> bool:
        """Raise the bound of a reservation, if this cost is higher; whether that is enough."""
        better = cost - float(self.c.survive[q] * self.r.problem.reservations.asked_mrru[q])
        rise = better - float(self.least[q])
        if rise <= 0:
            return False
        self.least[q] = better
        self.raised += rise
        return True

    def _claim(self, q: int) -> Claim:
        """Claim of a reservation, for its subproblem."""
        r, p = self.r, self.r.problem
        return Claim(int(p.reservations.asked_mrru[q]), r.buffer, r.shortfall)

    def _base(self, q: int) -> FloatArray:
        """[boards, amounts] what each amount costs at least, capacity at no price."""
        r, unit = self.r, self.unit[q]
        base = np.empty((int(r.boards[q]), int(self.top[q] // unit) + 1))
        tabulated(
            r.offers,
            r.offers.start[q],
            r.offers.start[q + 1],
            ServerPrices(self.uncharged, r.in_use, r.idle),
            unit,
            r.limits.limit[q],
            r.limits.steep[q],
            r.limits.cap[q],
            base,
        )
        return base

    def _beyond(self, begin: int, end: int) -> tuple[FloatArray, FloatArray]:
        """Least cost of the reservations from ``begin`` to ``end`` at a level of ``top`` or more, what is asked
        included, and the price of capacity that shows it, found by a few steps up and down."""
        r, some = self.r, slice(begin, end)
        survive, limits = self.c.survive.copy(), r.limits._replace(least=self.top)
        best = np.full(end - begin, -np.inf)
        pairs = slice(r.offers.start[begin], r.offers.start[end])
        cost = np.empty_like(self.uncharged)
        for factor in (1.0, *(turn for step in self.params.price_strides for turn in (1 + step, 1 / (1 + step)) * 2)):
            tried = np.minimum(survive * factor, r.shortfall)
            cost[pairs] = self.uncharged[pairs] - tried[r.reservation[pairs]] * r.offers.worth[pairs]
            least, _ = r.cheapest_within(begin, end, limits, cost, r.buffer + tried)
            value = least + (tried * r.problem.reservations.asked_mrru)[some]
            survive[some] = np.where(value > best, tried[some], survive[some])
            best = np.maximum(value, best)
        return best, survive[some]
