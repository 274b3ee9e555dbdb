"""Sizes of jobs on equal nodes that always pack: divisors of a node that divide one another, and whole nodes.

Jobs of such sizes fit on the nodes exactly where their sum does not exceed all GPUs: placed in descending order, each
fills the first gap. So a program needs no choice of nodes.
"""

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arguments import a_whole
from mast_opt.core.arrays import IntArray
from mast_opt.core.errors import UsageError


def sizes(nodes: int, gpus_per_node: int, most: int | None = None) -> IntArray:
    """Ascending sizes of elastic jobs, in GPUs: within a node a chain of divisors (1, 2, 4, 8 of 8), then 2, 3, … whole
    nodes.

    Args:
        nodes: nodes that there are.
        gpus_per_node: GPUs of each.
        most: the largest size; all GPUs unless given.
    """
    a_whole(1)("nodes", nodes)
    a_whole(1)("gpus_per_node", gpus_per_node)
    chain = [gpus_per_node]
    while chain[-1] > 1:
        rest = chain[-1]
        chain.append(next(rest // factor for factor in range(2, rest + 1) if rest % factor == 0))
    every = np.array([*chain[::-1], *(gpus_per_node * n for n in range(2, nodes + 1))], np.int64)
    return every[every <= (nodes * gpus_per_node if most is None else most)]


def spanned(size: ArrayLike, gpus_per_node: int) -> IntArray:
    """Nodes that a job of each size spans."""
    spans: IntArray = -(-np.asarray(size, np.int64) // gpus_per_node)
    return spans


def packed(size: ArrayLike, nodes: int, gpus_per_node: int) -> IntArray:
    """[J, N] GPUs of each job on each node.

    Args:
        size: [J] GPUs of each job, 0 or one of ``sizes``.
        nodes, gpus_per_node: as there.

    Raises:
        UsageError: together they need more GPUs than there are, or a size is none of ``sizes``.
    """
    wanted = np.asarray(size, np.int64)
    able = np.r_[0, sizes(nodes, gpus_per_node)]
    wrong = np.flatnonzero(~np.isin(wanted, able))
    if len(wrong):
        raise UsageError(f"size[{wrong[0]}] is {wanted[wrong[0]]}; expected one of {able.tolist()}")
    if wanted.sum() > nodes * gpus_per_node:
        raise UsageError(f"the jobs need {wanted.sum()} GPUs; expected at most {nodes * gpus_per_node}")
    held = np.zeros((len(wanted), nodes), np.int64)
    order = np.argsort(-wanted, kind="stable")
    # In this order the gaps are aligned: consecutive GPUs from the first node on.
    end = np.cumsum(wanted[order])
    first, last = (end - wanted[order])[:, None], end[:, None]
    edge = np.arange(nodes) * gpus_per_node
    held[order] = np.clip(np.minimum(last, edge + gpus_per_node) - np.maximum(first, edge), 0, None)
    return held
