"""Incremental search state of twine: all that is counted to evaluate a move in constant time; hard rules for moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.by_reference import by_reference
from mast_opt.problems.task_reassignment.problem import Ints, TaskReassignment
from mast_opt.problems.task_reassignment.twine.instance_arrays import Floats, Small, TwineArrays, base_levels

COST, EXCESS, BROKEN = 0, 1, 2
"""Positions in ``TwineState.total``."""
ROUND = 50_000
"""Largest number of changes proposed before the trail begins again; a few milliseconds."""
MOST_MOVES = 4
"""Most moves that trying one change makes, those of taking it back included."""


@by_reference
class TwineState(NamedTuple):
    """Incremental state of one assignment: the counts that price a move; kernels change the arrays in place."""

    machine: Small
    """Machine of each process, [P]."""
    level: Floats
    """[M, J]"""
    spare: Floats
    """[M, ·] capacity of the transient resources less what is held, by moved processes too."""
    cost: Floats
    """[M] load and balance cost."""
    excess: Floats
    """[M] weighted excess over capacities."""
    at_location: Small
    """[rows, L] processes of a spreading service in each location."""
    locations: Small
    """[rows] locations with any of them."""
    at_neighbourhood: Small
    """[rows, N] processes of a service with dependencies in each neighbourhood."""
    moved: Small
    """[S] processes that are not at home."""
    with_moved: Small
    """[·] services with so many moved processes."""
    most_moved: Small
    """[1] of one service."""
    total: Floats
    """[3] cost; excess over capacities, weighted by scarcity; missing locations and dependencies."""
    trail: Small
    """[·, 2] process and the machine it left, for every move since ``trail_end`` was 0."""
    trail_end: Small
    """Length of the trail, [1]."""
    random: np.ndarray[tuple[int], np.dtype[np.uint64]]
    """[2] of the generator in ``draws``."""


def state_of(problem: TaskReassignment, fleet: TwineArrays, machine: Ints, rng: np.random.Generator) -> TwineState:
    """The state of an assignment, counted from scratch. Untracked violations count as broken until ``recount``."""
    p = problem
    moved = np.flatnonzero(machine != p.processes.initial)
    level = base_levels(p)
    np.add.at(level, machine, fleet.feature)
    cost = np.maximum(level, 0.0) @ fleet.price
    excess = np.maximum(level[:, : len(p.resources)] - fleet.slack, 0.0) @ fleet.scarcity
    at_location = _counts(
        fleet.spread_row[p.processes.service], p.machines.location[machine], len(fleet.spread_min), len(p.locations)
    )
    locations = (at_location > 0).sum(axis=1).astype(np.int32)
    rows = len(fleet.asks_start) - 1
    near = _counts(fleet.near_row[p.processes.service], p.machines.neighbourhood[machine], rows, len(p.neighbourhoods))
    of_service = np.bincount(p.processes.service[moved], minlength=len(p.services))
    most = int(of_service.max())
    travel = fleet.group_price[fleet.group[p.processes.initial[moved]], fleet.group[machine[moved]]]
    total = cost.sum() + fleet.move_price[moved].sum() + travel.sum() + fleet.service_price * most
    asker = np.repeat(np.arange(rows), np.diff(fleet.asks_start))
    lonely = (near[asker] > 0) & (near[fleet.asks] == 0)
    broken = np.maximum(fleet.spread_min - locations, 0).sum() + lonely.sum() + untracked_violations(p, machine)
    return TwineState(
        machine=machine.astype(np.int32),
        level=level,
        spare=np.ascontiguousarray(spare(p, machine), np.float64),
        cost=cost,
        excess=excess,
        at_location=at_location,
        locations=locations,
        at_neighbourhood=near,
        moved=of_service.astype(np.int32),
        with_moved=np.bincount(of_service, minlength=int(p.service_size.max()) + 2).astype(np.int32),
        most_moved=np.array([most], np.int32),
        total=np.array([total, excess.sum(), float(broken)]),
        trail=np.zeros((ROUND * MOST_MOVES, 2), np.int32),
        trail_end=np.zeros(1, np.int32),
        random=rng.integers(1, 2**63, 2, dtype=np.uint64),
    )


def recount(problem: TaskReassignment, state: TwineState, before: int) -> int:
    """Count untracked violations again, of which there were ``before``; returns how many are left."""
    left = untracked_violations(problem, state.machine.astype(np.int64))
    state.total[BROKEN] += left - before
    return left


def _counts(row: Small, column: Ints, rows: int, columns: int) -> Small:
    """Counts of processes by row and column, as twine's state keeps them."""
    counts = np.zeros((rows, columns), np.int32)
    kept = row >= 0
    np.add.at(counts, (row[kept], column[kept]), 1)
    return counts


def spare(problem: TaskReassignment, machine: Ints) -> Ints:
    """[M, ·] capacity of the transient resources less what is held, by moved processes too."""
    p = problem
    firm = np.flatnonzero(p.resources.transient)
    moved = np.flatnonzero(machine != p.processes.initial)
    room = (p.machines.capacity - p.held)[:, firm]
    np.subtract.at(room, machine[moved], p.processes.need[moved][:, firm])
    return room


def untracked_violations(problem: TaskReassignment, machine: Ints) -> int:
    """Machines short of a transient resource, and processes beyond the first of their service on a machine."""
    short = (spare(problem, machine) < 0).any(axis=1).sum()
    place = problem.processes.service * len(problem.machines) + machine
    return int(short) + len(place) - len(np.unique(place))
