"""Server transfers of ras: a reservation that lacks something takes servers from others that miss them less.

Free servers are no answer where capacity is scarce: what one lacks another has, and who should have it depends on what
a server is worth to each. Candidates are compared by an estimate; what is done is judged exactly, and undone if it does
not pay.
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.ras.operators.delta_costs import (
    change,
    max_domain_loss,
    reservation_cost,
    short_cost,
)
from mast_opt.problems.server_assignment.ras.operators.reservation_reoptimise import extra_cost
from mast_opt.problems.server_assignment.ras.state import RasArrays, RasState

NO_POOL_LEVEL = 1 << 62
ROUNDING = 4e-15
"""A smaller share of a cost is no gain: where a rule is broken, costs are large and round."""


@kernel
def _spare(f: RasArrays, s: RasState, q: int) -> int:
    """Amount that q is guaranteed beyond what it asks; below 0 where it lacks something."""
    spare: int = s.total[q] - max_domain_loss(f, s, q) - f.asked[q]
    return spare


@kernel
def _missed(f: RasArrays, q: int, spare: int, worth: int) -> float:
    """Least cost for q of what it then lacks, if so much is taken from it."""
    lack = max(worth - spare, 0)
    if lack > f.short_most[q]:
        return f.forbidden
    return f.short_price * (lack - max(-spare, 0))


@kernel
def _best(f: RasArrays, s: RasState, q: int, spare: Ints, nothing: FloatArray, tried: Ints) -> tuple[int, int]:
    """(pair of q, pair of another, estimate) of the exchange that seems to save most."""
    level, lack = max_domain_loss(f, s, q), -spare[q]
    mine, theirs, least = -1, -1, -1e-13
    for n in range(f.start[q], f.start[q + 1]):
        worth, k = f.worth[n], f.stock[n]
        rise = max(s.held[q, f.board[n]] + worth - level, 0) if f.embedded[q] else 0
        net = min(worth - rise, lack)
        if net <= 0 or s.servers[n] >= f.most[n] or (rise > 0 and lack <= f.short_most[q]):
            continue
        own = extra_cost(f, s, n, 1, nothing, NO_POOL_LEVEL) + f.largest_price * rise - f.short_price * net
        if lack > f.short_most[q]:
            own -= f.forbidden * net / lack
        if own >= least:
            continue
        for at in range(f.stock_start[k], f.stock_start[k + 1]):
            m = f.stock_pairs[at]
            r = f.reservation[m]
            if r == q or s.servers[m] <= 0 or tried[m] == n:
                continue
            value = own + _missed(f, r, spare[r], f.worth[m])
            if value < least:
                value += extra_cost(f, s, m, -1, nothing, NO_POOL_LEVEL)
                if value < least:
                    mine, theirs, least = n, m, value
    return mine, theirs


@kernel
def _together(f: RasArrays, s: RasState, q: int, r: int) -> float:
    """Cost of two reservations, with what the pool pays for them."""
    cost = reservation_cost(f, s, q) + reservation_cost(f, s, r)
    if f.pool != q and f.pool != r and (f.backed[q] or f.backed[r]):
        cost += short_cost(f, s, f.pool, max_domain_loss(f, s, f.pool))
    return cost


@compiled
def transfer_servers(f: RasArrays, s: RasState, q: int, most: int, failures: int) -> float:
    """Let q take up to ``most`` servers, one after another, while it lacks something and fewer than ``failures``
    exchanges did not pay; returns by how much the cost has fallen.

    Its level rises only where it lacks more than it may.
    """
    nothing, tried = np.zeros(len(s.free)), np.full(len(f.stock), -1)
    spare = np.empty(len(f.asked), np.int64)
    for r in range(len(f.asked)):
        spare[r] = _spare(f, s, r)
    gain, failed = 0.0, 0
    for _ in range(most):
        if spare[q] >= 0 or failed == failures:
            break
        mine, theirs = _best(f, s, q, spare, nothing, tried)
        if mine < 0:
            break
        r = f.reservation[theirs]
        before = _together(f, s, q, r)
        change(f, s, theirs, -1)
        change(f, s, mine, 1)
        after = _together(f, s, q, r)
        enough = before - max(1e-13, ROUNDING * before)
        if -spare[q] > f.short_most[q]:  # nothing costs more than that, so every server towards it is right
            enough = before + f.forbidden / 2
        if after >= enough:
            change(f, s, mine, -1)
            change(f, s, theirs, 1)
            tried[theirs], failed = mine, failed + 1
            continue
        gain += before - after
        spare[q], spare[r] = _spare(f, s, q), _spare(f, s, r)
    return gain
