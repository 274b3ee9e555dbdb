"""Bound check of a server-assignment certificate, with numpy alone, one reservation after another.

Nothing here is shared with the search: what is there, what today holds and what each reservation costs at least are
worked out again from the problem. ``docs/heuristics/ras.md`` derives the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import PlanError
from mast_opt.problems.server_assignment.problem import EMBEDDED, POOL, SHARE, SHARED, Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.certificate import Certificate, faults, read_certificate
from mast_opt.problems.server_assignment.verification.certificate_knapsack import around
from mast_opt.problems.server_assignment.verification.certificate_levels import Fractions, whole_cost
from mast_opt.problems.server_assignment.verification.measures import Measure

Floats = NDArray[np.float64]

ROUNDING = 1e-10
"""Relative allowance for the rounding of sums."""


def certified_bound(problem: ServerAssignment, arrays: Mapping[str, NDArray[Any]]) -> float:
    """The bound that a file's arrays prove for the objective; where it is lexicographic, for its first term.

    Raises:
        PlanError: the arrays are no certificate, or prices lie outside their boxes.
    """
    certificate = read_certificate(problem, arrays)
    objective = problem.objective
    weights = dict(objective.weights)
    if objective.lexicographic:
        weights = dict.fromkeys(weights, 0.0) | {objective.order[0]: 1.0}
    now = Measure(problem, problem.servers.owner)
    asked = int(problem.reservations.asked_mrru.sum())
    unit = {name: weight / asked if asked else 0.0 for name, weight in weights.items()}
    server = {name: weight / len(problem.servers) for name, weight in weights.items()}
    slack = unit["affinity"] + np.where(now.slack_milli > 0, unit["repair"], 0.0)
    found = faults(problem, certificate, now, unit["shortfall"], unit["buffer"], slack)
    if found:
        raise PlanError(found)
    return max(0.0, _Bound(problem, certificate, now, unit, server).value(slack))  # every term is a penalty


@dataclass(frozen=True, eq=False)
class _Stocks:
    """Servers of a type at a switchboard, by type, then switchboard."""

    kind: Ints
    board: Ints
    size: Ints
    of: Ints
    """[S] the stock of each server"""


def _stocks(p: ServerAssignment) -> _Stocks:
    code = p.servers.type * len(p.switchboards) + p.server_switchboard
    known, of, size = np.unique(code, return_inverse=True, return_counts=True)
    return _Stocks(known // len(p.switchboards), known % len(p.switchboards), size, of.reshape(-1))


class _Bound:
    """Sums of what reservations cost at least."""

    def __init__(
        self,
        problem: ServerAssignment,
        certificate: Certificate,
        now: Measure,
        unit: Mapping[str, float],
        server: Mapping[str, float],
    ) -> None:
        self.p, self.c, self.now = problem, certificate, now
        self.unit, self.server = unit, server
        self.stocks = _stocks(problem)
        self.by_owner = np.argsort(problem.servers.owner, kind="stable")
        self.first = np.searchsorted(problem.servers.owner[self.by_owner], np.arange(len(problem.reservations) + 1))

    def value(self, slack: Floats) -> float:
        """The bound, less an allowance for rounding. ``slack``: [A] price of slack, per mrru."""
        p, c = self.p, self.c.prices
        own = [self._reservation(q) for q in range(len(p.reservations))]
        near = np.minimum(slack - SHARE * (c.affinity_most + c.affinity_least), 0.0)
        stocks = float(c.once @ self.stocks.size)
        given = float(c.survive @ p.reservations.asked_mrru)
        parts = [*own, -stocks, float(near @ self.now.slack_milli / SHARE)]
        return math.fsum(parts) - ROUNDING * (math.fsum(abs(part) for part in parts) + stocks + given)

    def _reservation(self, q: int) -> float:
        """Least cost of q, with what it asks at its price."""
        p, c, stocks = self.p, self.c.prices, self.stocks
        mine = self.by_owner[self.first[q] : self.first[q + 1]]
        works = p.servers.in_use[mine]
        in_use, idle = (np.bincount(stocks.of[mine[some]], minlength=len(stocks.size)) for some in (works, ~works))
        worth = p.reservations.value_mrru[q, stocks.kind]
        here = np.flatnonzero((worth > 0) | (in_use + idle > 0))
        in_use, idle, worth = in_use[here], idle[here], worth[here]
        keep_in_use, keep_idle = self.server["moves_in_use"], self.server["moves_idle"]
        taken = keep_in_use * float(in_use.sum()) + keep_idle * float(idle.sum())
        new = np.where(worth > 0, stocks.size[here] - in_use - idle, 0)
        board, survive = stocks.board[here], float(c.survive[q])
        charged = self.server["use"] + c.once[here] + worth * self._per_mrru(q)[board]
        # three offers of every stock: those it has in use, its idle ones, the others
        offers = Fractions(
            board=np.tile(board, 3),
            worth=np.tile(worth, 3),
            number=np.concatenate([in_use, idle, new]),
            price=np.concatenate([charged - keep_in_use, charged - keep_idle, charged]),
            **self._limits(q),
        )
        asked = int(p.reservations.asked_mrru[q])
        spare = self.unit["shortfall"] - survive
        cost = taken + survive * asked + min(spare, 0.0) * float(self.now.short[q])
        if p.reservations.buffer[q] != EMBEDDED:
            return cost + offers.without_level(survive)
        cost += offers.from_level(survive, self.unit["buffer"], 0)
        counted_to = int(self.c.counted_to[q])
        if counted_to:
            prices = self.unit["buffer"], self.unit["shortfall"]
            others = self.c.other_survive[self.c.other_of == q]
            gains = np.minimum([survive, *others.tolist()], prices[1]).tolist()
            exact = self.c.exact_to[self.c.exact_of == q].tolist()
            whole = whole_cost(offers, gains, prices, asked, counted_to, exact[0] if exact else None)
            cost = max(cost, taken + whole)
        return cost

    def _per_mrru(self, q: int) -> Floats:
        """[B] what an mrru of q pays at each switchboard, guaranteed capacity apart."""
        p, c = self.p, self.c.prices
        price = np.zeros(len(p.switchboards))
        if p.pool is not None and p.reservations.buffer[q] in (SHARED, POOL):
            price += c.loss
        for a in np.flatnonzero(p.affinities.reservation == q).tolist():
            off = SHARE * (p.switchboards.datacenter == p.affinities.datacenter[a]) - p.affinities.share_milli[a]
            tolerance = p.affinities.tolerance_milli[a]
            price += c.affinity_most[a] * (off - tolerance) - c.affinity_least[a] * (off + tolerance)
        return price

    def _limits(self, q: int) -> dict[str, Any]:
        """Limits of the reservation: the amount from which excess counts and its price [B], and the most it may hold
        [B]."""
        p, boards = self.p, len(self.p.switchboards)
        if not p.reservations.spread_limited[q]:
            never = math.inf
            return {"limit": never, "around": (never, never), "steep": np.zeros(boards), "cap": np.full(boards, never)}
        limit, today = int(p.spread_limit_mrru[q]), self.now.excess[q]
        return {
            "limit": float(limit),
            "around": around(p.reservations.value_mrru[q], limit),
            "steep": self.unit["spread"] + np.where(today > 0, self.unit["repair"], 0.0),
            "cap": np.where(today > 0, (limit + today).astype(float), math.inf),
        }
