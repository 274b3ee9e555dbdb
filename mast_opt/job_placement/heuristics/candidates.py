"""Who may be stopped on a server, and how many tasks would then fit there."""

from __future__ import annotations

from mast_opt.compiled import kernel
from mast_opt.job_placement.heuristics.fit import Request, room_on
from mast_opt.job_placement.heuristics.state import (
    A_CPU,
    A_FREE,
    A_MEMORY,
    C_CPU,
    C_MEMORY,
    C_MGPU,
    J_COST,
    J_LIMIT,
    L_AFTER,
    L_JOB,
    S_BLOCKED,
    S_DEVICES,
    S_ROW,
    State,
)
from mast_opt.job_placement.units import WHOLE, Ints

MOST_CANDIDATES = 60
"""Jobs on one server that are considered, the cheapest ones: a subset is the bits of one number."""


@kernel
def list_candidates(state: State, s: int, threshold: int, rows: Ints) -> tuple[int, bool]:
    """Write the allocations on the server that may be freed into ``rows``, cheapest first: those of jobs
    whose limit is at least the threshold. Returns how many were written, and whether these are all."""
    count, every = 0, True
    row = state.server[S_ROW, s]
    while row >= 0:
        job = state.row[L_JOB, row]
        if state.job[J_LIMIT, job] >= threshold:
            if count == MOST_CANDIDATES:
                every = False
                if state.job[J_COST, state.row[L_JOB, rows[count - 1]]] <= state.job[J_COST, job]:
                    row = state.row[L_AFTER, row]
                    continue
                count -= 1
            at = count
            while at > 0 and _costs_less(state, row, rows[at - 1]):
                rows[at] = rows[at - 1]
                at -= 1
            rows[at] = row
            count += 1
        row = state.row[L_AFTER, row]
    return count, every


@kernel
def _costs_less(state: State, row: int, other: int) -> bool:
    """Whether an allocation's job costs less, equals by number; the order of the lists must not matter."""
    job, rival = state.row[L_JOB, row], state.row[L_JOB, other]
    cost, price = state.job[J_COST, job], state.job[J_COST, rival]
    return bool(cost < price or (cost == price and job < rival))


@kernel
def fit_in(room: Ints, devices: int, cpu: int, memory: int, mgpu: int, job: Request) -> int:
    """Tasks that fit into explicit room, at most as many as the job has."""
    most = job.tasks
    if mgpu >= WHOLE:
        whole = 0
        for d in range(devices):
            whole += room[d] == WHOLE
        most = min(most, whole // (mgpu // WHOLE))
    elif mgpu > 0:
        fit = 0
        for d in range(devices):
            fit += room[d] // mgpu
        most = min(most, fit)
    if job.cpu > 0:
        most = min(most, max(cpu, 0) // job.cpu)
    if job.memory > 0:
        most = min(most, max(memory, 0) // job.memory)
    return int(most)


@kernel
def potential_on(state: State, s: int, threshold: int, mgpu: int, job: Request, room: Ints) -> int:
    """Tasks that fit if all jobs whose limit is at least the threshold are stopped. ``room`` [D] is scratch."""
    tier = job.tier
    if state.server[S_BLOCKED, s] == 1:
        return 0
    cpu = state.room[A_CPU, tier, s] + state.reclaim[C_CPU, threshold, s]
    memory = state.room[A_MEMORY, tier, s] + state.reclaim[C_MEMORY, threshold, s]
    if state.room[A_FREE, tier, s] + state.reclaim[C_MGPU, threshold, s] < mgpu or cpu < job.cpu or memory < job.memory:
        return 0
    devices = state.server[S_DEVICES, s]
    for d in range(devices):
        room[d] = room_on(state, s, d, tier)
    row = state.server[S_ROW, s]
    while row >= 0:
        other = state.row[L_JOB, row]
        if state.job[J_LIMIT, other] >= threshold:
            for d in range(devices):
                room[d] += state.row_device[row, d]
        row = state.row[L_AFTER, row]
    return fit_in(room, devices, cpu, memory, mgpu, job)
