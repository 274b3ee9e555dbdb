"""Bound check of a server-assignment certificate, with numpy alone, one reservation after another.

Nothing here is shared with the search: what is there, what today holds and what each reservation costs at least are
worked out again from the problem. ``docs/heuristics/ras.md`` derives the bound.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import PlanError
from mast_opt.problems.server_assignment.problem import EMBEDDED, POOL, SHARE, SHARED, Bools, Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.certificate import Certificate, faults, read_certificate
from mast_opt.problems.server_assignment.verification.measures import Measure

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
    buffer: float,
    asked: int,
    counted_to: int,
) -> float:
    """The least cost with whole servers at each level up to ``counted_to``, and in fractions beyond; what is asked
    included. Each level may choose among the ``gains``, prices of guaranteed capacity up to that of shortfall.

    Args:
        buffer: price of an mrru of the level.
    """
    beyond = max(offers.from_level(gain, buffer, counted_to) + gain * asked for gain in gains)
    unit = int(np.gcd.reduce(offers.worth, initial=0)) or counted_to
    base = _table(offers, unit, counted_to // unit + 1)
    level = np.arange(base.shape[1]) * unit
    best = np.full(len(level), -np.inf)
    for gain in gains:
        held = np.minimum.accumulate(base - gain * level, axis=1).sum(axis=0)
        best = np.maximum(best, held + (buffer + gain) * level + gain * asked)
    return min(beyond, float(best.min()) + offers.worthless())


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
    """Stocks of equal servers: type, switchboard and number, and the stock of each server."""
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
            others = self.c.other_survive[self.c.other_of == q]
            gains = np.minimum([survive, *others.tolist()], self.unit["shortfall"]).tolist()
            whole = whole_cost(offers, gains, self.unit["buffer"], asked, counted_to)
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
