"""Replica moves of tetris: one is added, dropped, moved, or makes room for another.

Every change returns what it changed in the cost, and 0.0 if it was not made.
"""

from __future__ import annotations

from mast_opt.core.jit import kernel
from mast_opt.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.data_placement.tetris.operators.delta_costs import penalty_reduction, replica_price
from mast_opt.data_placement.tetris.state import TetrisState
from mast_opt.search.random_scalar import metropolis_accepts


@kernel
def set_replica(a: TetrisArrays, s: TetrisState, i, r, present):
    sign = 1 if present else -1
    s.place[i, r] = present
    s.copies[i] += sign
    s.storage[r] += sign * a.size[i]
    if not a.stored[i, r]:
        s.ingress[r] += sign * a.size[i]


@kernel
def fits(a: TetrisArrays, s: TetrisState, i, r, freed):
    """May a replica of i be added in r, when ``freed`` MB of storage leave it at the same time?"""
    if a.forbidden[i, r] or s.storage[r] + a.size[i] - freed > a.storage[r]:
        return False
    return a.stored[i, r] or s.ingress[r] + a.size[i] <= a.ingress[r]


@kernel
def add_or_drop_replica(a: TetrisArrays, s: TetrisState, i, r, temperature):
    """Add the replica of i in r, or drop it."""
    price = replica_price(a, i, r)
    remote = s.volume[i, r] * a.remote_price
    if s.place[i, r]:
        if a.pinned[i, r] or s.copies[i] <= a.copies_min[i]:
            return 0.0
        delta = remote - price + penalty_reduction(a, s.storage[r], a.storage[r], a.size[i])
        if not a.stored[i, r]:
            delta += penalty_reduction(a, s.ingress[r], a.ingress[r], a.size[i])
    else:
        if s.copies[i] >= a.copies_max[i] or not fits(a, s, i, r, 0):
            return 0.0
        delta = price - remote
        if s.copies[i] < a.copies_min[i]:
            delta -= a.relief
    if not metropolis_accepts(s.random, delta, temperature):
        return 0.0
    set_replica(a, s, i, r, not s.place[i, r])
    return delta


@kernel
def relocate_replica(a: TetrisArrays, s: TetrisState, i, r0, r1, temperature):
    """Move the replica of i from r0 to r1."""
    if not s.place[i, r0] or s.place[i, r1] or a.pinned[i, r0] or not fits(a, s, i, r1, 0):
        return 0.0
    delta = (s.volume[i, r0] - s.volume[i, r1]) * a.remote_price
    delta += replica_price(a, i, r1) - replica_price(a, i, r0)
    delta += penalty_reduction(a, s.storage[r0], a.storage[r0], a.size[i])
    if not metropolis_accepts(s.random, delta, temperature):
        return 0.0
    set_replica(a, s, i, r0, False)
    set_replica(a, s, i, r1, True)
    return delta


@kernel
def replace_replica(a: TetrisArrays, s: TetrisState, i, j, r, temperature):
    """In region r, drop the replica of i to make room for one of j."""
    if not s.place[i, r] or s.place[j, r] or a.pinned[i, r] or s.copies[i] <= a.copies_min[i]:
        return 0.0
    if s.copies[j] >= a.copies_max[j] or not fits(a, s, j, r, a.size[i]):
        return 0.0
    delta = (s.volume[i, r] - s.volume[j, r]) * a.remote_price
    delta += replica_price(a, j, r) - replica_price(a, i, r)
    if not metropolis_accepts(s.random, delta, temperature):
        return 0.0
    set_replica(a, s, i, r, False)
    set_replica(a, s, j, r, True)
    return delta
