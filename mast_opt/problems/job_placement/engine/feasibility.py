"""Feasibility in the job-placement engine: which tasks a server, a group or any open region holds, and on which GPUs.

Bids compare by level of spread, then load of the region, then name of region, cluster and type. Regions are taken
from the least loaded up, so the first group that fits at the best level ends the search: all others would lose. The
best level is one server only for jobs that are no larger than the largest server.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.jit import compiled, entry, kernel
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.state import EngineState, Small
from mast_opt.problems.job_placement.units import CLUSTER, RACK, SERVER, WHOLE, Bools, Ints


class Request(NamedTuple):
    """A job as the kernels see it. K types, R regions."""

    mgpu: Ints
    """[K] milli-GPUs of one task on each type; −1 where the type is not accepted."""
    open: Bools
    """[R] regions that hold its data."""
    cpu: int
    """Millicores of one task."""
    memory: int
    """MiB of one task."""
    tasks: int
    within: int
    """Level that it must stay within."""
    prefer: int
    """Level that is close enough."""
    tier: int


@kernel
def tasks_on(state: EngineState, s: int, mgpu: int, job: Request) -> int:
    """Tasks of the job that fit on the server in addition to all that it holds; at most as many as the job has."""
    tier, most = job.tier, job.tasks
    if mgpu >= WHOLE:
        most = min(most, state.room[col.A_WHOLE, tier, s] // (mgpu // WHOLE))
    elif mgpu > 0:
        if state.room[col.A_FREE, tier, s] < mgpu:
            return 0
        fit = 0
        for d in range(state.server[col.S_DEVICES, s]):
            fit += room_on(state, s, d, tier) // mgpu
        most = min(most, fit)
    if most == 0 or state.room[col.A_CPU, tier, s] < job.cpu or state.room[col.A_MEMORY, tier, s] < job.memory:
        return 0
    if most == 1:
        return 1
    if job.cpu > 0:
        most = min(most, state.room[col.A_CPU, tier, s] // job.cpu)
    if job.memory > 0:
        most = min(most, state.room[col.A_MEMORY, tier, s] // job.memory)
    return int(most)


@kernel
def room_on(state: EngineState, s: int, d: int, tier: int) -> int:
    """Milli-GPUs of one GPU for work of the tier."""
    room = state.slack_device[s, d, 0]
    for p in range(1, tier + 1):
        room = min(room, state.slack_device[s, d, p])
    return int(room)


@kernel
def _lowest_tier(state: EngineState, s: int, d: int, tier: int) -> int:
    """The least important tier for which a GPU is wholly there, or −1 if it is not there for ``tier``."""
    found = -1
    for p in range(state.room.shape[1]):
        if state.slack_device[s, d, p] != WHOLE:
            break
        found = p
    return found if found >= tier else -1


@kernel
def choose_devices(state: EngineState, s: int, mgpu: int, tasks: int, tier: int, device: Small) -> None:
    """Write into ``device`` [D] what the tasks take of each GPU; they must fit.

    Whole GPUs: those that the fewest other tiers could use, the lowest of equals. Fractions, one by one: the GPU
    with the least room that holds it, the lowest of equals. A pool has one device, of which all is taken.
    """
    for d in range(len(device)):
        device[d] = 0
    if state.server[col.S_SIZE, s] > WHOLE:
        device[0] = mgpu * tasks
    elif mgpu >= WHOLE:
        left = mgpu // WHOLE * tasks
        for lowest in range(tier, state.room.shape[1]):
            for d in range(state.server[col.S_DEVICES, s]):
                if left > 0 and _lowest_tier(state, s, d, tier) == lowest:
                    device[d] = WHOLE
                    left -= 1
    elif mgpu > 0:
        for _ in range(tasks):
            device[_fullest(state, s, mgpu, tier, device)] += mgpu


@kernel
def _fullest(state: EngineState, s: int, mgpu: int, tier: int, device: Small) -> int:
    """The GPU with the least room that holds so much in addition to what ``device`` takes, the lowest of equals."""
    best, least = -1, WHOLE + 1
    for d in range(state.server[col.S_DEVICES, s]):
        room = room_on(state, s, d, tier) - device[d]
        if mgpu <= room < least:
            best, least = d, room
    return int(best)


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
    return float(state.region[col.R_USED, r] / state.region[col.R_MGPU, r]) if state.region[col.R_MGPU, r] > 0 else 0.0


@kernel
def _goes_before(state: EngineState, r: int, q: int) -> bool:
    here, there = load_of(state, r), load_of(state, q)
    return bool(here < there or (here == there and state.region[col.R_RANK, r] < state.region[col.R_RANK, q]))


@kernel
def excess(level: int, job: Request) -> int:
    """Number of levels by which a plan is further spread than the job likes."""
    return max(0, level - job.prefer)


@kernel
def closest_level(state: EngineState, job: Request) -> int:
    """SERVER if the job has no more GPUs than the largest server on some type that it accepts, otherwise RACK."""
    most = state.free_places[col.N_LARGEST]
    for k in range(len(job.mgpu)):
        if 0 <= job.mgpu[k] * job.tasks <= most:
            return SERVER
    return RACK


@entry
def level_in(state: EngineState, g: int, job: Request) -> int:
    """The closest level at which the job fits into a group, or NOWHERE."""
    mgpu = job.mgpu[state.group[col.G_TYPE, g]]
    if mgpu < 0 or state.total[col.T_WHOLE, job.tier, g] * WHOLE < (job.tasks * mgpu if mgpu >= WHOLE else 0):
        return NOWHERE
    if state.total[col.T_FREE, job.tier, g] < job.tasks * mgpu:
        return NOWHERE
    total = in_rack = 0
    rack, level = -1, NOWHERE
    for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
        fit = tasks_on(state, s, mgpu, job)
        if fit == 0:
            continue
        if fit >= job.tasks:
            return SERVER
        if state.server[col.S_RACK, s] != rack:
            rack, in_rack = state.server[col.S_RACK, s], 0
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
        for listed in range(state.region[col.R_START, order[at]], state.region[col.R_START, order[at] + 1]):
            g = state.group[col.G_ENTRY, listed]
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
        for listed in range(state.region[col.R_START, regions[at]], state.region[col.R_START, regions[at] + 1]):
            g = state.group[col.G_ENTRY, listed]
            if allowed[g] and job.mgpu[state.group[col.G_TYPE, g]] >= 0:
                groups[count] = g
                count += 1
    return count
