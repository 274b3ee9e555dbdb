"""Data placement against graph partitioners: one copy of each dataset, so the remote reads of a plan are a cut.

Each vertex is a dataset of 1 TB, each edge a workload that reads both its ends, and each region holds a share of the
datasets plus some room. METIS and KaHIP are peers of this script only: it needs pymetis, kahip and networkx.

    python -m benchmarks.partition --seeds 1 2 --rows communities-8-3 grid-8-30
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import kahip
import networkx as nx
import numpy as np
import pymetis

import mast_opt
from mast_opt.data_placement.generate.blank import plain
from mast_opt.data_placement.problem import TERMS, DataPlacement, Ints
from mast_opt.kind.header import Objective

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


def compare(row: Row, seed: int) -> str:
    """A line with the edges that METIS, KaHIP strong and tetris cut; ``over`` where one exceeds the room."""
    graph = nx.Graph(GRAPHS[row.kind](row.vertices, seed))
    n, edges = graph.number_of_nodes(), np.array(graph.edges)
    room = math.floor((1 + row.room_percent / 100) * math.ceil(n / row.parts))
    adjacent = [sorted(graph[v]) for v in range(n)]
    start = np.concatenate([[0], np.cumsum([len(near) for near in adjacent])]).tolist()
    flat = [u for near in adjacent for u in near]

    def shown(part: Any) -> str:
        part = np.asarray(part)
        cut = int((part[edges[:, 0]] != part[edges[:, 1]]).sum())
        return f"{cut}{'' if np.bincount(part, minlength=row.parts).max() <= room else ' over'}"

    metis = pymetis.part_graph(row.parts, adjacency=adjacent)[1]
    strong = kahip.kaffpa([1] * n, start, [1] * len(flat), flat, row.parts, row.room_percent / 100, True, seed, STRONG)[
        1
    ]
    began = time.perf_counter()
    solution = mast_opt.solve(
        problem_of(edges, n, row.parts, room), "tetris", time_limit_s=row.seconds, threads=1, seed=seed
    )
    took = time.perf_counter() - began
    ours = "none" if solution.plan is None else shown(solution.plan.place.argmax(axis=1))
    size = f"{row.kind} | {n:,} | {len(edges):,} | {row.parts} | {row.room_percent}% | {seed}"
    return f"| {size} | {shown(metis)} | {shown(strong)} | {ours} | {took:.0f} s |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    asked = parser.parse_args()
    print("| graph | datasets | workloads | parts | room | seed | METIS | KaHIP strong | tetris | time |")
    print("|" + "---|" * 10)
    for name in asked.rows:
        for seed in asked.seeds:
            print(compare(ROWS[name], seed), flush=True)


if __name__ == "__main__":
    main()
