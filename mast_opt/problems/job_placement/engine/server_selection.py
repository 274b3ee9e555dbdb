"""Server selection in a chosen group (job-placement engine): which of its servers take the tasks of a job.

Of the closest places the search by loss of value takes the one that spoils least. Bids compare by level of spread
beyond what the job prefers, price, loss of value, and the order of the groups (load of the region, names). A gang on
several servers is tried in every group in which it fits at the best level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine import feasibility
from mast_opt.problems.job_placement.engine.fill_value import least_loss, loss_on, slot_of, view_of
from mast_opt.problems.job_placement.engine.state import EngineState
from mast_opt.problems.job_placement.units import RACK, SERVER, Ints

TIGHT, LOOSE, FIRST, LEAST_LOSS = range(4)
"""Choice among servers that hold what is left of a job: the one with the least free GPUs, the most, the first; the one
whose free capacity loses the least value by it (``fill_value``), of equals the one with the least free GPUs."""


class Placement(NamedTuple):
    """Servers where the tasks of a job go; one entry a server."""

    server: Ints
    """Position of each server."""
    tasks: Ints
    device: NDArray[np.int32]
    """[·, D] milli-GPUs of each GPU; filled in later."""
    level: Ints
    """Level of the spread, [1]."""


@compiled
def pack(state: EngineState, g: int, level: int, job: feasibility.Request, style: int) -> Placement:
    """Put all tasks of a job into a group in which they fit at this level.

    Within one server or rack, the tightest one is taken. Across racks, the largest are filled until one holds the
    rest, so that the fewest racks are used; servers within a rack likewise.
    """
    first, last = state.group[col.G_START, g], state.group[col.G_START, g + 1]
    fit, takes = np.empty(last - first, np.int64), np.zeros(last - first, np.int64)
    work = np.empty((2, state.row_device.shape[1] + state.sample.shape[1]), np.int64)
    if level != feasibility.NOWHERE:
        take_servers(state, g, level, job, style, fit, takes, work)
    server = np.flatnonzero(takes)
    device = np.zeros((len(server), state.row_device.shape[1]), np.int32)
    tasks = takes[server]
    return Placement(server + first, tasks, device, np.array([level]))


@kernel
def take_servers(
    state: EngineState, g: int, level: int, job: feasibility.Request, style: int, fit: Ints, takes: Ints, work: Ints
) -> int:
    """Fill ``takes``, the tasks of each server of the group; ``fit`` is scratch of the same length, ``work`` that of
    ``loss_on``. Returns the loss of value with the style LEAST_LOSS, otherwise 0."""
    first = state.group[col.G_START, g]
    mgpu = job.mgpu[state.group[col.G_TYPE, g]]
    for at in range(len(fit)):
        fit[at], takes[at] = feasibility.tasks_on(state, first + at, mgpu, job), 0
    left, lost = job.tasks, 0
    while left > 0:
        begin, end, size = 0, len(fit), left
        if level != SERVER:
            begin, end, size = _rack(state, first, fit, left, style)
        take = min(left, size)
        lost += _fill(state, g, fit, begin, end, take, job, style, takes, work)
        left -= take
    return lost


@kernel
def _rack(state: EngineState, first: int, fit: Ints, left: int, style: int) -> tuple[int, int, int]:
    """(begin, end, tasks) of the rack that holds all that is left and has the least room (with the style LOOSE the
    most); if none does, of the one with the most."""
    best_begin = best_end = best_size = 0
    begin = 0
    while begin < len(fit):
        end, size = begin, 0
        while end < len(fit) and state.server[col.S_RACK, first + end] == state.server[col.S_RACK, first + begin]:
            size += fit[end]
            end += 1
        if _better(size, best_size, left, style):
            best_begin, best_end, best_size = begin, end, size
        begin = end
    return best_begin, best_end, best_size


@kernel
def _better(size: int, best: int, left: int, style: int) -> bool:
    if size >= left:
        if best < left:
            return True
        if style == FIRST:
            return False
        return size > best if style == LOOSE else size < best
    return size > best


@kernel
def _fill(
    state: EngineState,
    g: int,
    fit: Ints,
    begin: int,
    end: int,
    tasks: int,
    job: feasibility.Request,
    style: int,
    takes: Ints,
    work: Ints,
) -> int:
    """Put ``tasks`` onto the servers begin … end, taking from ``fit`` what they get; returns the loss of value."""
    first, mgpu = state.group[col.G_START, g], job.mgpu[state.group[col.G_TYPE, g]]
    left, lost = tasks, 0
    while left > 0:
        best, best_rank, best_loss = -1, 0, 0
        for at in range(begin, end):
            if fit[at] == 0:
                continue
            take, loss, rank = min(fit[at], left), 0, 0
            if best >= 0 and take < min(fit[best], left):
                continue
            if style == LEAST_LOSS:
                loss = loss_on(state, first + at, mgpu, job, take, job.tier, work)
            if style != FIRST:
                rank = state.room[col.A_FREE, job.tier, first + at] * (-1 if style == LOOSE else 1)
            larger = best < 0 or take > min(fit[best], left)
            if larger or loss < best_loss or (loss == best_loss and rank < best_rank):
                best, best_rank, best_loss = at, rank, loss
        take = min(left, fit[best])
        lost += best_loss
        takes[best] += take
        fit[best] = 0
        left -= take
    return lost


NO_LOSS = 1 << 62
"""More than the loss of any bid."""


@compiled
def search_least_loss(state: EngineState, job: feasibility.Request, groups: Ints, price: Ints) -> tuple[int, int, int]:
    """(group, level, server) of the best bid without victims, (−1, NOWHERE, −1) if there is none. The server is −1
    where the job needs several.

    Args:
        groups: that the job may use, by price, load of the region, and names.
        price: [·] rank of the price of each of them, ascending.
    """
    most = 0
    for g in groups:
        most = max(most, state.group[col.G_START, g + 1] - state.group[col.G_START, g])
    fit, takes = np.empty(most, np.int64), np.empty(most, np.int64)
    work = np.empty((2, state.row_device.shape[1] + state.sample.shape[1]), np.int64)
    return _search(state, job, groups, price, fit, takes, work)


@kernel
def _search(
    state: EngineState, job: feasibility.Request, groups: Ints, price: Ints, fit: Ints, takes: Ints, work: Ints
) -> tuple[int, int, int]:
    tier = view_of(state, job)
    slot, least = slot_of(state, job, tier), feasibility.excess(feasibility.closest_level(state, job), job)
    best, best_level, best_server, best_loss, best_price = -1, feasibility.NOWHERE, -1, NO_LOSS, 0
    for at in range(len(groups)):
        g = groups[at]
        over = feasibility.excess(best_level, job)
        if best >= 0 and over == least and price[at] > best_price:
            break
        mgpu = job.mgpu[state.group[col.G_TYPE, g]]
        if mgpu < 0 or state.total[col.T_FREE, job.tier, g] < job.tasks * mgpu:
            continue
        server, loss = least_loss(state, g, job, tier, slot, work)
        level = SERVER if server >= 0 else feasibility.NOWHERE
        if server < 0 and job.tasks > 1 and job.within != SERVER and feasibility.excess(RACK, job) <= over:
            level = feasibility.level_in(state, g, job)
        if level == feasibility.NOWHERE:
            continue
        worse = feasibility.excess(level, job) > over or (
            feasibility.excess(level, job) == over and price[at] > best_price
        )
        if best >= 0 and worse:
            continue
        if level != SERVER:
            size = state.group[col.G_START, g + 1] - state.group[col.G_START, g]
            loss = take_servers(state, g, level, job, LEAST_LOSS, fit[:size], takes[:size], work)
        if best < 0 or feasibility.excess(level, job) < over or loss < best_loss:
            best, best_level, best_server, best_loss, best_price = g, level, server, loss, price[at]
    return best, best_level, best_server


@compiled
def on_one_server(state: EngineState, server: int, mgpu: int, job: feasibility.Request) -> Placement:
    """All tasks of a job on a server on which they fit."""
    device = np.zeros((1, state.row_device.shape[1]), np.int32)
    feasibility.choose_devices(state, server, mgpu, job.tasks, job.tier, device[0])
    return Placement(np.array([server]), np.array([job.tasks]), device, np.array([SERVER]))
