"""Data placement against graph partitioners: one copy of each dataset, so the remote reads of a plan are a cut.

Each vertex is a dataset of 1 TB, each edge a workload that reads both its ends, and each region holds a share of the
datasets plus some room. METIS, KaHIP and Mt-KaHyPar are peers of this script only: it needs pymetis, kahip, mtkahypar
and networkx.

    python -m benchmarks.partition --seeds 1 2 --rows communities-8-3 grid-8-30
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import kahip
import mtkahypar
import networkx as nx
import numpy as np
import pymetis

import mast_opt
from mast_opt.problems.data_placement.generate.blank import plain
from mast_opt.problems.data_placement.problem import TERMS, DataPlacement, Ints
from mast_opt.problems.kind.header import Objective

STRONG = 2
"""KaHIP's mode."""


class Row(NamedTuple):
    """One graph to partition, and the seconds that tetris has."""

    kind: str
    vertices: int
    parts: int
    room_percent: int
    seconds: float


ROWS = {
    f"{row.kind}-{row.parts}-{row.room_percent}": row
    for row in (
        Row("communities", 1_000, 8, 3, 20),
        Row("communities", 1_000, 8, 30, 20),
        Row("powerlaw", 1_000, 8, 3, 20),
        Row("grid", 961, 8, 30, 20),
        Row("communities", 5_000, 16, 10, 60),
        Row("geometric", 5_000, 16, 10, 60),
    )
}
GRAPHS: dict[str, Callable[[int, int], Any]] = {
    "communities": lambda n, seed: nx.random_partition_graph([25] * (n // 25), 0.3, 2 / n, seed=seed).to_undirected(),
    "powerlaw": lambda n, seed: nx.powerlaw_cluster_graph(n, 4, 0.6, seed=seed),
    "grid": lambda n, seed: nx.convert_node_labels_to_integers(nx.grid_2d_graph(math.isqrt(n), math.isqrt(n))),
    "geometric": lambda n, seed: nx.random_geometric_graph(n, math.sqrt(8 / (math.pi * n)), seed=seed),
}


def problem_of(edges: Ints, vertices: int, parts: int, room: int) -> DataPlacement:
    """The placement whose remote reads are the edges cut."""
    work = len(edges)
    columns = {
        "name": "graph",
        "regions.labels": tuple(f"R{r:02d}" for r in range(parts)),
        "gpu_types": (),
        "datasets.labels": tuple(f"d{i:05d}" for i in range(vertices)),
        "workloads.labels": tuple(f"w{w:06d}" for w in range(work)),
        "regions.storage_mb": np.full(parts, room * 10**6),
        "regions.cpu_mcores": np.full(parts, work * 1000),
        "regions.supply_mgpu": np.zeros((parts, 0), np.int64),
        "datasets.size_mb": np.full(vertices, 10**6),
        "datasets.stored": np.zeros((vertices, parts), np.bool_),
        "datasets.copies_max": np.ones(vertices, np.int64),
        "workloads.cpu_mcores": np.zeros(work, np.int64),
        "options.workload": np.arange(work),
        "options.gpu_type": np.zeros(work, np.int64),
        "options.mgpu": np.zeros(work, np.int64),
        "reads.workload": np.repeat(np.arange(work), 2),
        "reads.dataset": np.sort(edges, axis=1).ravel(),
        "reads.mb_per_day": np.full(2 * work, 10**6),
        "objective": Objective(weights=dict.fromkeys(TERMS, 0.0) | {"remote": 1.0}),
    }
    return plain(work_tier=np.zeros(work, np.int64), columns=columns)


@dataclass(frozen=True)
class WeightedGraph:
    """A graph to partition into parts of the same room."""

    size: Ints
    """[V] of each vertex."""
    edges: Ints
    """[E, 2]"""
    weight: Ints
    """[E]"""
    parts: int
    room_percent: int

    @property
    def room(self) -> int:
        """The most that a part may hold, as KaHIP counts it."""
        return math.floor((1 + self.room_percent / 100) * math.ceil(int(self.size.sum()) / self.parts))

    def cut(self, part: Any) -> int:
        """The weight of the edges between parts."""
        at = np.asarray(part)[self.edges]
        return int(self.weight[at[:, 0] != at[:, 1]].sum())

    def shown(self, part: Any) -> str:
        """The cut; ``over`` where a part exceeds its room."""
        load = np.zeros(self.parts, np.int64)
        np.add.at(load, np.asarray(part), self.size)
        return f"{self.cut(part):,}{'' if load.max() <= self.room else ' over'}"


def peers(graph: WeightedGraph, seed: int) -> dict[str, tuple[Any, float]]:
    """Name → partition and seconds, of METIS, KaHIP strong and Mt-KaHyPar in its mode of highest quality; one thread
    each."""
    tail, head = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    order = np.lexsort((head, tail))
    start = np.searchsorted(tail[order], np.arange(len(graph.size) + 1)).tolist()
    near, weight = head[order].tolist(), np.tile(graph.weight, 2)[order].tolist()
    size, room = graph.size.tolist(), graph.room_percent / 100

    def metis() -> Any:
        ours = pymetis.Options(ufactor=10 * graph.room_percent, seed=seed)
        adjacency = pymetis.CSRAdjacency(start, near)
        weights = {"vweights": size, "eweights": weight}
        return pymetis.part_graph(graph.parts, adjacency, **weights, recursive=False, options=ours)[1]

    def strong() -> Any:
        return kahip.kaffpa(size, start, weight, near, graph.parts, room, True, seed, STRONG)[1]

    def mt_kahypar() -> Any:
        mtkahypar.set_seed(seed)
        peer = mtkahypar.initialize(1, print_warnings=False)
        context = peer.context_from_preset(mtkahypar.PresetType.HIGHEST_QUALITY)
        context.set_partitioning_parameters(graph.parts, room, mtkahypar.Objective.CUT)
        edges = [(tail, head) for tail, head in graph.edges.tolist()]
        made = peer.create_graph(context, len(size), len(edges), edges, size, graph.weight.tolist())
        found = made.partition(context)
        return [found.block_id(v) for v in range(len(size))]

    answers = {}
    for name, run in (("METIS", metis), ("KaHIP strong", strong), ("Mt-KaHyPar", mt_kahypar)):
        began = time.perf_counter()
        answers[name] = run(), time.perf_counter() - began
    return answers


def compare(row: Row, seed: int) -> str:
    """A line with the edges that METIS, KaHIP strong, Mt-KaHyPar and tetris cut."""
    made = nx.Graph(GRAPHS[row.kind](row.vertices, seed))
    n, edges = made.number_of_nodes(), np.array(made.edges)
    graph = WeightedGraph(np.ones(n, np.int64), edges, np.ones(len(edges), np.int64), row.parts, row.room_percent)
    theirs = {name: part for name, (part, _) in peers(graph, seed).items()}
    began = time.perf_counter()
    solution = mast_opt.solve(
        problem_of(edges, n, row.parts, graph.room), "tetris", time_limit_s=row.seconds, threads=1, seed=seed
    )
    took = time.perf_counter() - began
    ours, ratio = "none", "–"
    if solution.plan is not None:
        part = solution.plan.place.argmax(axis=1)
        ours, ratio = graph.shown(part), f"{graph.cut(part) / graph.cut(theirs['KaHIP strong']):.3f}"
    size = f"{row.kind} | {n:,} | {len(edges):,} | {row.parts} | {row.room_percent}% | {seed}"
    return f"| {size} | {' | '.join(map(graph.shown, theirs.values()))} | {ours} | {ratio} | {took:.0f} s |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    asked = parser.parse_args()
    peers = "METIS | KaHIP strong | Mt-KaHyPar"
    print(f"| graph | datasets | workloads | parts | room | seed | {peers} | tetris | / KaHIP | time |")
    print("|" + "---|" * 12)
    for name in asked.rows:
        for seed in asked.seeds:
            print(compare(ROWS[name], seed), flush=True)


if __name__ == "__main__":
    main()
