"""Gandiva (OSDI'18): which pairs of jobs share a GPU.

Two jobs on a GPU are worth the sum of their rates, each over its rate alone. They stay packed while that is at least 1,
the worth of taking turns. Gandiva tries pairs at random; ``solve`` finds the best choice of pairs, a maximum-weight
matching, and ``random_trials`` is the published way, for comparison.
"""

from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arguments import a_whole
from mast_opt.core.arrays import FloatArray
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.program import Program
from mast_opt.problems.resource_allocation.arrays import names

TURNS = 1.0
"""Worth of two jobs that take turns on a GPU, and of one that has it alone."""


@dataclass(frozen=True)
class Packing:
    """Pairs of jobs that share a GPU, and jobs that have one alone."""

    pairs: tuple[tuple[int, int], ...]
    """Jobs that share a GPU, packed or taking turns, in ascending order."""
    alone: tuple[int, ...]
    """Jobs that have a GPU each."""
    worth: float
    """Σ over the GPUs in use of the rates there, each over the job's rate alone."""


def worth(solo: ArrayLike, packed: ArrayLike) -> FloatArray:
    """[J, J] Gandiva's worth of each pair of jobs on one GPU: Σ of rates over solo rates; symmetric, 0 on the diagonal.

    Args:
        solo: [J] rate of each job alone, above 0.
        packed: [J, J] rate of the row's job while it shares a GPU with the column's.
    """
    alone = numbers("solo", solo, (None,), above=0.0)
    relative = numbers("packed", packed, (len(alone), len(alone))) / alone[:, None]
    total = relative + relative.T
    np.fill_diagonal(total, 0.0)
    return total


def solve(worth: ArrayLike, gpus: int) -> Packing:
    """Gandiva's packing of jobs on GPUs: the pairs of the highest total worth.

    Each GPU has two places. A GPU with two jobs is worth what the pair is, or ``TURNS`` if that is more; one with a
    single job ``TURNS``. Jobs beyond 2 · gpus wait.

    Args:
        worth: [J, J], as by the function of that name.
        gpus: GPUs that there are, all equal.
    """
    value = _symmetric(worth)
    a_whole(1)("gpus", gpus)
    jobs = len(value)
    nodes = max(jobs, 2 * gpus) + max(0, jobs - 2 * gpus)  # places without a job, or jobs without a place
    graph = nx.complete_graph(nodes)
    weight = np.zeros((nodes, nodes))
    weight[:jobs, :jobs] = np.maximum(value, TURNS)
    if jobs <= 2 * gpus:
        weight[:jobs, jobs:] = weight[jobs:, :jobs] = TURNS
    else:
        graph.remove_edges_from(nx.complete_graph(range(jobs, nodes)).edges)
    nx.set_edge_attributes(graph, {(i, j): weight[i, j] for i, j in graph.edges}, "weight")
    matched = nx.max_weight_matching(graph, maxcardinality=True)
    seats = sorted((min(pair), max(pair)) for pair in matched if min(pair) < jobs)
    pairs = tuple(pair for pair in seats if pair[1] < jobs)
    alone = tuple(one for one, place in seats if place >= jobs) if jobs <= 2 * gpus else ()
    return Packing(pairs, alone, float(sum(weight[pair] for pair in seats)))


def greedy(worth: ArrayLike, gpus: int) -> Packing:
    """Gandiva's packing by greed: the pair of the highest worth first, then the best of those that are left; single
    jobs get the other GPUs.
    """
    value = _symmetric(worth)
    a_whole(1)("gpus", gpus)
    weight = np.maximum(value, TURNS)
    first, second = np.triu_indices(len(value), 1)
    free: set[int] = set(range(len(value)))
    pairs: list[tuple[int, int]] = []
    for at in np.argsort(-weight[first, second], kind="stable").tolist():
        pair = int(first[at]), int(second[at])
        singles = len(free) <= gpus - len(pairs)
        if len(pairs) < gpus and not singles and free.issuperset(pair):
            pairs.append(pair)
            free -= set(pair)
    alone = tuple(sorted(free))[: gpus - len(pairs)]
    return Packing(tuple(sorted(pairs)), alone, float(sum(weight[pair] for pair in pairs)) + TURNS * len(alone))


def tables(worth: ArrayLike, gpus: int) -> Program:
    """The program of the policy Gandiva as a resource allocation with whole shares: a configuration for each job alone
    and each pair.
    """
    value = np.maximum(_symmetric(worth), TURNS)
    jobs = names("j", len(value))
    first, second = np.triu_indices(len(value), 1)
    alone = [f"{job}-alone" for job in jobs]
    pair = [f"{jobs[i]}-{jobs[j]}" for i, j in zip(first.tolist(), second.tolist())]
    both = np.arange(len(alone), len(alone) + len(pair))
    every = np.arange(len(alone) + len(pair))
    half = value[first, second] / 2
    return Program(
        policy="total-rate",
        whole=True,
        resources={"labels": ["gpu"], "amount": [float(gpus)]},
        jobs={"labels": jobs},
        configurations={"labels": alone + pair},
        members={
            "configuration": np.concatenate([every, both]),
            "job": np.concatenate([np.arange(len(jobs)), first, second]),
            "rate": np.concatenate([np.full(len(jobs), TURNS), half, half]),
        },
        uses={"configuration": every, "resource": np.zeros(len(every), np.int64), "amount": np.ones(len(every))},
    )


def _symmetric(worth: ArrayLike) -> FloatArray:
    """[J, J] the worth of pairs, whichever triangle it was given in."""
    given = np.asarray(worth, np.float64)
    value = numbers("worth", given, (len(given), len(given)) if given.ndim == 2 else (None, None))
    return np.maximum(value, value.T)
