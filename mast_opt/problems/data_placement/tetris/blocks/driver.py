"""Search in blocks (tetris): workers search and bound parts of an instance, and the driver joins their results.

Each block is searched for a plan first. The driver joins these plans and anneals the whole, while the workers prove
the bound: a block's relaxation gives the prices of its reads, and all together prove a bound of the whole.

Calls that workers answer for a block: the search for a plan, and the prices of the bound.
"""

import itertools
import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.executor import RAY, Call, Executor, Shared, WorkerLost, executor
from mast_opt.core.parallel import in_parallel
from mast_opt.problems import backends
from mast_opt.problems.data_placement.plan import Plan, filled
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.tetris.blocks import instances
from mast_opt.problems.data_placement.tetris.blocks.clusters import block_of_workloads, owner_of_datasets
from mast_opt.problems.data_placement.tetris.incumbent import assignment_of
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.problems.data_placement.tetris.kept_certificate import kept_certificate
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.replica_repair import repair_replicas
from mast_opt.problems.data_placement.tetris.state import TetrisState, state_of
from mast_opt.problems.data_placement.tetris.tetris_search import TetrisSearch
from mast_opt.problems.data_placement.tetris.workload_parts import WorkloadParts
from mast_opt.problems.data_placement.verification.certificate import Certificate
from mast_opt.problems.data_placement.verification.certificate_bound import remote_cap
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KeptTrees
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.search.budget import ROUNDS
from mast_opt.problems.search.interface import MipSolver, SearchContext, SearchMonitor, SearchResult, StoppingCriteria


@dataclass(frozen=True, eq=False)
class BlockData:
    """Data of a block that a worker receives once."""

    problem: DataPlacement
    cost_share: FloatArray
    """[I] share of the cost of a replica that the block bears in the bound."""
    floor: FloatArray
    """[K, P] lower bounds of the peaks of the whole instance."""


@dataclass(frozen=True, eq=False)
class BlockCall:
    """Arguments of a call to a worker; it can be pickled."""

    data: Shared[BlockData]
    params: TetrisParams
    rng: np.random.Generator
    threads: int
    time_limit_s: float | None
    iterations: int | None
    start: Plan | None = None


def search_block(call: BlockCall, cancel: threading.Event) -> SearchResult[Plan]:
    """A plan of a block of tetris, without a bound."""
    problem = call.data.get().problem
    watch = SearchMonitor(StoppingCriteria(call.time_limit_s, 0.0, call.iterations, cancel))
    tools = SearchContext(call.rng, watch, call.threads, _backend, call.params)
    parts = WorkloadParts.of(problem, call.params.parts)
    weights = dict(problem.objective.weights)
    search = TetrisSearch(problem, parts, tools, call.start, weights, (), call.params, proving=False)
    search.run()
    return search.found()


def bound_block(call: BlockCall, cancel: threading.Event) -> Certificate:
    """Prices of the relaxation of a block, in which a replica costs the share that the block bears."""
    data = call.data.get()
    problem, watch = data.problem, SearchMonitor(StoppingCriteria(call.time_limit_s, 0.0, None, cancel))
    weights = dict(problem.objective.weights)
    a = arrays_of(problem, weights)
    size = np.ceil(a.size * data.cost_share).astype(np.int64)
    replica_price = a.replica_price * data.cost_share[:, None]
    for array in (size, replica_price):
        array.flags.writeable = False  # as the other arrays: kernels are compiled for every combination
    a = a._replace(size=size, replica_price=replica_price)
    params = replace(call.params.relaxation, roundings=0)  # rows of a block are no rows of the whole: rounded by others
    relaxation = Relaxation(a, data.floor, problem.workloads.splittable, params)
    counted = call.time_limit_s is None or call.iterations is not None
    most = (call.iterations or ROUNDS) * params.iterations if counted else math.inf
    steps = 0
    while not relaxation.converged and watch.limit() is None and steps < most:
        relaxation.step(1)
        steps += 1
    return kept_certificate(problem, weights, relaxation.best, relaxation.gangs.size)


def _backend(name: str) -> MipSolver:
    """Solver of a block's programs, by the backend's name."""
    return backends.get(name).solve


FoundT = TypeVar("FoundT")


Runs = tuple[Ints, Ints, Ints, Ints]
"""Arrays of the runs: workload, region, type and share."""


def search_in_blocks(
    problem: DataPlacement, tools: SearchContext, start: Plan | None, weights: Mapping[str, float], params: TetrisParams
) -> SearchResult[Plan]:
    """Join the plans of the blocks, anneal the whole, and compute a bound from the prices of all blocks.

    Deterministic for equal seed, number of blocks and rounds, wherever and in whatever order the blocks are solved; a
    block whose worker is lost is solved again, here if need be.

    Raises:
        UnsupportedOption: the instance has links, or fewer workloads than blocks.
        BackendUnavailable: there is no Ray, or no cluster at the address.
    """
    own = params.blocks
    if problem.links is not None:
        raise UnsupportedOption("blocks cannot share links; leave out blocks.workers and blocks.count (and --ray)")
    with executor(own.workers, tools.threads, tools.watch.stop.cancel, own.ray) as workers:
        return _Driver(problem, tools, start, dict(weights), params, workers).run()


class _Driver:
    """One search in blocks: the arguments of its workers, and its best plan and bound so far."""

    def __init__(
        self,
        problem: DataPlacement,
        tools: SearchContext,
        start: Plan | None,
        weights: dict[str, float],
        params: TetrisParams,
        workers: Executor,
    ) -> None:
        self._problem, self._tools, self._weights, self._params = problem, tools, weights, params
        self._workers, self._watch = workers, tools.watch
        self._again, self._without_plan = itertools.count(), 0
        own = params.blocks
        self._count = own.count or workers.size
        if self._count > len(problem.workloads):
            raise UnsupportedOption(
                f"{self._count} blocks are more than the {len(problem.workloads)} workloads; set blocks.count to fewer"
            )
        cells = len(problem.reads) * len(problem.regions)
        reserved_s = params.reserve * self._watch.remaining_s + 2 * params.handover_s_per_cell * cells
        self._end_s = self._watch.elapsed_s + max(self._watch.remaining_s - reserved_s, self._watch.remaining_s / 2)
        block = block_of_workloads(problem, self._count, own)
        owner = owner_of_datasets(problem, block, self._count)
        self._rows = [instances.block_rows(problem, block, owner, number) for number in range(self._count)]
        self._start = start
        self._best: Plan | None = None
        self._best_cost = float("inf")
        self._look_at(start)

    def run(self) -> SearchResult[Plan]:
        """The result of tetris' search in blocks."""
        rngs = iter(self._tools.rng.spawn(2 * self._count + 1))
        shared = self._shared()
        asked = [self._call(one, next(rngs), rows) for one, rows in zip(shared, self._rows, strict=True)]
        found = self._each(search_block, asked, self._params.blocks.search_share)
        plans = [one.plan for one in found if one.plan is not None]
        self._without_plan = self._count - len(plans)
        if not self._without_plan:
            self._look_at(joined_plan(self._problem, self._weights, self._rows, plans))
        del found, plans
        asked = [replace(self._call(one, next(rngs)), start=None) for one in shared]
        with ThreadPoolExecutor(1, thread_name_prefix="mast-opt-blocks") as pool:
            bounding = pool.submit(self._each, bound_block, asked, 1.0)
            try:
                self._anneal(next(rngs))
            except BaseException:
                self._watch.stop.cancel.set()
                raise
            certificate = joined_certificate(self._problem, self._weights, self._rows, bounding.result())
        bound = max(0.0, certificate.bound_by_prices(self._problem))
        self._watch.report(bound=bound)
        self._watch.round = self._watch.stop.iterations or 1
        return SearchResult(self._best, bound, self._watch.limit(), self._words(), certificate)

    def _words(self) -> str:
        """Message of the solution: the number of blocks of tetris, and what went wrong."""
        words, again = f"{self._count} blocks", next(self._again)
        if again:
            words += f", {again} calls made again because a worker was lost"
        if self._without_plan:
            words += f", {self._without_plan} of them without a plan within its share of the limits"
        if self._best is None:
            words += "; no plan within the hard limits was found"
        return words

    def _shared(self) -> list[Shared[BlockData]]:
        """Shared data of each block of tetris; unless workers are threads, the driver holds one block at a time."""
        floor = bin_packing_peak_bound(self._problem)

        def data(rows: instances.Block) -> BlockData:
            part = instances.block_instance(self._problem, self._weights, rows)
            return BlockData(part, instances.share_of_costs(self._problem, rows), floor)

        return [self._workers.share(data(rows)) for rows in self._rows]

    def _call(
        self, data: Shared[BlockData], rng: np.random.Generator, rows: instances.Block | None = None
    ) -> BlockCall:
        """Call for a worker: a block, its random numbers and the time that is left."""
        start = None if rows is None or self._best is None else instances.plan_of_block(self._problem, rows, self._best)
        return BlockCall(data, self._params, rng, 1, None, self._watch.stop.iterations, start)

    def _each(self, call: Call[BlockCall, FoundT], given: Sequence[BlockCall], share: float) -> list[FoundT]:
        """Results of calls to tetris' workers within ``share`` of the remaining time."""
        timed = self._watch.stop.time_limit_s is not None
        end_s = self._watch.elapsed_s + share * (self._end_s - self._watch.elapsed_s) if timed else float("inf")
        size, waiting = min(self._workers.size, len(given)), iter(range(len(given), 0, -1))

        def limited(one: BlockCall, part: float) -> BlockCall:
            return replace(one, time_limit_s=max((end_s - self._watch.elapsed_s) * part, 0.01)) if timed else one

        def found(one: BlockCall) -> FoundT:
            part = min(1.0, size / next(waiting))
            for _ in range(2):
                try:
                    return self._workers.run(call, limited(one, part), self._stopped)
                except WorkerLost:
                    if self._stopped():
                        break
                    next(self._again)
            return call(limited(one, part), self._watch.stop.cancel)

        return in_parallel(found, given, size, self._watch.stop.cancel)

    def _stopped(self) -> bool:
        """Whether tetris' search in blocks was cancelled."""
        return self._watch.stop.cancel.is_set()

    def _anneal(self, rng: np.random.Generator) -> None:
        """Improve tetris' plan as a whole, or search for one where a block has none, while workers prove the bound."""
        seconds, own = self._end_s - self._watch.elapsed_s, self._params.blocks
        if not (own.anneal or self._best is None) or self._stopped() or seconds <= 0:
            return
        stop = self._watch.stop
        timed = None if stop.time_limit_s is None else seconds
        watch = SearchMonitor(replace(stop, time_limit_s=timed))
        threads = self._tools.threads if own.workers == RAY else 1
        tools = replace(self._tools, rng=rng, watch=watch, threads=threads)
        parts = WorkloadParts.of(self._problem, self._params.parts)
        params = replace(self._params, gibbs=replace(self._params.gibbs, hot=own.hot))
        search = TetrisSearch(
            self._problem, parts, tools, self._best, self._weights, (), params, proving=False, sweeping=True
        )
        if watch.strategy is not None:
            self._watch.chose(watch.strategy)
        search.run()
        self._look_at(search.found().plan)

    def _look_at(self, plan: Plan | None) -> None:
        """Keep a plan of tetris' blocks if it is better."""
        if plan is None:
            return
        verdict = verify(self._problem, plan)
        worth = sum(weight * verdict.terms[term] for term, weight in self._weights.items())
        if verdict.ok and worth < self._best_cost:
            self._best, self._best_cost = plan, worth
            self._watch.report(objective=worth)


def joined_plan(
    problem: DataPlacement, weights: Mapping[str, float], rows: Sequence[instances.Block], plans: Sequence[Plan]
) -> Plan:
    """Join the plans of the blocks. Replicas that no longer pay off, since others serve the same readers, are dropped;
    others are added where they pay off and there is room."""
    place = np.zeros(problem.datasets.stored.shape, np.bool_)
    for block, plan in zip(rows, plans, strict=True):
        place[block.datasets] |= plan.place
    workload = np.concatenate([block.workloads[plan.run_workload] for block, plan in zip(rows, plans, strict=True)])
    order = np.argsort(workload, kind="stable")
    columns = ("run_region", "run_type", "run_share")
    region, kind, share = (np.concatenate([getattr(plan, name) for plan in plans])[order] for name in columns)
    run = workload[order], region, kind, share
    a = arrays_of(problem, dict(weights))
    state = _state(problem, a, _paying(a, _state(problem, a, place, run)), run)
    repair_replicas(a, state)
    return filled(problem, state.place, run)


def _state(problem: DataPlacement, a: TetrisArrays, place: Bools, run: Runs) -> TetrisState:
    """Search state of a plan; reads of split work are counted by its shares."""
    none = np.zeros(0, np.int64)
    state = state_of(a, *assignment_of(problem, Plan(place, *run, *(none,) * 4, *(none,) * 5)), 1)
    workload, region, _, share = run
    count = np.diff(a.read_start)[workload]
    entry = np.repeat(np.arange(len(workload)), count)
    read = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count - a.read_start[workload], count)
    cell = a.read_dataset[read] * place.shape[1] + region[entry]
    volume = np.bincount(cell, weights=a.read_volume[read] * share[entry] / SHARE, minlength=place.size)
    state.volume[...] = np.rint(volume).astype(np.int64).reshape(place.shape)
    return state


def _paying(a: TetrisArrays, s: TetrisState) -> Bools:
    """[I, R] the replicas that save their readers more than they cost, but no fewer or more than there must or may
    be."""
    saving = np.where(s.place, s.volume * a.remote_price - a.replica_price, -np.inf)
    saving[a.pinned] = np.inf
    rank = np.empty_like(s.volume)
    order = np.argsort(-saving, axis=1, kind="stable")
    np.put_along_axis(rank, order, np.arange(saving.shape[1])[None, :], axis=1)
    kept = s.place & ((saving >= 0) | (rank < a.copies_min[:, None])) & (rank < a.copies_max[:, None])
    return kept | a.pinned


def joined_certificate(
    problem: DataPlacement, weights: Mapping[str, float], rows: Sequence[instances.Block], parts: Sequence[Certificate]
) -> Certificate:
    """Each read at the price of its block; the limits of regions at the mean of the blocks' prices."""
    p = problem
    cap, blocks = remote_cap(p, weights), len(parts)
    kept = np.zeros(len(p.reads)) if cap is None else cap
    level = np.empty((len(p.reads), len(p.regions)), np.uint16)
    for block, part in zip(rows, parts, strict=True):
        level[block.reads] = part.read_level
        if cap is None:
            kept[block.reads] = part.read_cap
    peak = weights["peak"] * p.tier_weight
    worst = np.sum([part.worst.sum(axis=3) for part in parts], axis=0)
    total = worst.sum(axis=0)
    worst *= np.minimum(1.0, peak * (1 - 1e-12) / np.where(total > 0, total, 1.0))
    per_gpu = 1 / np.maximum(p.regions.supply_mgpu.sum(axis=0), 1)
    over = np.sum([part.over.sum(axis=3) for part in parts], axis=0) / blocks
    over = np.minimum(over, weights["overload"] * p.tier_weight * per_gpu[:, None] * (1 - 1e-12))
    names = ("under", "cpu", "storage", "ingress", "quota")
    mean = {name: np.sum([getattr(part, name) for part in parts], axis=0) / blocks for name in names}
    mean["under"] = np.minimum(mean["under"], weights["idle"] * per_gpu)
    return Certificate(
        weights=dict(weights),
        read_level=level,
        read_cap=kept,
        worst=worst[..., None],
        over=over[..., None],
        **mean,
        gang=np.ones((len(p.gpu_types), 0), np.int64),
        trees=KeptTrees.none(),
    )
