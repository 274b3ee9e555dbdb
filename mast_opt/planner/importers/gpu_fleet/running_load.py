"""Pods put on machines one after another until the fleet is as full as asked."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mast_opt.planner.importers.traces.alibaba import GpuPods
from mast_opt.problems.job_placement.generate.blank import GeneratedFleet, Running
from mast_opt.problems.job_placement.units import GPU, WHOLE, Ints

BEST_EFFORT = 2
"""Tier of the pods that may be stopped."""
TRIES = 3
"""Machines that are drawn for a pod; it goes to the fullest of those that hold it."""


@dataclass(frozen=True, eq=False)
class Load:
    """The allocations [A] that run on the fleet."""

    running: Running
    index: Ints
    """[A] the GPU of an allocation that holds a fraction of one."""
    indexed: NDArray[np.bool_]
    """[A] True for fractions."""


def running_pods(rng: np.random.Generator, fleet: GeneratedFleet, pods: GpuPods, percent: int, hours: float) -> Load:
    """Take the pods in order, each to a random machine that holds it, until so many percent of the GPUs are held.

    Args:
        hours: the work at risk of a best-effort pod is drawn evenly up to so many hours of its GPUs.
    """
    free = fleet.servers.supply.copy()
    room = [np.full(int(gpus) // WHOLE, WHOLE) for gpus in free[:, GPU]]
    wanted = int(free[:, GPU].sum()) * percent // 100
    kinds = np.array(fleet.gpu_types)
    running, index, held = Running(), [], 0
    for n in range(len(pods)):
        if held >= wanted:
            break
        need = np.array([pods.mgpu[n], pods.cpu_mcores[n], pods.memory_mib[n]])
        fits = (free >= need).all(axis=1)
        if pods.models[n]:
            fits &= np.isin(kinds[fleet.servers.gpu_type], list(pods.models[n]))
        drawn = (s for s in rng.permutation(np.flatnonzero(fits)).tolist() if _fits_gpus(room[s], int(need[0])))
        at = list(islice(drawn, TRIES))
        if not at:
            continue
        s = min(at, key=lambda s: int(free[s, GPU]))
        free[s] -= need
        held += int(need[0])
        index.append(_take(room[s], int(need[0])))
        tier = int(pods.tier[n])
        number = len(running.tier)
        running.tier.append(tier)
        running.preemptible.append(tier == BEST_EFFORT)
        running.at_risk.append(int(need[0] * rng.uniform(0, hours)) if tier == BEST_EFFORT else 0)
        running.held.append((number, s, 1, *need.tolist()))
    indexed = np.array([at is not None for at in index], np.bool_)
    return Load(running, np.array([at or 0 for at in index], np.int64), indexed)


def _fits_gpus(room: Ints, mgpu: int) -> bool:
    """Whether an imported machine with so much room on each GPU holds a pod that needs so many milli-GPUs."""
    if mgpu >= WHOLE:
        return int((room == WHOLE).sum()) >= mgpu // WHOLE
    return mgpu == 0 or int(room.max(initial=0)) >= mgpu


def _take(room: Ints, mgpu: int) -> int | None:
    """Take a pod's GPUs of an imported machine; returns the one that a fraction shares: the fullest that holds it."""
    if mgpu >= WHOLE:
        room[np.flatnonzero(room == WHOLE)[: mgpu // WHOLE]] = 0
        return None
    if mgpu == 0:
        return None
    d = int(np.where(room >= mgpu, room, WHOLE + 1).argmin())
    room[d] -= mgpu
    return d
