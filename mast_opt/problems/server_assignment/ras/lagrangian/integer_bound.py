"""Integer Lagrangian bound of ras: the cost of small reservations in whole servers instead of fractions.

At a level L each switchboard holds one of the amounts that whole servers add up to, at most L, and all of them add up
to what is asked and L, or something lacks. Prices of capacity bound the cost of a level from below.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.ras.lagrangian.integer_subproblem import Claim, least_cost, tabulated
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed, SearchStopped
from mast_opt.problems.server_assignment.ras.lagrangian.reservation_subproblem import ServerPrices
from mast_opt.problems.server_assignment.ras.params import IntegerBoundParams
from mast_opt.problems.server_assignment.verification.certificate import Certificate, Prices


def never(raised: float) -> bool:
    """Return False: no rise of the bound is enough."""
    return False


def integer_bound(
    r: Relaxed,
    c: Prices,
    solved: tuple[FloatArray, FloatArray],
    servers: Ints,
    params: IntegerBoundParams,
    enough: Callable[[float], bool] = never,
    most: int | None = None,
) -> tuple[FloatArray, Certificate]:
    """[Q] the least cost at prices ``c`` with whole servers, where a reservation is small enough to try all amounts,
    the others' in fractions; and what certifies it.

    Reservations for which a plan pays most beyond their least come first: each level at the price of capacity that
    makes it most expensive.

    Args:
        solved: in fractions, as ``Relaxed.solved`` gives it.
        servers: [N] the plan's, in the order of the offers.
        most: reservations that are looked at; None for all.
        enough: is asked after each reservation, with the rise of the bound so far. What has been proven
            when it is, or when the search is halted in the middle of a reservation, is kept.
    """
    counting = _Counting(r, c, *solved, params)
    for q in np.argsort(-r.wasted(c, counting.least, servers), kind="stable")[:most].tolist():
        try:
            counting.count(q)
        except SearchStopped:
            break
        if enough(counting.raised):
            break
    return counting.least, counting.certificate()


class _Counting:
    """Integer bounds of the reservations, one after another.

    Up to a level ``top`` somewhat above the relaxed one all amounts are tried; beyond it, the relaxed cost is a bound.
    """

    def __init__(self, r: Relaxed, c: Prices, least: FloatArray, level: FloatArray, params: IntegerBoundParams) -> None:
        p, self.params = r.problem, params
        self.r, self.c, self.least = r, c, least.copy()
        self.unit = np.maximum(r.unit, 1)
        reach = np.maximum(level, r.now.largest)
        top = np.minimum(reach + params.margin * r.widest, params.cells * self.unit).astype(np.int64)
        top = top // self.unit * self.unit
        small = (r.limits.embedded > 0) & (r.unit > 0) & (top > reach) & ~r.worthless
        self.top = np.where(small & (p.reservations.asked_mrru > 0) & (c.survive <= r.shortfall), top, 0)
        self.uncharged = r.cost(c) + c.survive[r.reservation] * r.offers.worth
        self.beyond, self.gain = self._beyond()
        self.raised = 0.0
        """Rise of the bound so far."""
        self.counted_to = np.zeros(len(top), np.int64)
        self.others: list[tuple[int, float]] = []

    def count(self, q: int) -> None:
        """Bound a reservation by every amount, and each level at the price of capacity that makes it most expensive."""
        if self.top[q]:
            gain, beyond = float(self.c.survive[q]), float(self.beyond[q])
            best, gains = least_cost(self._base(q), self._claim(q), int(self.unit[q]), gain, beyond, self.params)
            if self._raise(q, best):
                self.counted_to[q] = self.top[q]
                self.others += [(q, price) for price in (float(self.gain[q]), *gains)]

    def certificate(self) -> Certificate:
        """Certificate of ``least``."""
        of, price = zip(*self.others, strict=True) if self.others else ((), ())
        return Certificate(
            self.c,
            self.counted_to,
            np.array(of, np.int64),
            np.array(price, np.float64),
        )

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

    def _beyond(self) -> tuple[FloatArray, FloatArray]:
        """Least cost of each reservation at a level of ``top`` or more, what is asked included, and the price of
        capacity that shows it, found by a few steps up and down."""
        r, asked = self.r, self.r.problem.reservations.asked_mrru
        survive, limits = self.c.survive.copy(), r.limits._replace(least=self.top)
        best = np.full(len(survive), -np.inf)
        for factor in (1.0, *(turn for step in self.params.price_strides for turn in (1 + step, 1 / (1 + step)) * 2)):
            tried = np.minimum(survive * factor, r.shortfall)
            cost = self.uncharged - tried[r.reservation] * r.offers.worth
            least, _ = r.cheapest_within(limits, cost, r.buffer + tried)
            value = least + tried * asked
            survive = np.where(value > best, tried, survive)
            best = np.maximum(value, best)
        return best, survive
