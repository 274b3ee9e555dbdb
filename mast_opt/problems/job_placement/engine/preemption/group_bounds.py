"""Lower bounds on preemption cost in a server group (job-placement engine), with all that may be stopped there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine.feasibility import Request, tasks_on
from mast_opt.problems.job_placement.engine.preemption.candidates import list_candidates, potential_on
from mast_opt.problems.job_placement.engine.state import (
    A_FREE,
    C_DENSITY,
    C_LEAST,
    G_START,
    G_TYPE,
    J_COST,
    J_MARK,
    L_JOB,
    L_SERVER,
    NEVER,
    S_DEVICES,
    S_RACK,
    S_SIZE,
    T_FREE,
    T_RECLAIM,
    EngineState,
)
from mast_opt.problems.job_placement.units import RACK, Ints


class Group(NamedTuple):
    """Preemption candidates of a group: m servers, n allocations on them that may be freed, and their v jobs."""

    first: int
    """Position of the first server."""
    mgpu: int
    """Milli-GPUs of a task of the job that is to be placed."""
    start: Ints
    """[m + 1] entries of each server."""
    row: Ints
    """[n] allocation of each entry."""
    owner: Ints
    """[n] its job, numbered within the group."""
    share: Ints
    """[n] the part of the job's cost that this server bears; all parts of a job add up to its cost."""
    job: Ints
    """[v] the running job."""
    servers: Ints
    """[v] servers of the group that it lies on."""


@compiled
def gather(state: EngineState, g: int, job: Request, threshold: int, candidates: int) -> tuple[Group, bool]:
    """The group with so many candidates a server at most, and whether all that there are are in it."""
    first, last = state.group[G_START, g], state.group[G_START, g + 1]
    start = np.zeros(last - first + 1, np.int64)
    mgpu = job.mgpu[state.group[G_TYPE, g]]
    every = _count_candidates(state, first, threshold, mgpu, job, np.empty(candidates, np.int64), start)
    total = start[-1]
    row, owner, share = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    jobs, servers, held = np.empty(total, np.int64), np.zeros(total, np.int64), np.zeros(total, np.int64)
    group = Group(first, mgpu, start, row, owner, share, jobs, servers)
    count = _list_jobs(state, threshold, job, group, held)
    _split_costs(state, group, held, np.zeros(count, np.int64))
    return Group(first, mgpu, start, row, owner, share, jobs[:count], servers[:count]), every


@kernel
def _count_candidates(
    state: EngineState, first: int, threshold: int, mgpu: int, job: Request, rows: Ints, start: Ints
) -> bool:
    """Fill ``start``; whether no server has more than may be considered."""
    every = True
    for i in range(len(start) - 1):
        count, all_here = list_candidates(state, first + i, threshold, mgpu, job, rows)
        every &= all_here
        start[i + 1] = start[i] + count
    return every


@kernel
def _list_jobs(state: EngineState, threshold: int, job: Request, group: Group, held: Ints) -> int:
    """Fill the rows and owners of the group, its jobs and their servers, and the sizes ``held`` of the jobs; returns
    how many jobs."""
    count = 0
    for i in range(len(group.start) - 1):
        if group.start[i] == group.start[i + 1]:
            continue
        rows = group.row[group.start[i] : group.start[i + 1]]
        list_candidates(state, group.first + i, threshold, group.mgpu, job, rows)
        for at in range(group.start[i], group.start[i + 1]):
            running = state.row[L_JOB, group.row[at]]
            if state.job[J_MARK, running] < 0:
                state.job[J_MARK, running] = count
                group.job[count] = running
                count += 1
            local = state.job[J_MARK, running]
            group.owner[at] = local
            group.servers[local] += 1
            held[local] += _held(state, group.row[at])
    for local in range(count):
        state.job[J_MARK, group.job[local]] = -1
    return count


@kernel
def _split_costs(state: EngineState, group: Group, held: Ints, paid: Ints) -> None:
    """Split each job's cost by size; what rounding leaves goes to its first entry. ``paid`` is scratch, zeros."""
    for at in range(len(group.row)):
        local = group.owner[at]
        group.share[at] = state.job[J_COST, group.job[local]] // held[local] * _held(state, group.row[at])
        paid[local] += group.share[at]
    for at in range(len(group.row)):
        local = group.owner[at]
        group.share[at] += state.job[J_COST, group.job[local]] - paid[local]
        paid[local] = state.job[J_COST, group.job[local]]


@kernel
def _held(state: EngineState, row: int) -> int:
    """A measure of an allocation's size, at least 1."""
    total = 1
    for d in range(state.server[S_DEVICES, state.row[L_SERVER, row]]):
        total += state.row_device[row, d]
    return int(total)


@compiled
def bounds_of(state: EngineState, groups: Ints, job: Request, threshold: int) -> NDArray[np.float64]:
    """Lower bounds [groups] on the cost of victims in each group; infinity where stopping everything makes no room."""
    bounds = np.empty(len(groups))
    room = np.empty(state.slack_device.shape[1] + 2, np.int64)
    prices = np.empty(_most_priced(state, groups, job))
    for at in range(len(groups)):
        least, count, wanted = _price_tasks(state, groups[at], job, threshold, room, prices)
        cheapest = np.sort(prices[:count])[:wanted].sum() if wanted > 0 else 0.0
        bounds[at] = max(least, cheapest) * (1 - 1e-9)
    return bounds


@kernel
def _most_priced(state: EngineState, groups: Ints, job: Request) -> int:
    """Largest number of tasks, of those that need some GPUs, that fit on the GPUs of any group."""
    most = 0
    for at in range(len(groups)):
        g = groups[at]
        mgpu = job.mgpu[state.group[G_TYPE, g]]
        priced = 0
        for s in range(state.group[G_START, g], state.group[G_START, g + 1] if mgpu > 0 else 0):
            priced += min(job.tasks, state.server[S_DEVICES, s] * max(1, state.server[S_SIZE, s] // mgpu))
        most = max(most, priced)
    return int(most)


@kernel
def _price_tasks(
    state: EngineState, g: int, job: Request, threshold: int, room: Ints, prices: NDArray[np.float64]
) -> tuple[float, int, int]:
    """Every further task on a server needs so many GPUs more there, and a GPU is worth no less than the least that
    one costs on that server; the cheapest such tasks of all servers make up the job.

    Returns:
        (what one victim costs at least, infinity where there is no room; tasks whose ``prices`` were written, none
        where they need no GPUs; of which so many are wanted).
    """
    mgpu = job.mgpu[state.group[G_TYPE, g]]
    if job.tasks * mgpu - state.total[T_FREE, job.tier, g] > state.total[T_RECLAIM, threshold, g]:
        return float("inf"), 0, 0
    first, last = state.group[G_START, g], state.group[G_START, g + 1]
    count = total = fit_free = in_rack = best_rack = 0
    rack = -1
    least = NEVER
    for s in range(first, last):
        fit = potential_on(state, s, threshold, mgpu, job, room)
        if fit == 0:
            continue
        least = min(least, state.reclaim[C_LEAST, threshold, s])
        if state.server[S_RACK, s] != rack:
            rack, in_rack = state.server[S_RACK, s], 0
        in_rack += fit
        total += fit
        best_rack = max(best_rack, in_rack)
        now = tasks_on(state, s, mgpu, job)
        fit_free += now
        for task in range(now, fit if mgpu > 0 else now):
            missing = max(0, min(mgpu, (task + 1) * mgpu - state.room[A_FREE, job.tier, s]))
            prices[count] = float(missing) * state.reclaim[C_DENSITY, threshold, s] if missing > 0 else 0.0
            count += 1
    if total < job.tasks or (job.within == RACK and best_rack < job.tasks):
        return float("inf"), 0, 0
    return float(least), count, max(0, job.tasks - fit_free)
