"""Replica bookkeeping of tetris: a replica is added or dropped, and whether there is room for it."""

from __future__ import annotations

from mast_opt.core.jit import kernel
from mast_opt.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.data_placement.tetris.state import TetrisState


@kernel
def set_replica(a: TetrisArrays, s: TetrisState, i, r, present):
    """Add the replica of dataset i in region r, or drop it."""
    sign = 1 if present else -1
    s.place[i, r] = present
    s.copies[i] += sign
    s.storage[r] += sign * a.size[i]
    if not a.stored[i, r]:
        s.ingress[r] += sign * a.size[i]


@kernel
def replica_fits(a: TetrisArrays, s: TetrisState, i, r):
    """May a replica of dataset i be added in region r, by residency, storage and ingress?"""
    if a.forbidden[i, r] or s.storage[r] + a.size[i] > a.storage[r]:
        return False
    return a.stored[i, r] or s.ingress[r] + a.size[i] <= a.ingress[r]
