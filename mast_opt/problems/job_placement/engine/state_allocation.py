"""Allocation of the job-placement engine's state: an empty fleet, room for more jobs, and undoing.

What a job had is kept to bring it back after it stopped; whole arrays are put back as they were.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.arrival_mix import Arrivals
from mast_opt.problems.job_placement.engine.capacity_ledger import refresh_all, resume
from mast_opt.problems.job_placement.engine.server_layout import Layout
from mast_opt.problems.job_placement.engine.state import ALL_DIRTY, NEVER, EngineState
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, MOST_GPUS, WHOLE, Ints


def empty_state(layout: Layout, supply: Ints, tiers: int, jobs: int, rows: int) -> EngineState:
    """A fleet on which nothing runs, with places for ``jobs`` running jobs and ``rows`` allocations.

    Args:
        supply: [S, 3] by server (not by position). A server of more than ``MOST_GPUS`` GPUs is a pool.
    """
    here = supply[layout.server]
    servers, groups, regions = len(here), len(layout.group_cluster), len(layout.region_rank)
    pool = here[:, GPU] > MOST_GPUS * WHOLE
    devices = np.where(pool, 1, here[:, GPU] // WHOLE)
    size = np.where(pool, here[:, GPU], WHOLE)
    most = max(int(devices.max(initial=0)), 1)
    has_device = np.arange(most)[None, :] < devices[:, None]
    region_mgpu = np.zeros(regions, np.int64)
    np.add.at(region_mgpu, layout.group_region[layout.group], here[:, GPU])
    reclaim = np.zeros((5, tiers + 1, servers), np.int64)
    reclaim[[col.C_LEAST, col.C_DENSITY]] = NEVER
    nothing = np.zeros(servers)
    state = EngineState(
        server=_stack(layout.group, layout.rack, devices, nothing, np.full(servers, -1), nothing, nothing, size),
        group=_stack(layout.group_start, layout.group_type, layout.group_region, layout.region_groups),
        region=_stack(layout.region_start, layout.region_rank, region_mgpu, np.zeros(regions)),
        slack=np.repeat(here.T[[CPU, MEMORY], :, None], tiers, axis=2),
        slack_device=np.repeat(np.where(has_device, size[:, None], 0)[:, :, None], tiers, axis=2).astype(np.int32),
        room=np.zeros((4, tiers, servers), np.int64),
        reclaim=reclaim,
        total=np.zeros((3, tiers + 1, groups), np.int64),
        job=np.zeros((col.J_STACK + 1, 0), np.int64),
        row=np.zeros((8, 0), np.int64),
        row_device=np.zeros((0, most), np.int32),
        free_places=np.zeros(4, np.int64),
        sample=np.zeros((0, 0, 0), np.int64),
        demand=np.zeros((0, 0), np.int64),
        memo=np.zeros((0, 2), np.int64),
        loss=np.zeros((0, servers), np.int32),
        slot=np.zeros((0, 0), np.int64),
    )
    state.free_places[col.N_LARGEST] = max(int(here[:, GPU].max(initial=0)), WHOLE)
    state = grown(state, jobs, rows)
    refresh_all(state)
    return state


def valued(state: EngineState, arrivals: Arrivals, slots: int, memo: int) -> EngineState:
    """The state with values of servers by these arrivals, none of them known yet.

    Args:
        slots: requests whose losses are kept for every server, at most 62; 0 where few repeat.
        memo: values that are kept.
    """
    state.server[col.S_DIRTY] = ALL_DIRTY
    sample = arrivals.sample
    fields = sample.shape[2] + 2 if sample.size else 0
    slots = slots if sample.size else 0
    return state._replace(
        sample=sample,
        demand=arrivals.demand,
        memo=np.zeros((memo if sample.size else 0, 2), np.int64),
        loss=np.zeros((slots, state.server.shape[1]), np.int32),
        slot=np.zeros((slots, fields), np.int64),
    )


def _stack(*fields: NDArray[np.generic]) -> Ints:
    """Array of the engine's state: one row a field, as long as the longest, filled up with zeros."""
    table = np.zeros((len(fields), max(len(field) for field in fields)), np.int64)
    for row, field in zip(table, fields):
        row[: len(field)] = field
    return table


def grown(state: EngineState, jobs: int, rows: int) -> EngineState:
    """The state with at least so many free places for jobs and allocations; arrays at least double."""
    if jobs > state.free_places[col.N_JOBS]:
        table = _longer(state.job, jobs, (col.J_ROW, col.J_MARK))
        _push(table[col.J_STACK], state.free_places, col.N_JOBS, state.job.shape[1])
        state = state._replace(job=table)
    if rows > state.free_places[col.N_ROWS]:
        table = _longer(state.row, rows, (col.L_NEXT, col.L_AFTER, col.L_BEFORE))
        _push(table[col.L_STACK], state.free_places, col.N_ROWS, state.row.shape[1])
        device = np.zeros((table.shape[1], state.row_device.shape[1]), np.int32)
        device[: len(state.row_device)] = state.row_device
        state = state._replace(row=table, row_device=device)
    return state


def _longer(table: Ints, more: int, links: tuple[int, ...]) -> Ints:
    """Copy of a table of the engine's state with room for more columns, whose links lead nowhere yet."""
    fields, size = table.shape
    longer = np.zeros((fields, size + max(more, size)), np.int64)
    longer[list(links)] = -1
    longer[:, :size] = table
    return longer


def _push(stack: Ints, free_places: Ints, which: int, old_size: int) -> None:
    """Put the new places of the engine's state on the stack, so that the lowest are taken first."""
    new = np.arange(old_size, len(stack))[::-1]
    used = int(free_places[which])
    stack[used : used + len(new)] = new
    free_places[which] += len(new)


def copied(state: EngineState) -> EngineState:
    """A state that shares no array with this one."""
    return EngineState._make(array.copy() for array in state)


class Stopped(NamedTuple):
    """Entries that the engine's state had of a job before it stopped."""

    place: int
    last: int
    """The last tier to which it gave back what it held."""
    job: Ints
    """Its column of ``EngineState.job``."""
    rows: list[int]
    """Its allocations."""
    row: Ints
    """[·, allocations] their columns of ``EngineState.row``."""
    device: NDArray[np.int32]
    """[allocations, D]"""

    @classmethod
    def of(cls, state: EngineState, place: int, last: int) -> "Stopped":
        """A job that is about to stop."""
        rows, row = [], state.job.item(col.J_ROW, place)
        while row >= 0:
            rows.append(row)
            row = state.row.item(col.L_NEXT, row)
        column = state.job[: col.J_STACK, place].copy()
        if len(rows) > 1:
            at = np.array(rows, np.int64)
            return cls(place, last, column, rows, state.row.take(at, 1)[: col.L_STACK], state.row_device.take(at, 0))
        only = slice(rows[0], rows[0] + 1)
        return cls(place, last, column, rows, state.row[: col.L_STACK, only].copy(), state.row_device[only].copy())

    def resume(self, state: EngineState) -> None:
        """Let the job run again, when all that changed since it stopped has been undone."""
        resume_all(state, [self])


def resume_all(state: EngineState, stopped: Sequence[Stopped]) -> None:
    """Let jobs run again, when all that changed since the last of them stopped has been undone.

    Args:
        stopped: in the order in which they stopped, each as it was before the first one did. Lists of servers lead from
            one to another, so all of them have their columns again before the first one resumes.
    """
    for one in stopped:
        state.job[: col.J_STACK, one.place] = one.job
        state.row[: col.L_STACK, one.rows] = one.row
        state.row_device[one.rows] = one.device
    for one in reversed(stopped):
        resume(state, one.place, one.last)


def restore_values(state: EngineState, old: EngineState) -> EngineState:
    """A state with the samples and values of an older one; what that knows of servers is out of date."""
    state.server[col.S_DIRTY] = ALL_DIRTY
    return state._replace(sample=old.sample, demand=old.demand, memo=old.memo, loss=old.loss, slot=old.slot)


def restore_arrays(state: EngineState, old: EngineState, free_places: Ints) -> EngineState:
    """A state with the jobs and allocations of an older, smaller one, which has not changed since."""
    state.free_places[:] = free_places
    return state._replace(job=old.job, row=old.row, row_device=old.row_device)
