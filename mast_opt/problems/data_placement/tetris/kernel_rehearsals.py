"""Kernel compilation of tetris: each part of the search runs once on a small instance, so that numba compiles it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.annealing.cooling_schedule import Cooling
from mast_opt.problems.data_placement.tetris.annealing.kernel import KernelRuns
from mast_opt.problems.data_placement.tetris.annealing.multistart import RestartGenerator
from mast_opt.problems.data_placement.tetris.annealing.parallel import ParallelAnnealing
from mast_opt.problems.data_placement.tetris.decomposition import undivided
from mast_opt.problems.data_placement.tetris.gibbs.sweeps import GibbsSweeps
from mast_opt.problems.data_placement.tetris.incumbent import SearchPlan, decisions
from mast_opt.problems.data_placement.tetris.initial_solution import first_state
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.problems.data_placement.tetris.lagrangian.tree_cut_relaxation import TreeCutRelaxation
from mast_opt.problems.data_placement.tetris.multilevel.params import MultilevelParams
from mast_opt.problems.data_placement.tetris.multilevel.start import multilevel_state
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.replica_repair import evict_excess
from mast_opt.problems.data_placement.tetris.state import cost, state_of
from mast_opt.problems.data_placement.tetris.strategy import Features
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound
from mast_opt.problems.search.budget import TimeBudget
from mast_opt.problems.search.interface import Rehearsal, SearchContext, SearchMonitor, StoppingCriteria

PARAMS = TetrisParams()
"""The sizes of arrays depend on parameters, their types do not."""
ITERATIONS = 12
"""Iterations of the relaxation after which it has looked at its bound."""
STANDS_STILL = 10_000
"""Iterations after which even a relaxation that is still improving adds tree cuts."""


def rehearsals(problem: DataPlacement | None) -> tuple[Rehearsal, ...]:
    """Those that a problem needs, or all; the one that takes longest comes first."""
    found = [Rehearsal("annealing", _anneal)]
    if problem is None or _has_sweeps(problem):
        found.append(Rehearsal("sweeps", _sweep))
    found.append(Rehearsal("bound", _bound))
    if problem is None or _has_trees(problem):
        found.append(Rehearsal("trees", _trees))
    if problem is None or len(problem.workloads) <= PARAMS.multistart.most_workloads:
        found.append(Rehearsal("restarts", _begin))
    if problem is None or _has_partitions(problem):
        found.append(Rehearsal("partitions", _partition))
    found.append(Rehearsal("construction", _construct))
    return tuple(found)


def _has_sweeps(problem: DataPlacement) -> bool:
    """Whether tetris would run Gibbs sweeps on a data placement."""
    return len(problem.workloads) >= PARAMS.gibbs.workloads and problem.links is None and problem.remote_reads


def _has_partitions(problem: DataPlacement) -> bool:
    """Whether tetris would place a data placement by a partition of its graph."""
    return Features.of(problem, None).one_copy and problem.links is None


def _has_trees(problem: DataPlacement) -> bool:
    """Whether tetris would use tree cuts in its bound on a data placement."""
    return problem.links is not None or len(problem.reads) * len(problem.regions) <= PARAMS.tree_cuts.most_cells


def _sample() -> tuple[DataPlacement, TetrisArrays]:
    """A small data placement, and its arrays, with which tetris' kernels are compiled."""
    problem: DataPlacement = FAMILIES["standard"].generate(np.random.default_rng(0), datasets=6, workloads=6, regions=3)
    return problem, arrays_of(problem, dict(problem.objective.weights))


def _construct(tools: SearchContext) -> None:
    """Rehearse tetris' greedy start and evictions."""
    _, a = _sample()
    evict_excess(a._replace(storage=a.storage // 4), first_state(a, False, 1))


def _anneal(tools: SearchContext) -> None:
    """Rehearse tetris' annealing."""
    _, a = _sample()
    s = state_of(a, a.option_start[:-1], np.zeros(len(a.tier), np.int64), a.stored, 1)
    KernelRuns(a, False, 1, PARAMS.operators).run(0, undivided(a, s), 1, [(1.0, 0.5)], lambda: True)


def _begin(tools: SearchContext) -> None:
    """Rehearse the starts of tetris' multistart."""
    _, a = _sample()
    RestartGenerator(a, decisions(first_state(a, False, 1)), False, 1.0, 1.0, PARAMS.multistart).begin(
        1, None, tools.rng
    )


def _bound(tools: SearchContext) -> None:
    """Rehearse tetris' Lagrangian bound."""
    problem, a = _sample()
    Relaxation(a, bin_packing_peak_bound(problem), problem.workloads.splittable).step(ITERATIONS)


def _trees(tools: SearchContext) -> None:
    """Rehearse tree cuts in tetris' bound."""
    problem, a = _sample()
    relaxation = TreeCutRelaxation(a, bin_packing_peak_bound(problem), problem.workloads.splittable, tools.rng)
    for _ in range(STANDS_STILL):
        relaxation.step(1)
        if relaxation.has_cuts:
            break
    relaxation.step(2 * PARAMS.tree_cuts.epoch)


class _FewNodes(MultilevelParams):
    """Parameters with which a small sample is coarsened too."""

    coarsest = (0.1,)
    largest = 10.0
    cycles = 2


def _partition(tools: SearchContext) -> None:
    """Rehearse the multilevel start of tetris."""
    _, a = _sample()
    watch = SearchMonitor(StoppingCriteria(iterations=1))
    multilevel_state(a, first_state(a, False, 1), False, TimeBudget(watch, 1.0), tools.rng, _FewNodes())


def _sweep(tools: SearchContext) -> None:
    """Rehearse tetris' Gibbs sweeps."""
    _, a = _sample()
    first = first_state(a, False, 1)
    random: list[Any] = [np.ones(1, np.uint64)]
    watch = SearchMonitor(StoppingCriteria(iterations=4 * PARAMS.gibbs.repair_every))
    tools = replace(tools, watch=watch)
    pace = TimeBudget(watch, 1.0)
    slices = KernelRuns(a, False, 1, PARAMS.operators)
    annealing = ParallelAnnealing(
        a, SearchPlan(first, cost(a, first)), slices, Cooling(1.0, 1.0, PARAMS.cooling), pace, tools.rng, random
    )
    sweeps = GibbsSweeps(a, False, 1.0, annealing, pace, tools.rng, PARAMS.gibbs)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="mast-opt-tetris") as pool:
        for _ in range(PARAMS.gibbs.repair_every + 1):
            sweeps.round(pool, 1, None)
            watch.round += 1
