"""Booking kernel of the job-placement engine: a job starts where it is said to, if there is room."""

from __future__ import annotations

from mast_opt.core.jit import entry, kernel
from mast_opt.problems.job_placement.engine.best_bid import stop_all, take
from mast_opt.problems.job_placement.engine.capacity_ledger import new_job, new_row, start
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.server_selection import Placement
from mast_opt.problems.job_placement.engine.state import (
    J_ROW,
    L_CPU,
    L_MEMORY,
    L_NEXT,
    L_SERVER,
    S_BLOCKED,
    EngineState,
    Small,
)
from mast_opt.problems.job_placement.units import Ints


@entry
def book(state: EngineState, job: Request, placed: Placement, victims: Ints, limit: int, cost: int, fresh: bool) -> int:
    """Book a job like ``take`` where every server has room once the victims have stopped; otherwise change nothing.

    Returns the job's place among the running jobs, or −1 − the first row of ``placed`` that has no room.
    """
    for row in range(len(placed.server)):
        cpu, memory = placed.tasks[row] * job.cpu, placed.tasks[row] * job.memory
        if not _has_room(state, job.tier, placed.server[row], cpu, memory, placed.device[row], victims):
            return -1 - row
    return int(take(state, job, placed, victims, limit, cost, fresh))


@entry
def book_amounts(
    state: EngineState, tier: int, rows: Ints, device: Small, victims: Ints, limit: int, cost: int, fresh: bool
) -> int:
    """Book a job whose tasks are not alike, like ``book``.

    Args:
        rows: [A, 3] position, millicores, MiB of what it holds on each server.
        device: [A, D] milli-GPUs of each GPU.
    """
    for row in range(len(rows)):
        if not _has_room(state, tier, rows[row, 0], rows[row, 1], rows[row, 2], device[row], victims):
            return -1 - row
    stop_all(state, victims, fresh)
    number = new_job(state, tier, limit, cost, fresh)
    for row in range(len(rows)):
        new_row(state, number, rows[row, 0], rows[row, 1], rows[row, 2], device[row])
    start(state, number, tier if fresh else state.room.shape[1] - 1)
    return number


@kernel
def _has_room(state: EngineState, tier: int, s: int, cpu: int, memory: int, device: Small, victims: Ints) -> bool:
    for at in range(len(victims)):
        row = state.job[J_ROW, victims[at]]
        while row >= 0:
            if state.row[L_SERVER, row] == s:
                cpu -= state.row[L_CPU, row]
                memory -= state.row[L_MEMORY, row]
            row = state.row[L_NEXT, row]
    fits = state.server[S_BLOCKED, s] == 0
    for p in range(tier + 1):
        fits = fits and state.slack[0, s, p] >= cpu and state.slack[1, s, p] >= memory
    for d in range(len(device)):
        fits = fits and (device[d] == 0 or _room_on(state, s, d, tier, victims) >= device[d])
    return bool(fits)


@kernel
def _room_on(state: EngineState, s: int, d: int, tier: int, victims: Ints) -> int:
    """Milli-GPUs of one GPU for work of the tier once the victims have stopped."""
    room = state.slack_device[s, d, 0]
    for p in range(1, tier + 1):
        room = min(room, state.slack_device[s, d, p])
    for at in range(len(victims)):
        row = state.job[J_ROW, victims[at]]
        while row >= 0:
            if state.row[L_SERVER, row] == s:
                room += state.row_device[row, d]
            row = state.row[L_NEXT, row]
    return int(room)
