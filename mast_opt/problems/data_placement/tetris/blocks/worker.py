"""Calls that workers answer for a block: the search for a plan, and the prices of the bound."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.executor import Shared
from mast_opt.problems import backends
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.tetris_search import TetrisSearch
from mast_opt.problems.data_placement.tetris.workload_parts import WorkloadParts
from mast_opt.problems.data_placement.verification.certificate import Certificate
from mast_opt.problems.search.budget import ROUNDS
from mast_opt.problems.search.interface import MipSolver, SearchContext, SearchMonitor, SearchResult, StoppingCriteria


@dataclass(frozen=True, eq=False)
class BlockData:
    """Data of a block that a worker receives once."""

    problem: DataPlacement
    cost_share: FloatArray
    """[I] the part of a replica's cost that the block bears in the bound."""
    floor: FloatArray
    """[K, P] the smallest possible peaks of the whole."""


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
    """A plan of the block, without a bound."""
    problem = call.data.get().problem
    watch = SearchMonitor(StoppingCriteria(call.time_limit_s, 0.0, call.iterations, cancel))
    tools = SearchContext(call.rng, watch, call.threads, _backend, call.params)
    parts = WorkloadParts.of(problem, call.params.parts)
    weights = dict(problem.objective.weights)
    search = TetrisSearch(problem, parts, tools, call.start, weights, (), call.params, proving=False)
    search.run()
    return search.found()


def bound_block(call: BlockCall, cancel: threading.Event) -> Certificate:
    """Prices of the block's relaxation, in which a replica costs what the block bears of it."""
    data = call.data.get()
    problem, watch = data.problem, SearchMonitor(StoppingCriteria(call.time_limit_s, 0.0, None, cancel))
    weights = dict(problem.objective.weights)
    a = arrays_of(problem, weights)
    size = np.ceil(a.size * data.cost_share).astype(np.int64)
    keep, new = a.keep_price * data.cost_share, a.new_price * data.cost_share
    for array in (size, keep, new):
        array.flags.writeable = False  # as the other arrays: kernels are compiled for every combination
    a = a._replace(size=size, keep_price=keep, new_price=new)
    params = replace(call.params.relaxation, roundings=0)  # rows of a block are no rows of the whole: rounded by others
    relaxation = Relaxation(a, data.floor, problem.workloads.splittable, params)
    counted = call.time_limit_s is None or call.iterations is not None
    most = (call.iterations or ROUNDS) * params.iterations if counted else math.inf
    steps = 0
    while not relaxation.converged and watch.limit() is None and steps < most:
        relaxation.step(1)
        steps += 1
    return Certificate.of(problem, weights, relaxation.best, relaxation.gangs.size)


def _backend(name: str) -> MipSolver:
    return backends.get(name).solve
