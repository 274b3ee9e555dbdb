"""First partitions for the multilevel start of tetris: regions grow around nodes drawn at random.

Greedy graph growing (Karypis & Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
1998), of all regions at once: the region that is least full takes the node that is linked to it most, compared with all
of the node's links.
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.jit import compiled
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.multilevel.coarsening import Graph


@compiled
def grow(graph: Graph, room: Ints, order: Ints):  # type: ignore[no-untyped-def]
    """[N] region of each node.

    Args:
        room: [R] storage, MB; exceeded where nodes do not fit.
        order: [N] nodes in random order: the first ones are where regions begin, and earlier ones win ties.
    """
    nodes, regions = graph.pull.shape
    part, conn, used = np.full(nodes, -1), graph.pull.copy(), np.zeros(regions, np.int64)
    degree, left = np.zeros(nodes, np.int64), order.copy()
    for v in range(nodes):
        for e in range(graph.start[v], graph.start[v + 1]):
            degree[v] += graph.weight[e]
    open_ = np.ones(regions, np.bool_)
    remaining, begun = nodes, 0
    while remaining:
        r = -1
        for q in range(regions):
            if open_[q] and (r < 0 or float(used[q]) * room[r] < float(used[r]) * room[q]):
                r = q
        at, best = -1, 0
        if begun < regions and r >= 0 and used[r] == 0 and used[r] + graph.size[left[0]] <= room[r]:
            at = 0
            begun += 1
        elif r >= 0:
            for n in range(remaining):
                v = left[n]
                score = 2 * conn[v, r] - degree[v]
                if used[r] + graph.size[v] <= room[r] and (at < 0 or score > best):
                    at, best = n, score
            if at < 0:
                open_[r] = False
                continue
        else:
            at, r = 0, 0
            for q in range(1, regions):
                if room[q] - used[q] > room[r] - used[r]:
                    r = q
        v = left[at]
        remaining -= 1
        for n in range(at, remaining):
            left[n] = left[n + 1]
        part[v] = r
        used[r] += graph.size[v]
        for e in range(graph.start[v], graph.start[v + 1]):
            conn[graph.neighbour[e], r] += graph.weight[e]
    return part
