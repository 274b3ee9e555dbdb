"""Delta evaluation in ras: the exact cost of a server assignment, one reservation at a time."""

from __future__ import annotations

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.server_assignment.ras.state import NO_LIMIT, RasArrays, RasState


@kernel
def max_domain_loss(f: RasArrays, s: RasState, q: int) -> int:
    """Largest loss of q with one switchboard; 0 without a buffer of its own."""
    most = 0
    if f.embedded[q]:
        for b in range(len(f.datacenter)):
            most = max(most, s.held[q, b])
    elif q == f.pool:
        for b in range(len(f.datacenter)):
            most = max(most, s.risk[b])
    return most


@kernel
def short_cost(f: RasArrays, s: RasState, q: int, level: int) -> float:
    """Cost of what q lacks with ``level`` at risk, and of the level."""
    lack = max(f.asked[q] + level - s.total[q], 0)
    cost: float = f.short_price * lack
    if lack > f.short_most[q]:
        cost += f.forbidden
    return cost + f.largest_price * level


@kernel
def excess_cost(f: RasArrays, q: int, b: int, held: int) -> float:
    """Cost of holding so much at a switchboard."""
    over: int = held - f.limit[q]
    if over <= 0:
        return 0.0
    most: int = f.excess_most[q, b]
    if most == NO_LIMIT:
        return f.excess_price * over
    return (f.excess_price + f.repair_price) * over + (f.forbidden if over > most else 0.0)


@kernel
def slack_cost(f: RasArrays, s: RasState, q: int, d: int, more: int) -> float:
    """Cost of affinities missed, if q held ``more`` in datacenter d."""
    cost = 0.0
    for a in range(f.near_start[q], f.near_start[q + 1]):
        total = s.total[q] + more
        there = s.at[q, f.near_place[a]] + (more if f.near_place[a] == d else 0)
        miss = abs(1000 * there - f.near_share[a] * total) - f.near_tolerance[a] * total
        if miss > 0:
            cost += f.slack_price * miss
            if f.slack_most[a] != NO_LIMIT:
                cost += f.repair_price / 1000 * miss
                if miss > f.slack_most[a]:
                    cost += f.forbidden
    return cost


@kernel
def server_cost(f: RasArrays, n: int, count: int) -> float:
    """Cost of so many servers of a pair, and of what is taken from it."""
    idle: int = min(max(f.in_use[n] + f.idle[n] - count, 0), f.idle[n])
    in_use: int = max(f.in_use[n] - count, 0)
    return f.use_price * count + f.idle_price * idle + f.in_use_price * in_use


@kernel
def reservation_cost(f: RasArrays, s: RasState, q: int) -> float:
    """All that q pays for; what the pool pays for q is the pool's."""
    cost = short_cost(f, s, q, max_domain_loss(f, s, q)) + slack_cost(f, s, q, 0, 0)
    if f.limit[q] != NO_LIMIT:
        for b in range(len(f.datacenter)):
            cost += excess_cost(f, q, b, s.held[q, b])
    for n in range(f.start[q], f.start[q + 1]):
        cost += server_cost(f, n, s.servers[n])
    return cost


@kernel
def change(f: RasArrays, s: RasState, n: int, more: int) -> None:
    """Give so many servers of the pair to its reservation; fewer where it is negative."""
    q, b, worth = f.reservation[n], f.board[n], f.worth[n] * more
    s.servers[n] += more
    s.free[f.stock[n]] -= more
    s.held[q, b] += worth
    s.total[q] += worth
    s.at[q, f.datacenter[b]] += worth
    if f.backed[q]:
        s.risk[b] += worth


@compiled
def cost(f: RasArrays, s: RasState) -> float:
    """The objective of the state; at least ``forbidden`` where a rule is broken."""
    total = 0.0
    for q in range(len(f.asked)):
        total += reservation_cost(f, s, q)
    return total
