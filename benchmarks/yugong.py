"""Yugong's placement of projects, 10,000 of them in 10 datacenters, against graph partitioners.

Business units of 1 to 200 projects (Pareto); sizes lognormal (σ 2). Each project reads a number of others with a tail
as published (power law), three of four of its own unit, volumes lognormal. Storage for 10% more than everything. The
traffic within projects is not counted: no placement changes it.

    python -m benchmarks.yugong --seeds 1 2 3 --seconds 60
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import mast_opt
from benchmarks.partition import WeightedGraph, peers
from mast_opt.core.units import MB_PER_TB
from mast_opt.live.policies import yugong
from mast_opt.problems.data_placement import DataPlacement

PROJECTS, DATACENTERS, ROOM_PERCENT = 10_000, 10, 10


def made(seed: int) -> tuple[DataPlacement, WeightedGraph]:
    """The placement, and the same as a graph in GB."""
    rng = np.random.default_rng(seed)
    units = np.minimum(np.ceil((rng.pareto(1.2, PROJECTS) + 1) * 4), 200).astype(np.int64)
    unit = np.repeat(np.arange(len(units)), units)[:PROJECTS]
    first = np.searchsorted(unit, unit)
    last = np.searchsorted(unit, unit, side="right")
    size_gb = np.maximum(np.rint(rng.lognormal(6, 2, PROJECTS)), 1).astype(np.int64)
    size_gb = np.minimum(size_gb, size_gb.sum() // (4 * DATACENTERS))
    degree = np.minimum(np.ceil(rng.pareto(1.5, PROJECTS) + 1), 500).astype(np.int64)
    reader = np.repeat(np.arange(PROJECTS), degree)
    near = rng.random(len(reader)) < 0.75
    owner = np.where(near, rng.integers(first[reader], last[reader]), rng.integers(PROJECTS, size=len(reader)))
    read_gb = np.maximum(np.rint(rng.lognormal(3, 1.5, len(reader))), 1)
    low, high = np.minimum(reader, owner), np.maximum(reader, owner)
    pair, at = np.unique(low * PROJECTS + high, return_inverse=True)
    weight = np.bincount(at, weights=read_gb).astype(np.int64)
    edges = np.column_stack([pair // PROJECTS, pair % PROJECTS])
    kept = edges[:, 0] != edges[:, 1]
    graph = WeightedGraph(size_gb, edges[kept], weight[kept], DATACENTERS, ROOM_PERCENT)
    storage_tb = np.full(DATACENTERS, graph.room / 1000)
    return yugong.tables(size_gb / 1000, storage_tb, reader, owner, read_gb / 1000), graph


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args()
    print("| seed | pairs | all traffic, GB a day | METIS | KaHIP strong | Mt-KaHyPar | tetris |\n|" + "---|" * 7)
    for seed in asked.seeds:
        problem, graph = made(seed)
        assert int(problem.datasets.size_mb.sum()) * 1000 == int(graph.size.sum()) * MB_PER_TB
        cells = [f"{graph.shown(part)} ({took:.0f} s)" for part, took in peers(graph, seed).values()]
        began = time.perf_counter()
        found = mast_opt.solve(problem, "tetris", time_limit_s=asked.seconds, threads=1, seed=seed)
        took = time.perf_counter() - began
        ours = "none" if found.plan is None else graph.shown(found.plan.place.argmax(axis=1))
        print(
            f"| {seed} | {len(graph.edges):,} | {graph.weight.sum():,} | {' | '.join(cells)} | {ours} ({took:.0f} s) |"
        )


if __name__ == "__main__":
    main()
