"""Best-fit server selection in a chosen group (job-placement engine): the tightest servers that hold the tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.job_placement.engine.feasibility import Request, tasks_on
from mast_opt.job_placement.engine.free_capacity_search import NOWHERE
from mast_opt.job_placement.engine.state import A_FREE, G_START, G_TYPE, S_RACK, EngineState
from mast_opt.job_placement.units import SERVER, Ints

TIGHT, LOOSE, FIRST = range(3)
"""Of servers that hold what is left of a job: the one with the least free GPUs, the most, the first."""


class Placement(NamedTuple):
    """Where the tasks of a job go; one entry a server."""

    server: Ints
    """Position."""
    tasks: Ints
    device: NDArray[np.int32]
    """[·, D] milli-GPUs of each GPU; filled in later."""
    level: Ints
    """[1]"""


@compiled
def pack(state: EngineState, g: int, level: int, job: Request, style: int) -> Placement:
    """Put all tasks of a job into a group in which they fit at this level.

    Within one server or rack, the tightest one is taken. Across racks, the largest are filled until one holds the
    rest, so that the fewest racks are used; servers within a rack likewise.
    """
    first, last = state.group[G_START, g], state.group[G_START, g + 1]
    fit, takes = np.empty(last - first, np.int64), np.zeros(last - first, np.int64)
    if level != NOWHERE:
        _take_servers(state, g, level, job, style, fit, takes)
    server = np.flatnonzero(takes)
    device = np.zeros((len(server), state.row_device.shape[1]), np.int32)
    tasks = takes[server]
    return Placement(server + first, tasks, device, np.array([level]))


@kernel
def _take_servers(state: EngineState, g: int, level: int, job: Request, style: int, fit: Ints, takes: Ints) -> None:
    """Fill ``takes``, the tasks of each server of the group; ``fit`` is scratch of the same length."""
    first = state.group[G_START, g]
    mgpu = job.mgpu[state.group[G_TYPE, g]]
    for at in range(len(fit)):
        fit[at] = tasks_on(state, first + at, mgpu, job)
    left = job.tasks
    while left > 0:
        begin, end, size = 0, len(fit), left
        if level != SERVER:
            begin, end, size = _rack(state, first, fit, left, style)
        take = min(left, size)
        _fill(state, first, fit, begin, end, take, job.tier, style, takes)
        left -= take


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
    state: EngineState, first: int, fit: Ints, begin: int, end: int, tasks: int, tier: int, style: int, takes: Ints
) -> None:
    """Put ``tasks`` onto the servers begin … end, taking from ``fit`` what they get."""
    left = tasks
    while left > 0:
        best, best_free = -1, 0
        for at in range(begin, end):
            if fit[at] == 0:
                continue
            free = state.room[A_FREE, tier, first + at]
            if best < 0:
                better = True
            elif min(fit[at], left) != min(fit[best], left):
                better = fit[at] > fit[best]
            elif style == FIRST:
                better = False
            elif style == LOOSE:
                better = free > best_free
            else:
                better = free < best_free
            if better:
                best, best_free = at, free
        take = min(left, fit[best])
        takes[best] += take
        fit[best] = 0
        left -= take
