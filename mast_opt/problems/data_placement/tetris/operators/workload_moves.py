"""Workload moves of tetris: one moves, or two exchange regions. Each is priced exactly, then made or left.

Every change returns what it changed in the cost, and 0.0 if it was not made. Hard limits may be exceeded in a start,
never by a change; moving out of an exceeded limit is rewarded by ``relief``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import kernel
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.operators.delta_costs import (
    gpu_change,
    option_worth,
    penalty_reduction,
    region_worth,
)
from mast_opt.problems.data_placement.tetris.operators.induced_moves import (
    apply_induced_moves,
    evaluate_induced_moves,
    undo_induced_moves,
)
from mast_opt.problems.data_placement.tetris.state import TetrisState
from mast_opt.problems.search.random_scalar import metropolis_threshold


@kernel
def add_load(a: TetrisArrays, s: TetrisState, w: int, r: int, sign: int) -> None:
    """Add w's cores and output to r (sign 1) or take them out (sign −1)."""
    if r < s.place.shape[1]:
        s.cpu[r] += sign * a.cpu_need[w]
        s.storage[r] += sign * a.output[w]
        row = a.quota_row[a.app[w], r]
        if row >= 0:
            s.quota[row] += sign * a.cpu_need[w]


@kernel
def load_reduction_gain(a: TetrisArrays, s: TetrisState, w: int, r: int) -> float:
    """Relief of the limits of r when w leaves it."""
    if r >= s.place.shape[1]:
        return 0.0
    delta = penalty_reduction(a, s.cpu[r], a.cpu[r], a.cpu_need[w]) + penalty_reduction(
        a, s.storage[r], a.storage[r], a.output[w]
    )
    row = a.quota_row[a.app[w], r]
    if row >= 0:
        delta += penalty_reduction(a, s.quota[row], a.quota[row], a.cpu_need[w])
    return delta


@kernel
def has_room(a: TetrisArrays, s: TetrisState, w: int, r: int) -> bool:
    """Whether r has cores, storage for the output and quota for w."""
    if r >= s.place.shape[1]:
        return True
    if s.cpu[r] + a.cpu_need[w] > a.cpu[r]:
        return False
    if a.output[w] > 0 and s.storage[r] + a.output[w] > a.storage[r]:
        return False
    row = a.quota_row[a.app[w], r]
    return bool(row < 0 or s.quota[row] + a.cpu_need[w] <= a.quota[row])


@kernel
def move_workload(
    a: TetrisArrays, s: TetrisState, w: int, o1: int, r1: int, temperature: float, action: NDArray[np.int8]
) -> float:
    """Run w on option o1 in region r1 (R: leave it out)."""
    o0, r0 = s.option[w], s.region[w]
    regions = s.place.shape[1]
    if r0 != r1 and not has_room(a, s, w, r1):
        return 0.0
    k0, g0, k1, g1 = a.option_type[o0], a.option_mgpu[o0], a.option_type[o1], a.option_mgpu[o1]
    threshold = metropolis_threshold(s.random, temperature)
    delta = gpu_change(a, s, a.tier[w], r0, k0, g0, r1, k1, g1, False)
    delta += option_worth(a, w, o0, r0) - option_worth(a, w, o1, r1)
    if r0 != r1:
        delta += region_worth(a, w, r0) - region_worth(a, w, r1)
        if r1 == regions:
            delta += a.refuse_price[w]
        elif r0 == regions:
            delta -= a.refuse_price[w]
        delta += load_reduction_gain(a, s, w, r0)
        if delta - a.stakes[w] > threshold:
            return 0.0
        delta += evaluate_induced_moves(a, s, w, r0, r1)
    if delta > threshold:
        return 0.0
    if r0 != r1:
        add_load(a, s, w, r0, -1)
        add_load(a, s, w, r1, 1)
        apply_induced_moves(a, s, w, r0, r1, action)
    gpu_change(a, s, a.tier[w], r0, k0, g0, r1, k1, g1, True)
    s.option[w], s.region[w] = o1, r1
    return delta


@kernel
def _swap_room(a: TetrisArrays, s: TetrisState, w: int, v: int, r: int) -> bool:
    """Whether w may take v's place in r, which v leaves."""
    if r >= s.place.shape[1]:
        return True
    cpu = s.cpu[r] + a.cpu_need[w] - a.cpu_need[v]
    if cpu > a.cpu[r] and cpu > s.cpu[r]:
        return False
    if a.output[w] > a.output[v] and s.storage[r] + a.output[w] - a.output[v] > a.storage[r]:
        return False
    into, out = a.quota_row[a.app[w], r], a.quota_row[a.app[v], r]
    if into < 0:
        return True
    quota = s.quota[into] + a.cpu_need[w] - (a.cpu_need[v] if out == into else 0)
    return bool(quota <= a.quota[into] or quota <= s.quota[into])


@kernel
def swap_workloads(
    a: TetrisArrays,
    s: TetrisState,
    w: int,
    ow: int,
    v: int,
    ov: int,
    temperature: float,
    action: NDArray[np.int8],
    second: NDArray[np.int8],
) -> float:
    """Exchange the regions of two workloads; w then runs on its option ow, v on its option ov."""
    rw, rv = s.region[w], s.region[v]
    if rw == rv or not a.option_region[ow, rv] or not a.option_region[ov, rw]:
        return 0.0
    if not _swap_room(a, s, w, v, rv) or not _swap_room(a, s, v, w, rw):
        return 0.0
    regions = s.place.shape[1]
    threshold = metropolis_threshold(s.random, temperature)
    delta = region_worth(a, w, rw) + region_worth(a, v, rv) - region_worth(a, w, rv) - region_worth(a, v, rw)
    delta += option_worth(a, w, s.option[w], rw) + option_worth(a, v, s.option[v], rv)
    delta -= option_worth(a, w, ow, rv) + option_worth(a, v, ov, rw)
    if rw == regions:
        delta += a.refuse_price[v] - a.refuse_price[w]
    elif rv == regions:
        delta += a.refuse_price[w] - a.refuse_price[v]
    kw, gw, kv, gv = _gpus_of(a, s.option[w], s.option[v])
    nw, hw, nv, hv = _gpus_of(a, ow, ov)
    neutral = nw == kv and hw == gv and nv == kw and hv == gw and a.tier[w] == a.tier[v]
    if not neutral:
        delta += gpu_change(a, s, a.tier[w], rw, kw, gw, rv, nw, hw, True)
        delta += gpu_change(a, s, a.tier[v], rv, kv, gv, rw, nv, hv, True)
    # Priced one by one first: exact unless the two share a dataset or room, and most swaps end here.
    if delta + evaluate_induced_moves(a, s, w, rw, rv) + evaluate_induced_moves(a, s, v, rv, rw) <= threshold:
        add_load(a, s, w, rw, -1)
        add_load(a, s, v, rv, -1)
        add_load(a, s, w, rv, 1)
        add_load(a, s, v, rw, 1)
        delta += apply_induced_moves(a, s, w, rw, rv, action)
        delta += apply_induced_moves(a, s, v, rv, rw, second)
        if delta <= threshold:
            s.option[w], s.option[v] = ow, ov
            s.region[w], s.region[v] = rv, rw
            return delta
        undo_induced_moves(a, s, v, rv, rw, second)
        undo_induced_moves(a, s, w, rw, rv, action)
        add_load(a, s, v, rw, -1)
        add_load(a, s, w, rv, -1)
        add_load(a, s, v, rv, 1)
        add_load(a, s, w, rw, 1)
    if not neutral:
        gpu_change(a, s, a.tier[v], rw, nv, hv, rv, kv, gv, True)
        gpu_change(a, s, a.tier[w], rv, nw, hw, rw, kw, gw, True)
    return 0.0


@kernel
def _gpus_of(a: TetrisArrays, o: int, q: int) -> tuple[int, int, int, int]:
    return a.option_type[o], a.option_mgpu[o], a.option_type[q], a.option_mgpu[q]
