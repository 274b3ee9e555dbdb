"""Reoptimisation of one reservation (ras): a cap for every switchboard, then the cheapest servers within it.

Losing less with a switchboard needs a change at every fullest switchboard at once, which no exchange of two servers
does. So a change here is a whole level: what lies above it is given up, the cheapest first, what is lacking is taken
from free servers where there is room below it, and what is too much is given up again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.ras.operators.delta_costs import (
    change,
    excess_cost,
    max_domain_loss,
    reservation_cost,
    server_cost,
    short_cost,
    slack_cost,
)
from mast_opt.problems.server_assignment.ras.state import RasArrays, RasState


class Scratch(NamedTuple):
    """Room for the pairs of any one reservation."""

    kept: Ints
    """Servers of each pair before a level is tried."""
    extra: FloatArray
    """Cost of one server more or less of each pair."""


@kernel
def extra_cost(f: RasArrays, s: RasState, n: int, more: int, stock_price: FloatArray, pool_level: int) -> float:
    """Cost of ``more`` servers of a pair apart from what is guaranteed: servers, excess, affinity, stock, pool."""
    q, b = f.reservation[n], f.board[n]
    worth = f.worth[n] * more
    cost: float = (
        server_cost(f, n, s.servers[n] + more) - server_cost(f, n, s.servers[n]) + stock_price[f.stock[n]] * more
    )
    if worth == 0:
        return cost
    cost += excess_cost(f, q, b, s.held[q, b] + worth) - excess_cost(f, q, b, s.held[q, b])
    if f.near_start[q] < f.near_start[q + 1]:
        cost += slack_cost(f, s, q, f.datacenter[b], worth) - slack_cost(f, s, q, 0, 0)
    if f.backed[q] and s.risk[b] + worth > pool_level and more > 0:
        cost += (f.largest_price + f.short_price) * (s.risk[b] + worth - pool_level)
    return cost


@kernel
def _lower(f: RasArrays, s: RasState, q: int, level: int, stock_price: FloatArray, pool_level: int) -> None:
    """Give up what a switchboard has above the level."""
    first = f.start[q]
    while first < f.start[q + 1]:
        last, b = first, f.board[first]
        while last < f.start[q + 1] and f.board[last] == b:
            last += 1
        while s.held[q, b] > level:
            best, price = -1, np.inf
            over = s.held[q, b] - level
            for n in range(first, last):
                if s.servers[n] > 0 and f.worth[n] > 0:
                    own = extra_cost(f, s, n, -1, stock_price, pool_level)
                    own = own / min(f.worth[n], over) if own > 0 else own
                    if own < price:
                        best, price = n, own
            if best < 0:
                break
            change(f, s, best, -1)
        first = last


@kernel
def _extras(
    f: RasArrays,
    s: RasState,
    q: int,
    changed: int,
    more: int,
    stock_price: FloatArray,
    pool_level: int,
    extra: FloatArray,
) -> None:
    """``extra`` [pairs of q]: the cost of ``more`` servers of each, brought up to date after the pair ``changed`` has;
    of all, where it is negative."""
    first, last = f.start[q], f.start[q + 1]
    begin, end = first, last
    if changed >= 0 and f.near_start[q] == f.near_start[q + 1]:  # without affinities a switchboard is on its own
        begin, end = changed, changed + 1
        while begin > first and f.board[begin - 1] == f.board[changed]:
            begin -= 1
        while end < last and f.board[end] == f.board[changed]:
            end += 1
    for n in range(begin, end):
        if more > 0 or s.servers[n] > 0:
            extra[n - first] = extra_cost(f, s, n, more, stock_price, pool_level)


@kernel
def _fill(
    f: RasArrays,
    s: RasState,
    q: int,
    level: int,
    stock_price: FloatArray,
    pool_level: int,
    portions: int,
    extra: FloatArray,
) -> None:
    """Take what is lacking from free servers, the least cost for what it adds first."""
    changed = -1
    while True:
        lack = f.asked[q] + level - s.total[q]
        if lack <= 0:
            return
        _extras(f, s, q, changed, 1, stock_price, pool_level, extra)
        best, price = -1, f.short_price
        for n in range(f.start[q], f.start[q + 1]):
            worth = f.worth[n]
            if worth == 0 or s.free[f.stock[n]] <= 0 or s.servers[n] >= f.most[n]:
                continue
            if f.embedded[q] and s.held[q, f.board[n]] + worth > level:
                continue
            own = extra[n - f.start[q]] / min(worth, lack)
            if own < price:
                best, price = n, own
        if best < 0:
            return
        worth = f.worth[best]
        number = max(lack // (worth * portions), 1)
        number = min(number, s.free[f.stock[best]], f.most[best] - s.servers[best])
        if f.embedded[q]:
            number = min(number, (level - s.held[q, f.board[best]]) // worth)
        here = f.in_use[best] + f.idle[best] - s.servers[best]
        if here > 0:
            number = min(number, here)
        change(f, s, best, number)
        changed = best


@kernel
def _thin(
    f: RasArrays,
    s: RasState,
    q: int,
    level: int,
    stock_price: FloatArray,
    pool_level: int,
    portions: int,
    extra: FloatArray,
) -> None:
    """Give up what is not needed, as long as that saves something."""
    changed = -1
    while True:
        spare = s.total[q] - level - f.asked[q]
        _extras(f, s, q, changed, -1, stock_price, pool_level, extra)
        best, price = -1, -1e-15
        for n in range(f.start[q], f.start[q + 1]):
            if s.servers[n] > 0 and f.worth[n] <= spare and extra[n - f.start[q]] < price:
                best, price = n, extra[n - f.start[q]]
        if best < 0:
            return
        number = 1
        beyond = s.servers[best] - f.in_use[best] - f.idle[best]
        if beyond > 1 and f.worth[best] > 0:
            number = max(min(beyond, spare // (f.worth[best] * portions)), 1)
        change(f, s, best, -number)
        changed = best


@kernel
def _try(
    f: RasArrays,
    s: RasState,
    q: int,
    level: int,
    stock_price: FloatArray,
    portions: int,
    before: float,
    scratch: Scratch,
    from_today: bool,
    mild: bool,
) -> float:
    """Go to a level if that costs less; returns the cost.

    ``from_today``: from no more than it has today. ``mild``: without a buffer of its own it gives up only what is too
    much, not everything.
    """
    kept, extra = scratch.kept, scratch.extra
    first, last = f.start[q], f.start[q + 1]
    pool_level = max_domain_loss(f, s, f.pool) if f.backed[q] and q != f.pool else 1 << 62
    for n in range(first, last):
        kept[n - first] = s.servers[n]
        more = s.servers[n] - f.in_use[n] - f.idle[n]
        if from_today and more > 0:
            change(f, s, n, -more)
    if not mild or f.embedded[q]:
        _lower(f, s, q, level, stock_price, pool_level)
    _fill(f, s, q, level, stock_price, pool_level, portions, extra)
    reached = max_domain_loss(f, s, q) if f.embedded[q] else level
    _thin(f, s, q, reached, stock_price, pool_level, portions, extra)
    after = worth_of(f, s, q, stock_price)
    if after < before - 1e-13:
        return after
    for n in range(first, last):
        if kept[n - first] != s.servers[n]:
            change(f, s, n, kept[n - first] - s.servers[n])
    return before


@kernel
def worth_of(f: RasArrays, s: RasState, q: int, stock_price: FloatArray) -> float:
    """Cost of q, with what the pool pays for it and the stocks at their prices."""
    cost = reservation_cost(f, s, q)
    if f.backed[q] and q != f.pool:
        cost += short_cost(f, s, f.pool, max_domain_loss(f, s, f.pool))
    for n in range(f.start[q], f.start[q + 1]):
        cost += stock_price[f.stock[n]] * s.servers[n]
    return cost


@kernel
def _least(f: RasArrays, q: int) -> int:
    """The smallest worth of a server to q; 0 if nothing is worth anything to it."""
    least = 0
    for n in range(f.start[q], f.start[q + 1]):
        if f.worth[n] > 0 and (least == 0 or f.worth[n] < least):
            least = f.worth[n]
    return least


@kernel
def _levels(
    f: RasArrays,
    s: RasState,
    q: int,
    step: int,
    hint: int,
    stock_price: FloatArray,
    tries: int,
    portions: int,
    now: float,
    scratch: Scratch,
) -> float:
    """Try levels around the hint and q's own; returns the cost."""
    now = _try(f, s, q, max_domain_loss(f, s, q), stock_price, portions, now, scratch, False, False)
    if not f.embedded[q]:
        return now
    if hint > 0:
        for turn in range(tries):
            now = _try(f, s, q, hint + turn * step // 2, stock_price, portions, now, scratch, False, False)
    for _ in range(tries):
        level = max_domain_loss(f, s, q)
        lower = _try(f, s, q, max(level - 1, 0), stock_price, portions, now, scratch, False, False)
        if lower >= now:
            lower = _try(f, s, q, max(level - step, 0), stock_price, portions, now, scratch, False, False)
        if lower >= now:
            break
        now = lower
    level = max_domain_loss(f, s, q)
    for turn in range(1, tries + 1):
        now = _try(f, s, q, level + turn * step // 2, stock_price, portions, now, scratch, False, False)
    return now


@kernel
def _widest(f: RasArrays) -> int:
    """Most pairs that a reservation has."""
    widest = 1
    for q in range(len(f.asked)):
        widest = max(widest, f.start[q + 1] - f.start[q])
    return widest


@compiled
def settle(f: RasArrays, s: RasState, who: Ints, above: int, portions: int) -> None:
    """Let some reservations fill what they lack, or give up what they have too much, at the level that they have; where
    that is not enough, up to ``above`` servers above it. What is lacking is filled in about ``portions`` portions."""
    scratch = Scratch(np.empty(_widest(f), np.int64), np.empty(_widest(f)))
    nothing = np.zeros(len(s.free))
    for k in range(len(who)):
        q = who[k]
        before = worth_of(f, s, q, nothing)
        now = _try(f, s, q, max_domain_loss(f, s, q), nothing, portions, before, scratch, False, True)
        own, step = max_domain_loss(f, s, q), _least(f, q)
        for more in range(1, above + 1):
            if f.embedded[q] and f.asked[q] + max_domain_loss(f, s, q) > s.total[q]:
                now = _try(f, s, q, own + more * step, nothing, portions, now, scratch, False, True)


@compiled
def reoptimise_reservation(
    f: RasArrays, s: RasState, who: Ints, hint: FloatArray, stock_price: FloatArray, tries: int, portions: int
) -> float:
    """Let some reservations choose again, each at ``tries`` levels around ``hint`` [Q] and around its own.

    ``stock_price`` [K] is what a free server is worth to others. Returns how much the cost has fallen, with stocks at
    those prices.
    """
    scratch = Scratch(np.empty(_widest(f), np.int64), np.empty(_widest(f)))
    gain = 0.0
    for k in range(len(who)):
        q = who[k]
        step = _least(f, q)
        if step == 0:
            continue
        first = worth_of(f, s, q, stock_price)
        now = first
        level = int(hint[q])
        now = _levels(f, s, q, step, level, stock_price, tries, portions, now, scratch)
        own = max_domain_loss(f, s, q)
        now = _try(f, s, q, own, stock_price, portions, now, scratch, True, False)
        if f.embedded[q] and level > 0 and abs(level - own) >= step:
            now = _try(f, s, q, level, stock_price, portions, now, scratch, True, False)
        gain += first - now
    return gain
