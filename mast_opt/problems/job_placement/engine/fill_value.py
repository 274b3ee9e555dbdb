"""Value of a server's free capacity (job-placement engine): the milli-GPUs that sampled arrivals would still fill.

A sample is a sequence of arrivals, each a shape drawn from the mix of jobs (``arrival_mix``). Each one that fits is
placed, a fraction on the fullest GPU that holds it. What they take over all samples is the value in the long run, when
more comes than fits. Until then, what counts is that the next arrival finds a place: so a server is also worth the
milli-GPUs of all arrivals of one shape that have room there now, for every shape, weighted by how much of it arrives
and how few GPUs are on servers that could hold it. Placing a job costs the value before less the value after. All
servers meet the same samples, so that differences are not noise.

Values depend on the type and on what is free only; ``EngineState.memo`` keeps them by a hash of both. A fleet also
keeps the loss of its most recent requests on each server (``EngineState.loss``); a bit of ``S_DIRTY`` says which are
out of date.

The same values say what the server of a running job would gain if the job were elsewhere, and which jobs fit elsewhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.arrival_mix import PER_MILLE
from mast_opt.problems.job_placement.engine.capacity_ledger import refresh_reclaim
from mast_opt.problems.job_placement.engine.feasibility import Request, room_on, tasks_on
from mast_opt.problems.job_placement.engine.state import NO_PLACE, VALUE_DIRTY, EngineState
from mast_opt.problems.job_placement.units import MOST_TASKS, WHOLE, Bools, Ints

OWN, TRIAL = range(2)
"""Rows of the scratch table [2, D + L]: what is left of shared GPUs on the server, and in a sample."""
BASIS, PRIME, FOLD = np.uint64(1469598103934665603), np.uint64(1099511628211), np.uint64(29)
"""Constants of the hash (FNV-1a, with a shift after each word)."""
USED, KEY = 0, 1
"""Fields of a slot: when it was last used, then the request that it is for."""

Hash = np.uint64
Scratch = NDArray[np.int64]


@kernel
def loss_on(state: EngineState, s: int, mgpu: int, job: Request, tasks: int, tier: int, work: Scratch) -> int:
    """Milli-GPUs, over all samples, that arrivals of this tier could no longer fill if so many tasks of the job, which
    must fit, ran on the server; 0 in a pool, whose GPUs cannot be fragmented. ``work``: scratch [2, D + L]."""
    if state.room[col.A_FREE, tier, s] == 0 or len(state.sample) == 0 or state.server[col.S_SIZE, s] > WHOLE:
        return 0
    whole, count = state.room[col.A_WHOLE, tier, s], shared_gpus(state, s, tier, work)
    cpu, memory = state.room[col.A_CPU, tier, s], state.room[col.A_MEMORY, tier, s]
    kind = state.group[col.G_TYPE, state.server[col.S_GROUP, s]]
    settled = state.free_places[col.N_ROUND] == 0
    if settled and state.server[col.S_DIRTY, s] & VALUE_DIRTY == 0:
        before = state.server[col.S_VALUE, s]
    else:
        before = value_of(state, kind, whole, count, cpu, memory, work)
        if settled:
            state.server[col.S_VALUE, s] = before
            state.server[col.S_DIRTY, s] &= ~VALUE_DIRTY
    whole, count = _taken(work[OWN], whole, count, mgpu, tasks)
    after = value_of(state, kind, whole, count, cpu - tasks * job.cpu, memory - tasks * job.memory, work)
    return int(max(before - after, 0))


@kernel
def shared_gpus(state: EngineState, s: int, tier: int, work: Scratch) -> int:
    """Write the rooms of GPUs that are neither full nor whole into the scratch, ascending; returns how many."""
    count = 0
    if state.room[col.A_FREE, tier, s] == state.room[col.A_WHOLE, tier, s] * WHOLE:
        return 0
    for d in range(state.server[col.S_DEVICES, s]):
        room = room_on(state, s, d, tier)
        if 0 < room < WHOLE:
            insert(work[OWN], count, room)
            count += 1
    return count


@kernel
def insert(rooms: Ints, count: int, room: int) -> None:
    """Insert a room into the first ``count``, which are ascending."""
    at = count
    while at > 0 and rooms[at - 1] > room:
        rooms[at] = rooms[at - 1]
        at -= 1
    rooms[at] = room


@kernel
def _take_fraction(rooms: Ints, whole: int, count: int, mgpu: int) -> tuple[int, int]:
    """Take a fraction from the fullest GPU that holds it; (whole, count) afterwards, ``rooms`` ascending."""
    at = 0
    while at < count and rooms[at] < mgpu:
        at += 1
    left = WHOLE - mgpu
    if at < count:
        left = rooms[at] - mgpu
        count -= 1
        for later in range(at, count):
            rooms[later] = rooms[later + 1]
    else:
        whole -= 1
    if left > 0:
        insert(rooms, count, left)
        count += 1
    return whole, count


@kernel
def value_of(state: EngineState, kind: int, whole: int, count: int, cpu: int, memory: int, work: Scratch) -> int:
    """Value of a server of a type with so many whole GPUs, rooms of ``count`` shared ones in the scratch, millicores
    and MiB."""
    if whole == 0 and count == 0:
        return 0
    key = _mixed(_mixed(_mixed(_mixed(BASIS, kind), whole), cpu), memory)
    for at in range(count):
        key = _mixed(key, work[OWN, at])
    name = np.int64(key) | 1
    place = np.int64((key >> FOLD) % np.uint64(len(state.memo)))
    if state.memo[place, 0] != name:
        value = _fill(state, kind, whole, count, cpu, memory, work)
        state.memo[place, 1] = value + _room_for_next(state, kind, whole, count, cpu, memory, work)
        state.memo[place, 0] = name
    return int(state.memo[place, 1])


@kernel
def _mixed(key: Hash, word: int) -> Hash:
    key = (key ^ np.uint64(word + 1)) * PRIME
    return key ^ (key >> FOLD)


@kernel
def _fill(state: EngineState, kind: int, whole: int, count: int, cpu: int, memory: int, work: Scratch) -> int:
    """The sum of what all samples take; fields of a draw are its needs by type, millicores, MiB and tasks."""
    fields = state.sample.shape[2]
    free = whole * WHOLE
    for at in range(count):
        free += work[OWN, at]
    total = 0
    for k in range(len(state.sample)):
        cores, mib, gpus, shared, left = cpu, memory, whole, count, free
        for at in range(count):
            work[TRIAL, at] = work[OWN, at]
        for draw in range(state.sample.shape[1]):
            mgpu, tasks = state.sample[k, draw, kind], state.sample[k, draw, fields - 1]
            ask, core_need = mgpu * tasks, state.sample[k, draw, fields - 3] * tasks
            mib_need = state.sample[k, draw, fields - 2] * tasks
            if ask < 0 or ask > left or core_need > cores or mib_need > mib:
                continue
            if _most(work[TRIAL], gpus, shared, mgpu) < tasks:
                continue
            gpus, shared = _taken(work[TRIAL], gpus, shared, mgpu, tasks)
            cores -= core_need
            mib -= mib_need
            left -= ask
            if left == 0:
                break
        total += free - left
    return int(total)


@kernel
def _room_for_next(state: EngineState, kind: int, whole: int, count: int, cpu: int, memory: int, work: Scratch) -> int:
    """The milli-GPUs that each shape, were there nothing else, would take, times its price; summed over shapes."""
    price = state.demand.shape[1] - 1
    total = 0
    for row in range(len(state.demand)):
        mgpu, tasks = state.demand[row, kind], state.demand[row, price - 1]
        if mgpu <= 0:
            continue
        fit = _most(work[OWN], whole, count, mgpu)
        if fit >= tasks and state.demand[row, price - 3] > 0:
            fit = min(fit, cpu // state.demand[row, price - 3])
        if fit >= tasks and state.demand[row, price - 2] > 0:
            fit = min(fit, memory // state.demand[row, price - 2])
        total += fit // tasks * tasks * mgpu * state.demand[row, price]
    return int(total // PER_MILLE)


@kernel
def _most(rooms: Ints, whole: int, count: int, mgpu: int) -> int:
    """Tasks that the GPUs hold."""
    if mgpu == 0:
        return MOST_TASKS
    if mgpu >= WHOLE:
        return whole // (mgpu // WHOLE)
    fit = whole * (WHOLE // mgpu)
    for at in range(count):
        fit += rooms[at] // mgpu
    return int(fit)


@kernel
def _taken(rooms: Ints, whole: int, count: int, mgpu: int, tasks: int) -> tuple[int, int]:
    """(whole, count) once so many tasks, which must fit, have their GPUs."""
    if mgpu >= WHOLE:
        whole -= mgpu // WHOLE * tasks
    elif mgpu > 0:
        for _ in range(tasks):
            whole, count = _take_fraction(rooms, whole, count, mgpu)
    return whole, count


@kernel
def slot_of(state: EngineState, job: Request, tier: int) -> int:
    """The slot of ``EngineState.loss`` for the request, the least recently used one if it has none yet; −1 if there are
    no slots."""
    slots = len(state.slot)
    if slots == 0:
        return -1
    kinds, found, oldest, latest = len(job.mgpu), -1, 0, 0
    for at in range(slots):
        latest = max(latest, state.slot[at, USED])
        if state.slot[at, USED] < state.slot[oldest, USED]:
            oldest = at
        same = state.slot[at, USED] > 0 and state.slot[at, KEY + kinds] == job.cpu
        same = same and state.slot[at, KEY + kinds + 1] == job.memory and state.slot[at, KEY + kinds + 2] == job.tasks
        same = same and state.slot[at, KEY + kinds + 3] == tier
        for k in range(kinds):
            same = same and state.slot[at, KEY + k] == job.mgpu[k]
        if same:
            found = at
    if found < 0:
        found = oldest
        for k in range(kinds):
            state.slot[found, KEY + k] = job.mgpu[k]
        state.slot[found, KEY + kinds] = job.cpu
        state.slot[found, KEY + kinds + 1] = job.memory
        state.slot[found, KEY + kinds + 2] = job.tasks
        state.slot[found, KEY + kinds + 3] = tier
        for s in range(state.server.shape[1]):
            state.server[col.S_DIRTY, s] |= 1 << found
    state.slot[found, USED] = latest + 1
    return found


@kernel
def view_of(state: EngineState, job: Request) -> int:
    """The tier whose room the job finds: its own in a round; outside rounds all tiers find the same."""
    return job.tier if state.free_places[col.N_ROUND] == 1 else state.room.shape[1] - 1


@kernel
def least_loss(state: EngineState, g: int, job: Request, tier: int, slot: int, work: Scratch) -> tuple[int, int]:
    """(server, loss) of the server of a group that holds the whole job and loses the least value by it; of equals the
    one with the fewest free GPUs, then the first. (−1, NO_PLACE) if none holds it."""
    best, least, fewest = -1, NO_PLACE, 0
    mgpu = job.mgpu[state.group[col.G_TYPE, g]]
    for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
        if slot >= 0:
            if state.server[col.S_DIRTY, s] >> slot & 1:
                state.server[col.S_DIRTY, s] &= ~(1 << slot)
                state.loss[slot, s] = _whole_job(state, s, mgpu, job, tier, work)
            loss = state.loss[slot, s]
        else:
            loss = _whole_job(state, s, mgpu, job, tier, work)
        if loss < least or (loss == least and loss < NO_PLACE and state.room[col.A_FREE, tier, s] < fewest):
            best, least, fewest = s, loss, state.room[col.A_FREE, tier, s]
    return best, least


@kernel
def _whole_job(state: EngineState, s: int, mgpu: int, job: Request, tier: int, work: Scratch) -> int:
    if mgpu < 0 or tasks_on(state, s, mgpu, job) < job.tasks:
        return NO_PLACE
    return min(loss_on(state, s, mgpu, job, job.tasks, tier, work), NO_PLACE - 1)


REGION, TYPE, MGPU, CORES, MIB, TASKS = range(6)
"""Columns of a table of needs: where a job must stay, what a task needs, and how many it has."""


@compiled
def homes(state: EngineState, need: Ints, any_job: Request) -> Ints:
    """[N, 2] for each need [N, 6] a server that holds all of its tasks, and another one; −1 where there is none.

    Args:
        any_job: its tier counts.
    """
    found = np.full((len(need), 2), -1, np.int64)
    for n in range(len(need)):
        job = Request(any_job.mgpu, any_job.open, need[n, CORES], need[n, MIB], need[n, TASKS], 0, 0, any_job.tier)
        _find_homes(state, need[n], job, found[n])
    return found


@kernel
def _find_homes(state: EngineState, need: Ints, job: Request, found: Ints) -> None:
    count = 0
    for g in range(state.group.shape[1] - 1):
        if state.group[col.G_TYPE, g] != need[TYPE] or state.group[col.G_REGION, g] != need[REGION]:
            continue
        for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
            if tasks_on(state, s, need[MGPU], job) >= job.tasks:
                found[count] = s
                count += 1
                if count == 2:
                    return


@compiled
def removal_gains(state: EngineState, places: Ints) -> Ints:
    """[N] by how much the value of its server (``fill_value``) would rise if a running job were not there; 0 for one
    that runs on several servers, in a pool, or on a server that takes no work."""
    gain = np.zeros(len(places), np.int64)
    work = np.empty((2, state.row_device.shape[1] + state.sample.shape[1]), np.int64)
    for at in range(len(places)):
        row = state.job[col.J_ROW, places[at]]
        s = state.row[col.L_SERVER, row]
        if (
            state.row[col.L_NEXT, row] < 0
            and state.server[col.S_BLOCKED, s] == 0
            and state.server[col.S_SIZE, s] <= WHOLE
        ):
            gain[at] = _value_without(state, s, row, work) - _value_now(state, s, work)
    return gain


@kernel
def _value_now(state: EngineState, s: int, work: Scratch) -> int:
    tier, kind = state.room.shape[1] - 1, state.group[col.G_TYPE, state.server[col.S_GROUP, s]]
    if state.room[col.A_FREE, tier, s] == 0:
        return 0
    count = shared_gpus(state, s, tier, work)
    cpu, memory = state.room[col.A_CPU, tier, s], state.room[col.A_MEMORY, tier, s]
    return int(value_of(state, kind, state.room[col.A_WHOLE, tier, s], count, cpu, memory, work))


@kernel
def _value_without(state: EngineState, s: int, row: int, work: Scratch) -> int:
    tier, kind = state.room.shape[1] - 1, state.group[col.G_TYPE, state.server[col.S_GROUP, s]]
    whole = count = 0
    for d in range(state.server[col.S_DEVICES, s]):
        room = room_on(state, s, d, tier) + state.row_device[row, d]
        if room >= WHOLE:
            whole += 1
        elif room > 0:
            insert(work[OWN], count, room)
            count += 1
    cpu, memory = state.room[col.A_CPU, tier, s] + state.row[col.L_CPU, row], state.room[col.A_MEMORY, tier, s]
    return int(value_of(state, kind, whole, count, cpu, memory + state.row[col.L_MEMORY, row], work))


@compiled
def loss_on_server(state: EngineState, s: int, mgpu: int, job: Request) -> int:
    """The value that a server loses if all tasks of a job, which must fit, run there."""
    work = np.empty((2, state.row_device.shape[1] + state.sample.shape[1]), np.int64)
    return int(loss_on(state, s, mgpu, job, job.tasks, job.tier, work))


@compiled
def let_go(state: EngineState, places: Ints, may: Bools, cost: Ints) -> None:
    """Let some of these running jobs [N] give way to work of any tier, each at its cost, and the others to none."""
    tiers = state.room.shape[1]
    for at in range(len(places)):
        state.job[col.J_LIMIT, places[at]] = tiers if may[at] else 0
        state.job[col.J_TIER, places[at]], state.job[col.J_COST, places[at]] = tiers, cost[at]
    for s in range(state.server.shape[1]):
        refresh_reclaim(state, s)
