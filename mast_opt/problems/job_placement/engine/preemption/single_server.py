"""Single-server preemption (job-placement engine): the cheapest victims for a whole job, over all servers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.limits import SearchLimits
from mast_opt.problems.job_placement.engine.preemption.candidates import (
    list_all,
    list_candidates,
    most_on_any,
    potential_on,
    unmark,
)
from mast_opt.problems.job_placement.engine.preemption.eviction_frontier import (
    Candidates,
    Frontier,
    FrontierWorkspace,
    eviction_frontier,
    frontier_workspace,
    share_of,
)
from mast_opt.problems.job_placement.engine.state import (
    A_CPU,
    A_FREE,
    A_MEMORY,
    C_CPU,
    C_DENSITY,
    C_LEAST,
    C_MEMORY,
    C_MGPU,
    G_START,
    G_TYPE,
    J_COST,
    L_JOB,
    LEVELS,
    NEVER,
    S_BLOCKED,
    EngineState,
)
from mast_opt.problems.job_placement.units import Ints

VALUE, GROUP, FOUND, NODES, PROVEN, WORK = range(6)
"""Fields of an answer: value of the bid (NEVER if there is none), group, victims, nodes searched, 1 if proven, work
done."""

MANY_TASKS = 10_000
"""Number of tasks from which it pays to ask how many of them a server can hold before space is made for them."""


class ServerWorkspace(NamedTuple):
    """Preallocated arrays for the search on one server; C candidates, T tasks of the job, or that a server can hold."""

    candidates: Candidates
    """Their status is OPEN."""
    frontier: Frontier
    jobs: Ints
    """[C + 1] victims of the cheapest set, closed by −1."""
    limits: SearchLimits
    space: FrontierWorkspace


@compiled
def cheapest_server(
    state: EngineState, job: Request, groups: Ints, threshold: int, limits: SearchLimits, jobs: Ints
) -> Ints:
    """The answer [6] over all servers of the groups, the victims written into ``jobs`` [V]. Of equals, the first wins.

    The server that promises most is searched first, so that most of the others need not be. Where nothing is found
    because too many jobs lie on a server, all that could help are stopped on the one where they cost least.
    """
    answer = np.array([NEVER, -1, 0, 0, 1, 0], np.int64)
    most = job.tasks
    if most > MANY_TASKS:
        most = MANY_TASKS
        for at in range(len(groups)):
            most = max(most, most_on_any(state, groups[at], threshold, job))
    count = limits.candidates
    space = ServerWorkspace(
        Candidates(np.empty(count, np.int64), np.empty(count, np.int64), np.zeros(count, np.int64)),
        Frontier(np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)),
        np.empty(count + 1, np.int64),
        limits,
        frontier_workspace(state, count),
    )
    _search_servers(state, job, groups, threshold, np.empty(state.server.shape[1]), space, jobs, answer)
    if answer[VALUE] == NEVER and answer[PROVEN] == 0:
        _stop_all(state, job, groups, threshold, space.space.room, jobs, answer)
    return answer


@kernel
def _stop_all(
    state: EngineState, job: Request, groups: Ints, threshold: int, room: Ints, jobs: Ints, answer: Ints
) -> None:
    """Answer with all that may be stopped and helps, on the server where that costs least. ``room`` is scratch."""
    best = -1
    for at in range(len(groups)):
        g = groups[at]
        mgpu = job.mgpu[state.group[G_TYPE, g]]
        for s in range(state.group[G_START, g], state.group[G_START, g + 1]):
            if potential_on(state, s, threshold, mgpu, job, room) == job.tasks:
                count, cost = list_all(state, s, threshold, mgpu, job, jobs, 0, 0)
                unmark(state, jobs, count)
                if cost * LEVELS < answer[VALUE]:
                    answer[VALUE], answer[GROUP], best = cost * LEVELS, g, s
    if best >= 0:
        mgpu = job.mgpu[state.group[G_TYPE, answer[GROUP]]]
        answer[FOUND], _ = list_all(state, best, threshold, mgpu, job, jobs, 0, 0)
        unmark(state, jobs, answer[FOUND])


@kernel
def _search_servers(
    state: EngineState,
    job: Request,
    groups: Ints,
    threshold: int,
    bounds: NDArray[np.float64],
    space: ServerWorkspace,
    jobs: Ints,
    answer: Ints,
) -> None:
    limit, promising = answer[VALUE], _bound_all(state, job, groups, threshold, bounds)
    for whole_round in range(2):
        for at in range(len(groups)):
            g = groups[at]
            for s in range(state.group[G_START, g], state.group[G_START, g + 1]):
                most = min(limit, answer[VALUE] - 1)
                if bounds[s] * LEVELS > most or (whole_round == 0 and s != promising):
                    continue
                if answer[WORK] >= space.limits.work and answer[VALUE] < NEVER:
                    answer[PROVEN] = 0
                    return
                value = _cheapest_on(state, s, g, job, threshold, most, space, answer)
                if whole_round == 0:
                    limit = value
                elif value <= most:
                    answer[VALUE], answer[GROUP] = value, g
                    answer[FOUND] = 0
                    while space.jobs[answer[FOUND]] >= 0:
                        jobs[answer[FOUND]] = space.jobs[answer[FOUND]]
                        answer[FOUND] += 1


@kernel
def _bound_all(state: EngineState, job: Request, groups: Ints, threshold: int, bounds: NDArray[np.float64]) -> int:
    """Write for every server of the groups what no set on it costs less than, infinity where too few GPUs could be had;
    returns the server with the smallest among those with enough of everything, or −1 if there is none."""
    promise, promising = float("inf"), -1
    for at in range(len(groups)):
        g = groups[at]
        need = job.tasks * job.mgpu[state.group[G_TYPE, g]]
        for s in range(state.group[G_START, g], state.group[G_START, g + 1]):
            missing = need - state.room[A_FREE, job.tier, s]
            if missing > state.reclaim[C_MGPU, threshold, s]:
                bounds[s] = float("inf")
                continue
            bound = float(state.reclaim[C_LEAST, threshold, s])
            if missing > 0:
                bound = max(bound, float(missing) * state.reclaim[C_DENSITY, threshold, s])
            bounds[s] = bound * (1 - 1e-12)
            if bounds[s] < promise and _enough_on(state, s, job, threshold):
                promise, promising = bounds[s], s
    return promising


@kernel
def _enough_on(state: EngineState, s: int, job: Request, threshold: int) -> bool:
    """Whether the server takes work and would have the cores and memory."""
    cpu = state.room[A_CPU, job.tier, s] + state.reclaim[C_CPU, threshold, s]
    memory = state.room[A_MEMORY, job.tier, s] + state.reclaim[C_MEMORY, threshold, s]
    return bool(state.server[S_BLOCKED, s] == 0 and cpu >= job.tasks * job.cpu and memory >= job.tasks * job.memory)


@kernel
def _cheapest_on(
    state: EngineState, s: int, g: int, job: Request, threshold: int, most: int, space: ServerWorkspace, answer: Ints
) -> int:
    """The value of the server's cheapest set, written into ``jobs`` of the workspace; NEVER if none is worth at most
    ``most``."""
    mgpu = job.mgpu[state.group[G_TYPE, g]]
    if potential_on(state, s, threshold, mgpu, job, space.space.room) < job.tasks:
        return NEVER
    answer[NODES] += 1
    rows, costs, status = space.candidates
    count, every = list_candidates(state, s, threshold, mgpu, job, rows)
    for i in range(count):
        costs[i] = state.job[J_COST, state.row[L_JOB, rows[i]]]
    candidates = Candidates(rows[:count], costs[:count], status[:count])
    base, extra, exact = eviction_frontier(
        state,
        s,
        mgpu,
        job,
        candidates,
        most // LEVELS,
        share_of(space.limits, space.limits.work - answer[WORK], 1),
        space.frontier,
        space.space,
    )
    answer[WORK] = space.space.subsets[0]
    if not (every and exact):
        answer[PROVEN] = 0
    if base + extra < job.tasks:
        return NEVER
    chosen = 0
    for i in range(count):
        if space.frontier.mask[job.tasks - base] >> i & 1:
            space.jobs[chosen] = state.row[L_JOB, rows[i]]
            chosen += 1
    space.jobs[chosen] = -1
    return int(space.frontier.cost[job.tasks - base] * LEVELS)
