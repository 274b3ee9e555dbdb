"""Free-capacity search of the job-placement engine: every cluster of every open region, the closest level that fits.

Bids compare by level of spread, then load of the region, then name of region, cluster and type. Regions are taken
from the least loaded up, so the first group that fits at the best level ends the search: all others would lose. The
best level is one server only for jobs that are no larger than the largest server.
"""

from __future__ import annotations

import numpy as np

from mast_opt.core.jit import compiled, entry, kernel
from mast_opt.problems.job_placement.engine.feasibility import Request, tasks_on
from mast_opt.problems.job_placement.engine.state import (
    G_ENTRY,
    G_START,
    G_TYPE,
    N_LARGEST,
    R_MGPU,
    R_RANK,
    R_START,
    R_USED,
    S_RACK,
    T_FREE,
    T_WHOLE,
    EngineState,
)
from mast_opt.problems.job_placement.units import CLUSTER, RACK, SERVER, WHOLE, Bools, Ints

NOWHERE = 3
"""One more than the widest level."""


@kernel
def regions_by_load(state: EngineState, job: Request, order: Ints) -> int:
    """Write the open regions into ``order``, least loaded first, equals as listed; returns how many there are."""
    count = 0
    for r in range(state.region.shape[1] - 1):
        if not job.open[r]:
            continue
        at = count
        while at > 0 and _goes_before(state, r, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = r
        count += 1
    return count


@entry
def load_of(state: EngineState, r: int) -> float:
    """GPUs in use / GPUs of the region."""
    return float(state.region[R_USED, r] / state.region[R_MGPU, r]) if state.region[R_MGPU, r] > 0 else 0.0


@kernel
def _goes_before(state: EngineState, r: int, q: int) -> bool:
    here, there = load_of(state, r), load_of(state, q)
    return bool(here < there or (here == there and state.region[R_RANK, r] < state.region[R_RANK, q]))


@kernel
def excess(level: int, job: Request) -> int:
    """Number of levels by which a plan is further spread than the job likes."""
    return max(0, level - job.prefer)


@kernel
def closest_level(state: EngineState, job: Request) -> int:
    """SERVER if the job has no more GPUs than the largest server on some type that it accepts, otherwise RACK."""
    most = state.free_places[N_LARGEST]
    for k in range(len(job.mgpu)):
        if 0 <= job.mgpu[k] * job.tasks <= most:
            return SERVER
    return RACK


@entry
def level_in(state: EngineState, g: int, job: Request) -> int:
    """The closest level at which the job fits into a group, or NOWHERE."""
    mgpu = job.mgpu[state.group[G_TYPE, g]]
    if mgpu < 0 or state.total[T_WHOLE, job.tier, g] * WHOLE < (job.tasks * mgpu if mgpu >= WHOLE else 0):
        return NOWHERE
    if state.total[T_FREE, job.tier, g] < job.tasks * mgpu:
        return NOWHERE
    total = in_rack = 0
    rack, level = -1, NOWHERE
    for s in range(state.group[G_START, g], state.group[G_START, g + 1]):
        fit = tasks_on(state, s, mgpu, job)
        if fit == 0:
            continue
        if fit >= job.tasks:
            return SERVER
        if state.server[S_RACK, s] != rack:
            rack, in_rack = state.server[S_RACK, s], 0
        in_rack += fit
        total += fit
        if in_rack >= job.tasks and job.within >= RACK:
            level = RACK
    if level == NOWHERE and job.within == CLUSTER and total >= job.tasks:
        level = CLUSTER
    return level


@compiled
def search(state: EngineState, job: Request, allowed: Bools) -> tuple[int, int]:
    """(group, level) of the best bid, or (−1, NOWHERE). ``allowed`` [G]: groups that may be used."""
    return _search(state, job, allowed, np.empty(state.region.shape[1] - 1, np.int64))


@kernel
def _search(state: EngineState, job: Request, allowed: Bools, order: Ints) -> tuple[int, int]:
    best, best_level, least = -1, NOWHERE, excess(closest_level(state, job), job)
    for at in range(regions_by_load(state, job, order)):
        for listed in range(state.region[R_START, order[at]], state.region[R_START, order[at] + 1]):
            g = state.group[G_ENTRY, listed]
            if not allowed[g]:
                continue
            level = level_in(state, g, job)
            if level < NOWHERE and (best < 0 or excess(level, job) < excess(best_level, job)):
                best, best_level = g, level
                if excess(level, job) == least:
                    return best, best_level
    return best, best_level


@compiled
def groups_in_order(state: EngineState, job: Request, allowed: Bools) -> Ints:
    """The groups that the job may use, in the order that decides between equal bids."""
    regions = np.empty(state.region.shape[1] - 1, np.int64)
    groups = np.empty(state.group.shape[1] - 1, np.int64)
    return groups[: _list_groups(state, job, allowed, regions, groups)]


@kernel
def _list_groups(state: EngineState, job: Request, allowed: Bools, regions: Ints, groups: Ints) -> int:
    count = 0
    for at in range(regions_by_load(state, job, regions)):
        for listed in range(state.region[R_START, regions[at]], state.region[R_START, regions[at] + 1]):
            g = state.group[G_ENTRY, listed]
            if allowed[g] and job.mgpu[state.group[G_TYPE, g]] >= 0:
                groups[count] = g
                count += 1
    return count
