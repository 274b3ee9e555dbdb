"""Eviction frontier of one server (job-placement engine): the cheapest victims for each number of further tasks.

Exact: whole GPUs by a knapsack over GPUs where cores and memory turn out not to matter, everything else by
enumeration of subsets in order of cost, cut off by the best found so far.

Candidates are the jobs on the server that may be stopped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.limits import SearchLimits
from mast_opt.problems.job_placement.engine.preemption.candidates import (
    ROOM_CPU,
    ROOM_GPU,
    ROOM_MEMORY,
    add_row,
    fit_in,
    read_room,
)
from mast_opt.problems.job_placement.engine.state import NEVER, EngineState
from mast_opt.problems.job_placement.units import WHOLE, Ints

OPEN, IN, OUT = range(3)
"""Decision of a search about a candidate: nothing yet, it is stopped anyway, it is not stopped."""


class Candidates(NamedTuple):
    """Allocations on one server that may be freed: C of them, at most 62."""

    rows: Ints
    """[C] allocation."""
    costs: Ints
    """[C] what freeing it costs."""
    status: Ints
    """[C] OPEN, IN or OUT."""


class Frontier(NamedTuple):
    """Least cost of one server, and who is stopped for it, by the number of tasks more than fit without."""

    cost: Ints
    """[T + 1]"""
    mask: Ints
    """[T + 1] bit i stands for candidate i."""


class FrontierWorkspace(NamedTuple):
    """Preallocated arrays for the frontier of one server; D GPUs of a server at most, C candidates."""

    room: Ints
    """[D + 2] see ``candidates``."""
    full_room: Ints
    """[D + 2]"""
    least: Ints
    """[D + 1]"""
    chosen: Ints
    """[D + 1]"""
    order: Ints
    """Order of the candidates, [C]."""
    stack: Ints
    """Stack of the search, [C]."""
    subsets: Ints
    """[1] how many have been enumerated, by all frontiers."""


class _Search(NamedTuple):
    """Facts about one server that are known before its frontier is searched for."""

    devices: int
    """GPUs of the server."""
    mgpu: int
    """Milli-GPUs of a task."""
    base: int
    """Tasks that fit for nothing."""
    extra: int
    """Further tasks that fit once all open candidates are stopped."""
    limit: int
    """Sets that cost more are of no interest."""
    subsets: int
    """Most subsets that are enumerated."""
    order: Ints
    """Open candidates, cheapest first."""


@kernel
def share_of(limits: SearchLimits, work: int, servers: int) -> int:
    """Most subsets of each of so many servers, when there is so much work left. With one for each candidate, the first
    descent reaches a set that is enough."""
    return int(max(limits.candidates, min(limits.subsets, work // max(servers, 1))))


@compiled
def frontier_workspace(state: EngineState, candidates: int) -> FrontierWorkspace:
    """Arrays for servers of the state and so many candidates."""
    devices = state.slack_device.shape[1]
    return FrontierWorkspace(
        np.empty(devices + 2, np.int64),
        np.empty(devices + 2, np.int64),
        np.empty(devices + 1, np.int64),
        np.empty(devices + 1, np.int64),
        np.empty(candidates, np.int64),
        np.empty(candidates, np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def eviction_frontier(
    state: EngineState,
    s: int,
    mgpu: int,
    job: Request,
    candidates: Candidates,
    limit: int,
    subsets: int,
    frontier: Frontier,
    space: FrontierWorkspace,
) -> tuple[int, int, bool]:
    """Fill the frontier of a server for 0 … extra tasks more than fit without stopping an open candidate.

    Args:
        limit: sets that cost more are of no interest.
        subsets: most subsets that are enumerated.

    Returns:
        (tasks that fit for nothing, extra, whether the costs are proven least).
    """
    frontier.cost[0], frontier.mask[0] = 0, 0
    if state.server[col.S_BLOCKED, s] == 1:
        return 0, 0, True
    devices = state.server[col.S_DEVICES, s]
    room, full_room = space.room, space.full_room
    read_room(state, s, job.tier, room)
    for i in range(len(candidates.rows)):
        if candidates.status[i] == IN:
            add_row(state, devices, candidates.rows[i], 1, room)
    count = _order_open(candidates, limit, space.order)
    base = fit_in(room, devices, mgpu, job)
    for at in range(devices + ROOM_GPU):
        full_room[at] = room[at]
    for at in range(count):
        add_row(state, devices, candidates.rows[space.order[at]], 1, full_room)
    extra = fit_in(full_room, devices, mgpu, job) - base
    for e in range(1, extra + 1):
        frontier.cost[e], frontier.mask[e] = NEVER, 0
    complete = True
    if extra > 0:
        search = _Search(devices, mgpu, base, extra, limit, subsets, space.order[:count])
        pool = state.server[col.S_SIZE, s] > WHOLE
        if pool or not _by_knapsack(state, job, candidates, search, frontier, space):
            complete = _by_subsets(state, job, candidates, search, frontier, space)
    while extra > 0 and frontier.cost[extra] == NEVER:
        extra -= 1
    return base, extra, complete


@kernel
def _order_open(candidates: Candidates, limit: int, order: Ints) -> int:
    """Write the open candidates that cost no more than the limit into ``order``, cheapest first; returns how many."""
    count, costs = 0, candidates.costs
    for i in range(len(candidates.rows)):
        if candidates.status[i] == OPEN and costs[i] <= limit:
            at = count
            while at > 0 and costs[order[at - 1]] > costs[i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
            count += 1
    return count


@kernel
def _by_knapsack(
    state: EngineState,
    job: Request,
    candidates: Candidates,
    search: _Search,
    frontier: Frontier,
    space: FrontierWorkspace,
) -> bool:
    """The frontier for whole GPUs held whole; False, with nothing decided, where cores, memory or shared GPUs
    matter."""
    if search.mgpu < WHOLE:
        return False
    width = search.mgpu // WHOLE
    there = 0
    for d in range(search.devices):
        there += space.room[ROOM_GPU + d] == WHOLE
    most = (search.base + search.extra) * width - there
    if (search.base + 1) * width <= there or most <= 0:
        return False
    if not _fill_knapsack(state, candidates, search, most, space):
        return False
    for e in range(1, search.extra + 1):
        if not _enough_beside(state, job, candidates, search, e, (search.base + e) * width - there, space):
            return False
    for e in range(1, search.extra + 1):
        wanted = (search.base + e) * width - there
        frontier.cost[e], frontier.mask[e] = space.least[wanted], space.chosen[wanted]
    return True


@kernel
def _fill_knapsack(
    state: EngineState, candidates: Candidates, search: _Search, most: int, space: FrontierWorkspace
) -> bool:
    """Fill ``least`` and ``chosen`` for 0 … most whole GPUs that are freed; False where a candidate shares a GPU."""
    least, chosen = space.least, space.chosen
    least[: most + 1], chosen[: most + 1] = NEVER, 0
    least[0] = 0
    for at in range(len(search.order)):
        i = search.order[at]
        holds = 0
        for d in range(search.devices):
            amount = state.row_device[candidates.rows[i], d]
            if amount != 0 and amount != WHOLE:
                return False
            holds += amount == WHOLE
        if holds == 0:
            continue
        price = candidates.costs[i]
        for n in range(most, 0, -1):
            under = max(0, n - holds)
            if least[under] < NEVER and least[under] + price < least[n]:
                least[n] = least[under] + price
                chosen[n] = chosen[under] | (1 << i)
    return True


@kernel
def _enough_beside(
    state: EngineState,
    job: Request,
    candidates: Candidates,
    search: _Search,
    extra: int,
    wanted: int,
    space: FrontierWorkspace,
) -> bool:
    """Whether so many GPUs can be freed, and the choice that frees them frees cores and memory for the tasks too."""
    if space.least[wanted] == NEVER:
        return False
    cpu, memory = space.room[ROOM_CPU], space.room[ROOM_MEMORY]
    for at in range(len(search.order)):
        i = search.order[at]
        if space.chosen[wanted] >> i & 1:
            cpu += state.row[col.L_CPU, candidates.rows[i]]
            memory += state.row[col.L_MEMORY, candidates.rows[i]]
    tasks = search.base + extra
    return bool(cpu >= tasks * job.cpu and memory >= tasks * job.memory)


@kernel
def _by_subsets(
    state: EngineState,
    job: Request,
    candidates: Candidates,
    search: _Search,
    frontier: Frontier,
    space: FrontierWorkspace,
) -> bool:
    """The frontier by enumeration; False if there were too many subsets to look at all."""
    room, order, stack, costs = space.room, search.order, space.stack, candidates.costs
    cost, extra, count = frontier.cost, search.extra, len(search.order)
    depth = at = subsets = 0
    spent = bits = 0
    while True:
        if at < count and spent + costs[order[at]] <= search.limit and spent + costs[order[at]] < cost[extra]:
            i = order[at]
            spent += costs[i]
            bits |= 1 << i
            add_row(state, search.devices, candidates.rows[i], 1, room)
            stack[depth] = at
            depth += 1
            subsets += 1
            space.subsets[0] += 1
            more = fit_in(room, search.devices, search.mgpu, job) - search.base
            for e in range(1, min(more, extra) + 1):
                if spent < cost[e]:
                    cost[e], frontier.mask[e] = spent, bits
            if subsets >= search.subsets:
                return False
            at = count if more >= extra else at + 1
        else:
            if depth == 0:
                return True
            depth -= 1
            i = order[stack[depth]]
            spent -= costs[i]
            bits &= ~(1 << i)
            add_row(state, search.devices, candidates.rows[i], -1, room)
            at = stack[depth] + 1
