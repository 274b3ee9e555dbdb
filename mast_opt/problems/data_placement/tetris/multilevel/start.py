"""Multilevel start of tetris: data placed by a partition of the co-access graph, work where it then costs least.

A cycle coarsens the graph, partitions the coarsest one, and refines on the way back. Later cycles combine two
partitions: clusters stay within what both of them keep together, so the better one exists on the coarsest level, and
refinement chooses between the two at large (Sanders & Schulz, "Distributed evolutionary graph partitioning", 2012).

Greedy graph growing (Karypis & Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
1998), of all regions at once: the region that is least full takes the node that is linked to it most, compared with all
of the node's links.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mast_opt.core.jit import compiled
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.initial_solution import greedy_state
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.multilevel.coarsening import Graph, co_access_graph, coarsen
from mast_opt.problems.data_placement.tetris.multilevel.params import MultilevelParams
from mast_opt.problems.data_placement.tetris.multilevel.refinement import boundary, connection, kept_weight, refine
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, excess
from mast_opt.problems.search.budget import TimeBudget


@dataclass(frozen=True, eq=False)
class Partition:
    """A region for each node, and what it is worth."""

    part: Ints
    """Part of each node, [N]."""
    excess: int
    """Storage beyond the limits, MB."""
    kept: int
    """Weight that ``kept_weight`` computes for this partition."""

    @property
    def rank(self) -> tuple[int, int]:
        """Less is better."""
        return self.excess, -self.kept


class Partitioner:
    """Search for a partition of a graph that keeps most weight within the storage of regions.

    Args:
        room: [R] storage, MB.
    """

    def __init__(self, graph: Graph, room: Ints, params: MultilevelParams, rng: np.random.Generator) -> None:
        self._graph, self._room, self._params, self._rng = graph, room, params, rng
        self._population: list[Partition] = []
        self._over: Callable[[int], bool] = lambda cycles: False

    def search(self, over: Callable[[int], bool]) -> Partition:
        """The best partition found until it is ``over`` (given the number of cycles), or nothing better is found."""
        self._over = over
        nothing = np.zeros(len(self._graph.size), np.int64)
        best, since, number = self.cycle(nothing, None), 0, 1
        self._population = [best]
        while since < self._params.stall and not over(number):
            if len(self._population) < self._params.population:
                found = self.cycle(nothing, None)
            else:
                one, other = self._parents()
                found = self.cycle(one.part * len(self._room) + other.part, min(one, other, key=_rank).part)
            number, since = number + 1, since + 1
            self._admit(found)
            if found.rank < best.rank:
                best, since = found, 0
        return best

    def cycle(self, label: Ints, part: Ints | None) -> Partition:
        """Partition the graph in one cycle of coarsening and refinement.

        Args:
            label: [N] clusters stay within one label.
            part: [N] the partition to improve, constant within labels; None begins without any.
        """
        params, rng = self._params, self._rng
        low, high = np.log(params.coarsest[0]), np.log(params.coarsest[-1])
        target = max(2, round(len(self._room) * float(np.exp(rng.uniform(low, high)))))
        relaxed = float(rng.choice(params.overload))
        largest = int(params.largest * self._graph.size.sum() / target)
        pairs = bool(rng.integers(2))
        graphs, clusters = [self._graph], []
        while len(graphs[-1].size) > target:
            coarser, cluster = coarsen(graphs[-1], label, largest, pairs, rng)
            if len(coarser.size) > params.shrink * len(graphs[-1].size):
                break
            first = np.zeros(len(coarser.size), np.int64)
            first[cluster] = np.arange(len(cluster))
            label, part = label[first], None if part is None else part[first]
            graphs.append(coarser)
            clusters.append(cluster)
        rooms = [self._room + int(relaxed * graph.size.max()) for graph in graphs]
        rooms[0] = self._room
        if part is None:
            starts = [grow(graphs[-1], rooms[-1], rng.permutation(len(graphs[-1].size))) for _ in range(params.initial)]
            part = min((self._refined(graphs[-1], start, rooms[-1]) for start in starts), key=_rank).part
        for level in range(len(graphs) - 1, -1, -1):
            if level < len(clusters):
                part = part[clusters[level]]
            found = self._refined(graphs[level], part, rooms[level])
            part = found.part
        return found

    def _refined(self, graph: Graph, part: Ints, room: Ints) -> Partition:
        """The partition after searches from the whole boundary, then from each of its nodes."""
        params, part = self._params, part.copy()
        conn, used = connection(graph, part), np.zeros(len(room), np.int64)
        np.add.at(used, part, graph.size)
        slack = int(graph.size.max())
        for _ in range(params.passes):
            if self._over(0):
                break
            excess, gained = np.maximum(used - room, 0).sum(), 0
            for patience, local in ((params.patience, False), (params.local_patience, True)):
                seeds = self._rng.permutation(boundary(graph, part, conn, used, room))
                group = 1 if local else max(len(seeds), 1)
                gained += refine(graph, part, used, conn, room, slack, seeds, group, patience)
            if gained <= 0 and np.maximum(used - room, 0).sum() >= excess:
                break
        return Partition(part, int(np.maximum(used - room, 0).sum()), kept_weight(graph, part))

    def _parents(self) -> tuple[Partition, Partition]:
        """Two different ones, each the better of two drawn at random."""
        draws = self._rng.permutation(len(self._population))
        first, second = draws[: len(draws) // 2], draws[len(draws) // 2 :]
        one, other = (min((self._population[n] for n in half[:2]), key=_rank) for half in (first, second))
        return one, other

    def _admit(self, found: Partition) -> None:
        """The population with a new partition, in place of the most similar one that is no better."""
        if len(self._population) < self._params.population:
            self._population.append(found)
            return
        no_better = [n for n, one in enumerate(self._population) if one.rank >= found.rank]
        if no_better:
            similar = [self._agreement(self._population[n].part, found.part) for n in no_better]
            self._population[no_better[int(np.argmax(similar))]] = found

    def _agreement(self, one: Ints, other: Ints) -> int:
        """Edges that both keep or both cut."""
        tail = np.repeat(np.arange(len(one)), np.diff(self._graph.start))
        head = self._graph.neighbour
        return int(((one[tail] == one[head]) == (other[tail] == other[head])).sum())


def _rank(partition: Partition) -> tuple[int, int]:
    """Rank of a partition in tetris' multilevel start; the least is the best."""
    return partition.rank


def multilevel_state(
    a: TetrisArrays,
    first: TetrisState,
    refuse: bool,
    pace: TimeBudget,
    rng: np.random.Generator,
    params: MultilevelParams,
) -> TetrisState:
    """The state of the best partition found in the time of ``pace``, or ``first`` where that is no worse."""

    def over(cycles: int) -> bool:
        return pace.over() or (cycles >= params.cycles and not pace.by_clock)

    found = Partitioner(co_access_graph(a), a.storage.copy(), params, rng).search(over)
    state = state_with(a, found.part, refuse)
    broken, kept = excess(a, state, refuse), excess(a, first, refuse)
    better = (broken, cost(a, state)) < (kept, cost(a, first))
    return state if better else first


def state_with(a: TetrisArrays, part: Ints, refuse: bool) -> TetrisState:
    """The state with one copy of each dataset, in its region of ``part`` [I], if it must have one. Work runs where it
    reads most locally; what exceeds cores there runs where it then costs least."""
    place = np.zeros_like(a.stored)
    needed = np.flatnonzero(a.copies_min > 0)
    place[needed, part[needed]] = True
    place = (place & ~a.forbidden) | a.pinned
    region = _most_local(a, place)
    out = np.flatnonzero(region == len(a.cpu))
    by_need = out[np.argsort(-a.cpu_need[out], kind="stable")]
    return greedy_state(a, a.option_start[:-1], region, place, by_need, refuse)


def _most_local(a: TetrisArrays, place: Bools) -> Ints:
    """[W] the region with most of what each workload reads; R where cores do not suffice for all that do so."""
    workloads, regions = len(a.tier), len(a.cpu)
    reader = np.repeat(np.arange(workloads), np.diff(a.read_start))
    local = np.zeros((workloads, regions))
    np.add.at(local, reader, place[a.read_dataset] * a.read_volume[:, None])
    local[~a.option_region[a.option_start[:-1], :regions]] = -1
    region: Ints = local.argmax(axis=1)
    order = np.argsort(-local.max(axis=1), kind="stable")
    for r in range(regions):
        here = order[region[order] == r]
        region[here[np.cumsum(a.cpu_need[here]) > a.cpu[r]]] = regions
    return region


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
