"""Coarsening for the multilevel start of tetris: datasets that are read together become one node.

The co-access graph has a node for each dataset and an edge for each pair that some workload reads. A node joins the
cluster of the neighbour with the highest rating weight² / (size · size) (Holtgrewe, Sanders & Schulz, "Engineering a
scalable high quality graph partitioner", 2010); clusters never cross labels, so partitions that agree with the labels
exist on every level (V-cycles).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.jit import compiled
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays

WEIGHT_BITS = 40
"""All weights together stay below two to this power, so that no sum of them overflows."""
CLOSED = -(1 << 44)
"""Pull of a region that is closed to a node: worse than any loss of edges."""
LONGEST_CLIQUE = 24
"""Workloads that read more than this link each dataset to the next only, so that edges grow with reads."""


class Graph(NamedTuple):
    """An undirected graph in compressed rows, every edge twice; N nodes, R regions."""

    start: Ints
    """First edge of each node, [N+1]."""
    neighbour: Ints
    weight: Ints
    """Cost of placing both ends apart."""
    size: Ints
    """[N] storage, MB."""
    pull: Ints
    """[N, R] what it is worth to place the node there; ``CLOSED`` or less where it may not be."""


def co_access_graph(a: TetrisArrays) -> Graph:
    """The graph of the datasets; a remote read of 1 MB a day has a weight of 1, unless weights had to be scaled.

    Two datasets of one workload are linked by the lesser of the two volumes, since the workload can run where the other
    one is; where it reads more, by twice the product of the volumes over their sum.
    """
    datasets = len(a.size)
    left, right, weight = _pairs(a.read_start, a.read_dataset, a.read_volume)
    low, high = np.minimum(left, right), np.maximum(left, right)
    pair, at = np.unique(low * datasets + high, return_inverse=True)
    total = np.bincount(at, weights=weight, minlength=len(pair))
    low, high = pair // datasets, pair % datasets
    scale = min(1.0, 2.0**WEIGHT_BITS / max(float(total.sum()), 1.0))
    total = np.maximum(np.rint(total * scale), 1).astype(np.int64)
    tail, head = np.concatenate((low, high)), np.concatenate((high, low))
    order = np.lexsort((head, tail))
    unit = scale / a.remote_price
    price = a.replica_price
    pull = np.rint(np.minimum((price.max(axis=1, keepdims=True) - price) * unit, 1 << WEIGHT_BITS))
    closed = a.forbidden | (a.pinned.any(axis=1, keepdims=True) & ~a.pinned)
    return Graph(
        np.searchsorted(tail[order], np.arange(datasets + 1)).astype(np.int64),
        head[order],
        np.concatenate((total, total))[order],
        a.size.copy(),
        np.where(closed, CLOSED, pull).astype(np.int64),
    )


def coarsen(graph: Graph, label: Ints, largest: int, pairs: bool, rng: np.random.Generator) -> tuple[Graph, Ints]:
    """(coarser graph, [N] cluster of each node).

    Args:
        label: [N] clusters stay within one label.
        largest: most MB of a cluster.
        pairs: at most two nodes a cluster (a matching).
    """
    leader = _cluster(graph, label, largest, pairs, rng.permutation(len(graph.size)))
    _, cluster = np.unique(leader, return_inverse=True)
    cluster = cluster.astype(np.int64).ravel()
    order = np.argsort(cluster, kind="stable")
    return contract(graph, cluster, int(cluster.max()) + 1, order), cluster


@compiled
def _pairs(read_start: Ints, read_dataset: Ints, read_volume: Ints):  # type: ignore[no-untyped-def]
    """(dataset, dataset, weight) of each pair of reads that is linked."""
    count = 0
    for w in range(len(read_start) - 1):
        reads = read_start[w + 1] - read_start[w]
        count += reads * (reads - 1) // 2 if reads <= LONGEST_CLIQUE else reads - 1
    left, right, weight = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    at = 0
    for w in range(len(read_start) - 1):
        first, last = read_start[w], read_start[w + 1]
        total = 0.0
        for n in range(first, last):
            total += read_volume[n]
        for n in range(first, last):
            for m in range(n + 1, last if last - first <= LONGEST_CLIQUE else min(n + 2, last)):
                left[at], right[at] = read_dataset[n], read_dataset[m]
                x, y = float(read_volume[n]), float(read_volume[m])
                weight[at] = min(x, y) if last - first == 2 else 2 * x * y / max(total, 1.0)
                at += 1
    return left, right, weight


@compiled
def _cluster(graph: Graph, label: Ints, largest: int, pairs: bool, order: Ints):  # type: ignore[no-untyped-def]
    """[N] a node of the cluster that each node belongs to, the same for all of its nodes."""
    nodes = len(graph.size)
    leader, members, size = np.arange(nodes), np.ones(nodes, np.int64), graph.size.copy()
    for v in order:
        if leader[v] != v or members[v] > 1:
            continue
        best, rating = -1, 0.0
        for e in range(graph.start[v], graph.start[v + 1]):
            u = graph.neighbour[e]
            c = leader[u]
            if label[u] != label[v] or (pairs and members[c] > 1) or size[c] + size[v] > largest:
                continue
            rate = float(graph.weight[e]) * graph.weight[e] / max(float(graph.size[u]) * graph.size[v], 1.0)
            if rate > rating:
                best, rating = c, rate
        if best >= 0:
            leader[v] = best
            members[best] += 1
            size[best] += size[v]
    return leader


@compiled
def contract(graph: Graph, cluster: Ints, clusters: int, order: Ints) -> Graph:
    """The graph of the clusters: sizes, pulls and parallel edges add up, edges inside a cluster vanish.

    Args:
        order: the nodes by cluster.
    """
    nodes, regions = graph.pull.shape
    start = np.zeros(clusters + 1, np.int64)
    neighbour, weight = np.empty(len(graph.neighbour), np.int64), np.empty(len(graph.neighbour), np.int64)
    size, pull = np.zeros(clusters, np.int64), np.zeros((clusters, regions), np.int64)
    seen = np.full(clusters, -1)
    at, position = 0, 0
    for c in range(clusters):
        first = at
        while position < nodes and cluster[order[position]] == c:
            v = order[position]
            position += 1
            size[c] += graph.size[v]
            for r in range(regions):
                pull[c, r] = max(pull[c, r] + graph.pull[v, r], 64 * CLOSED)
            for e in range(graph.start[v], graph.start[v + 1]):
                d = cluster[graph.neighbour[e]]
                if d == c:
                    continue
                if seen[d] < first:
                    seen[d] = at
                    neighbour[at], weight[at] = d, 0
                    at += 1
                weight[seen[d]] += graph.weight[e]
        start[c + 1] = at
    return Graph(start, neighbour[:at].copy(), weight[:at].copy(), size, pull)
