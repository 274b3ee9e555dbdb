"""Fragmentation of free GPUs: how many of them typical tasks cannot use (F of FGD, USENIX ATC'23)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mast_opt.live.loop.log_fold import GPU_MILLI, PastServer


class TaskShape(NamedTuple):
    """Needs of a task, and the GPU types on which it runs."""

    mgpu: int
    cpu_mcores: int
    memory_mib: int
    gpu_types: frozenset[str] | None
    """None for any."""


def fragmented_mgpu(servers: Sequence[PastServer], shapes: Mapping[TaskShape, int]) -> float:
    """Milli-GPUs of servers that are free and of no use to a task, in the mean over tasks.

    For a task that a server cannot take, all that is free there counts; for another one, what is free on GPUs that are
    too full for it.

    Args:
        servers: in service, with the GPUs that have numbers.
        shapes: shape → how often it occurs.
    """
    total = sum(shapes.values())
    if not servers or not total:
        return 0.0
    idle = np.zeros((len(servers), max(len(server.idle) for server in servers)), np.int64)
    for row, server in enumerate(servers):
        idle[row, : len(server.idle)] = server.idle
    free = np.array([server.free for server in servers], np.int64)
    kinds, kind = np.unique([server.up.gpu_type for server in servers], return_inverse=True)
    found = 0
    for shape, count in shapes.items():
        takes = np.array([shape.gpu_types is None or name in shape.gpu_types for name in kinds.tolist()])[kind]
        on_each = min(shape.mgpu, GPU_MILLI)
        enough = (idle >= on_each).sum(axis=1) >= max(1, shape.mgpu // GPU_MILLI)
        fits = takes & enough & (free[:, 1] >= shape.cpu_mcores) & (free[:, 2] >= shape.memory_mib)
        unused = np.where(fits, np.where(idle < on_each, idle, 0).sum(axis=1), idle.sum(axis=1))
        found += count * int(unused.sum())
    return found / total
