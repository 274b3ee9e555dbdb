"""Two datasets change places, each with its readers and what they cannot leave behind.

Where storage is almost full neither finds room before the other has gone, so no change of one of them is possible.
"""

from __future__ import annotations

from mast_opt.core.jit import kernel
from mast_opt.data_placement.tetris.instance_arrays import Arrays
from mast_opt.data_placement.tetris.operators.compound_moves import gather, have_room
from mast_opt.data_placement.tetris.operators.delta_costs import gpu_change, replica_price, stay_worth
from mast_opt.data_placement.tetris.operators.induced_moves import follow, unfollow
from mast_opt.data_placement.tetris.operators.replica_moves import set_replica
from mast_opt.data_placement.tetris.operators.workload_moves import enter
from mast_opt.data_placement.tetris.operators.workspace import Scratch
from mast_opt.data_placement.tetris.state import State
from mast_opt.search.random_scalar import allowance


@kernel
def trade(a: Arrays, s: State, i, r0, j, r1, temperature, scratch: Scratch):
    """Exchange the replica of i in r0 and that of j in r1, with all that hangs on them."""
    if r0 == r1 or s.place[i, r1] or s.place[j, r0]:
        return 0.0
    one, two = scratch.herd, scratch.other
    w0, d0 = gather(a, s, i, r0, one.workloads, one.datasets)
    if w0 < 0 or not _may_leave(a, s, one, d0, r0, r1):
        return 0.0
    w1, d1 = gather(a, s, j, r1, two.workloads, two.datasets)
    if w1 < 0 or not _may_leave(a, s, two, d1, r1, r0):
        return 0.0
    if not have_room(a, s, r1, one, w0, d0, two, w1, d1) or not have_room(a, s, r0, two, w1, d1, one, w0, d0):
        return 0.0
    threshold = allowance(s.random, temperature)
    delta = _replicas(a, s, one, d0, r0, False) + _replicas(a, s, two, d1, r1, False)
    delta += _replicas(a, s, one, d0, r1, True) + _replicas(a, s, two, d1, r0, True)
    delta += _pass(a, s, one, w0, r0, r1) + _pass(a, s, two, w1, r1, r0)
    delta += _follow(a, s, one, w0, r0, r1) + _follow(a, s, two, w1, r1, r0)
    if delta <= threshold:
        return delta
    _unfollow(a, s, two, w1, r1, r0)
    _unfollow(a, s, one, w0, r0, r1)
    _pass(a, s, two, w1, r0, r1)
    _pass(a, s, one, w0, r1, r0)
    _replicas(a, s, two, d1, r0, False)
    _replicas(a, s, one, d0, r1, False)
    _replicas(a, s, two, d1, r1, True)
    _replicas(a, s, one, d0, r0, True)
    return 0.0


@kernel
def _may_leave(a: Arrays, s: State, herd, datasets, r0, r1):
    """May every replica of the herd leave r0, and is none of them in r1 already?"""
    for j in range(datasets):
        d = herd.datasets[j]
        if a.pinned[d, r0] or s.place[d, r1]:
            return False
    return True


@kernel
def _replicas(a: Arrays, s: State, herd, datasets, r, present):
    """Add the herd's replicas in r, or drop them."""
    delta = 0.0
    for j in range(datasets):
        d = herd.datasets[j]
        price = replica_price(a, d, r) - s.volume[d, r] * a.remote_price
        delta += price if present else -price
        set_replica(a, s, d, r, present)
    return delta


@kernel
def _pass(a: Arrays, s: State, herd, workloads, r0, r1):
    """Take the herd's demand from r0 to r1."""
    delta = 0.0
    for j in range(workloads):
        w = herd.workloads[j]
        k, g = a.option_type[s.option[w]], a.option_mgpu[s.option[w]]
        delta += gpu_change(a, s, a.tier[w], r0, k, g, r1, k, g, True) + stay_worth(a, w, r0) - stay_worth(a, w, r1)
        enter(a, s, w, r0, -1)
        enter(a, s, w, r1, 1)
    return delta


@kernel
def _follow(a: Arrays, s: State, herd, workloads, r0, r1):
    """Let what the herd's workloads read beside its datasets follow them."""
    delta = 0.0
    for j in range(workloads):
        delta += follow(a, s, herd.workloads[j], r0, r1, herd.action[j])
        s.region[herd.workloads[j]] = r1
    return delta


@kernel
def _unfollow(a: Arrays, s: State, herd, workloads, r0, r1):
    for j in range(workloads - 1, -1, -1):
        s.region[herd.workloads[j]] = r0
        unfollow(a, s, herd.workloads[j], r0, r1, herd.action[j])
