"""Branch and bound for gang preemption (job-placement engine): the cheapest victims over several servers of a group.

A victim on one server concerns that server alone: the frontiers of the servers, added up by a knapsack over tasks,
give the exact minimum. A victim that lies on several servers couples them. Its cost is split over its servers, so
that the knapsack gives a lower bound; stopping what it chose gives a feasible set; where the two differ, a search
decides victim by victim whether it is stopped.

Lower bounds on the cost in a group, with all that may be stopped there, say which groups need not be searched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.feasibility import Request, excess, tasks_on
from mast_opt.problems.job_placement.engine.limits import SearchLimits
from mast_opt.problems.job_placement.engine.preemption import candidates as cd
from mast_opt.problems.job_placement.engine.preemption import eviction_frontier as ef
from mast_opt.problems.job_placement.engine.state import LEVELS, NEVER, EngineState
from mast_opt.problems.job_placement.units import CLUSTER, RACK, SERVER, Ints


class Group(NamedTuple):
    """Preemption candidates of a group: m servers, n allocations on them that may be freed, and their v jobs."""

    first: int
    """Position of the first server."""
    mgpu: int
    """Milli-GPUs of a task of the job that is to be placed."""
    start: Ints
    """[m + 1] entries of each server."""
    row: Ints
    """[n] allocation of each entry."""
    owner: Ints
    """[n] its job, numbered within the group."""
    share: Ints
    """[n] the part of the job's cost that this server bears; all parts of a job add up to its cost."""
    job: Ints
    """[v] the running job."""
    servers: Ints
    """[v] servers of the group that it lies on."""


@compiled
def gather(state: EngineState, g: int, job: Request, threshold: int, candidates: int) -> tuple[Group, bool]:
    """The group with so many candidates a server at most, and whether all that there are are in it."""
    first, last = state.group[col.G_START, g], state.group[col.G_START, g + 1]
    start = np.zeros(last - first + 1, np.int64)
    mgpu = job.mgpu[state.group[col.G_TYPE, g]]
    every = _count_candidates(state, first, threshold, mgpu, job, np.empty(candidates, np.int64), start)
    total = start[-1]
    row, owner, share = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    jobs, servers, held = np.empty(total, np.int64), np.zeros(total, np.int64), np.zeros(total, np.int64)
    group = Group(first, mgpu, start, row, owner, share, jobs, servers)
    count = _list_jobs(state, threshold, job, group, held)
    _split_costs(state, group, held, np.zeros(count, np.int64))
    return Group(first, mgpu, start, row, owner, share, jobs[:count], servers[:count]), every


@kernel
def _count_candidates(
    state: EngineState, first: int, threshold: int, mgpu: int, job: Request, rows: Ints, start: Ints
) -> bool:
    """Fill ``start``; whether no server has more than may be considered."""
    every = True
    for i in range(len(start) - 1):
        count, all_here = cd.list_candidates(state, first + i, threshold, mgpu, job, rows)
        every &= all_here
        start[i + 1] = start[i] + count
    return every


@kernel
def _list_jobs(state: EngineState, threshold: int, job: Request, group: Group, held: Ints) -> int:
    """Fill the rows and owners of the group, its jobs and their servers, and the sizes ``held`` of the jobs; returns
    how many jobs."""
    count = 0
    for i in range(len(group.start) - 1):
        if group.start[i] == group.start[i + 1]:
            continue
        rows = group.row[group.start[i] : group.start[i + 1]]
        cd.list_candidates(state, group.first + i, threshold, group.mgpu, job, rows)
        for at in range(group.start[i], group.start[i + 1]):
            running = state.row[col.L_JOB, group.row[at]]
            if state.job[col.J_MARK, running] < 0:
                state.job[col.J_MARK, running] = count
                group.job[count] = running
                count += 1
            local = state.job[col.J_MARK, running]
            group.owner[at] = local
            group.servers[local] += 1
            held[local] += _held(state, group.row[at])
    for local in range(count):
        state.job[col.J_MARK, group.job[local]] = -1
    return count


@kernel
def _split_costs(state: EngineState, group: Group, held: Ints, paid: Ints) -> None:
    """Split each job's cost by size; what rounding leaves goes to its first entry. ``paid`` is scratch, zeros."""
    for at in range(len(group.row)):
        local = group.owner[at]
        group.share[at] = state.job[col.J_COST, group.job[local]] // held[local] * _held(state, group.row[at])
        paid[local] += group.share[at]
    for at in range(len(group.row)):
        local = group.owner[at]
        group.share[at] += state.job[col.J_COST, group.job[local]] - paid[local]
        paid[local] = state.job[col.J_COST, group.job[local]]


@kernel
def _held(state: EngineState, row: int) -> int:
    """A measure of an allocation's size, at least 1."""
    total = 1
    for d in range(state.server[col.S_DEVICES, state.row[col.L_SERVER, row]]):
        total += state.row_device[row, d]
    return int(total)


@compiled
def bounds_of(state: EngineState, groups: Ints, job: Request, threshold: int) -> NDArray[np.float64]:
    """Lower bounds [groups] on the cost of victims in each group; infinity where stopping everything makes no room."""
    bounds = np.empty(len(groups))
    room = np.empty(state.slack_device.shape[1] + 2, np.int64)
    prices = np.empty(_most_priced(state, groups, job))
    for at in range(len(groups)):
        least, count, wanted = _price_tasks(state, groups[at], job, threshold, room, prices)
        cheapest = np.sort(prices[:count])[:wanted].sum() if wanted > 0 else 0.0
        bounds[at] = max(least, cheapest) * (1 - 1e-9)
    return bounds


@kernel
def _most_priced(state: EngineState, groups: Ints, job: Request) -> int:
    """Largest number of tasks, of those that need some GPUs, that fit on the GPUs of any group."""
    most = 0
    for at in range(len(groups)):
        g = groups[at]
        mgpu = job.mgpu[state.group[col.G_TYPE, g]]
        priced = 0
        for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1] if mgpu > 0 else 0):
            priced += min(job.tasks, state.server[col.S_DEVICES, s] * max(1, state.server[col.S_SIZE, s] // mgpu))
        most = max(most, priced)
    return int(most)


@kernel
def _price_tasks(
    state: EngineState, g: int, job: Request, threshold: int, room: Ints, prices: NDArray[np.float64]
) -> tuple[float, int, int]:
    """Every further task on a server needs so many GPUs more there, and a GPU is worth no less than the least that
    one costs on that server; the cheapest such tasks of all servers make up the job.

    Returns:
        (what one victim costs at least, infinity where there is no room; tasks whose ``prices`` were written, none
        where they need no GPUs; of which so many are wanted).
    """
    mgpu = job.mgpu[state.group[col.G_TYPE, g]]
    if job.tasks * mgpu - state.total[col.T_FREE, job.tier, g] > state.total[col.T_RECLAIM, threshold, g]:
        return float("inf"), 0, 0
    first, last = state.group[col.G_START, g], state.group[col.G_START, g + 1]
    count = total = fit_free = in_rack = best_rack = 0
    rack = -1
    least = NEVER
    for s in range(first, last):
        fit = cd.potential_on(state, s, threshold, mgpu, job, room)
        if fit == 0:
            continue
        least = min(least, state.reclaim[col.C_LEAST, threshold, s])
        if state.server[col.S_RACK, s] != rack:
            rack, in_rack = state.server[col.S_RACK, s], 0
        in_rack += fit
        total += fit
        best_rack = max(best_rack, in_rack)
        now = tasks_on(state, s, mgpu, job)
        fit_free += now
        for task in range(now, fit if mgpu > 0 else now):
            missing = max(0, min(mgpu, (task + 1) * mgpu - state.room[col.A_FREE, job.tier, s]))
            prices[count] = float(missing) * state.reclaim[col.C_DENSITY, threshold, s] if missing > 0 else 0.0
            count += 1
    if total < job.tasks or (job.within == RACK and best_rack < job.tasks):
        return float("inf"), 0, 0
    return float(least), count, max(0, job.tasks - fit_free)


class Frontiers(NamedTuple):
    """Eviction frontiers of the m servers of a group."""

    base: Ints
    """[m] tasks that fit for nothing."""
    extra: Ints
    """[m] further tasks."""
    cost: NDArray[np.int64]
    """[m, tasks that a server can hold + 1]"""
    mask: NDArray[np.int64]


class Tree(NamedTuple):
    """State of the branch and bound over victims: m servers, v jobs that may be stopped, T tasks, C candidates of one
    server."""

    fronts: Frontiers
    status: Ints
    """Status of each victim, [v]."""
    chosen: Ints
    """[v] on how many servers the bound's choice stops a candidate."""
    path: Ints
    """[v + 1] what was decided, in order."""
    stale: NDArray[np.bool_]
    """[m] whether a frontier is out of date."""
    here: Ints
    """[C] scratch."""
    least: Ints
    """[T + 1] scratch."""
    choice: NDArray[np.int64]
    """[m, T + 1] scratch."""
    subsets: int
    """Most subsets of a server's candidates that are enumerated."""
    space: ef.FrontierWorkspace


@compiled
def cheapest_in_group(
    state: EngineState, g: int, job: Request, threshold: int, limit: int, limits: SearchLimits, jobs: Ints
) -> Ints:
    """The cheapest set of victims in a group, written into ``jobs`` [V]; the answer is as in ``victim_search``.

    The group must hold the job once all that may be stopped is. Where nothing is found, because too many jobs lie on a
    server or the search would be too large, all that could help are stopped.

    Args:
        limit: sets whose value is not below this are of no interest; it is the answer's value if there is none.
        limits: one node is searched at least, and as many subsets of a server as it has candidates.
    """
    group, every = gather(state, g, job, threshold, limits.candidates)
    size, count, wide = len(group.start) - 1, len(group.job), job.tasks + 1
    best, found, nodes, proven, work = limit, 0, 1, False, 0
    if size * wide <= limits.cells:
        most = cd.most_on_any(state, g, threshold, job) + 1
        fronts = Frontiers(
            np.zeros(size, np.int64),
            np.zeros(size, np.int64),
            np.zeros((size, most), np.int64),
            np.zeros((size, most), np.int64),
        )
        tree = Tree(
            fronts,
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.empty(count + 1, np.int64),
            np.ones(size, np.bool_),
            np.empty(limits.candidates, np.int64),
            np.empty(wide, np.int64),
            np.empty((size, wide), np.int64),
            ef.share_of(limits, limits.work, size),
            ef.frontier_workspace(state, limits.candidates),
        )
        budget = max(1, min(limits.nodes, limits.work // (size * wide)))
        best, found, nodes, proven = _search_sets(state, group, job, limit, budget, tree, jobs)
        work = tree.space.subsets[0] + nodes * size * wide
    proven = proven and every
    if best == limit and not proven:
        number, cost = _list_helpful(state, g, job, threshold, jobs)
        if cost * LEVELS + excess(job.within, job) < limit:
            best, found = cost * LEVELS + excess(job.within, job), number
    return np.array([best, g, found, nodes, proven, work], np.int64)


@kernel
def _list_helpful(state: EngineState, g: int, job: Request, threshold: int, jobs: Ints) -> tuple[int, int]:
    """Write into ``jobs`` all in a group that may be stopped and help; returns how many they are, and their cost."""
    count = cost = 0
    mgpu = job.mgpu[state.group[col.G_TYPE, g]]
    for s in range(state.group[col.G_START, g], state.group[col.G_START, g + 1]):
        count, cost = cd.list_all(state, s, threshold, mgpu, job, jobs, count, cost)
    cd.unmark(state, jobs, count)
    return count, cost


@kernel
def _search_sets(
    state: EngineState, group: Group, job: Request, limit: int, budget: int, tree: Tree, jobs: Ints
) -> tuple[int, int, int, bool]:
    """(value, victims, nodes, whether proven) of the cheapest set, written into ``jobs``."""
    status, chosen, path, stale = tree.status, tree.chosen, tree.path, tree.stale
    depth = nodes = count = 0
    best, proven = limit, True
    while True:
        nodes += 1
        proven &= _update(state, group, job, best // LEVELS, tree)
        bound, level = _relaxed(state, group, job, tree)
        bound = bound + _spent(state, group, status) * LEVELS if bound < NEVER else NEVER
        branch = -1
        if bound < best:
            value, branch = _realised(state, group, job, status, chosen, level)
            if value < best:
                best, count = value, _list_stopped(group, status, chosen, jobs)
        if bound < best and branch >= 0 and nodes < budget:
            path[depth] = branch
            depth += 1
            _decide(group, status, stale, branch, ef.IN)
            continue
        if bound < best and branch >= 0:
            proven = False
        while depth > 0 and status[path[depth - 1]] == ef.OUT:
            depth -= 1
            _decide(group, status, stale, path[depth], ef.OPEN)
        if depth == 0:
            return best, count, nodes, proven
        if nodes >= budget:
            return best, count, nodes, False
        _decide(group, status, stale, path[depth - 1], ef.OUT)


@kernel
def _spent(state: EngineState, group: Group, status: Ints) -> int:
    """Cost of the jobs that are decided to be stopped."""
    spent = 0
    for local in range(len(status)):
        if status[local] == ef.IN:
            spent += state.job[col.J_COST, group.job[local]]
    return spent


@kernel
def _list_stopped(group: Group, status: Ints, chosen: Ints, jobs: Ints) -> int:
    """Write into ``jobs`` those that are chosen or decided to be stopped; returns how many they are."""
    count = 0
    for local in range(len(chosen)):
        if chosen[local] > 0 or status[local] == ef.IN:
            jobs[count] = group.job[local]
            count += 1
    return count


@kernel
def _decide(group: Group, status: Ints, stale: NDArray[np.bool_], local: int, decision: int) -> None:
    status[local] = decision
    for i in range(len(stale)):
        for at in range(group.start[i], group.start[i + 1]):
            if group.owner[at] == local:
                stale[i] = True


@kernel
def _update(state: EngineState, group: Group, job: Request, limit: int, tree: Tree) -> bool:
    """Bring the frontiers of the servers that a decision concerns up to date; False if one is not exact."""
    fronts, stale, here = tree.fronts, tree.stale, tree.here
    exact = True
    for i in range(len(stale)):
        if not stale[i]:
            continue
        begin, end = group.start[i], group.start[i + 1]
        for at in range(begin, end):
            here[at - begin] = tree.status[group.owner[at]]
        base, extra, whole = ef.eviction_frontier(
            state,
            group.first + i,
            group.mgpu,
            job,
            ef.Candidates(group.row[begin:end], group.share[begin:end], here[: end - begin]),
            limit,
            tree.subsets,
            ef.Frontier(fronts.cost[i], fronts.mask[i]),
            tree.space,
        )
        fronts.base[i], fronts.extra[i] = base, extra
        exact &= whole
        stale[i] = False
    return exact


@kernel
def _relaxed(state: EngineState, group: Group, job: Request, tree: Tree) -> tuple[int, int]:
    """(value, level) of the cheapest choice if every server paid its own share; fills ``chosen``."""
    fronts = tree.fronts
    size = len(fronts.base)
    tree.chosen[:] = 0
    best, begin = _one_server(fronts, job)
    level, end = SERVER, begin + 1
    if job.within >= RACK:
        low = 0
        while low < size:
            high = low
            while (
                high < size
                and state.server[col.S_RACK, group.first + high] == state.server[col.S_RACK, group.first + low]
            ):
                high += 1
            cost = _knapsack(tree, low, high, job.tasks, False)
            if cost < NEVER and cost * LEVELS + excess(RACK, job) < best:
                best, level, begin, end = cost * LEVELS + excess(RACK, job), RACK, low, high
            low = high
    if job.within >= CLUSTER:
        cost = _knapsack(tree, 0, size, job.tasks, False)
        if cost < NEVER and cost * LEVELS + excess(CLUSTER, job) < best:
            best, level, begin, end = cost * LEVELS + excess(CLUSTER, job), CLUSTER, 0, size
    if best < NEVER:
        _mark(group, tree, begin, end, job.tasks)
    return best, level


@kernel
def _one_server(fronts: Frontiers, job: Request) -> tuple[int, int]:
    """(value, server) of the cheapest choice of one server, or NEVER."""
    best, server = NEVER, 0
    for i in range(len(fronts.base)):
        if fronts.base[i] + fronts.extra[i] >= job.tasks:
            cost = fronts.cost[i, max(0, job.tasks - fronts.base[i])]
            if cost * LEVELS + excess(SERVER, job) < best:
                best, server = cost * LEVELS + excess(SERVER, job), i
    return best, server


@kernel
def _knapsack(tree: Tree, begin: int, end: int, tasks: int, keep: bool) -> int:
    """The least cost at which servers begin … end hold the tasks, or NEVER. With ``keep``, choice[i, n] becomes how
    many further tasks server begin + i takes where servers begin … begin + i take n."""
    fronts = tree.fronts
    missing = tasks
    for i in range(begin, end):
        missing -= fronts.base[i]
    if missing <= 0:
        return 0
    if end > begin + 1:
        return int(_fill_knapsack(tree, begin, end, missing, keep))
    if keep:
        tree.choice[0, missing] = missing
    return int(fronts.cost[begin, missing]) if missing <= fronts.extra[begin] else NEVER


@kernel
def _fill_knapsack(tree: Tree, begin: int, end: int, missing: int, keep: bool) -> int:
    fronts, least, choice = tree.fronts, tree.least, tree.choice
    least[: missing + 1] = NEVER
    least[0] = 0
    if keep:
        choice[: end - begin, : missing + 1] = 0
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
                    if keep:
                        choice[i - begin, n] = e
    return int(least[missing])


@kernel
def _mark(group: Group, tree: Tree, begin: int, end: int, tasks: int) -> None:
    """Count in ``chosen`` what the cheapest choice of servers begin … end stops."""
    fronts = tree.fronts
    missing = tasks
    for i in range(begin, end):
        missing -= fronts.base[i]
    if missing <= 0:
        return
    _knapsack(tree, begin, end, tasks, True)
    for i in range(end - 1, begin - 1, -1):
        e = tree.choice[i - begin, missing]
        bits = fronts.mask[i, e] if e > 0 else 0
        for at in range(group.start[i], group.start[i + 1]):
            if bits >> (at - group.start[i]) & 1:
                tree.chosen[group.owner[at]] += 1
        missing -= e


@kernel
def _realised(
    state: EngineState, group: Group, job: Request, status: Ints, chosen: Ints, level: int
) -> tuple[int, int]:
    """(value of stopping what was chosen, the job to decide next or −1). That job is one that was not stopped
    everywhere, with the highest cost."""
    cost, branch = 0, -1
    for local in range(len(chosen)):
        if status[local] == ef.IN or chosen[local] > 0:
            cost += state.job[col.J_COST, group.job[local]]
        partly = status[local] == ef.OPEN and 0 < chosen[local] < group.servers[local]
        if partly and (
            branch < 0 or state.job[col.J_COST, group.job[local]] > state.job[col.J_COST, group.job[branch]]
        ):
            branch = local
    return cost * LEVELS + excess(level, job), branch
