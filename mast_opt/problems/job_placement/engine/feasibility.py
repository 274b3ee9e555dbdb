"""Feasibility of tasks on a server (job-placement engine): how many fit, and on which of its GPUs."""

from __future__ import annotations

from typing import NamedTuple

from mast_opt.core.jit import kernel
from mast_opt.problems.job_placement.engine.state import (
    A_CPU,
    A_FREE,
    A_MEMORY,
    A_WHOLE,
    S_DEVICES,
    S_SIZE,
    EngineState,
    Small,
)
from mast_opt.problems.job_placement.units import WHOLE, Bools, Ints


class Request(NamedTuple):
    """A job as the kernels see it. K types, R regions."""

    mgpu: Ints
    """[K] milli-GPUs of one task on each type; −1 where the type is not accepted."""
    open: Bools
    """[R] regions that hold its data."""
    cpu: int
    """Millicores of one task."""
    memory: int
    """MiB of one task."""
    tasks: int
    within: int
    """Level that it must stay within."""
    prefer: int
    """Level that is close enough."""
    tier: int


@kernel
def tasks_on(state: EngineState, s: int, mgpu: int, job: Request) -> int:
    """Tasks of the job that fit on the server in addition to all that it holds; at most as many as the job has."""
    tier, most = job.tier, job.tasks
    if mgpu >= WHOLE:
        most = min(most, state.room[A_WHOLE, tier, s] // (mgpu // WHOLE))
    elif mgpu > 0:
        if state.room[A_FREE, tier, s] < mgpu:
            return 0
        fit = 0
        for d in range(state.server[S_DEVICES, s]):
            fit += room_on(state, s, d, tier) // mgpu
        most = min(most, fit)
    if most == 0 or state.room[A_CPU, tier, s] < job.cpu or state.room[A_MEMORY, tier, s] < job.memory:
        return 0
    if most == 1:
        return 1
    if job.cpu > 0:
        most = min(most, state.room[A_CPU, tier, s] // job.cpu)
    if job.memory > 0:
        most = min(most, state.room[A_MEMORY, tier, s] // job.memory)
    return int(most)


@kernel
def room_on(state: EngineState, s: int, d: int, tier: int) -> int:
    """Milli-GPUs of one GPU for work of the tier."""
    room = state.slack_device[s, d, 0]
    for p in range(1, tier + 1):
        room = min(room, state.slack_device[s, d, p])
    return int(room)


@kernel
def _lowest_tier(state: EngineState, s: int, d: int, tier: int) -> int:
    """The least important tier for which a GPU is wholly there, or −1 if it is not there for ``tier``."""
    found = -1
    for p in range(state.room.shape[1]):
        if state.slack_device[s, d, p] != WHOLE:
            break
        found = p
    return found if found >= tier else -1


@kernel
def choose_devices(state: EngineState, s: int, mgpu: int, tasks: int, tier: int, device: Small) -> None:
    """Write into ``device`` [D] what the tasks take of each GPU; they must fit.

    Whole GPUs: those that the fewest other tiers could use, the lowest of equals. Fractions, one by one: the GPU
    with the least room that holds it, the lowest of equals. A pool has one device, of which all is taken.
    """
    for d in range(len(device)):
        device[d] = 0
    if state.server[S_SIZE, s] > WHOLE:
        device[0] = mgpu * tasks
    elif mgpu >= WHOLE:
        left = mgpu // WHOLE * tasks
        for lowest in range(tier, state.room.shape[1]):
            for d in range(state.server[S_DEVICES, s]):
                if left > 0 and _lowest_tier(state, s, d, tier) == lowest:
                    device[d] = WHOLE
                    left -= 1
    elif mgpu > 0:
        for _ in range(tasks):
            device[_fullest(state, s, mgpu, tier, device)] += mgpu


@kernel
def _fullest(state: EngineState, s: int, mgpu: int, tier: int, device: Small) -> int:
    """The GPU with the least room that holds so much in addition to what ``device`` takes, the lowest of equals."""
    best, least = -1, WHOLE + 1
    for d in range(state.server[S_DEVICES, s]):
        room = room_on(state, s, d, tier) - device[d]
        if mgpu <= room < least:
            best, least = d, room
    return int(best)
