"""Graphs and problems for tests of the multilevel start."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.data_placement.generate.blank import plain
from mast_opt.problems.data_placement.problem import TERMS, DataPlacement, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.multilevel.coarsening import Graph, co_access_graph
from mast_opt.problems.kind.header import Objective

WEIGHTS = dict.fromkeys(TERMS, 0.0) | {"remote": 1.0}


def communities(rng: np.random.Generator, groups: int, members: int, within: float, across: float) -> Ints:
    """[M, 2] edges of a random graph of dense groups."""
    group = np.repeat(np.arange(groups), members)
    low, high = np.triu_indices(len(group), 1)
    drawn = rng.random(len(low)) < np.where(group[low] == group[high], within, across)
    return np.column_stack([low, high])[drawn]


def problem_of(edges: Ints, size_tb: Ints, room_tb: Ints, volume: Ints | None = None) -> DataPlacement:
    """A workload for each edge, which reads both its ends; one copy of each dataset."""
    work, datasets, regions = len(edges), len(size_tb), len(room_tb)
    volume = np.full(2 * work, 1) if volume is None else np.repeat(volume, 2)
    return plain(
        work_tier=np.zeros(work, np.int64),
        columns={
            "name": "graph",
            "regions.labels": tuple(f"R{r}" for r in range(regions)),
            "gpu_types": (),
            "datasets.labels": tuple(f"d{i}" for i in range(datasets)),
            "workloads.labels": tuple(f"w{w}" for w in range(work)),
            "regions.storage_mb": room_tb * 10**6,
            "regions.cpu_mcores": np.full(regions, 1000),
            "regions.supply_mgpu": np.zeros((regions, 0), np.int64),
            "datasets.size_mb": size_tb * 10**6,
            "datasets.stored": np.zeros((datasets, regions), np.bool_),
            "datasets.copies_max": np.ones(datasets, np.int64),
            "workloads.cpu_mcores": np.zeros(work, np.int64),
            "options.workload": np.arange(work),
            "options.gpu_type": np.zeros(work, np.int64),
            "options.mgpu": np.zeros(work, np.int64),
            "reads.workload": np.repeat(np.arange(work), 2),
            "reads.dataset": np.sort(edges, axis=1).ravel(),
            "reads.mb_per_day": volume * 10**6,
            "objective": Objective(weights=WEIGHTS),
        },
    )


def random_graph(rng: np.random.Generator, nodes: int, regions: int) -> Graph:
    """A graph with unequal sizes, weights and pulls, some regions closed to some nodes."""
    edges = communities(rng, nodes // 5, 5, 0.8, 0.05)
    problem = problem_of(edges, rng.integers(1, 9, nodes), np.full(regions, 5 * nodes), rng.integers(1, 9, len(edges)))
    graph = co_access_graph(arrays_of(problem, WEIGHTS))
    pull = rng.integers(0, 5 * 10**6, graph.pull.shape)
    return graph._replace(pull=np.where(rng.random(pull.shape) < 0.05, graph.pull.min() - (1 << 44), pull))
