"""The certificate of a lower bound: prices that a stranger can check without trusting the search.

For any prices within their boxes the bound is the sum over reservations of what each costs at least at these prices,
less the stocks at theirs (Lagrangian duality: rows that couple reservations, or a reservation's switchboards, are
priced; what is left is minimised exactly).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.errors import Fault, PlanError
from mast_opt.mip import FloatArray
from mast_opt.server_assignment.floors import around, floors
from mast_opt.server_assignment.holdings import Holdings
from mast_opt.server_assignment.pairs import pairs_of
from mast_opt.server_assignment.problem import EMBEDDED, POOL, SHARE, SHARED, ServerAssignment
from mast_opt.server_assignment.subproblems import Limits, Offers, cheapest
from mast_opt.server_assignment.whole import cheapest_whole

FILE = "certificate.npz"
DEAREST = 1e100
"""Largest price, so that no sum overflows."""
ROUNDING = 1e-10
"""Relative allowance for the rounding of sums."""
MOST_CELLS = 7000
"""Amounts at a switchboard up to which whole servers are counted; beyond, rounding matters little."""
STRIDES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
"""Relative changes of a price that are tried, each twice up and down."""
MARGIN = 20
"""Servers by which the levels tried go beyond the relaxed one and today's."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Prices on the rows of the formulation. ``docs/heuristics/ras.md`` derives the bound."""

    once: FloatArray
    """[stocks] of a server of each stock"""
    survive: FloatArray
    """[Q] of guaranteed capacity, per mrru"""
    loss: FloatArray
    """[B] of what the pool must stand in for, per mrru; 0 without a pool"""
    affinity_most: FloatArray
    """[A]"""
    affinity_least: FloatArray
    """[A]"""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file keeps."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


class Relaxed:
    """A problem ready for the bounds of many prices."""

    def __init__(self, problem: ServerAssignment, weights: Mapping[str, float]) -> None:
        p, pairs = problem, pairs_of(problem)
        self.problem, self.pairs = p, pairs
        now = self.now = Holdings(p, pairs, pairs.today)
        self.weights = weights
        asked = int(p.asked_mrru.sum())
        per_mrru = {name: weight / asked if asked else 0.0 for name, weight in weights.items()}
        per_server = {name: weight / len(p.servers) for name, weight in weights.items()}
        self.in_use, self.idle, self.use = (per_server[name] for name in ("moves_in_use", "moves_idle", "use"))
        self.shortfall, self.buffer = per_mrru["shortfall"], per_mrru["buffer"]
        self.short_today = now.short
        self.off_today = now.slack_milli
        self.slack = per_mrru["affinity"] + np.where(now.slack_milli > 0, per_mrru["repair"], 0.0)
        """[A]"""
        self.order = np.lexsort((pairs.switchboard, pairs.reservation))
        self.offers = Offers(
            start=np.searchsorted(pairs.reservation[self.order], np.arange(len(p.reservations) + 1)),
            board=pairs.switchboard[self.order],
            worth=pairs.worth_mrru[self.order],
            in_use=pairs.in_use[self.order],
            idle=pairs.idle[self.order],
            most=pairs.most[self.order],
        )
        self.reservation = pairs.reservation[self.order]
        floor = floors(p)
        self.lacking = floor.short
        low, high = around(p)
        limit = p.spread_limit_mrru
        dense = now.excess > 0
        self.limits = Limits(
            embedded=(p.buffer == EMBEDDED).astype(np.int64),
            least=floor.least,
            limit=np.where(p.spread_limited, limit.astype(float), np.inf),
            low=np.where(p.spread_limited, low, np.inf),
            high=np.where(p.spread_limited, high, np.inf),
            share=np.where(high > low, (high - limit) / np.maximum(high - low, 1), 1.0),
            steep=per_mrru["spread"] + np.where(dense, per_mrru["repair"], 0.0),
            cap=np.where(dense, (limit[:, None] + now.excess).astype(float), np.inf),
        )
        self.unit = np.gcd.reduce(p.value_mrru, axis=1, initial=0)
        self.widest = p.value_mrru.max(axis=1, initial=0)
        self.worthless = np.bincount(pairs.reservation[pairs.worth_mrru == 0], minlength=len(p.reservations)) > 0
        self.moved = float(self.in_use * pairs.in_use.sum() + self.idle * pairs.idle.sum())
        """What it costs to take everything from everybody."""

    def within(self, c: Certificate) -> Certificate:
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
        return Certificate(once, survive, loss, most * share, least * share)

    def faults(self, c: Certificate) -> list[Fault]:
        """Every price out of its box."""
        p = self.problem
        lengths = (len(p.stocks), len(p.reservations), len(p.switchboards), *[len(p.affinity_reservation)] * 2)
        found = []
        for (name, price), length in zip(c.arrays().items(), lengths, strict=True):
            if price.dtype != np.float64 or price.shape != (length,):
                found.append(
                    Fault(FILE, f"{length} float64 numbers", column=name, value=f"{price.dtype} {price.shape}")
                )
            elif not ((price >= 0) & (price <= DEAREST)).all():
                found.append(Fault(FILE, f"prices from 0 to {DEAREST:g}", column=name))
        if found:
            return found
        over = c.survive > self.shortfall * (1 + 1e-12)
        if (over & (self.short_today == 0)).any():
            found.append(Fault(FILE, f"prices up to {self.shortfall:g}, that of shortfall", column="survive"))
        allowed = 0.0 if p.pool is None else self.buffer + c.survive[p.pool]
        if c.loss.sum() > allowed * (1 + 1e-12):
            found.append(Fault(FILE, "prices that add up to at most that of the pool's buffer", column="loss"))
        steep = SHARE * (c.affinity_most + c.affinity_least) > self.slack * (1 + 1e-12)
        if (steep & (self.off_today == 0)).any():
            found.append(Fault(FILE, "prices up to that of slack", column="affinity_most"))
        return found

    def bound(self, c: Certificate) -> float:
        """The lower bound that prices inside their boxes prove."""
        return self.bound_of(c, self.whole(c, *self.solved(c)))

    def bound_of(self, c: Certificate, least: FloatArray) -> float:
        """The same, given what each reservation costs at least."""
        p = self.problem
        spare = self.shortfall - c.survive
        short = np.where(spare < 0, spare * self.short_today, 0.0)
        parts = (
            *(least + c.survive * p.asked_mrru + short).tolist(),
            self.moved,
            -float(c.once @ p.stocks.size),
            float(
                np.minimum((self.slack - SHARE * (c.affinity_most + c.affinity_least)), 0.0) @ self.off_today / SHARE
            ),
        )
        return float(sum(parts) - ROUNDING * sum(abs(part) for part in parts) - self._rounding(c))

    def _rounding(self, c: Certificate) -> float:
        return ROUNDING * float(c.survive @ self.problem.asked_mrru + c.once @ self.problem.stocks.size)

    def solved(self, c: Certificate) -> tuple[FloatArray, FloatArray]:
        """[Q] the least cost of each reservation's servers at these prices, and its L."""
        lacking = np.maximum(self.shortfall - c.survive, 0.0) * self.lacking
        least, level = cheapest(
            self.offers, self.limits, self.cost(c), self.in_use, self.idle, self.buffer + c.survive, lacking
        )
        return least, level

    def whole(
        self, c: Certificate, least: FloatArray, level: FloatArray, stop: Callable[[], bool] | None = None
    ) -> FloatArray:
        """[Q] the least cost with whole servers, where a reservation is small enough to try all amounts; the others'
        as ``solved`` gives it.

        Up to a level somewhat above the relaxed one all amounts are tried; beyond it, the relaxed cost is a bound.
        ``stop`` is asked between reservations; those that are left when it says so keep the relaxed cost.
        """
        p, unit = self.problem, np.maximum(self.unit, 1)
        reach = np.maximum(np.maximum(level, self.limits.least), self.now.largest)
        top = np.minimum(reach + MARGIN * self.widest, MOST_CELLS * unit) // unit * unit
        small = (self.limits.embedded > 0) & (self.unit > 0) & (top > reach) & ~self.worthless
        small &= (p.asked_mrru > 0) & (c.survive <= self.shortfall)
        uncharged = self.cost(c) + c.survive[self.reservation] * self.offers.worth
        beyond = self._beyond(c.survive, uncharged, np.where(small, top, 0).astype(np.int64))
        level_and_short = np.array([self.buffer, self.shortfall])
        result = least.copy()
        for q in np.flatnonzero(small).tolist():
            if stop is not None and stop():
                break
            first, last = self.offers.start[q], self.offers.start[q + 1]
            best = cheapest_whole(
                Offers(np.array([0, last - first]), *_some(array[first:last] for array in self.offers[1:])),
                Limits(*_some(array[q : q + 1] for array in self.limits)),
                uncharged[first:last],
                self.in_use,
                self.idle,
                p.asked_mrru[q : q + 1],
                c.survive[q : q + 1],
                level_and_short,
                self.lacking[q : q + 1],
                unit[q : q + 1],
                top[q : q + 1],
            )[0]
            result[q] = max(least[q], min(best, beyond[q]) - c.survive[q] * p.asked_mrru[q])
        return result

    def _beyond(self, survive: FloatArray, uncharged: FloatArray, top: NDArray[np.int64]) -> FloatArray:
        """[Q] what a reservation costs at least at a level of ``top`` or more, what is asked included; the price of
        capacity is another one there, found by a few steps up and down."""
        never, limits = np.full(len(top), np.inf), self.limits._replace(least=top)
        best = np.full(len(top), -np.inf)
        for factor in (1.0, *(turn for step in STRIDES for turn in (1 + step, 1 / (1 + step)) * 2)):
            tried = np.minimum(survive * factor, self.shortfall)
            cost = uncharged - tried[self.reservation] * self.offers.worth
            least, _ = cheapest(self.offers, limits, cost, self.in_use, self.idle, self.buffer + tried, never)
            value = least + tried * self.problem.asked_mrru
            survive = np.where(value > best, tried, survive)
            best = np.maximum(value, best)
        return best

    def cost(self, c: Certificate) -> FloatArray:
        """[N] of a server of each pair, in the order of the offers."""
        p, pairs = self.problem, self.pairs
        per_mrru = -c.survive[pairs.reservation]
        if p.pool is not None:
            backed = (p.buffer == SHARED) | (p.buffer == POOL)
            per_mrru = per_mrru + np.where(backed[pairs.reservation], c.loss[pairs.switchboard], 0.0)
        near = np.zeros((len(p.reservations), len(p.datacenters)))
        off, tolerance = p.affinity_share_milli, p.affinity_tolerance_milli
        every = c.affinity_least * (off - tolerance) - c.affinity_most * (off + tolerance)
        np.add.at(near, p.affinity_reservation, every[:, None])
        here = SHARE * (c.affinity_most - c.affinity_least)
        np.add.at(near, (p.affinity_reservation, p.affinity_datacenter), here)
        per_mrru = per_mrru + near[pairs.reservation, p.switchboard_datacenter[pairs.switchboard]]
        return np.asarray((self.use + c.once[pairs.stock] + per_mrru * pairs.worth_mrru)[self.order])


def certified_bound(problem: ServerAssignment, arrays: Mapping[str, NDArray[Any]]) -> float:
    """The bound that a file's arrays prove for the objective; where it is lexicographic, for its first term.

    Raises:
        PlanError: the arrays are no certificate, or prices lie outside their boxes.
    """
    names = [item.name for item in fields(Certificate)]
    lacking = [Fault(FILE, f"an array called {name}") for name in names if name not in arrays]
    if lacking:
        raise PlanError(lacking)
    objective = problem.objective
    weights = dict(objective.weights)
    if objective.lexicographic:
        weights = dict.fromkeys(weights, 0.0) | {objective.order[0]: 1.0}
    certificate = Certificate(**{name: np.asarray(arrays[name]) for name in names})
    relaxed = Relaxed(problem, weights)
    faults = relaxed.faults(certificate)
    if faults:
        raise PlanError(faults)
    return relaxed.bound(certificate)


def _some(arrays: Iterable[NDArray[Any]]) -> tuple[Any, ...]:
    return tuple(arrays)
