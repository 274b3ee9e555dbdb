"""Server selection in a chosen group (job-placement engine): which of its servers take the tasks of a job."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine.feasibility import Request, tasks_on
from mast_opt.problems.job_placement.engine.fill_value import loss_on
from mast_opt.problems.job_placement.engine.free_capacity_search import NOWHERE
from mast_opt.problems.job_placement.engine.state import A_FREE, G_START, G_TYPE, S_RACK, EngineState
from mast_opt.problems.job_placement.units import SERVER, Ints

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
def pack(state: EngineState, g: int, level: int, job: Request, style: int) -> Placement:
    """Put all tasks of a job into a group in which they fit at this level.

    Within one server or rack, the tightest one is taken. Across racks, the largest are filled until one holds the
    rest, so that the fewest racks are used; servers within a rack likewise.
    """
    first, last = state.group[G_START, g], state.group[G_START, g + 1]
    fit, takes = np.empty(last - first, np.int64), np.zeros(last - first, np.int64)
    work = np.empty((2, state.row_device.shape[1] + state.sample.shape[1]), np.int64)
    if level != NOWHERE:
        take_servers(state, g, level, job, style, fit, takes, work)
    server = np.flatnonzero(takes)
    device = np.zeros((len(server), state.row_device.shape[1]), np.int32)
    tasks = takes[server]
    return Placement(server + first, tasks, device, np.array([level]))


@kernel
def take_servers(
    state: EngineState, g: int, level: int, job: Request, style: int, fit: Ints, takes: Ints, work: Ints
) -> int:
    """Fill ``takes``, the tasks of each server of the group; ``fit`` is scratch of the same length, ``work`` that of
    ``loss_on``. Returns the loss of value with the style LEAST_LOSS, otherwise 0."""
    first = state.group[G_START, g]
    mgpu = job.mgpu[state.group[G_TYPE, g]]
    for at in range(len(fit)):
        fit[at], takes[at] = tasks_on(state, first + at, mgpu, job), 0
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
        while end < len(fit) and state.server[S_RACK, first + end] == state.server[S_RACK, first + begin]:
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
    job: Request,
    style: int,
    takes: Ints,
    work: Ints,
) -> int:
    """Put ``tasks`` onto the servers begin … end, taking from ``fit`` what they get; returns the loss of value."""
    first, mgpu = state.group[G_START, g], job.mgpu[state.group[G_TYPE, g]]
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
                rank = state.room[A_FREE, job.tier, first + at] * (-1 if style == LOOSE else 1)
            larger = best < 0 or take > min(fit[best], left)
            if larger or loss < best_loss or (loss == best_loss and rank < best_rank):
                best, best_rank, best_loss = at, rank, loss
        take = min(left, fit[best])
        lost += best_loss
        takes[best] += take
        fit[best] = 0
        left -= take
    return lost
