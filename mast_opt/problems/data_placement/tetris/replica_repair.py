"""Repair of replicas (tetris): regions hold those that save most for their size, within storage and ingress.

For first plans that exceed storage, and for Gibbs-sampled plans: prices of storage say at which saving for its size a
replica begins to pay, but not to the megabyte. Where a region holds too much, the replicas that save least for their
size are dropped, or move where there is room if there must be so many; where it could hold more, those that save most
are added.
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.state import TetrisState, replica_fits, set_replica

SPARE = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Share of their storage that regions clear for what others cannot hold, more and more until it is enough."""
NOTHING: Ints = np.zeros(0, np.int64)
NO_SAVING: FloatArray = np.zeros((0, 1))


def repair_replicas(a: TetrisArrays, s: TetrisState) -> None:
    """Bring storage and ingress within their limits, as far as dropping and moving replicas can; then use the room."""
    evict_excess(a, s)
    for r in range(len(a.cpu)):
        _add_by_density(a, s, r)


def evict_excess(a: TetrisArrays, s: TetrisState) -> None:
    """Bring storage and ingress within their limits, as far as dropping and moving replicas can."""
    for spare in SPARE:
        over = (s.storage > a.storage) | (s.ingress > a.ingress)
        if not over.any():
            break
        if spare > 0:
            for r in np.flatnonzero(~over).tolist():
                _evict_by_density(a, s, r, s.copies > a.copies_min, int((1 - spare) * a.storage[r]))
        for r in np.flatnonzero(over).tolist():
            _evict_by_density(a, s, r, np.ones_like(s.copies, np.bool_), a.storage[r])


def _evict_by_density(a: TetrisArrays, s: TetrisState, r: int, which: Bools, storage: int) -> None:
    """Take replicas of the datasets ``which`` [I] out of r, until no more than ``storage`` of it is in use."""
    here = np.flatnonzero(which & s.place[:, r] & ~a.pinned[:, r])
    saving = _saving(a, s, here)
    elsewhere = np.where(s.place[here] | a.forbidden[here], -np.inf, saving).max(axis=1)
    nowhere = np.where(s.copies[here] > a.copies_min[here], 0.0, -np.inf)
    loss = saving[:, r] - np.maximum(elsewhere, nowhere)
    order = np.argsort(loss / np.maximum(a.size[here], 1), kind="stable")
    _rearrange(a, s, r, here[order], saving[order], storage, NOTHING)


def _add_by_density(a: TetrisArrays, s: TetrisState, r: int) -> None:
    """Add the replicas to r that save most for their size, as long as there is room."""
    free = np.flatnonzero((s.volume[:, r] > 0) & ~s.place[:, r] & ~a.forbidden[:, r] & (s.copies < a.copies_max))
    saving = _saving(a, s, free)[:, r]
    order = np.argsort(-saving / np.maximum(a.size[free], 1), kind="stable")
    _rearrange(a, s, r, NOTHING, NO_SAVING, a.storage[r], free[order[saving[order] > 0]])


def _saving(a: TetrisArrays, s: TetrisState, datasets: Ints) -> FloatArray:
    """[datasets, R] what a replica saves readers, less what it costs."""
    return np.asarray(s.volume[datasets] * a.remote_price - a.replica_price[datasets])


@compiled
def _rearrange(
    a: TetrisArrays, s: TetrisState, r: int, leaving: Ints, saving: FloatArray, storage: int, coming: Ints
) -> None:
    """Replicas of the datasets ``leaving`` are dropped in turn, or move to where they save most, until no more than
    ``storage`` of r is in use; then those of ``coming`` are added in turn where they fit."""
    for at in range(len(leaving)):
        if s.storage[r] <= storage and s.ingress[r] <= a.ingress[r]:
            break
        i = leaving[at]
        surplus, to = s.copies[i] > a.copies_min[i], -1
        most = 0.0 if surplus else -np.inf
        for q in range(len(a.cpu)):
            if saving[at, q] > most and not s.place[i, q] and replica_fits(a, s, i, q):
                to, most = q, saving[at, q]
        if surplus or to >= 0:
            set_replica(a, s, i, r, False)
        if to >= 0:
            set_replica(a, s, i, to, True)
    for i in coming:
        if replica_fits(a, s, i, r):
            set_replica(a, s, i, r, True)
