"""Refinement for the multilevel start of tetris: k-way local search after Fiduccia & Mattheyses (1982).

Nodes move one by one, the best first, each once in a search; then everything after the best state is undone, so the
search crosses states that are worse. Regions may exceed their storage on the way by ``slack`` in all: as long as one
does, only nodes that leave such a region move, so that exchanges and cycles of moves pass through tight storage.
Searches begin from all nodes at a boundary, or from one node at a time (Sanders & Schulz, "Engineering multilevel graph
partitioning algorithms", 2011).
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.multilevel.coarsening import Graph

FREE, QUEUED, LOCKED = 0, 1, 2
"""States of a node in a search: not reached yet; waiting; moved or refused."""
NEVER = np.iinfo(np.int64).min


@compiled
def connection(graph: Graph, part: Ints):  # type: ignore[no-untyped-def]
    """[N, R] weight of the edges of each node to each region, and its pull."""
    found = graph.pull.copy()
    for v in range(len(part)):
        for e in range(graph.start[v], graph.start[v + 1]):
            found[v, part[graph.neighbour[e]]] += graph.weight[e]
    return found


def kept_weight(graph: Graph, part: Ints) -> int:
    """Weight of the edges within regions and pull of every node: what partitions maximise."""
    nodes = np.arange(len(part))
    own, pull = connection(graph, part)[nodes, part], graph.pull[nodes, part]
    return int(own.sum() + pull.sum()) // 2


def boundary(graph: Graph, part: Ints, conn: Ints, used: Ints, room: Ints) -> Ints:
    """Nodes with an edge or a pull to another region, and all those in a region that holds too much."""
    own = conn[np.arange(len(part)), part]
    other = conn.copy()
    other[np.arange(len(part)), part] = NEVER
    return np.flatnonzero((other.max(axis=1) > 0) | (own < 0) | (used > room)[part])


@compiled
def refine(
    graph: Graph, part: Ints, used: Ints, conn: Ints, room: Ints, slack: int, seeds: Ints, group: int, patience: int
) -> int:
    """Improve a partition by searches from each ``group`` of ``seeds`` in turn; ``part`` [N], ``used`` [R] (MB) and
    ``conn`` [N, R] are kept up to date.

    Args:
        room: [R] storage, MB.
        slack: most MB beyond it on the way.
        patience: moves without a better state after which a search ends.

    Returns:
        How much more weight is kept. Excess storage that is brought back comes first, so it may be negative.
    """
    nodes, regions = conn.shape
    heap, count = np.empty((regions, nodes), np.int64), np.zeros(regions, np.int64)
    where, key, status = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.zeros(nodes, np.int64)
    reached, moved, origin = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    gained = 0
    excess = 0
    for r in range(regions):
        excess += max(0, used[r] - room[r])
    for begin in range(0, len(seeds), group):
        touched, moves, best_moves = 0, 0, 0
        total, best, least = 0, 0, excess
        for n in range(begin, min(begin + group, len(seeds))):
            _enter(conn, part, heap, count, where, key, status, seeds[n])
            reached[touched] = seeds[n]
            touched += 1
        while moves - best_moves <= patience:
            p, top = -1, 0
            for r in range(regions):
                if count[r] and (excess == 0 or used[r] > room[r]) and (p < 0 or key[heap[r, 0]] > top):
                    p, top = r, key[heap[r, 0]]
            if p < 0:
                break
            v = heap[p, 0]
            to, gain, after = _target(conn, used, room, slack, excess, graph.size[v], v, p)
            if to >= 0 and gain < key[v]:
                key[v] = gain
                _sift_down(heap[p], count[p], where, key, 0)
                continue
            count[p] -= 1
            status[v] = LOCKED
            if count[p]:
                heap[p, 0] = heap[p, count[p]]
                where[heap[p, 0]] = 0
                _sift_down(heap[p], count[p], where, key, 0)
            if to < 0:
                continue
            moved[moves], origin[moves] = v, p
            moves += 1
            total += gain
            excess = after
            _move(graph, part, used, conn, v, to)
            for e in range(graph.start[v], graph.start[v + 1]):
                u = graph.neighbour[e]
                if status[u] == FREE:
                    reached[touched] = u
                    touched += 1
                if status[u] != LOCKED:
                    _enter(conn, part, heap, count, where, key, status, u)
            if excess < least or (excess == least and total > best):
                least, best, best_moves = excess, total, moves
        for n in range(moves - 1, best_moves - 1, -1):
            _move(graph, part, used, conn, moved[n], origin[n])
        for n in range(touched):
            status[reached[n]] = FREE
        count[:] = 0
        excess = least
        gained += best
    return gained


@kernel
def _move(graph: Graph, part: Ints, used: Ints, conn: Ints, v: int, to: int) -> None:
    p = part[v]
    part[v] = to
    used[p] -= graph.size[v]
    used[to] += graph.size[v]
    for e in range(graph.start[v], graph.start[v + 1]):
        u = graph.neighbour[e]
        conn[u, p] -= graph.weight[e]
        conn[u, to] += graph.weight[e]


@kernel
def _target(
    conn: Ints, used: Ints, room: Ints, slack: int, excess: int, size: int, v: int, p: int
) -> tuple[int, int, int]:
    """(region, gain, excess afterwards) of the best move of v out of p that storage admits; region −1: none."""
    to, gain, after = -1, 0, 0
    left = excess - max(0, used[p] - room[p]) + max(0, used[p] - size - room[p])
    for r in range(len(room)):
        value = conn[v, r] - conn[v, p]
        if r == p or (to >= 0 and value <= gain):
            continue
        beyond = left - max(0, used[r] - room[r]) + max(0, used[r] + size - room[r])
        if beyond <= slack or beyond < excess:
            to, gain, after = r, value, beyond
    return to, gain, after


@kernel
def _enter(conn: Ints, part: Ints, heap: Ints, count: Ints, where: Ints, key: Ints, status: Ints, v: int) -> None:
    """Put v into the heap of its region with what its best move gains, or to its new place there."""
    p = part[v]
    best = conn[v, 1 if p == 0 else 0]
    for r in range(conn.shape[1]):
        if r != p and conn[v, r] > best:
            best = conn[v, r]
    key[v] = best - conn[v, p]
    if status[v] == FREE:
        status[v] = QUEUED
        where[v] = count[p]
        heap[p, count[p]] = v
        count[p] += 1
    at = where[v]
    row = heap[p]
    while at > 0 and key[v] > key[row[(at - 1) // 2]]:
        row[at] = row[(at - 1) // 2]
        where[row[at]] = at
        at = (at - 1) // 2
    row[at] = v
    where[v] = at
    _sift_down(row, count[p], where, key, at)


@kernel
def _sift_down(row: Ints, count: int, where: Ints, key: Ints, at: int) -> None:
    """Move the node at this position of a heap down to where it belongs."""
    v = row[at]
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and key[row[child + 1]] > key[row[child]]:
            child += 1
        if key[row[child]] <= key[v]:
            break
        row[at] = row[child]
        where[row[at]] = at
        at = child
    row[at] = v
    where[v] = at
