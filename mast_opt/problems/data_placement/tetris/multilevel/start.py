"""Multilevel start of tetris: data placed by a partition of the co-access graph, work where it then costs least."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.initial_solution import greedy_state
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.multilevel.coarsening import co_access_graph
from mast_opt.problems.data_placement.tetris.multilevel.params import MultilevelParams
from mast_opt.problems.data_placement.tetris.multilevel.partitioning import Partitioner
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, excess
from mast_opt.problems.search.budget import TimeBudget


def multilevel_state(
    a: TetrisArrays,
    first: TetrisState,
    refuse: bool,
    pace: TimeBudget,
    rng: np.random.Generator,
    params: MultilevelParams,
) -> TetrisState:
    """The state of the best partition found in the time of ``pace``, or ``first`` where that is no worse."""

    def over(cycles: int) -> bool:
        return pace.over() or (cycles >= params.cycles and not pace.by_clock)

    found = Partitioner(co_access_graph(a), a.storage.copy(), params, rng).search(over)
    state = state_with(a, found.part, refuse)
    broken, kept = excess(a, state, refuse), excess(a, first, refuse)
    better = (broken, cost(a, state)) < (kept, cost(a, first))
    return state if better else first


def state_with(a: TetrisArrays, part: Ints, refuse: bool) -> TetrisState:
    """The state with one copy of each dataset, in its region of ``part`` [I], if it must have one. Work runs where it
    reads most locally; what exceeds cores there runs where it then costs least."""
    place = np.zeros_like(a.stored)
    needed = np.flatnonzero(a.copies_min > 0)
    place[needed, part[needed]] = True
    place = (place & ~a.forbidden) | a.pinned
    region = _most_local(a, place)
    out = np.flatnonzero(region == len(a.cpu))
    by_need = out[np.argsort(-a.cpu_need[out], kind="stable")]
    return greedy_state(a, a.option_start[:-1], region, place, by_need, refuse)


def _most_local(a: TetrisArrays, place: Bools) -> Ints:
    """[W] the region with most of what each workload reads; R where cores do not suffice for all that do so."""
    workloads, regions = len(a.tier), len(a.cpu)
    reader = np.repeat(np.arange(workloads), np.diff(a.read_start))
    local = np.zeros((workloads, regions))
    np.add.at(local, reader, place[a.read_dataset] * a.read_volume[:, None])
    local[~a.option_region[a.option_start[:-1], :regions]] = -1
    region: Ints = local.argmax(axis=1)
    order = np.argsort(-local.max(axis=1), kind="stable")
    for r in range(regions):
        here = order[region[order] == r]
        region[here[np.cumsum(a.cpu_need[here]) > a.cpu[r]]] = regions
    return region
