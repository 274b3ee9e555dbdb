"""Separation of tree cuts (tetris): trees of reads that do not fit into one region, as work and data are whole.

Where the root of a tree (a dataset, or a workload) is in region r, the rest of the tree is there too, or some of its
reads part what they join. From a dataset down to a reader, a read parts them by place − run + remote; from a workload
up to what it reads, by remote. What the whole tree needs beyond a limit of r, ``spare``, must then be parted:

    Σ over the tree's reads of min(need below the read, spare)·parted ≥ spare·root

These are the knapsack tree inequalities of graph partitioning (Ferreira, Martin, de Souza, Weismantel & Wolsey, 1998).
Violated ones are found by a shortest path from the root, a read being as long as the relaxation parts its ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays

LIMITS = 2
"""Cores and storage."""


@dataclass(eq=False)
class CutBuffers:
    """Trees with their prices; the first ``count`` of each array are in use.

    A tree's reads stand in the order in which they were reached. All rows are divided by what the tree needs.
    """

    count: int
    start: Ints
    """First read of each tree, [T+1]."""
    read: NDArray[np.int32]
    """[A] position of the read."""
    parent: NDArray[np.int32]
    """[A] the read that leads here, counted from the tree's first; −1 at the root."""
    down: NDArray[np.bool_]
    """[A] from a dataset to a reader?"""
    share: NDArray[np.float32]
    """[A] coefficient of the read."""
    root: Ints
    """[T] a dataset, or the number of datasets + a workload."""
    region: Ints
    limit: Ints
    """[T] 0 for cores, 1 for storage."""
    needs: FloatArray
    """[T] millicores or MB of the whole tree."""
    spare: FloatArray
    """[T] coefficient of the root."""
    price: FloatArray
    """[T] multiplier of the row."""
    age: Ints
    """[T] separations since the tree was found."""

    @classmethod
    def empty(cls, trees: int, reads: int) -> CutBuffers:
        """Room for so many trees and reads of trees."""
        return cls(
            0,
            np.zeros(trees + 1, np.int64),
            np.zeros(reads, np.int32),
            np.zeros(reads, np.int32),
            np.zeros(reads, np.bool_),
            np.zeros(reads, np.float32),
            np.zeros(trees, np.int64),
            np.zeros(trees, np.int64),
            np.zeros(trees, np.int64),
            np.zeros(trees),
            np.zeros(trees),
            np.zeros(trees),
            np.zeros(trees, np.int64),
        )

    def taken(self, trees: Ints) -> CutBuffers:
        """A copy of some trees, in their order, without spare room."""
        length = np.diff(self.start)[trees]
        start = np.concatenate([[0], np.cumsum(length)])
        arcs = np.arange(start[-1]) + np.repeat(self.start[trees] - start[:-1], length)
        by_arc = (values[arcs] for values in (self.read, self.parent, self.down, self.share))
        by_tree = (self.root, self.region, self.limit, self.needs, self.spare, self.price, self.age)
        return CutBuffers(len(trees), start, *by_arc, *(values[trees] for values in by_tree))

    def prune(self) -> None:
        """Forget the trees that two separations have left without a price."""
        useful = np.flatnonzero((self.price[: self.count] > 0) | (self.age[: self.count] < 2))
        if len(useful) == self.count:
            return
        few = self.taken(useful)
        self.count = few.count
        self.start[: few.count + 1] = few.start
        arcs = int(few.start[-1])
        for name in ("read", "parent", "down", "share"):
            getattr(self, name)[:arcs] = getattr(few, name)
        for name in ("root", "region", "limit", "needs", "spare", "price", "age"):
            getattr(self, name)[: few.count] = getattr(few, name)


Narrow = NDArray[np.int32]
TreeArrays = tuple[Ints, Narrow, Narrow, Bools, Singles, Ints, Ints, Ints, FloatArray, FloatArray, FloatArray, Ints]
"""The arrays of ``CutBuffers``, in their order."""


@kernel
def _push(keys: FloatArray, nodes: Ints, count: int, key: float, node: int) -> int:
    at = count
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at], nodes[at] = keys[above], nodes[above]
        at = above
    keys[at], nodes[at] = key, node
    return count + 1


@kernel
def _pop(keys: FloatArray, nodes: Ints, count: int) -> int:
    """Take the first away."""
    count -= 1
    key, node, at = keys[count], nodes[count], 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at], nodes[at] = keys[below], nodes[below]
        at = below
    keys[at], nodes[at] = key, node
    return count


@kernel
def _reach(
    a: TetrisArrays,
    root: int,
    here: float,
    whole: Bools,
    down: FloatArray,
    up: FloatArray,
    detour: FloatArray,
    order: Ints,
    led_from: Ints,
    led_by: Ints,
    distance: FloatArray,
    done: Bools,
    keys: FloatArray,
    nodes: Ints,
) -> int:
    """Shortest paths from a root to all that is nearer than ``here``, in ``order``; returns how many there are.

    Every dataset passed costs ``detour`` more, so that first trees are not arbitrary.
    """
    datasets = len(a.size)
    distance[root] = 0.0
    waiting, count = _push(keys, nodes, 0, 0.0, root), 0
    while waiting > 0:
        far, v = keys[0], nodes[0]
        waiting = _pop(keys, nodes, waiting)
        if done[v]:
            continue
        done[v] = True
        order[count] = v
        count += 1
        from_dataset = v < datasets
        if from_dataset:
            first, last = a.reader_start[v], a.reader_start[v + 1]
        else:
            first, last = a.read_start[v - datasets], a.read_start[v - datasets + 1]
        for j in range(first, last):
            n = a.reader_read[j] if from_dataset else j
            u = datasets + a.reader[j] if from_dataset else a.read_dataset[j]
            if done[u] or (from_dataset and not whole[u - datasets]):
                continue
            length = far + (down[n] + here * detour[v] if from_dataset else up[n])
            if length < here and length < distance[u] and waiting < len(keys):
                distance[u] = length
                led_from[u], led_by[u] = v, n
                waiting = _push(keys, nodes, waiting, length, u)
    return count


@compiled
def separate(
    a: TetrisArrays,
    pool: tuple[TreeArrays, int],
    region: int,
    roots: Ints,
    inside: FloatArray,
    whole: Bools,
    down: FloatArray,
    up: FloatArray,
    need: FloatArray,
    limit: FloatArray,
    detour: FloatArray,
    violation: float,
) -> int:
    """Add violated trees of one region to the pool, as far as there is room; returns how many trees it holds then.

    Args:
        inside: [I + W] share of every dataset and workload that is in the region.
        whole: [W] is the workload indivisible? Others are in no tree.
        down, up: [N] by how much the relaxation parts the ends of each read, downwards and upwards.
        need: [2, I + W] of cores and storage; limit: [2] those of the region.
        detour: [I]
        violation: the least of a tree that is added, as a share of what it needs.
    """
    (start, read, parent, is_down, share, root_of, region_of, limit_of, needs, spare_of, price, age), trees = pool
    datasets, nodes_in_all = len(a.size), len(inside)
    distance, done = np.full(nodes_in_all, np.inf), np.zeros(nodes_in_all, np.bool_)
    order, led_from = np.empty(nodes_in_all, np.int64), np.empty(nodes_in_all, np.int64)
    led_by, place = np.empty(nodes_in_all, np.int64), np.empty(nodes_in_all, np.int64)
    below, parted = np.empty(nodes_in_all), np.empty(nodes_in_all)
    room = 2 * len(a.read_dataset) + nodes_in_all + 1
    keys, waiting = np.empty(room), np.empty(room, np.int64)
    for root in roots:
        here = inside[root]
        if here < 1e-4 or (root >= datasets and not whole[root - datasets]):
            continue
        count = _reach(a, root, here, whole, down, up, detour, order, led_from, led_by, distance, done, keys, waiting)
        parted[root] = 0.0
        for j in range(1, count):
            v = order[j]
            u, n = led_from[v], led_by[v]
            parted[v] = parted[u] + (down[n] if u < datasets else up[n])
        for which in range(len(limit)):
            total, held = 0.0, 0.0
            for j in range(count):
                v = order[j]
                below[v] = need[which, v]
                total += need[which, v]
                held += need[which, v] * (here - parted[v])
            if total <= limit[which] or held - limit[which] * here <= violation * total:
                continue
            at = start[trees]
            if at + count > len(read) or trees + 1 >= len(root_of):
                continue
            for j in range(count - 1, 0, -1):
                below[led_from[order[j]]] += below[order[j]]
            spare = total - limit[which]
            for j in range(1, count):
                v = order[j]
                if below[v] <= 0.0:
                    continue
                u = led_from[v]
                read[at], is_down[at] = led_by[v], u < datasets
                parent[at] = -1 if u == root else place[u]
                share[at] = min(below[v], spare) / total
                place[v] = at - start[trees]
                at += 1
            root_of[trees], region_of[trees], limit_of[trees] = root, region, which
            needs[trees], spare_of[trees], price[trees], age[trees] = total, spare / total, 0.0, 0
            trees += 1
            start[trees] = at
        for j in range(count):
            v = order[j]
            done[v], distance[v] = False, np.inf
            if v < datasets:
                for q in range(a.reader_start[v], a.reader_start[v + 1]):
                    distance[datasets + a.reader[q]] = np.inf
            else:
                for q in range(a.read_start[v - datasets], a.read_start[v - datasets + 1]):
                    distance[a.read_dataset[q]] = np.inf
    return trees


@compiled
def distribute_cut_prices(
    start: Ints,
    read: NDArray[np.int32],
    is_down: Bools,
    share: Singles,
    root: Ints,
    region: Ints,
    spare: FloatArray,
    price: FloatArray,
    down: FloatArray,
    up: FloatArray,
    lift: FloatArray,
) -> None:
    """Charges of the trees at their prices: each read downwards and upwards [R, N], each root [I + W, R]."""
    down[:] = 0.0
    up[:] = 0.0
    lift[:] = 0.0
    for t in range(len(root)):
        if price[t] > 0.0:
            r = region[t]
            for j in range(start[t], start[t + 1]):
                if is_down[j]:
                    down[r, read[j]] += price[t] * share[j]
                else:
                    up[r, read[j]] += price[t] * share[j]
            lift[root[t], r] += price[t] * spare[t]


@compiled
def tree_step(
    start: Ints,
    read: NDArray[np.int32],
    is_down: Bools,
    share: Singles,
    root: Ints,
    region: Ints,
    spare: FloatArray,
    price: FloatArray,
    pace: FloatArray,
    down: FloatArray,
    up: FloatArray,
    places: Singles,
    runs: Singles,
) -> None:
    """Dual step of the trees' rows by ``pace`` [T], where reads part their ends by ``down`` and ``up`` [R, N]."""
    datasets = len(places)
    for t in range(len(root)):
        r, parted = region[t], 0.0
        for j in range(start[t], start[t + 1]):
            parted += share[j] * (down[r, read[j]] if is_down[j] else up[r, read[j]])
        here = places[root[t], r] if root[t] < datasets else runs[root[t] - datasets, r]
        price[t] = max(0.0, price[t] + pace[t] * (spare[t] * here - parted))


@compiled
def remote_step(
    a: TetrisArrays,
    owner: Ints,
    cap: FloatArray,
    charge_down: FloatArray,
    charge_up: FloatArray,
    pace: FloatArray,
    remote: FloatArray,
    own: FloatArray,
    read_pace: float,
    runs: Singles,
    places: Singles,
    down: FloatArray,
    up: FloatArray,
) -> None:
    """Primal step of the remote reads, then the dual step of ``own``, the price of each row ``local``.

    ``down`` and ``up`` [R, N] receive by how much the extrapolated point parts the ends of every read.
    """
    for n in range(len(owner)):
        i, w = a.read_dataset[n], owner[n]
        for r in range(own.shape[1]):
            left = cap[n] - own[n, r] - charge_down[r, n] - charge_up[r, n]
            new = min(max(remote[n, r] - pace[n, r] * left, 0.0), 1.0)
            ahead = 2.0 * new - remote[n, r]
            remote[n, r] = new
            up[r, n] = ahead
            down[r, n] = places[i, r] - runs[w, r] + ahead
            own[n, r] = max(0.0, own[n, r] - read_pace * down[r, n])
