"""Capacity ledger of the job-placement engine: taking and giving back capacity, tier by tier, with all sums kept."""

from __future__ import annotations

import numpy as np

from mast_opt.core.jit import compiled, entry, kernel
from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.state import (
    ALL_DIRTY,
    HOUR_MS,
    MOST_HOURS,
    NEVER,
    ROUND_OFF,
    VICTIM,
    EngineState,
    Small,
)
from mast_opt.problems.job_placement.units import WHOLE, Bools, Ints


@kernel
def refresh(state: EngineState, s: int) -> None:
    """Recompute what work of each tier finds on a server, from its slacks."""
    group = state.server[col.S_GROUP, s]
    state.server[col.S_DIRTY, s] = ALL_DIRTY
    for tier in range(state.room.shape[1]):
        whole = free = 0
        cpu, memory = state.slack[0, s, 0], state.slack[1, s, 0]
        if state.server[col.S_BLOCKED, s] == 1:
            cpu = memory = -1
        else:
            for p in range(1, tier + 1):
                cpu = min(cpu, state.slack[0, s, p])
                memory = min(memory, state.slack[1, s, p])
            for d in range(state.server[col.S_DEVICES, s]):
                room = state.slack_device[s, d, 0]
                for p in range(1, tier + 1):
                    room = min(room, state.slack_device[s, d, p])
                free += room
                if room >= WHOLE:
                    whole += 1 if room == WHOLE else room // WHOLE
        state.total[col.T_WHOLE, tier, group] += whole - state.room[col.A_WHOLE, tier, s]
        state.total[col.T_FREE, tier, group] += free - state.room[col.A_FREE, tier, s]
        state.room[col.A_WHOLE, tier, s] = whole
        state.room[col.A_FREE, tier, s] = free
        state.room[col.A_CPU, tier, s] = cpu
        state.room[col.A_MEMORY, tier, s] = memory


@entry
def set_costs(state: EngineState, jobs: Ints, costs: Ints) -> None:
    """Stopping these jobs costs so much from now on."""
    for at in range(len(jobs)):
        state.job[col.J_COST, jobs[at]] = costs[at]
    for at in range(len(jobs)):
        row = state.job[col.J_ROW, jobs[at]]
        while row >= 0:
            refresh_reclaim(state, state.row[col.L_SERVER, row])
            row = state.row[col.L_NEXT, row]


@entry
def look_at_work(state: EngineState, regions: Bools, now_ms: int) -> None:
    """Stopping each job in these regions [R] whose work is known costs what it would lose now, from now on."""
    for g in range(state.total.shape[2]):
        if not regions[state.group[col.G_REGION, g]]:
            continue
        for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
            row, found = state.server[col.S_ROW, s], False
            while row >= 0:
                job = state.row[col.L_JOB, row]
                if state.job[col.J_BEGAN, job] >= 0:
                    found = True
                    if state.job[col.J_LOOKED, job] != now_ms:
                        state.job[col.J_COST, job] = _cost_of_work(state, job, now_ms)
                        state.job[col.J_LOOKED, job] = now_ms
                        _refresh_elsewhere(state, regions, job)
                row = state.row[col.L_AFTER, row]
            if found:
                _count_stoppable(state, s, 0)


@kernel
def _refresh_elsewhere(state: EngineState, regions: Bools, job: int) -> None:
    """Recompute the least costs of stopping jobs on the servers of a job that are not in these regions [R]: a host may
    report work across regions."""
    row = state.job[col.J_ROW, job]
    while row >= 0:
        s = state.row[col.L_SERVER, row]
        if not regions[state.group[col.G_REGION, state.server[col.S_GROUP, s]]]:
            _count_stoppable(state, s, 0)
        row = state.row[col.L_NEXT, row]


@kernel
def _cost_of_work(state: EngineState, job: int, now_ms: int) -> int:
    """Cost of stopping a job that loses its work since its last checkpoint."""
    lost_ms = max(0, now_ms - state.job[col.J_BEGAN, job]) % max(state.job[col.J_EVERY, job], 1)
    milli = min(lost_ms * state.job[col.J_MGPU, job] / (WHOLE * HOUR_MS), float(MOST_HOURS)) * MILLI
    whole = int(np.floor(milli))
    return (whole + int(milli - whole >= 0.5 / 10**ROUND_OFF)) * VICTIM + 1


@entry
def refresh_all(state: EngineState) -> None:
    """Recompute what every server has, and what could be had there by stopping jobs."""
    for s in range(state.server.shape[1]):
        refresh(state, s)
        refresh_reclaim(state, s)


@entry
def refresh_reclaim(state: EngineState, s: int) -> None:
    """Recompute what could be had on a server by stopping jobs, from its list of allocations."""
    limits, group = state.reclaim.shape[1], state.server[col.S_GROUP, s]
    for tier in range(limits):
        state.total[col.T_RECLAIM, tier, group] -= state.reclaim[col.C_MGPU, tier, s]
        state.reclaim[col.C_MGPU, tier, s] = 0
        state.reclaim[col.C_CPU, tier, s] = 0
        state.reclaim[col.C_MEMORY, tier, s] = 0
    _count_stoppable(state, s, 1)
    for tier in range(limits):
        state.total[col.T_RECLAIM, tier, group] += state.reclaim[col.C_MGPU, tier, s]


@kernel
def _count_stoppable(state: EngineState, s: int, sign: int) -> None:
    """Recompute the least costs of stopping jobs on a server, and count what these jobs hold there (sign 1) or leave
    the counts as they are (0).
    """
    for tier in range(state.reclaim.shape[1]):
        state.reclaim[col.C_LEAST, tier, s] = NEVER
        state.reclaim[col.C_DENSITY, tier, s] = NEVER
    if state.server[col.S_BLOCKED, s] == 1:
        return
    row = state.server[col.S_ROW, s]
    while row >= 0:
        job = state.row[col.L_JOB, row]
        if state.job[col.J_LIMIT, job] > 0:
            mgpu, cost = _mgpu(state, row), state.job[col.J_COST, job]
            density = cost // state.job[col.J_MGPU, job] if mgpu > 0 else NEVER
            for tier in range(state.job[col.J_LIMIT, job] + 1):
                state.reclaim[col.C_MGPU, tier, s] += sign * mgpu
                state.reclaim[col.C_CPU, tier, s] += sign * state.row[col.L_CPU, row]
                state.reclaim[col.C_MEMORY, tier, s] += sign * state.row[col.L_MEMORY, row]
                state.reclaim[col.C_LEAST, tier, s] = min(state.reclaim[col.C_LEAST, tier, s], cost)
                state.reclaim[col.C_DENSITY, tier, s] = min(state.reclaim[col.C_DENSITY, tier, s], density)
        row = state.row[col.L_AFTER, row]


@kernel
def shift(state: EngineState, row: int, last: int, sign: int) -> None:
    """Add ``sign`` times an allocation to the slacks of tiers 0 … last of its server."""
    s = state.row[col.L_SERVER, row]
    for p in range(last + 1):
        state.slack[0, s, p] += sign * state.row[col.L_CPU, row]
        state.slack[1, s, p] += sign * state.row[col.L_MEMORY, row]
        for d in range(state.server[col.S_DEVICES, s]):
            state.slack_device[s, d, p] += sign * state.row_device[row, d]


@entry
def new_job(state: EngineState, tier: int, limit: int, cost: int, fresh: bool) -> int:
    """A place for a job without allocations; there must be a free one (see ``grown``)."""
    state.free_places[col.N_JOBS] -= 1
    job = state.job[col.J_STACK, state.free_places[col.N_JOBS]]
    state.job[col.J_TIER, job] = tier
    state.job[col.J_COST, job] = cost
    state.job[col.J_LIMIT, job] = limit
    state.job[col.J_FRESH, job] = fresh
    state.job[col.J_MGPU, job] = 0
    state.job[col.J_BEGAN, job] = -1
    state.job[col.J_LOOKED, job] = -1
    state.job[col.J_ROW, job] = -1
    return int(job)


@entry
def new_row(state: EngineState, job: int, s: int, cpu: int, memory: int, device: Small) -> int:
    """An allocation of the job on a server, in the lists but not yet in the ledger."""
    state.free_places[col.N_ROWS] -= 1
    row = state.row[col.L_STACK, state.free_places[col.N_ROWS]]
    state.row[col.L_JOB, row] = job
    state.row[col.L_SERVER, row] = s
    state.row[col.L_CPU, row] = cpu
    state.row[col.L_MEMORY, row] = memory
    for d in range(len(device)):
        state.row_device[row, d] = device[d]
        state.job[col.J_MGPU, job] += device[d]
    state.row[col.L_NEXT, row] = state.job[col.J_ROW, job]
    state.job[col.J_ROW, job] = row
    state.row[col.L_AFTER, row] = state.server[col.S_ROW, s]
    state.row[col.L_BEFORE, row] = -1
    if state.server[col.S_ROW, s] >= 0:
        state.row[col.L_BEFORE, state.server[col.S_ROW, s]] = row
    state.server[col.S_ROW, s] = row
    return int(row)


@entry
def start(state: EngineState, job: int, last: int) -> None:
    """Take what the job's allocations hold from the tiers 0 … last."""
    row = state.job[col.J_ROW, job]
    while row >= 0:
        s = state.row[col.L_SERVER, row]
        shift(state, row, last, -1)
        refresh(state, s)
        refresh_reclaim(state, s)
        state.region[col.R_USED, state.group[col.G_REGION, state.server[col.S_GROUP, s]]] += _mgpu(state, row)
        row = state.row[col.L_NEXT, row]


@entry
def stop(state: EngineState, job: int, last: int) -> None:
    """Give back what the job holds to the tiers 0 … last, and forget the job."""
    row = state.job[col.J_ROW, job]
    while row >= 0:
        s = state.row[col.L_SERVER, row]
        shift(state, row, last, 1)
        before, after = state.row[col.L_BEFORE, row], state.row[col.L_AFTER, row]
        if before >= 0:
            state.row[col.L_AFTER, before] = after
        else:
            state.server[col.S_ROW, s] = after
        if after >= 0:
            state.row[col.L_BEFORE, after] = before
        refresh(state, s)
        refresh_reclaim(state, s)
        group = state.server[col.S_GROUP, s]
        region = state.group[col.G_REGION, group]
        state.region[col.R_USED, region] -= _mgpu(state, row)
        state.row[col.L_STACK, state.free_places[col.N_ROWS]] = row
        state.free_places[col.N_ROWS] += 1
        row = state.row[col.L_NEXT, row]
    state.job[col.J_STACK, state.free_places[col.N_JOBS]] = job
    state.free_places[col.N_JOBS] += 1
    state.job[col.J_ROW, job] = -1


@entry
def resume(state: EngineState, job: int, last: int) -> None:
    """Undo ``stop``. All that has changed since must have been undone; the columns of the job and of its allocations,
    at most one on a server, must be as they were before it stopped."""
    state.free_places[col.N_JOBS] -= 1
    row = state.job[col.J_ROW, job]
    while row >= 0:
        s, before, after = state.row[col.L_SERVER, row], state.row[col.L_BEFORE, row], state.row[col.L_AFTER, row]
        if before >= 0:
            state.row[col.L_AFTER, before] = row
        else:
            state.server[col.S_ROW, s] = row
        if after >= 0:
            state.row[col.L_BEFORE, after] = row
        state.free_places[col.N_ROWS] -= 1
        row = state.row[col.L_NEXT, row]
    start(state, job, last)


@entry
def last_tier_of(state: EngineState, job: int) -> int:
    """The last tier to which a job gives back what it holds when it ends by itself or was never meant to start."""
    if state.job[col.J_FRESH, job] == 1:
        return int(state.job[col.J_TIER, job])
    return int(state.room.shape[1] - 1)


@entry
def last_tier_of_victim(state: EngineState, job: int) -> int:
    """The last tier that may use what a victim frees in a round: those more important than it. A job that was
    placed in this round and is stopped in it leaves no trace."""
    if state.job[col.J_FRESH, job] == 1:
        return int(state.job[col.J_TIER, job])
    return int(state.job[col.J_TIER, job]) - 1


@entry
def set_price(state: EngineState, jobs: Ints, limit: int, cost: Ints) -> None:
    """Let these jobs be stopped by work of tiers below ``limit``, each at its cost."""
    for at in range(len(jobs)):
        state.job[col.J_LIMIT, jobs[at]] = limit
    set_costs(state, jobs, cost)


@entry
def settle(state: EngineState) -> None:
    """End a round: what victims left is free for all, and what was placed counts in every column."""
    for s in range(state.server.shape[1]):
        if _is_even(state, s):
            continue
        for p in range(1, state.room.shape[1]):
            state.slack[0, s, p] = state.slack[0, s, 0]
            state.slack[1, s, p] = state.slack[1, s, 0]
            for d in range(state.server[col.S_DEVICES, s]):
                state.slack_device[s, d, p] = state.slack_device[s, d, 0]
        refresh(state, s)
    state.job[col.J_FRESH] = 0


@kernel
def _is_even(state: EngineState, s: int) -> bool:
    """Whether work of every tier finds the same on a server."""
    for p in range(1, state.room.shape[1]):
        if state.slack[0, s, p] != state.slack[0, s, 0] or state.slack[1, s, p] != state.slack[1, s, 0]:
            return False
        for d in range(state.server[col.S_DEVICES, s]):
            if state.slack_device[s, d, p] != state.slack_device[s, d, 0]:
                return False
    return True


@entry
def block(state: EngineState, s: int, blocked: int) -> None:
    """Let a server take no work (1), or take work again (0)."""
    state.server[col.S_BLOCKED, s] = blocked
    refresh(state, s)
    refresh_reclaim(state, s)


@compiled
def load(state: EngineState, jobs: Ints, rows: Ints, device: Small) -> Ints:
    """Start many running jobs at once, outside any round; returns their places.

    Args:
        jobs: [V, 3] tier, limit, cost.
        rows: [A, 4] number of the job in ``jobs``, position, millicores, MiB. Of those on one server, the last one is
            the first of its list.
        device: [A, D] milli-GPUs of each GPU.
    """
    places = np.empty(len(jobs), np.int64)
    _load(state, jobs, rows, device, places)
    return places


@kernel
def _load(state: EngineState, jobs: Ints, rows: Ints, device: Small, places: Ints) -> None:
    last = state.room.shape[1] - 1
    for v in range(len(jobs)):
        places[v] = new_job(state, jobs[v, 0], jobs[v, 1], jobs[v, 2], False)
    for at in range(len(rows)):
        row = new_row(state, places[rows[at, 0]], rows[at, 1], rows[at, 2], rows[at, 3], device[at])
        shift(state, row, last, -1)
        region = state.group[col.G_REGION, state.server[col.S_GROUP, rows[at, 1]]]
        state.region[col.R_USED, region] += _mgpu(state, row)
    refresh_all(state)


@kernel
def _mgpu(state: EngineState, row: int) -> int:
    total = 0
    for d in range(state.row_device.shape[1]):
        total += state.row_device[row, d]
    return int(total)
