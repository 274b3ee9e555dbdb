"""One group: the cheapest jobs to stop for a gang that may lie on several servers.

A victim on one server concerns that server alone: the frontiers of the servers, added up by a knapsack over tasks,
give the exact minimum. A victim that lies on several servers couples them. Its cost is split over its servers, so
that the knapsack gives a lower bound; stopping what it chose gives a feasible set; where the two differ, a search
decides victim by victim whether it is stopped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.job_placement.heuristics.compiled import compiled, kernel
from mast_opt.job_placement.heuristics.fit import Request
from mast_opt.job_placement.heuristics.frontier import (
    IN,
    MOST_CANDIDATES,
    OPEN,
    OUT,
    frontier,
    list_candidates,
    potential_on,
)
from mast_opt.job_placement.heuristics.search import excess
from mast_opt.job_placement.heuristics.state import (
    C_DENSITY,
    C_LEAST,
    G_START,
    G_TYPE,
    J_COST,
    J_MARK,
    L_JOB,
    L_SERVER,
    LEVELS,
    NEVER,
    S_DEVICES,
    S_RACK,
    T_FREE,
    T_RECLAIM,
    State,
)
from mast_opt.job_placement.units import CLUSTER, RACK, SERVER, Ints


class Group(NamedTuple):
    """The servers of a group, the allocations that may be freed on each, and their jobs (numbered locally)."""

    first: int
    mgpu: int
    start: Ints
    """[m + 1] entries of each server."""
    row: Ints
    """[n] allocation of each entry."""
    owner: Ints
    """[n] its job."""
    share: Ints
    """[n] the part of the job's cost that this server bears; all parts of a job add up to its cost."""
    job: Ints
    """[v] the running job."""
    servers: Ints
    """[v] servers of the group that it lies on."""


class Frontiers(NamedTuple):
    """For each server: tasks for nothing, further tasks, and the cost and choice for each number of these."""

    base: Ints
    extra: Ints
    cost: NDArray[np.int64]
    """[m, tasks + 1]"""
    mask: NDArray[np.int64]


@kernel
def gather(state: State, g: int, job: Request, threshold: int) -> tuple[Group, bool]:
    """The group, and whether all its candidates are in it."""
    first, last = state.group[G_START, g], state.group[G_START, g + 1]
    rows = np.empty(MOST_CANDIDATES, np.int64)
    start = np.zeros(last - first + 1, np.int64)
    every = True
    for s in range(first, last):
        count, all_here = list_candidates(state, s, threshold, rows)
        every &= all_here
        start[s - first + 1] = start[s - first] + count
    total = start[-1]
    row, owner, share = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    jobs, servers, held = np.empty(total, np.int64), np.zeros(total, np.int64), np.zeros(total, np.int64)
    count = 0
    for s in range(first, last):
        begin = start[s - first]
        number, _ = list_candidates(state, s, threshold, row[begin : begin + MOST_CANDIDATES])
        for at in range(begin, begin + number):
            running = state.row[L_JOB, row[at]]
            if state.job[J_MARK, running] < 0:
                state.job[J_MARK, running] = count
                jobs[count] = running
                count += 1
            owner[at] = state.job[J_MARK, running]
            servers[owner[at]] += 1
            held[owner[at]] += _held(state, row[at])
    for local in range(count):
        state.job[J_MARK, jobs[local]] = -1
    paid = np.zeros(count, np.int64)
    for at in range(total):
        local = owner[at]
        share[at] = state.job[J_COST, jobs[local]] // held[local] * _held(state, row[at])
        paid[local] += share[at]
    for at in range(total):
        local = owner[at]
        share[at] += state.job[J_COST, jobs[local]] - paid[local]
        paid[local] = state.job[J_COST, jobs[local]]
    group = Group(first, job.mgpu[state.group[G_TYPE, g]], start, row, owner, share, jobs[:count], servers[:count])
    return group, every


@kernel
def _held(state: State, row: int) -> int:
    """A measure of an allocation's size, at least 1."""
    total = 1
    for d in range(state.server[S_DEVICES, state.row[L_SERVER, row]]):
        total += state.row_device[row, d]
    return int(total)


@compiled
def cheapest_in_group(state: State, g: int, job: Request, threshold: int, limit: int, budget: int, jobs: Ints) -> Ints:
    """The cheapest set of victims in a group, written into ``jobs``; the answer is as in ``single``.

    Args:
        limit: sets whose value is not below this are of no interest; it is the answer's value if there is none.
        budget: nodes to search at most; at least one is searched.
    """
    group, proven = gather(state, g, job, threshold)
    size = len(group.start) - 1
    wide = job.tasks + 1
    fronts = Frontiers(
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros((size, wide), np.int64),
        np.zeros((size, wide), np.int64),
    )
    status = np.zeros(len(group.job), np.int64)
    chosen = np.zeros(len(group.job), np.int64)
    stale = np.ones(size, np.bool_)
    path = np.empty(len(group.job) + 1, np.int64)
    depth = nodes = count = 0
    best = limit
    while True:
        nodes += 1
        proven &= _update(state, group, job, status, stale, best // LEVELS, fronts)
        bound, level = _relaxed(state, group, job, fronts, chosen)
        spent = 0
        for local in range(len(status)):
            if status[local] == IN:
                spent += state.job[J_COST, group.job[local]]
        bound = bound + spent * LEVELS if bound < NEVER else NEVER
        branch = -1
        if bound < best:
            value, branch = _realised(state, group, job, status, chosen, level)
            if value < best:
                best, count = value, 0
                for local in range(len(chosen)):
                    if chosen[local] > 0 or status[local] == IN:
                        jobs[count] = group.job[local]
                        count += 1
        if bound < best and branch >= 0 and nodes < budget:
            path[depth] = branch
            depth += 1
            _decide(group, status, stale, branch, IN)
            continue
        if bound < best and branch >= 0:
            proven = False
        while depth > 0 and status[path[depth - 1]] == OUT:
            depth -= 1
            _decide(group, status, stale, path[depth], OPEN)
        if depth == 0:
            return np.array([best, g, count, nodes, proven], np.int64)
        if nodes >= budget:
            return np.array([best, g, count, nodes, 0], np.int64)
        _decide(group, status, stale, path[depth - 1], OUT)


@kernel
def _decide(group: Group, status: Ints, stale: NDArray[np.bool_], local: int, decision: int) -> None:
    status[local] = decision
    for i in range(len(stale)):
        for at in range(group.start[i], group.start[i + 1]):
            if group.owner[at] == local:
                stale[i] = True


@kernel
def _update(
    state: State, group: Group, job: Request, status: Ints, stale: NDArray[np.bool_], limit: int, fronts: Frontiers
) -> bool:
    """Bring the frontiers of the servers that a decision concerns up to date; False if one is not exact."""
    exact = True
    for i in range(len(stale)):
        if not stale[i]:
            continue
        begin, end = group.start[i], group.start[i + 1]
        here = np.empty(end - begin, np.int64)
        for at in range(begin, end):
            here[at - begin] = status[group.owner[at]]
        base, extra, whole = frontier(
            state,
            group.first + i,
            group.mgpu,
            job,
            group.row[begin:end],
            group.share[begin:end],
            here,
            limit,
            fronts.cost[i],
            fronts.mask[i],
        )
        fronts.base[i], fronts.extra[i] = base, extra
        exact &= whole
        stale[i] = False
    return exact


@kernel
def _relaxed(state: State, group: Group, job: Request, fronts: Frontiers, chosen: Ints) -> tuple[int, int]:
    """(value, level) of the cheapest choice if every server paid its own share; marks the jobs in ``chosen`` by the
    number of servers on which they are stopped."""
    size = len(fronts.base)
    no_choice = np.empty((0, 0), np.int64)
    chosen[:] = 0
    best, level, begin, end = NEVER, SERVER, 0, 0
    for i in range(size):
        if fronts.base[i] + fronts.extra[i] >= job.tasks:
            cost = fronts.cost[i, max(0, job.tasks - fronts.base[i])]
            if cost * LEVELS + excess(SERVER, job) < best:
                best, level, begin, end = cost * LEVELS + excess(SERVER, job), SERVER, i, i + 1
    if job.within >= RACK:
        low = 0
        while low < size:
            high = low
            while high < size and state.server[S_RACK, group.first + high] == state.server[S_RACK, group.first + low]:
                high += 1
            cost = _knapsack(fronts, low, high, job.tasks, no_choice)
            if cost < NEVER and cost * LEVELS + excess(RACK, job) < best:
                best, level, begin, end = cost * LEVELS + excess(RACK, job), RACK, low, high
            low = high
    if job.within >= CLUSTER:
        cost = _knapsack(fronts, 0, size, job.tasks, no_choice)
        if cost < NEVER and cost * LEVELS + excess(CLUSTER, job) < best:
            best, level, begin, end = cost * LEVELS + excess(CLUSTER, job), CLUSTER, 0, size
    if best < NEVER:
        _mark(group, fronts, begin, end, job.tasks, chosen)
    return best, level


@kernel
def _knapsack(fronts: Frontiers, begin: int, end: int, tasks: int, choice: NDArray[np.int64]) -> int:
    """The least cost at which servers begin … end hold the tasks, or NEVER. If ``choice`` has room, choice[i, n] is
    how many further tasks server begin + i takes where servers begin … begin + i take n."""
    missing = tasks
    for i in range(begin, end):
        missing -= fronts.base[i]
    if missing <= 0:
        return 0
    least = np.full(missing + 1, NEVER, np.int64)
    least[0] = 0
    reach = 0
    for i in range(begin, end):
        extra = fronts.extra[i]
        if extra == 0:
            continue
        reach = min(missing, reach + extra)
        for n in range(reach, 0, -1):
            for e in range(1, min(extra, n) + 1):
                under = least[n - e]
                if under < NEVER and under + fronts.cost[i, e] < least[n]:
                    least[n] = under + fronts.cost[i, e]
                    if len(choice) > 0:
                        choice[i - begin, n] = e
    return int(least[missing])


@kernel
def _mark(group: Group, fronts: Frontiers, begin: int, end: int, tasks: int, chosen: Ints) -> None:
    """Count in ``chosen`` what the cheapest choice of servers begin … end stops."""
    missing = tasks
    for i in range(begin, end):
        missing -= fronts.base[i]
    if missing <= 0:
        return
    choice = np.zeros((end - begin, missing + 1), np.int64)
    _knapsack(fronts, begin, end, tasks, choice)
    for i in range(end - 1, begin - 1, -1):
        e = choice[i - begin, missing]
        bits = fronts.mask[i, e] if e > 0 else 0
        for at in range(group.start[i], group.start[i + 1]):
            if bits >> (at - group.start[i]) & 1:
                chosen[group.owner[at]] += 1
        missing -= e


@kernel
def _realised(state: State, group: Group, job: Request, status: Ints, chosen: Ints, level: int) -> tuple[int, int]:
    """(value of stopping what was chosen, the job to decide next or −1). That job is one that was not stopped
    everywhere, with the highest cost."""
    cost, branch = 0, -1
    for local in range(len(chosen)):
        if status[local] == IN or chosen[local] > 0:
            cost += state.job[J_COST, group.job[local]]
        partly = status[local] == OPEN and 0 < chosen[local] < group.servers[local]
        if partly and (branch < 0 or state.job[J_COST, group.job[local]] > state.job[J_COST, group.job[branch]]):
            branch = local
    return cost * LEVELS + excess(level, job), branch


@compiled
def bounds_of(state: State, groups: Ints, job: Request, threshold: int) -> NDArray[np.float64]:
    """For each group, what no set in it costs less than; infinity where stopping everything makes no room."""
    bounds = np.empty(len(groups))
    for at in range(len(groups)):
        bounds[at] = _bound_in(state, groups[at], job, threshold)
    return bounds


@kernel
def _bound_in(state: State, g: int, job: Request, threshold: int) -> float:
    mgpu = job.mgpu[state.group[G_TYPE, g]]
    missing = job.tasks * mgpu - state.total[T_FREE, job.tier, g]
    if missing > state.total[T_RECLAIM, threshold, g]:
        return float("inf")
    total = in_rack = best_rack = 0
    rack = -1
    least = density = NEVER
    for s in range(state.group[G_START, g], state.group[G_START, g + 1]):
        least = min(least, state.reclaim[C_LEAST, threshold, s])
        density = min(density, state.reclaim[C_DENSITY, threshold, s])
        fit = potential_on(state, s, threshold, mgpu, job)
        if state.server[S_RACK, s] != rack:
            rack, in_rack = state.server[S_RACK, s], 0
        in_rack += fit
        total += fit
        best_rack = max(best_rack, in_rack)
    if total < job.tasks or (job.within == RACK and best_rack < job.tasks):
        return float("inf")
    bound = float(least)
    if missing > 0:
        bound = max(bound, float(missing) * density)
    return bound * (1 - 1e-12)
