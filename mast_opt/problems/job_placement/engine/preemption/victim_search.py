"""Victim search (job-placement engine): the cheapest jobs to preempt for one that fits nowhere, over all clusters.

Sets compare by the most important tier they touch, then GPU-hours lost, then number of victims; bids with equal sets
by level of spread, load of the region, and name. The tier is settled first: the least important threshold at which
the job fits anywhere if everything from there down is stopped. Then the cheapest set at that threshold: server by
server for a job that needs one server, group by group for one that may need several
(``gang_branch_and_bound``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.feasibility import Request, groups_in_order
from mast_opt.problems.job_placement.engine.limits import SearchLimits
from mast_opt.problems.job_placement.engine.preemption import candidates as cd
from mast_opt.problems.job_placement.engine.preemption import eviction_frontier as ef
from mast_opt.problems.job_placement.engine.preemption.gang_branch_and_bound import bounds_of, cheapest_in_group
from mast_opt.problems.job_placement.engine.state import LEVELS, NEVER, EngineState
from mast_opt.problems.job_placement.units import SERVER, Bools, Ints

VALUE, GROUP, FOUND, NODES, PROVEN, WORK = range(6)
"""Fields of an answer: value of the bid (NEVER if there is none), group, victims, nodes searched, 1 if proven, work
done."""

MANY_TASKS = 10_000
"""Number of tasks from which it pays to ask how many of them a server can hold before space is made for them."""


class ServerWorkspace(NamedTuple):
    """Preallocated arrays for the search on one server; C candidates, T tasks of the job, or that a server can hold."""

    candidates: ef.Candidates
    """Their status is OPEN."""
    frontier: ef.Frontier
    jobs: Ints
    """[C + 1] victims of the cheapest set, closed by −1."""
    limits: SearchLimits
    space: ef.FrontierWorkspace


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
            most = max(most, cd.most_on_any(state, groups[at], threshold, job))
    count = limits.candidates
    space = ServerWorkspace(
        ef.Candidates(np.empty(count, np.int64), np.empty(count, np.int64), np.zeros(count, np.int64)),
        ef.Frontier(np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)),
        np.empty(count + 1, np.int64),
        limits,
        ef.frontier_workspace(state, count),
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
        mgpu = job.mgpu[state.group[col.G_TYPE, g]]
        for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
            if cd.potential_on(state, s, threshold, mgpu, job, room) == job.tasks:
                count, cost = cd.list_all(state, s, threshold, mgpu, job, jobs, 0, 0)
                cd.unmark(state, jobs, count)
                if cost * LEVELS < answer[VALUE]:
                    answer[VALUE], answer[GROUP], best = cost * LEVELS, g, s
    if best >= 0:
        mgpu = job.mgpu[state.group[col.G_TYPE, answer[GROUP]]]
        answer[FOUND], _ = cd.list_all(state, best, threshold, mgpu, job, jobs, 0, 0)
        cd.unmark(state, jobs, answer[FOUND])


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
            for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
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
        need = job.tasks * job.mgpu[state.group[col.G_TYPE, g]]
        for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
            missing = need - state.room[col.A_FREE, job.tier, s]
            if missing > state.reclaim[col.C_MGPU, threshold, s]:
                bounds[s] = float("inf")
                continue
            bound = float(state.reclaim[col.C_LEAST, threshold, s])
            if missing > 0:
                bound = max(bound, float(missing) * state.reclaim[col.C_DENSITY, threshold, s])
            bounds[s] = bound * (1 - 1e-12)
            if bounds[s] < promise and _enough_on(state, s, job, threshold):
                promise, promising = bounds[s], s
    return promising


@kernel
def _enough_on(state: EngineState, s: int, job: Request, threshold: int) -> bool:
    """Whether the server takes work and would have the cores and memory."""
    cpu = state.room[col.A_CPU, job.tier, s] + state.reclaim[col.C_CPU, threshold, s]
    memory = state.room[col.A_MEMORY, job.tier, s] + state.reclaim[col.C_MEMORY, threshold, s]
    return bool(state.server[col.S_BLOCKED, s] == 0 and cpu >= job.tasks * job.cpu and memory >= job.tasks * job.memory)


@kernel
def _cheapest_on(
    state: EngineState, s: int, g: int, job: Request, threshold: int, most: int, space: ServerWorkspace, answer: Ints
) -> int:
    """The value of the server's cheapest set, written into ``jobs`` of the workspace; NEVER if none is worth at most
    ``most``."""
    mgpu = job.mgpu[state.group[col.G_TYPE, g]]
    if cd.potential_on(state, s, threshold, mgpu, job, space.space.room) < job.tasks:
        return NEVER
    answer[NODES] += 1
    rows, costs, status = space.candidates
    count, every = cd.list_candidates(state, s, threshold, mgpu, job, rows)
    for i in range(count):
        costs[i] = state.job[col.J_COST, state.row[col.L_JOB, rows[i]]]
    candidates = ef.Candidates(rows[:count], costs[:count], status[:count])
    base, extra, exact = ef.eviction_frontier(
        state,
        s,
        mgpu,
        job,
        candidates,
        most // LEVELS,
        ef.share_of(space.limits, space.limits.work - answer[WORK], 1),
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
            space.jobs[chosen] = state.row[col.L_JOB, rows[i]]
            chosen += 1
    space.jobs[chosen] = -1
    return int(space.frontier.cost[job.tasks - base] * LEVELS)


@dataclass(frozen=True, eq=False)
class Victims:
    """Victims of one job: the cheapest set of running jobs that was found to make room for it."""

    group: int
    jobs: Ints
    """Places of the running jobs in the state."""
    threshold: int
    """The most important tier that is touched."""
    proven: bool
    """Whether no set is cheaper."""


def search_victims(
    state: EngineState, job: Request, allowed: Bools, limits: SearchLimits, groups: Ints | None = None
) -> Victims | None:
    """The cheapest set for the job; None if stopping everything that may be stopped makes no room.

    Args:
        allowed: [G] groups that may be used.
        groups: those groups in the order that decides between equal bids; None for the order without prices.
    """
    if groups is None:
        groups = groups_in_order(state, job, allowed)
    for threshold in range(state.room.shape[1] - 1, job.tier, -1):
        found = cheapest(state, job, groups, threshold, limits)
        if found is not None:
            return found
    return None


def cheapest(state: EngineState, job: Request, groups: Ints, threshold: int, limits: SearchLimits) -> Victims | None:
    """The cheapest set of jobs whose limit is at least the threshold."""
    if job.tasks == 1 or job.within == SERVER:
        return _on_one_server(state, job, groups, threshold, limits)
    return _in_one_group(state, job, groups, threshold, limits)


def _on_one_server(
    state: EngineState, job: Request, groups: Ints, threshold: int, limits: SearchLimits
) -> Victims | None:
    """Victims on one server for a job that fits nowhere, the cheapest; None if there are none."""
    jobs = np.empty(state.job.shape[1], np.int64)
    answer = cheapest_server(state, job, groups, threshold, limits, jobs)
    if answer[VALUE] == NEVER:
        return None
    return Victims(int(answer[GROUP]), jobs[: answer[FOUND]], threshold, bool(answer[PROVEN]))


def _in_one_group(
    state: EngineState, job: Request, groups: Ints, threshold: int, limits: SearchLimits
) -> Victims | None:
    """The cheapest group: those that might hold the job, the most promising first; of equal bids, the group that
    comes first in ``groups`` wins."""
    bounds = bounds_of(state, groups, job, threshold)
    jobs = np.empty(state.job.shape[1], np.int64)
    best, best_at, proven, kept = NEVER, len(groups), True, jobs[:0]
    for at in np.argsort(bounds, kind="stable").tolist():
        if np.isinf(bounds[at]) or bounds[at] * LEVELS > best:
            break
        if limits.work <= 0 and best < NEVER:
            proven = False
            break
        limit = best if at > best_at else min(best + 1, NEVER)
        answer = cheapest_in_group(state, int(groups[at]), job, threshold, limit, limits, jobs)
        limits = limits._replace(nodes=limits.nodes - int(answer[NODES]), work=limits.work - int(answer[WORK]))
        proven &= bool(answer[PROVEN])
        if answer[VALUE] < limit:
            best, best_at, kept = int(answer[VALUE]), at, jobs[: answer[FOUND]].copy()
    return Victims(int(groups[best_at]), kept, threshold, proven) if best < NEVER else None
