"""Lagrangian relaxation of server assignment (ras): a problem prepared for the bounds of many prices."""

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.server_assignment.formulation.codec import Holdings
from mast_opt.problems.server_assignment.formulation.index_sets import pairs_of
from mast_opt.problems.server_assignment.problem import EMBEDDED, POOL, SHARE, SHARED, Bools, Ints, ServerAssignment
from mast_opt.problems.server_assignment.ras.lagrangian.reservation_subproblem import (
    Limits,
    PricedItems,
    ServerPrices,
    bought,
    cheapest,
)
from mast_opt.problems.server_assignment.verification.certificate import MOST_CELLS, Prices

ROUNDING = 1e-10
"""Relative allowance for the rounding of sums."""
PORTION = 200_000
"""Pairs that a kernel works on at a time, about."""


class SearchStopped(Exception):
    """Stop of the search in the middle of a computation."""


def never_stop() -> None:
    """Nobody wants to stop."""


class Relaxed:
    """Lagrangian relaxation of one instance, prepared once to compute the bounds of many prices."""

    def __init__(
        self,
        problem: ServerAssignment,
        weights: Mapping[str, float],
        look: Callable[[], None] = never_stop,
    ) -> None:
        """``look`` is called every few hundredths of a second; the computation ends if it raises ``SearchStopped``."""
        self.look = look
        p, pairs = problem, pairs_of(problem)
        self.problem, self.pairs = p, pairs
        now = self.now = Holdings(p, pairs, pairs.today)
        self.weights = weights
        asked = int(p.reservations.asked_mrru.sum())
        per_mrru = {name: weight / asked if asked else 0.0 for name, weight in weights.items()}
        per_server = {name: weight / len(p.servers) for name, weight in weights.items()}
        self.in_use, self.idle, self.use = (per_server[name] for name in ("moves_in_use", "moves_idle", "use"))
        self.shortfall, self.buffer = per_mrru["shortfall"], per_mrru["buffer"]
        self.short_today = now.short
        self.off_today = now.slack_milli
        self.slack = per_mrru["affinity"] + np.where(now.slack_milli > 0, per_mrru["repair"], 0.0)
        """Price of the slack of each affinity, [A]."""
        self.order = np.lexsort((pairs.switchboard, pairs.reservation))
        self.offers = PricedItems(
            start=np.searchsorted(pairs.reservation[self.order], np.arange(len(p.reservations) + 1)),
            board=pairs.switchboard[self.order],
            worth=pairs.worth_mrru[self.order],
            in_use=pairs.in_use[self.order],
            idle=pairs.idle[self.order],
            most=pairs.most[self.order],
        )
        self.reservation = pairs.reservation[self.order]
        parts = np.searchsorted(self.offers.start, np.arange(0, len(self.order) + PORTION, PORTION))
        edges = np.unique(np.append(parts, [0, len(p.reservations)]).clip(0, len(p.reservations))).tolist()
        self.portions = list(itertools.pairwise(edges))
        """Reservations from … to …, so many at a time that a kernel is back soon."""
        low, high = _around_spread_limits(p)
        limit = p.spread_limit_mrru
        dense = now.excess > 0
        self.limits = Limits(
            embedded=(p.reservations.buffer == EMBEDDED).astype(np.int64),
            least=np.zeros(len(p.reservations), np.int64),
            limit=np.where(p.reservations.spread_limited, limit.astype(float), np.inf),
            low=np.where(p.reservations.spread_limited, low, np.inf),
            high=np.where(p.reservations.spread_limited, high, np.inf),
            share=np.where(high > low, (high - limit) / np.maximum(high - low, 1), 1.0),
            steep=per_mrru["spread"] + np.where(dense, per_mrru["repair"], 0.0),
            cap=np.where(dense, (limit[:, None] + now.excess).astype(float), np.inf),
        )
        key = self.reservation * len(p.switchboards) + self.offers.board
        self.boards = np.bincount(self.reservation[np.diff(key, prepend=-1) != 0], minlength=len(p.reservations))
        """[Q] switchboards with something for the reservation"""
        self.unit = np.gcd.reduce(p.reservations.value_mrru, axis=1, initial=0)
        self.widest = p.reservations.value_mrru.max(axis=1, initial=0)
        self.worthless = np.bincount(pairs.reservation[pairs.worth_mrru == 0], minlength=len(p.reservations)) > 0
        self.moved = float(self.in_use * pairs.in_use.sum() + self.idle * pairs.idle.sum())
        """Cost of taking everything from everybody."""

    def within(self, c: Prices) -> Prices:
        """The nearest prices inside their boxes."""
        p = self.problem
        once, survive, loss, most, least = (np.maximum(price, 0.0) for price in c.arrays().values())
        survive = np.where(self.short_today > 0, survive, np.minimum(survive, self.shortfall))
        if p.pool is None:
            loss = np.zeros_like(loss)
        else:
            allowed = self.buffer + survive[p.pool]
            loss = loss if loss.any() else loss + 1.0
            loss = loss / loss.sum() * (allowed * (1 - 1e-12))
        share = np.minimum(1.0, self.slack * (1 - 1e-12) / np.maximum(SHARE * (most + least), 1e-300))
        share = np.where(self.off_today > 0, 1.0, share)
        return Prices(once, survive, loss, most * share, least * share)

    def bound(self, c: Prices, least: FloatArray) -> float:
        """The lower bound that prices inside their boxes prove, given what each reservation costs at least."""
        p = self.problem
        spare = self.shortfall - c.survive
        own = least + c.survive * p.reservations.asked_mrru + np.where(spare < 0, spare * self.short_today, 0.0)
        near = np.minimum(self.slack - SHARE * (c.affinity_most + c.affinity_least), 0.0)
        parts = (self.moved, -float(c.once @ p.stocks.size), float(near @ self.off_today / SHARE))
        sizes = float(np.abs(own).sum()) + sum(abs(part) for part in parts)
        return float(math.fsum(own.tolist()) + math.fsum(parts) - ROUNDING * sizes - self._rounding(c))

    def _rounding(self, c: Prices) -> float:
        """Rounding error that the bound allows for at these prices."""
        return ROUNDING * float(c.survive @ self.problem.reservations.asked_mrru + c.once @ self.problem.stocks.size)

    def solved(self, c: Prices) -> tuple[FloatArray, FloatArray]:
        """[Q] the least cost of each reservation's servers at these prices, and its L."""
        return self.cheapest_within(self.limits, self.cost(c), self.buffer + c.survive)

    def bought(self, c: Prices, level: FloatArray) -> FloatArray:
        """[N] the servers of that least cost, in the order of the offers; fractional at the margin."""
        prices, amount = ServerPrices(self.cost(c), self.in_use, self.idle), np.zeros(len(self.reservation))
        for begin, end in self.portions:
            self.look()
            bought(self.offers, self.limits, begin, end, prices, level, amount)
        return amount

    def cheapest_within(
        self, limits: Limits, cost: FloatArray, level_price: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """``solved`` with other limits and prices."""
        least, level = np.empty((2, len(self.boards)))
        prices = ServerPrices(cost, self.in_use, self.idle)
        for first, last in self.portions:
            self.look()
            some = slice(first, last)
            least[some], level[some] = cheapest(self.offers, limits, first, last, prices, level_price)
        return least, level

    def wasted(self, c: Prices, least: FloatArray, servers: Ints) -> FloatArray:
        """[Q] what a plan's counts ([N], in the order of the offers) cost a reservation beyond the least at these
        prices, affinities and the pool apart."""
        p, o = self.problem, self.offers
        kept = np.minimum(servers, o.in_use)
        each = self.cost(c) * servers - self.in_use * kept - self.idle * np.minimum(servers - kept, o.idle)
        cell = self.reservation * len(p.switchboards) + o.board
        held = np.bincount(cell, o.worth * servers, self.limits.steep.size).reshape(self.limits.steep.shape)
        level = np.where(self.limits.embedded > 0, held.max(axis=1), 0.0)
        short = np.maximum(p.reservations.asked_mrru + level - held.sum(axis=1), 0.0)
        excess = (np.maximum(held - self.limits.limit[:, None], 0.0) * self.limits.steep).sum(axis=1)
        own = np.bincount(self.reservation, each, len(p.reservations)) + excess + (self.buffer + c.survive) * level
        return np.asarray(own + (self.shortfall - c.survive) * short - least)

    def cost(self, c: Prices) -> FloatArray:
        """[N] of a server of each pair, in the order of the offers."""
        p, pairs = self.problem, self.pairs
        per_mrru = -c.survive[pairs.reservation]
        if p.pool is not None:
            backed = (p.reservations.buffer == SHARED) | (p.reservations.buffer == POOL)
            per_mrru = per_mrru + np.where(backed[pairs.reservation], c.loss[pairs.switchboard], 0.0)
        near = np.zeros((len(p.reservations), len(p.datacenters)))
        off, tolerance = p.affinities.share_milli, p.affinities.tolerance_milli
        every = c.affinity_least * (off - tolerance) - c.affinity_most * (off + tolerance)
        np.add.at(near, p.affinities.reservation, every[:, None])
        here = SHARE * (c.affinity_most - c.affinity_least)
        np.add.at(near, (p.affinities.reservation, p.affinities.datacenter), here)
        per_mrru = per_mrru + near[pairs.reservation, p.switchboards.datacenter[pairs.switchboard]]
        return np.asarray((self.use + c.once[pairs.stock] + per_mrru * pairs.worth_mrru)[self.order])


def _around_spread_limits(problem: ServerAssignment) -> tuple[Ints, Ints]:
    """[Q] the most that whole servers add up to within the spread limit, and the least that they do from it on.

    Where that is too long a list, both are the limit.
    """
    p, limit = problem, problem.spread_limit_mrru
    low, high = limit.copy(), limit.copy()
    for q in np.flatnonzero(p.reservations.spread_limited).tolist():
        values = p.reservations.value_mrru[q][p.reservations.value_mrru[q] > 0]
        if len(values) == 0:
            continue
        unit = math.gcd(*values.tolist())
        cells = int(limit[q] + values.min()) // unit + 2
        if cells <= MOST_CELLS:
            amounts = np.flatnonzero(_sums(values // unit, cells)) * unit
            low[q] = amounts[amounts <= limit[q]].max()
            high[q] = amounts[amounts >= limit[q]].min()
    return low, high


def _sums(values: Ints, cells: int) -> Bools:
    """Mask [cells] of the amounts that some whole servers add up to."""
    sums = np.zeros(cells, np.bool_)
    sums[0] = True
    for value in values.tolist():
        reach = value
        while reach < cells:  # doubling: any number of servers of the value
            sums[reach:] |= sums[:-reach].copy()
            reach *= 2
    return sums
