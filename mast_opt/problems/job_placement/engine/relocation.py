"""Relocation of running jobs (job-placement engine): which of them fit elsewhere, and what their servers gain."""

from __future__ import annotations

import numpy as np

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine.capacity_ledger import refresh_reclaim
from mast_opt.problems.job_placement.engine.feasibility import Request, room_on, tasks_on
from mast_opt.problems.job_placement.engine.fill_value import OWN, Scratch, insert, loss_on, shared_gpus, value_of
from mast_opt.problems.job_placement.engine.state import (
    A_CPU,
    A_FREE,
    A_MEMORY,
    A_WHOLE,
    G_REGION,
    G_START,
    G_TYPE,
    J_COST,
    J_LIMIT,
    J_ROW,
    J_TIER,
    L_CPU,
    L_MEMORY,
    L_NEXT,
    L_SERVER,
    S_BLOCKED,
    S_DEVICES,
    S_GROUP,
    S_SIZE,
    EngineState,
)
from mast_opt.problems.job_placement.units import WHOLE, Bools, Ints

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
        if state.group[G_TYPE, g] != need[TYPE] or state.group[G_REGION, g] != need[REGION]:
            continue
        for s in range(state.group[G_START, g], state.group[G_START, g + 1]):
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
        row = state.job[J_ROW, places[at]]
        s = state.row[L_SERVER, row]
        if state.row[L_NEXT, row] < 0 and state.server[S_BLOCKED, s] == 0 and state.server[S_SIZE, s] <= WHOLE:
            gain[at] = _value_without(state, s, row, work) - _value_now(state, s, work)
    return gain


@kernel
def _value_now(state: EngineState, s: int, work: Scratch) -> int:
    tier, kind = state.room.shape[1] - 1, state.group[G_TYPE, state.server[S_GROUP, s]]
    if state.room[A_FREE, tier, s] == 0:
        return 0
    count = shared_gpus(state, s, tier, work)
    cpu, memory = state.room[A_CPU, tier, s], state.room[A_MEMORY, tier, s]
    return int(value_of(state, kind, state.room[A_WHOLE, tier, s], count, cpu, memory, work))


@kernel
def _value_without(state: EngineState, s: int, row: int, work: Scratch) -> int:
    tier, kind = state.room.shape[1] - 1, state.group[G_TYPE, state.server[S_GROUP, s]]
    whole = count = 0
    for d in range(state.server[S_DEVICES, s]):
        room = room_on(state, s, d, tier) + state.row_device[row, d]
        if room >= WHOLE:
            whole += 1
        elif room > 0:
            insert(work[OWN], count, room)
            count += 1
    cpu, memory = state.room[A_CPU, tier, s] + state.row[L_CPU, row], state.room[A_MEMORY, tier, s]
    return int(value_of(state, kind, whole, count, cpu, memory + state.row[L_MEMORY, row], work))


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
        state.job[J_LIMIT, places[at]] = tiers if may[at] else 0
        state.job[J_TIER, places[at]], state.job[J_COST, places[at]] = tiers, cost[at]
    for s in range(state.server.shape[1]):
        refresh_reclaim(state, s)
