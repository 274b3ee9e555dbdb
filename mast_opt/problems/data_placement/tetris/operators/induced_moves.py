"""Induced replica moves of tetris: a moved workload's data follows it, each replica added or dropped as pays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import kernel
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.operators.delta_costs import penalty_reduction
from mast_opt.problems.data_placement.tetris.state import TetrisState, replica_fits, set_replica

ADD, DROP = 1, 2


@kernel
def apply_induced_moves(a: TetrisArrays, s: TetrisState, w: int, r0: int, r1: int, action: NDArray[np.int8]) -> float:
    """Move what w reads from r0 to r1, each replica added or dropped as pays; ``action`` is for undoing that."""
    regions = s.place.shape[1]
    delta = 0.0
    for n in range(a.read_start[w], a.read_start[w + 1]):
        i, volume = a.read_dataset[n], a.read_volume[n]
        done = 0
        drop = False
        if r0 < regions:
            left = s.volume[i, r0] - volume
            if not s.place[i, r0]:
                delta -= volume * a.remote_price
            else:
                drop = not a.pinned[i, r0] and left * a.remote_price < a.replica_price[i, r0]
            s.volume[i, r0] = left
        if r1 < regions:
            before = s.volume[i, r1]
            s.volume[i, r1] = before + volume
            if not s.place[i, r1]:
                price = a.replica_price[i, r1]
                room = s.copies[i] < a.copies_max[i] or drop
                if room and (before + volume) * a.remote_price > price and replica_fits(a, s, i, r1):
                    delta += price - before * a.remote_price
                    set_replica(a, s, i, r1, True)
                    done |= ADD
                else:
                    delta += volume * a.remote_price
        if drop and s.copies[i] > a.copies_min[i]:
            delta += s.volume[i, r0] * a.remote_price - a.replica_price[i, r0]
            delta += penalty_reduction(a, s.storage[r0], a.storage[r0], a.size[i])
            set_replica(a, s, i, r0, False)
            done |= DROP
        action[n - a.read_start[w]] = done
    return delta


@kernel
def undo_induced_moves(a: TetrisArrays, s: TetrisState, w: int, r0: int, r1: int, action: NDArray[np.int8]) -> None:
    """Undo ``apply_induced_moves`` with the same arguments."""
    regions = s.place.shape[1]
    for n in range(a.read_start[w + 1] - 1, a.read_start[w] - 1, -1):
        i, volume = a.read_dataset[n], a.read_volume[n]
        done = action[n - a.read_start[w]]
        if done & DROP:
            set_replica(a, s, i, r0, True)
        if done & ADD:
            set_replica(a, s, i, r1, False)
        if r0 < regions:
            s.volume[i, r0] += volume
        if r1 < regions:
            s.volume[i, r1] -= volume


@kernel
def evaluate_induced_moves(a: TetrisArrays, s: TetrisState, w: int, r0: int, r1: int) -> float:
    """Change that ``apply_induced_moves`` would return, without moving anything; most changes are only priced."""
    regions = s.place.shape[1]
    delta = 0.0
    storage = s.storage[r1] + a.output[w] if r1 < regions else 0
    ingress = s.ingress[r1] if r1 < regions else 0
    relieved = r0 < regions and s.storage[r0] > a.storage[r0]
    for n in range(a.read_start[w], a.read_start[w + 1]):
        i, volume = a.read_dataset[n], a.read_volume[n]
        copies, drop, left, old = s.copies[i], False, 0.0, 0.0
        if r0 < regions:
            if not s.place[i, r0]:
                delta -= volume * a.remote_price
            else:
                left, old = (s.volume[i, r0] - volume) * a.remote_price, a.replica_price[i, r0]
                drop = not a.pinned[i, r0] and left < old
        if r1 < regions and not s.place[i, r1]:
            before, price, size = s.volume[i, r1], a.replica_price[i, r1], a.size[i]
            if (
                (copies < a.copies_max[i] or drop)
                and (before + volume) * a.remote_price > price
                and not a.forbidden[i, r1]
                and storage + size <= a.storage[r1]
                and (a.stored[i, r1] or ingress + size <= a.ingress[r1])
            ):
                delta += price - before * a.remote_price
                storage += size
                copies += 1
                if not a.stored[i, r1]:
                    ingress += size
            else:
                delta += volume * a.remote_price
        if drop and copies > a.copies_min[i]:
            delta += left - old
            if relieved:
                delta += penalty_reduction(a, s.storage[r0], a.storage[r0], a.size[i])
    return delta
