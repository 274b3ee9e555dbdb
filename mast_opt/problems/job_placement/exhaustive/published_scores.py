"""Published scores of servers for a single task (job placement), by which other schedulers place.

FGD and the rules that it is compared with are from Weng et al., Beware of Fragmentation (ATC 2023), and the authors'
simulator; S servers, D GPUs at most, M classes of tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.units import WHOLE, Bools, Ints

Floats = NDArray[np.float64]
TOP = 100
"""The highest score."""
LARGEST = 8
"""GPUs of a server by which clustering measures how full servers are."""


class FreeServers(NamedTuple):
    """Free capacity of servers."""

    device: Ints
    """[S, D] milli-GPUs of each GPU, 0 where there is none."""
    cpu: Ints
    """[S] millicores."""
    kind: Ints
    """[S] GPU type."""


class TaskClasses(NamedTuple):
    """Typical tasks, with how frequent they are."""

    mgpu: Ints
    """[M] milli-GPUs of each GPU that a task takes: WHOLE, a fraction, or 0."""
    gpus: Ints
    """[M] GPUs that a task takes."""
    cpu: Ints
    """[M] millicores."""
    accepts: Bools
    """[M, K] GPU types."""
    share: Floats
    """[M] share of all tasks."""


def fragmentation(free: FreeServers, classes: TaskClasses) -> Floats:
    """[S] F(M) of FGD: milli-GPUs that a typical task cannot use. All that is idle where it cannot run at all, for lack
    of cores, GPUs or the type; otherwise what is idle on GPUs that hold less than it takes."""
    idle = free.device.sum(axis=1)
    cannot, wasted = np.full(len(idle), classes.share.sum()), np.zeros(len(idle))
    for need in np.unique(classes.mgpu[classes.mgpu > 0]).tolist():
        ones, holds = np.flatnonzero(classes.mgpu == need), free.device >= need
        runs = holds.sum(axis=1)[:, None] >= classes.gpus[ones]
        runs &= (free.cpu[:, None] >= classes.cpu[ones]) & classes.accepts[ones][:, free.kind].T
        share = np.where(runs, classes.share[ones], 0.0).sum(axis=1)
        cannot -= share
        wasted += share * np.where(holds, 0, free.device).sum(axis=1)
    total: Floats = cannot * idle + wasted
    return total


def fgd(before: FreeServers, after: FreeServers, classes: TaskClasses) -> Ints:
    """[S] by how little fragmentation grows, through a sigmoid, in whole percent."""
    fall = fragmentation(before, classes) - fragmentation(after, classes)
    score: Ints = np.floor(TOP / (1 + np.exp(-fall / WHOLE))).astype(np.int64)
    return score


def gpu_packing(device: Ints, exists: Bools, mgpu: int, gpus: int) -> Ints:
    """[S] shared GPUs are the best, the fuller the better; then free GPUs of servers in use, then free servers.

    Args:
        device: [S, D] free milli-GPUs of each GPU; ``exists`` [S, D] says where there is one.
        mgpu: that the task takes of each of its GPUs; it must fit.
    """
    whole, number = (device == WHOLE).sum(axis=1), exists.sum(axis=1)
    usable = np.sort(np.where(device >= mgpu, device, 2 * WHOLE), axis=1)[:, :gpus]
    taken_whole = (usable == WHOLE).sum(axis=1)
    shared = np.maximum(TOP - (usable * TOP // WHOLE).sum(axis=1) // 10, TOP // 2)
    in_use = np.maximum(TOP // 2 - taken_whole, TOP // 3)
    score: Ints = np.where(taken_whole > 0, in_use, shared)
    empty: Ints = np.where(whole == number, np.maximum(TOP // 3 - whole, whole), score)
    return empty


def gpu_clustering(free: Ints, same: Bools, requests: Ints) -> Ints:
    """[S] servers whose tasks all have the GPU request of this one are the best, then those where some have, then those
    without tasks that use GPUs, then the others; in each quarter of the scale, the fuller the better.

    Args:
        free: [S] free milli-GPUs.
        same: [S] some task there has the same request.
        requests: [S] different GPU requests of the tasks there; all fractions are one.
    """
    quarter = np.where(same, np.where(requests == 1, 3, 2), requests == 0)
    score: Ints = TOP // 4 * (LARGEST * WHOLE - free) // (LARGEST * WHOLE) + TOP * quarter // 4
    return score


def dot_product(need: Floats, free: Floats, capacity: Floats) -> Floats:
    """[S] Σ need · free, each as a share of the server's capacity (Tetris, SIGCOMM 2014), for resources [·], [S, ·],
    [S, ·]; where it is small, the task takes what is scarce there least. The rule takes the smallest."""
    size = np.maximum(capacity, 1)
    product: Floats = ((need / size) * (free / size)).sum(axis=1)
    return product
