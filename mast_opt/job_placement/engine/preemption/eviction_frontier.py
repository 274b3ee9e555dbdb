"""Eviction frontier of one server (job-placement engine): the cheapest victims for each number of further tasks.

Exact: whole GPUs by a knapsack over GPUs where cores and memory turn out not to matter, everything else by
enumeration of subsets in order of cost, cut off by the best found so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.jit import compiled, kernel
from mast_opt.job_placement.engine.feasibility import Request, room_on
from mast_opt.job_placement.engine.preemption.candidates import MOST_CANDIDATES, fit_in
from mast_opt.job_placement.engine.state import (
    A_CPU,
    A_MEMORY,
    L_CPU,
    L_MEMORY,
    NEVER,
    S_BLOCKED,
    S_DEVICES,
    EngineState,
)
from mast_opt.job_placement.units import WHOLE, Ints

MOST_SUBSETS = 20_000
OPEN, IN, OUT = range(3)
"""What a search has decided about a candidate: nothing yet, it is stopped anyway, it is not stopped."""


class FrontierWorkspace(NamedTuple):
    """Space for one call; D GPUs of a server at most, C candidates."""

    room: Ints
    """[D]"""
    full_room: Ints
    """[D]"""
    least: Ints
    """[D + 1]"""
    chosen: Ints
    """[D + 1]"""
    open_rows: Ints
    """[C]"""
    stack: Ints
    """[C]"""


@compiled
def frontier_workspace(state: EngineState) -> FrontierWorkspace:
    devices = state.slack_device.shape[1]
    return FrontierWorkspace(
        np.empty(devices, np.int64),
        np.empty(devices, np.int64),
        np.empty(devices + 1, np.int64),
        np.empty(devices + 1, np.int64),
        np.empty(MOST_CANDIDATES, np.int64),
        np.empty(MOST_CANDIDATES, np.int64),
    )


@kernel
def eviction_frontier(
    state: EngineState,
    s: int,
    mgpu: int,
    job: Request,
    rows: Ints,
    costs: Ints,
    status: Ints,
    limit: int,
    cost: Ints,
    mask: Ints,
    scratch: FrontierWorkspace,
) -> tuple[int, int, bool]:
    """Fill cost[e] and mask[e] for e = 0 … extra: the least that makes room for e tasks more than fit without.

    Args:
        rows, costs, status: at most MOST_CANDIDATES allocations on this server that may be freed, what each costs,
            and OPEN, IN or OUT.
        limit: combinations that cost more are of no interest.
        mask: bit i stands for ``rows[i]``.

    Returns:
        (tasks that fit for nothing, extra, whether the costs are proven least).
    """
    cost[0], mask[0] = 0, 0
    if state.server[S_BLOCKED, s] == 1:
        return 0, 0, True
    devices = state.server[S_DEVICES, s]
    room, full_room, open_rows = scratch.room, scratch.full_room, scratch.open_rows
    for d in range(devices):
        room[d] = room_on(state, s, d, job.tier)
    cpu, memory = state.room[A_CPU, job.tier, s], state.room[A_MEMORY, job.tier, s]
    count = 0
    for i in range(len(rows)):
        if status[i] == IN:
            for d in range(devices):
                room[d] += state.row_device[rows[i], d]
            cpu += state.row[L_CPU, rows[i]]
            memory += state.row[L_MEMORY, rows[i]]
        elif status[i] == OPEN and costs[i] <= limit:
            at = count
            while at > 0 and costs[open_rows[at - 1]] > costs[i]:
                open_rows[at] = open_rows[at - 1]
                at -= 1
            open_rows[at] = i
            count += 1
    complete = True
    base = fit_in(room, devices, cpu, memory, mgpu, job)
    for d in range(devices):
        full_room[d] = room[d]
    full_cpu, full_memory = cpu, memory
    for at in range(count):
        row = rows[open_rows[at]]
        for d in range(devices):
            full_room[d] += state.row_device[row, d]
        full_cpu += state.row[L_CPU, row]
        full_memory += state.row[L_MEMORY, row]
    extra = fit_in(full_room, devices, full_cpu, full_memory, mgpu, job) - base
    for e in range(1, extra + 1):
        cost[e], mask[e] = NEVER, 0
    if extra > 0 and not _by_knapsack(
        state, devices, cpu, memory, mgpu, job, rows, costs, count, base, extra, cost, mask, scratch
    ):
        complete = _by_subsets(
            state, devices, cpu, memory, mgpu, job, rows, costs, count, base, extra, limit, cost, mask, scratch
        )
    while extra > 0 and cost[extra] == NEVER:
        extra -= 1
    return base, extra, complete


@kernel
def _by_knapsack(
    state: EngineState,
    devices: int,
    cpu: int,
    memory: int,
    mgpu: int,
    job: Request,
    rows: Ints,
    costs: Ints,
    count: int,
    base: int,
    extra: int,
    cost: Ints,
    mask: Ints,
    scratch: FrontierWorkspace,
) -> bool:
    """The frontier for whole GPUs held whole; False, with nothing decided, where cores, memory or shared GPUs
    matter."""
    if mgpu < WHOLE:
        return False
    room, open_rows, least, chosen = scratch.room, scratch.open_rows, scratch.least, scratch.chosen
    width = mgpu // WHOLE
    there = 0
    for d in range(devices):
        there += room[d] == WHOLE
    most = (base + extra) * width - there
    if (base + 1) * width <= there or most <= 0:
        return False
    least[: most + 1], chosen[: most + 1] = NEVER, 0
    least[0] = 0
    for at in range(count):
        row = rows[open_rows[at]]
        holds = 0
        for d in range(devices):
            amount = state.row_device[row, d]
            if amount != 0 and amount != WHOLE:
                return False
            holds += amount == WHOLE
        if holds == 0:
            continue
        price = costs[open_rows[at]]
        for n in range(most, 0, -1):
            under = max(0, n - holds)
            if least[under] < NEVER and least[under] + price < least[n]:
                least[n] = least[under] + price
                chosen[n] = chosen[under] | (1 << open_rows[at])
    for e in range(1, extra + 1):
        wanted = (base + e) * width - there
        if least[wanted] == NEVER:
            return False
        has_cpu, has_memory = cpu, memory
        for at in range(count):
            if chosen[wanted] >> open_rows[at] & 1:
                has_cpu += state.row[L_CPU, rows[open_rows[at]]]
                has_memory += state.row[L_MEMORY, rows[open_rows[at]]]
        if has_cpu < (base + e) * job.cpu or has_memory < (base + e) * job.memory:
            return False
    for e in range(1, extra + 1):
        wanted = (base + e) * width - there
        cost[e], mask[e] = least[wanted], chosen[wanted]
    return True


@kernel
def _by_subsets(
    state: EngineState,
    devices: int,
    cpu: int,
    memory: int,
    mgpu: int,
    job: Request,
    rows: Ints,
    costs: Ints,
    count: int,
    base: int,
    extra: int,
    limit: int,
    cost: Ints,
    mask: Ints,
    scratch: FrontierWorkspace,
) -> bool:
    """The frontier by enumeration; False if there were too many subsets to look at all."""
    for e in range(1, extra + 1):
        cost[e], mask[e] = NEVER, 0
    room, open_rows, stack = scratch.room, scratch.open_rows, scratch.stack
    depth = at = subsets = 0
    spent = bits = 0
    while True:
        if at < count and spent + costs[open_rows[at]] <= limit and spent + costs[open_rows[at]] < cost[extra]:
            i = open_rows[at]
            spent += costs[i]
            bits |= 1 << i
            cpu += state.row[L_CPU, rows[i]]
            memory += state.row[L_MEMORY, rows[i]]
            for d in range(devices):
                room[d] += state.row_device[rows[i], d]
            stack[depth] = at
            depth += 1
            subsets += 1
            fit = fit_in(room, devices, cpu, memory, mgpu, job)
            for e in range(1, min(fit - base, extra) + 1):
                if spent < cost[e]:
                    cost[e], mask[e] = spent, bits
            if subsets >= MOST_SUBSETS:
                return False
            at = count if fit - base >= extra else at + 1
        else:
            if depth == 0:
                return True
            depth -= 1
            i = open_rows[stack[depth]]
            spent -= costs[i]
            bits &= ~(1 << i)
            cpu -= state.row[L_CPU, rows[i]]
            memory -= state.row[L_MEMORY, rows[i]]
            for d in range(devices):
                room[d] -= state.row_device[rows[i], d]
            at = stack[depth] + 1
