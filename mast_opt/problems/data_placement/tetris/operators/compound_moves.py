"""Compound move of tetris: a dataset moves with its dependency closure, or two exchange regions with theirs."""

from __future__ import annotations

from mast_opt.core.jit import kernel
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.operators.delta_costs import gpu_change, option_worth, region_worth
from mast_opt.problems.data_placement.tetris.operators.induced_moves import apply_induced_moves, undo_induced_moves
from mast_opt.problems.data_placement.tetris.operators.workload_moves import add_load
from mast_opt.problems.data_placement.tetris.operators.workspace import CompoundMoveBuffers, Workspace
from mast_opt.problems.data_placement.tetris.state import TetrisState, set_replica
from mast_opt.problems.search.random_scalar import metropolis_threshold


@kernel
def _among(values: Ints, count: int, value: int) -> bool:
    """Whether the value is one of values[:count]."""
    found = False
    for j in range(count):
        found = found or values[j] == value
    return found


@kernel
def dependency_closure(a: TetrisArrays, s: TetrisState, i: int, r0: int, works: Ints, data: Ints) -> tuple[int, int]:
    """The readers of i in r0, the datasets that they alone could not take along, their readers, and so on.

    Returns (workloads, datasets), or (−1, −1) if those are more than there is space for.
    """
    data[0] = i
    datasets, workloads, at = 1, 0, 0
    while at < datasets:
        d = data[at]
        at += 1
        for j in range(a.reader_start[d], a.reader_start[d + 1]):
            w = a.reader[j]
            if s.region[w] != r0 or _among(works, workloads, w):
                continue
            if workloads == len(works):
                return -1, -1
            works[workloads] = w
            workloads += 1
            for n in range(a.read_start[w], a.read_start[w + 1]):
                e = a.read_dataset[n]
                if s.place[e, r0] and s.copies[e] >= a.copies_max[e] and not _among(data, datasets, e):
                    if datasets == len(data):
                        return -1, -1
                    data[datasets] = e
                    datasets += 1
    return workloads, datasets


@kernel
def have_room(
    a: TetrisArrays,
    s: TetrisState,
    r: int,
    came: CompoundMoveBuffers,
    workloads: int,
    datasets: int,
    left: CompoundMoveBuffers,
    leavers: int,
    emptied: int,
) -> bool:
    """Whether ``workloads`` and ``datasets`` of one closure may come to r while those of another (``left``) leave it.

    No limit may end beyond both itself and where it is. Data that is in r already needs no room.
    """
    cpu, storage, ingress = s.cpu[r], s.storage[r], s.ingress[r]
    for j in range(leavers):
        cpu -= a.cpu_need[left.workloads[j]]
        storage -= a.output[left.workloads[j]]
    for j in range(emptied):
        d = left.datasets[j]
        storage -= a.size[d]
        if not a.stored[d, r]:
            ingress -= a.size[d]
    for j in range(datasets):
        d = came.datasets[j]
        if not s.place[d, r]:
            if a.forbidden[d, r]:
                return False
            storage += a.size[d]
            if not a.stored[d, r]:
                ingress += a.size[d]
    for j in range(workloads):
        w = came.workloads[j]
        cpu += a.cpu_need[w]
        storage += a.output[w]
        if not a.option_region[s.option[w], r] or not _in_quota(a, s, w, r, came, workloads, left, leavers):
            return False
    if cpu > a.cpu[r] and cpu > s.cpu[r]:
        return False
    if storage > a.storage[r] and storage > s.storage[r]:
        return False
    return bool(ingress <= a.ingress[r] or ingress <= s.ingress[r])


@kernel
def _in_quota(
    a: TetrisArrays,
    s: TetrisState,
    w: int,
    r: int,
    came: CompoundMoveBuffers,
    workloads: int,
    left: CompoundMoveBuffers,
    leavers: int,
) -> bool:
    """Whether w's application stays within its quota in r."""
    row = a.quota_row[a.app[w], r]
    if row < 0:
        return True
    quota = s.quota[row]
    for j in range(workloads):
        if a.quota_row[a.app[came.workloads[j]], r] == row:
            quota += a.cpu_need[came.workloads[j]]
    for j in range(leavers):
        if a.quota_row[a.app[left.workloads[j]], r] == row:
            quota -= a.cpu_need[left.workloads[j]]
    return bool(quota <= a.quota[row] or quota <= s.quota[row])


@kernel
def compound_move(
    a: TetrisArrays, s: TetrisState, i: int, r0: int, j: int, r1: int, temperature: float, workspace: Workspace
) -> float:
    """Move the replica of i from r0 to r1 with its closure; where j ≥ 0, that of j from r1 to r0 in exchange."""
    if r0 == r1 or s.place[i, r1] or (j >= 0 and s.place[j, r0]):
        return 0.0
    one, two = workspace.closure, workspace.other_closure
    w0, d0 = dependency_closure(a, s, i, r0, one.workloads, one.datasets)
    if w0 < 0 or not _may_leave(a, s, one, d0, r0, r1):
        return 0.0
    w1, d1 = 0, 0
    if j >= 0:
        w1, d1 = dependency_closure(a, s, j, r1, two.workloads, two.datasets)
        if w1 < 0 or not _may_leave(a, s, two, d1, r1, r0):
            return 0.0
    if not have_room(a, s, r1, one, w0, d0, two, w1, d1) or not have_room(a, s, r0, two, w1, d1, one, w0, d0):
        return 0.0
    threshold = metropolis_threshold(s.random, temperature)
    delta = _set_replicas(a, s, one, d0, r0, False) + _set_replicas(a, s, two, d1, r1, False)
    delta += _set_replicas(a, s, one, d0, r1, True) + _set_replicas(a, s, two, d1, r0, True)
    delta += _move_demand(a, s, one, w0, r0, r1) + _move_demand(a, s, two, w1, r1, r0)
    delta += _apply_induced_moves(a, s, one, w0, r0, r1) + _apply_induced_moves(a, s, two, w1, r1, r0)
    if delta <= threshold:
        return delta
    _undo_induced_moves(a, s, two, w1, r1, r0)
    _undo_induced_moves(a, s, one, w0, r0, r1)
    _move_demand(a, s, two, w1, r0, r1)
    _move_demand(a, s, one, w0, r1, r0)
    _set_replicas(a, s, two, d1, r0, False)
    _set_replicas(a, s, one, d0, r1, False)
    _set_replicas(a, s, two, d1, r1, True)
    _set_replicas(a, s, one, d0, r0, True)
    return 0.0


@kernel
def _may_leave(a: TetrisArrays, s: TetrisState, closure: CompoundMoveBuffers, datasets: int, r0: int, r1: int) -> bool:
    """Whether every replica of the closure may leave r0, and none of them is in r1 already."""
    for j in range(datasets):
        d = closure.datasets[j]
        if a.pinned[d, r0] or s.place[d, r1]:
            return False
    return True


@kernel
def _set_replicas(
    a: TetrisArrays, s: TetrisState, closure: CompoundMoveBuffers, datasets: int, r: int, present: bool
) -> float:
    """Add the closure's replicas in r, or drop them; returns the change in cost."""
    delta = 0.0
    for j in range(datasets):
        d = closure.datasets[j]
        price = a.replica_price[d, r] - s.volume[d, r] * a.remote_price
        delta += price if present else -price
        set_replica(a, s, d, r, present)
    return delta


@kernel
def _move_demand(
    a: TetrisArrays, s: TetrisState, closure: CompoundMoveBuffers, workloads: int, r0: int, r1: int
) -> float:
    """Move the closure's demand from r0 to r1; returns the change in cost."""
    delta = 0.0
    for j in range(workloads):
        w = closure.workloads[j]
        o = s.option[w]
        k, g = a.option_type[o], a.option_mgpu[o]
        delta += gpu_change(a, s, a.tier[w], r0, k, g, r1, k, g, True) + region_worth(a, w, r0) - region_worth(a, w, r1)
        delta += option_worth(a, w, o, r0) - option_worth(a, w, o, r1)
        add_load(a, s, w, r0, -1)
        add_load(a, s, w, r1, 1)
    return delta


@kernel
def _apply_induced_moves(
    a: TetrisArrays, s: TetrisState, closure: CompoundMoveBuffers, workloads: int, r0: int, r1: int
) -> float:
    """Move the closure's workloads, and what else they read as pays; returns the change in cost."""
    delta = 0.0
    for j in range(workloads):
        delta += apply_induced_moves(a, s, closure.workloads[j], r0, r1, closure.action[j])
        s.region[closure.workloads[j]] = r1
    return delta


@kernel
def _undo_induced_moves(
    a: TetrisArrays, s: TetrisState, closure: CompoundMoveBuffers, workloads: int, r0: int, r1: int
) -> None:
    """Undo ``_apply_induced_moves`` with the same arguments."""
    for j in range(workloads - 1, -1, -1):
        s.region[closure.workloads[j]] = r0
        undo_induced_moves(a, s, closure.workloads[j], r0, r1, closure.action[j])
