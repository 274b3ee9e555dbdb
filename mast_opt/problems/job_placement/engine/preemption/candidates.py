"""Candidates of preemption (job-placement engine): jobs on a server that may be stopped, and the room without them."""

from __future__ import annotations

from mast_opt.core.jit import kernel
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.feasibility import Request, room_on
from mast_opt.problems.job_placement.engine.state import LEVELS, NEVER, EngineState
from mast_opt.problems.job_placement.units import WHOLE, Ints

GPUS, CORES, MEMORY = 1, 2, 4
"""Bits for what a job lacks on a server, added up."""
ROOM_CPU, ROOM_MEMORY, ROOM_GPU = range(3)
"""Columns of the explicit room of a server [D + 2]: millicores, MiB, and the milli-GPUs of its first GPU."""


@kernel
def list_candidates(
    state: EngineState, s: int, threshold: int, mgpu: int, job: Request, rows: Ints
) -> tuple[int, bool]:
    """Write the allocations on the server that may be freed into ``rows``, cheapest first, as many as it holds: those
    of jobs whose limit is at least the threshold. Where there are too many, those that free nothing that the job lacks
    are left out. Returns how many were written, and whether all that could help are among them."""
    count, every = _list_cheapest(state, s, threshold, 0, rows)
    return (count, every) if every else _list_cheapest(state, s, threshold, _lacks(state, s, mgpu, job), rows)


@kernel
def _list_cheapest(state: EngineState, s: int, threshold: int, lacks: int, rows: Ints) -> tuple[int, bool]:
    """The cheapest allocations that may be freed; only those that free some of what is lacking, unless that is 0."""
    count, every = 0, True
    row = state.server[col.S_ROW, s]
    while row >= 0:
        job = state.row[col.L_JOB, row]
        if state.job[col.J_LIMIT, job] >= threshold and (lacks == 0 or _frees(state, s, row, lacks)):
            if count == len(rows):
                every = False
                if not _costs_less(state, row, rows[count - 1]):
                    row = state.row[col.L_AFTER, row]
                    continue
                count -= 1
            at = count
            while at > 0 and _costs_less(state, row, rows[at - 1]):
                rows[at] = rows[at - 1]
                at -= 1
            rows[at] = row
            count += 1
        row = state.row[col.L_AFTER, row]
    return count, every


@kernel
def _lacks(state: EngineState, s: int, mgpu: int, job: Request) -> int:
    """Resources of which a server has too little for all tasks of a job at once."""
    lacks, fit = 0, job.tasks
    if mgpu >= WHOLE:
        fit = state.room[col.A_WHOLE, job.tier, s] // (mgpu // WHOLE)
    elif mgpu > 0:
        fit = 0
        for d in range(state.server[col.S_DEVICES, s]):
            fit += room_on(state, s, d, job.tier) // mgpu
    if fit < job.tasks:
        lacks |= GPUS
    if state.room[col.A_CPU, job.tier, s] < job.tasks * job.cpu:
        lacks |= CORES
    if state.room[col.A_MEMORY, job.tier, s] < job.tasks * job.memory:
        lacks |= MEMORY
    return lacks


@kernel
def _frees(state: EngineState, s: int, row: int, lacks: int) -> bool:
    """Whether an allocation holds something of what is lacking."""
    if (lacks & CORES and state.row[col.L_CPU, row] > 0) or (lacks & MEMORY and state.row[col.L_MEMORY, row] > 0):
        return True
    if lacks & GPUS:
        for d in range(state.server[col.S_DEVICES, s]):
            if state.row_device[row, d] > 0:
                return True
    return False


@kernel
def list_all(
    state: EngineState, s: int, threshold: int, mgpu: int, job: Request, jobs: Ints, count: int, cost: int
) -> tuple[int, int]:
    """Append to the first ``count`` of ``jobs``, which are marked, all that may be stopped and free something that the
    job lacks on the server, and mark them. Returns the new count, and ``cost`` with what they cost added."""
    lacks = _lacks(state, s, mgpu, job)
    row = state.server[col.S_ROW, s]
    while row >= 0:
        other = state.row[col.L_JOB, row]
        may_stop = state.job[col.J_LIMIT, other] >= threshold and state.job[col.J_MARK, other] < 0
        if may_stop and _frees(state, s, row, lacks):
            state.job[col.J_MARK, other] = count
            jobs[count] = other
            count += 1
            cost = min(cost + state.job[col.J_COST, other], NEVER // LEVELS - 1)
        row = state.row[col.L_AFTER, row]
    return count, cost


@kernel
def unmark(state: EngineState, jobs: Ints, count: int) -> None:
    """Take the marks of the first ``count`` of ``jobs`` away."""
    for at in range(count):
        state.job[col.J_MARK, jobs[at]] = -1


@kernel
def _costs_less(state: EngineState, row: int, other: int) -> bool:
    """Whether an allocation's job costs less, equals by number; the order of the lists must not matter."""
    job, rival = state.row[col.L_JOB, row], state.row[col.L_JOB, other]
    cost, price = state.job[col.J_COST, job], state.job[col.J_COST, rival]
    return bool(cost < price or (cost == price and job < rival))


@kernel
def read_room(state: EngineState, s: int, tier: int, room: Ints) -> None:
    """Write what work of a tier finds on the server into ``room``."""
    room[ROOM_CPU], room[ROOM_MEMORY] = state.room[col.A_CPU, tier, s], state.room[col.A_MEMORY, tier, s]
    for d in range(state.server[col.S_DEVICES, s]):
        room[ROOM_GPU + d] = room_on(state, s, d, tier)


@kernel
def add_row(state: EngineState, devices: int, row: int, sign: int, room: Ints) -> None:
    """Add ``sign`` times what an allocation holds to the room of its server, which has so many GPUs."""
    room[ROOM_CPU] += sign * state.row[col.L_CPU, row]
    room[ROOM_MEMORY] += sign * state.row[col.L_MEMORY, row]
    for d in range(devices):
        room[ROOM_GPU + d] += sign * state.row_device[row, d]


@kernel
def fit_in(room: Ints, devices: int, mgpu: int, job: Request) -> int:
    """Tasks that fit into explicit room, at most as many as the job has."""
    most = job.tasks
    if mgpu >= WHOLE:
        whole = 0
        for d in range(devices):
            if room[ROOM_GPU + d] >= WHOLE:
                whole += room[ROOM_GPU + d] // WHOLE
        most = min(most, whole // (mgpu // WHOLE))
    elif mgpu > 0:
        fit = 0
        for d in range(devices):
            fit += room[ROOM_GPU + d] // mgpu
        most = min(most, fit)
    if job.cpu > 0:
        most = min(most, max(room[ROOM_CPU], 0) // job.cpu)
    if job.memory > 0:
        most = min(most, max(room[ROOM_MEMORY], 0) // job.memory)
    return int(most)


@kernel
def potential_on(state: EngineState, s: int, threshold: int, mgpu: int, job: Request, room: Ints) -> int:
    """Tasks that fit if all jobs whose limit is at least the threshold are stopped. ``room`` [D + 2] is scratch."""
    tier = job.tier
    if state.server[col.S_BLOCKED, s] == 1:
        return 0
    cpu = state.room[col.A_CPU, tier, s] + state.reclaim[col.C_CPU, threshold, s]
    memory = state.room[col.A_MEMORY, tier, s] + state.reclaim[col.C_MEMORY, threshold, s]
    if (
        state.room[col.A_FREE, tier, s] + state.reclaim[col.C_MGPU, threshold, s] < mgpu
        or cpu < job.cpu
        or memory < job.memory
    ):
        return 0
    devices = state.server[col.S_DEVICES, s]
    read_room(state, s, tier, room)
    row = state.server[col.S_ROW, s]
    while row >= 0:
        if state.job[col.J_LIMIT, state.row[col.L_JOB, row]] >= threshold:
            add_row(state, devices, row, 1, room)
        row = state.row[col.L_AFTER, row]
    return fit_in(room, devices, mgpu, job)


@kernel
def most_on_any(state: EngineState, g: int, threshold: int, job: Request) -> int:
    """No server of the group can hold more tasks than this, whoever is stopped of those whose limit is at least the
    threshold."""
    mgpu, most = job.mgpu[state.group[col.G_TYPE, g]], 0
    for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
        fit, devices, size = job.tasks, state.server[col.S_DEVICES, s], state.server[col.S_SIZE, s]
        if mgpu > 0:
            fit = min(fit, devices * size // mgpu if mgpu >= WHOLE else devices * (size // mgpu))
        if job.cpu > 0:
            cpu = state.room[col.A_CPU, job.tier, s] + state.reclaim[col.C_CPU, threshold, s]
            fit = min(fit, max(cpu, 0) // job.cpu)
        if job.memory > 0:
            memory = state.room[col.A_MEMORY, job.tier, s] + state.reclaim[col.C_MEMORY, threshold, s]
            fit = min(fit, max(memory, 0) // job.memory)
        most = max(most, fit)
    return int(most)
