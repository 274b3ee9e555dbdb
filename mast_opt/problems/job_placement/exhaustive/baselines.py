"""Baseline policies of job placement to compare with: simple ones (``federated``, ``random``, ``least-loaded``,
``best-fit``) and published ones (``fgd``, ``gpu-packing``, ``gpu-clustering``, ``dot-product``, ``reserve-and-pack``).

All take the jobs in the same queue order as ``exhaustive``, and all may stop running jobs by the same rule once
nothing is free where they look: the cheapest victims there. What differs is where they look.

Published policies choose a server for a whole job by a score; of equal ones the first of the table. The papers place
single tasks: a job that no server holds by itself goes to the first group that holds it, and one that fits nowhere may
stop running jobs there, as in ``best-fit``. FGD and the rules that it is compared with are from Weng et al., Beware of
Fragmentation (ATC 2023), and the authors' simulator.

Group: the servers of one cluster and one GPU type. S servers, D GPUs at most, M classes of tasks.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, best_bid, on_servers
from mast_opt.problems.job_placement.engine.feasibility import NOWHERE, Request, groups_in_order, level_in
from mast_opt.problems.job_placement.engine.server_selection import FIRST, LOOSE, TIGHT, on_one_server
from mast_opt.problems.job_placement.exhaustive.batch import Place, admit_in_order
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState, batch_state_of
from mast_opt.problems.job_placement.plan import Plan
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import CPU, GPU, SERVER, WHOLE, Bools, Ints
from mast_opt.problems.search.interface import SearchContext, SearchResult

Floats = NDArray[np.float64]
TOP = 100
"""The highest score."""
LARGEST = 8
"""GPUs of a server by which clustering measures how full servers are."""


class FreeServers(NamedTuple):
    """Free capacity of servers."""

    device: Ints
    """[S, D] milli-GPUs of each GPU, 0 where there is none."""
    cpu: Ints
    """[S] millicores."""
    kind: Ints
    """[S] GPU type."""


class TaskClasses(NamedTuple):
    """Typical tasks, with how frequent they are."""

    mgpu: Ints
    """[M] milli-GPUs of each GPU that a task takes: WHOLE, a fraction, or 0."""
    gpus: Ints
    """[M] GPUs that a task takes."""
    cpu: Ints
    """[M] millicores."""
    accepts: Bools
    """[M, K] GPU types."""
    share: Floats
    """[M] share of all tasks."""


def fragmentation(free: FreeServers, classes: TaskClasses) -> Floats:
    """[S] F(M) of FGD: milli-GPUs that a typical task cannot use. All that is idle where it cannot run at all, for lack
    of cores, GPUs or the type; otherwise what is idle on GPUs that hold less than it takes."""
    idle = free.device.sum(axis=1)
    cannot, wasted = np.full(len(idle), classes.share.sum()), np.zeros(len(idle))
    for need in np.unique(classes.mgpu[classes.mgpu > 0]).tolist():
        ones, holds = np.flatnonzero(classes.mgpu == need), free.device >= need
        runs = holds.sum(axis=1)[:, None] >= classes.gpus[ones]
        runs &= (free.cpu[:, None] >= classes.cpu[ones]) & classes.accepts[ones][:, free.kind].T
        share = np.where(runs, classes.share[ones], 0.0).sum(axis=1)
        cannot -= share
        wasted += share * np.where(holds, 0, free.device).sum(axis=1)
    total: Floats = cannot * idle + wasted
    return total


def fgd_score(before: FreeServers, after: FreeServers, classes: TaskClasses) -> Ints:
    """[S] score of servers for a pending job by how little fragmentation grows, through a sigmoid, in whole percent."""
    fall = fragmentation(before, classes) - fragmentation(after, classes)
    score: Ints = np.floor(TOP / (1 + np.exp(-fall / WHOLE))).astype(np.int64)
    return score


def gpu_packing_score(device: Ints, exists: Bools, mgpu: int, gpus: int) -> Ints:
    """[S] score of servers for a pending job: shared GPUs are the best, the fuller the better; then free GPUs of
    servers in use, then free servers.

    Args:
        device: [S, D] free milli-GPUs of each GPU; ``exists`` [S, D] says where there is one.
        mgpu: that the task takes of each of its GPUs; it must fit.
    """
    whole, number = (device == WHOLE).sum(axis=1), exists.sum(axis=1)
    usable = np.sort(np.where(device >= mgpu, device, 2 * WHOLE), axis=1)[:, :gpus]
    taken_whole = (usable == WHOLE).sum(axis=1)
    shared = np.maximum(TOP - (usable * TOP // WHOLE).sum(axis=1) // 10, TOP // 2)
    in_use = np.maximum(TOP // 2 - taken_whole, TOP // 3)
    score: Ints = np.where(taken_whole > 0, in_use, shared)
    empty: Ints = np.where(whole == number, np.maximum(TOP // 3 - whole, whole), score)
    return empty


def gpu_clustering_score(free: Ints, same: Bools, requests: Ints) -> Ints:
    """[S] score for a pending job: servers whose tasks all have the GPU request of this one are the best, then those
    where some have, then those without tasks that use GPUs, then the others; in each quarter of the scale, the fuller
    the better.

    Args:
        free: [S] free milli-GPUs.
        same: [S] some task there has the same request.
        requests: [S] different GPU requests of the tasks there; all fractions are one.
    """
    quarter = np.where(same, np.where(requests == 1, 3, 2), requests == 0)
    score: Ints = TOP // 4 * (LARGEST * WHOLE - free) // (LARGEST * WHOLE) + TOP * quarter // 4
    return score


def dot_product(need: Floats, free: Floats, capacity: Floats) -> Floats:
    """[S] score of servers for a pending job: Σ need · free, each as a share of the server's capacity (Tetris, SIGCOMM
    2014), for resources [·], [S, ·], [S, ·]; where it is small, the task takes what is scarce there least. The rule
    takes the smallest.
    """
    size = np.maximum(capacity, 1)
    product: Floats = ((need / size) * (free / size)).sum(axis=1)
    return product


def federated(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Early binding: the cluster with most free GPUs of an acceptable type among those whose region holds the data,
    then placement inside it alone. Of clusters with equally many, the one where most can be preempted."""

    def bind(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = groups_in_order(batch.state, job, batch.all_groups)
        if not len(groups):
            return None
        free = batch.state.total[col.T_FREE, job.tier, groups]
        below = min(job.tier + 1, batch.state.total.shape[1] - 1)
        chosen = groups[np.lexsort((-batch.state.total[col.T_RECLAIM, below, groups], -free))[0]]
        cluster = batch.layout.group_cluster == batch.layout.group_cluster[chosen]
        return best_bid(batch.state, job, cluster, TIGHT)

    return in_queue_order(problem, tools, bind)


def random(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """A group drawn at random among those where the job fits; the first servers there that hold it."""

    def draw(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = tools.rng.permutation(groups_in_order(batch.state, job, batch.all_groups))
        return first_that_fits(batch, job, groups, FIRST)

    return in_queue_order(problem, tools, draw)


def least_loaded(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """The group with the largest share of free GPUs where the job fits, and its emptiest servers: work is spread."""

    def emptiest(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = groups_in_order(batch.state, job, batch.all_groups)
        share = batch.state.total[col.T_FREE, job.tier, groups] / np.maximum(_supply(batch)[groups], 1)
        return first_that_fits(batch, job, groups[np.argsort(-share, kind="stable")], LOOSE)

    return in_queue_order(problem, tools, emptiest)


def best_fit(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """The group with the fewest free GPUs where the job fits, and its fullest servers: work is packed."""

    def fullest(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = groups_in_order(batch.state, job, batch.all_groups)
        free = batch.state.total[col.T_FREE, job.tier, groups]
        return first_that_fits(batch, job, groups[np.argsort(free, kind="stable")], TIGHT)

    return in_queue_order(problem, tools, fullest)


def _supply(batch: BatchState) -> Ints:
    """[G] milli-GPUs of each group."""
    supply = np.zeros(len(batch.layout.group_cluster), np.int64)
    np.add.at(supply, batch.layout.group, batch.problem.servers.supply[batch.layout.server, GPU])
    return supply


def first_that_fits(batch: BatchState, job: Request, groups: Iterable[int], style: int) -> BestBid | None:
    """The first group in which the job fits; if there is none, the first in which it does with victims."""
    order = [int(g) for g in groups]
    for g in order:
        level = level_in(batch.state, g, job)
        if level < NOWHERE:
            placed = on_servers(batch.state, g, level, job, style, NOBODY)
            return BestBid(g, int(level), placed, NOBODY, None, True)
    only = np.zeros_like(batch.all_groups)
    for g in order:
        only[g] = True
        offer = best_bid(batch.state, job, only, style)
        only[g] = False
        if offer is not None:
            return offer
    return None


def in_queue_order(problem: JobPlacement, tools: SearchContext, how: Place) -> SearchResult[Plan]:
    """The plan of a policy that is asked for one job after another."""
    batch = batch_state_of(problem)
    admit_in_order(batch, problem.order, tools.watch, how, remember=False)
    message = f"{len(batch.placed)} of {len(problem.jobs)} jobs placed"
    return SearchResult(batch.plan(), None, tools.watch.limit(), message)


SHAPES = 256
"""Shapes of jobs whose scores are remembered."""
Score = Callable[[BatchState, Request, Ints, Ints, Ints], Floats | Ints]
"""[·] of servers that hold the whole job: batch, job, positions [·], free milli-GPUs of each GPU [·, D], milli-GPUs of
a task [·]."""


def fgd(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """The server on which expected fragmentation grows least (Weng et al., ATC 2023); typical are the pending jobs."""
    classes, known = _classes(problem), _KnownScores()

    def score(batch: BatchState, job: Request, at: Ints, device: Ints, mgpu: Ints) -> Ints:
        cpu, servers = batch.state.room[col.A_CPU, job.tier, at], batch.state.server.shape[1]
        scores, new = known.of((job.mgpu.tobytes(), job.tasks, job.cpu), at, np.column_stack([device, cpu]), servers)
        kind = batch.layout.group_type[batch.layout.group[at[new]]]
        after = _after(device[new], mgpu[new], job.tasks)
        scores[at[new]] = fgd_score(
            FreeServers(device[new], cpu[new], kind), FreeServers(after, cpu[new] - job.cpu * job.tasks, kind), classes
        )
        return scores[at]

    return in_queue_order(problem, tools, _by(score))


class _KnownScores:
    """Scores that still hold, since nothing has changed on the server, for the shapes of jobs that came last."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, int, int], tuple[Ints, Ints]] = {}

    def of(self, shape: tuple[bytes, int, int], at: Ints, free: Ints, servers: int) -> tuple[Ints, Bools]:
        """Scores [S] of servers for a pending job's shape, to be completed, and the servers [·] whose score is missing.

        Args:
            at: positions [·].
            free: [·, ·] all that the score depends on besides the shape.
            servers: S.
        """
        if shape not in self._known:
            while len(self._known) >= SHAPES:
                del self._known[next(iter(self._known))]
            self._known[shape] = np.full((servers, free.shape[1]), -1, np.int64), np.zeros(servers, np.int64)
        seen, scores = self._known[shape]
        new: Bools = (seen[at] != free).any(axis=1)
        seen[at[new]] = free[new]
        return scores, new


def gpu_packing(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Shared GPUs first, then free GPUs of servers in use, then free servers."""

    def score(batch: BatchState, job: Request, at: Ints, device: Ints, mgpu: Ints) -> Ints:
        exists = np.arange(device.shape[1]) < batch.state.server[col.S_DEVICES, at][:, None]
        gpus = np.maximum(mgpu // WHOLE, mgpu > 0) * job.tasks
        scores = np.zeros(len(at), np.int64)
        for each, count in {(int(m), int(n)) for m, n in zip(mgpu, gpus)}:
            rows = (mgpu == each) & (gpus == count)
            if each:
                scores[rows] = gpu_packing_score(device[rows], exists[rows], min(each, WHOLE), count)
        return scores

    return in_queue_order(problem, tools, _by(score))


def gpu_clustering(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Servers with tasks of the same GPU request first, so that few servers have tasks of several; fractions of a GPU
    are one request."""
    clusters = _Clusters(problem)

    def score(batch: BatchState, job: Request, at: Ints, device: Ints, mgpu: Ints) -> Ints:
        there = clusters.tasks[batch.layout.server[at]]
        request = clusters.request(mgpu)
        same = there[np.arange(len(at)), request] > 0
        scores = gpu_clustering_score(device.sum(axis=1), same, (there[:, 1:] > 0).sum(axis=1))
        return np.where(request > 0, scores, 0)

    by_score = _by(score)

    def place(batch: BatchState, j: int, job: Request) -> BestBid | None:
        offer = by_score(batch, j, job)
        if offer is not None:
            clusters.follow(batch, j, job, offer)
        return offer

    return in_queue_order(problem, tools, place)


def dot_product_policy(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """The server with the smallest dot product of what the job needs and what is free, as shares of the server."""

    def score(batch: BatchState, job: Request, at: Ints, device: Ints, mgpu: Ints) -> Floats:
        supply = problem.servers.supply[batch.layout.server[at]][:, [CPU, GPU]]
        free = np.stack([batch.state.room[col.A_CPU, job.tier, at], device.sum(axis=1)], axis=1)
        need = np.stack([np.full(len(at), job.cpu), mgpu], axis=1) * job.tasks
        return -dot_product(need.astype(np.float64), free.astype(np.float64), supply.astype(np.float64))

    return in_queue_order(problem, tools, _by(score))


def reserve_and_pack(problem: JobPlacement, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Ordered plans of GPU types (Weng et al., NSDI 2022): a job of several GPUs tries the types with the most GPUs in
    a server first, one of at most a GPU the others, and is packed onto the server with the fewest free GPUs. Of types
    with equally large servers those come first that the jobs of several GPUs ask for most, each with equal parts of its
    GPUs on the types that it accepts; then those listed first."""
    size = np.zeros(len(problem.gpu_types), np.int64)
    np.maximum.at(size, problem.servers.gpu_type, problem.servers.supply[:, GPU])
    asked = np.where(problem.accepts, problem.need_mgpu * problem.jobs.tasks[:, None], 0)
    several = np.where(asked > WHOLE, asked, 0)
    wanted = (several / np.maximum(problem.accepts.sum(axis=1, keepdims=True), 1)).sum(axis=0)
    rank = np.argsort(np.lexsort((-np.arange(len(size)), wanted, size)))

    def score(batch: BatchState, job: Request, at: Ints, device: Ints, mgpu: Ints) -> Ints:
        kind = rank[batch.layout.group_type[batch.layout.group[at]]]
        most = (problem.servers.supply[:, GPU].max(initial=0) + 1) * len(rank)
        order = np.where(mgpu * job.tasks > WHOLE, kind, -kind)
        scores: Ints = order * most - device.sum(axis=1)
        return scores

    return in_queue_order(problem, tools, _by(score))


class _Clusters:
    """Tasks of each GPU request on each server, as a batch goes on."""

    def __init__(self, problem: JobPlacement) -> None:
        p = problem
        self._type = p.servers.gpu_type
        largest = max(int(p.need_mgpu.max(initial=0)), int(p.allocations.need[:, GPU].max(initial=0)))
        self.tasks = np.zeros((len(p.servers), largest // WHOLE + 2), np.int64)
        """[S, requests] by server of the problem: no GPU, a fraction, then 1, 2, … whole GPUs."""
        self._of_running = [
            (p.allocations.server[rows], self.request(p.allocations.need[rows, GPU]), p.allocations.tasks[rows])
            for rows in (np.flatnonzero(p.allocations.running == v) for v in range(len(p.running)))
        ]
        self._of_pending: dict[int, tuple[Ints, Ints, Ints]] = {}
        for rows in self._of_running:
            self._add(rows, 1)

    def request(self, mgpu: Ints) -> Ints:
        """[·] column of pending jobs' tasks that take so much."""
        column: Ints = mgpu // WHOLE + (mgpu > 0)
        return column

    def _add(self, rows: tuple[Ints, Ints, Ints], times: int) -> None:
        """Add rows of a plan to the batch's tasks in clusters, or take them away."""
        np.add.at(self.tasks, rows[:2], times * rows[2])

    def follow(self, batch: BatchState, j: int, job: Request, offer: BestBid) -> None:
        """A job starts at the expense of its victims; called before the batch has stopped these."""
        for at in offer.victims.tolist():
            pending = batch.pending.get(at)
            self._add(self._of_running[batch.victim[at]] if pending is None else self._of_pending[pending], -1)
        server = batch.layout.server[offer.placed.server]
        rows = server, self.request(job.mgpu[self._type[server]]), offer.placed.tasks
        self._of_pending[j] = rows
        self._add(rows, 1)


def _by(score: Score) -> Place:
    """Place in a batch: the server with the highest score."""

    def place(batch: BatchState, j: int, job: Request) -> BestBid | None:
        groups = groups_in_order(batch.state, job, batch.all_groups)
        at = np.flatnonzero(np.isin(batch.state.server[col.S_GROUP], groups))
        mgpu = job.mgpu[batch.layout.group_type[batch.layout.group[at]]]
        device = batch.state.slack_device[at, :, : job.tier + 1].min(axis=2).astype(np.int64)
        holds = _holds(batch, job, at, device, mgpu)
        at, device, mgpu = at[holds], device[holds], mgpu[holds]
        if not len(at):
            return first_that_fits(batch, job, groups, TIGHT)
        scores = score(batch, job, at, device, mgpu)
        best = int(np.lexsort((batch.layout.server[at], -scores))[0])
        placed = on_one_server(batch.state, int(at[best]), int(mgpu[best]), job)
        return BestBid(int(batch.layout.group[at[best]]), SERVER, placed, NOBODY, None, True)

    return place


def _holds(batch: BatchState, job: Request, at: Ints, device: Ints, mgpu: Ints) -> Bools:
    """[·] whether a server holds the whole job."""
    state, each = batch.state, np.maximum(np.minimum(mgpu, WHOLE), 1)[:, None]
    tasks = np.where(
        mgpu >= WHOLE, (device == WHOLE).sum(axis=1) // np.maximum(mgpu // WHOLE, 1), (device // each).sum(axis=1)
    )
    fits: Bools = (state.server[col.S_BLOCKED, at] == 0) & ((mgpu == 0) | (tasks >= job.tasks))
    fits &= state.room[col.A_CPU, job.tier, at] >= job.cpu * job.tasks
    fits &= state.room[col.A_MEMORY, job.tier, at] >= job.memory * job.tasks
    return fits


def _after(device: Ints, mgpu: Ints, tasks: int) -> Ints:
    """[·, D] free milli-GPUs of servers once the tasks have theirs: whole GPUs, or the fullest GPU that holds a
    fraction.
    """
    left, rows = device.copy(), np.arange(len(device))
    fraction = (mgpu > 0) & (mgpu < WHOLE)
    for _ in range(tasks):
        fullest = np.where(left >= mgpu[:, None], left, WHOLE + 1).argmin(axis=1)
        left[rows[fraction], fullest[fraction]] -= mgpu[fraction]
    whole = (left == WHOLE) & (np.cumsum(left == WHOLE, axis=1) <= (mgpu // WHOLE * tasks)[:, None])
    left[whole & ~fraction[:, None]] = 0
    return left


def _classes(problem: JobPlacement) -> TaskClasses:
    """The pending jobs as classes of tasks, equal ones added up."""
    p = problem
    most = p.need_mgpu.max(axis=1)
    table = np.column_stack(
        [np.minimum(most, WHOLE), np.maximum(most // WHOLE, most > 0), p.jobs.cpu_mcores, p.accepts]
    )
    rows, count = np.unique(table, axis=0, return_counts=True)
    return TaskClasses(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3:] == 1, count / max(count.sum(), 1))
