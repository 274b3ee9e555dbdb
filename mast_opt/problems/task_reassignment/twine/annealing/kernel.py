"""Compiled simulated-annealing loop of twine over shifts, swaps and ejections."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.exact_sums_jit import compiled, inlined
from mast_opt.problems.search.random_state import below, uniform
from mast_opt.problems.task_reassignment.twine.instance_arrays import TwineArrays
from mast_opt.problems.task_reassignment.twine.operators.process_moves import (
    ejection_move,
    shift_process,
    swap_processes,
)
from mast_opt.problems.task_reassignment.twine.state import BROKEN, COST, EXCESS, TwineState


@by_reference
class OperatorShares(NamedTuple):
    """Shares of the operators among the changes that are proposed; see ``OperatorParams``."""

    swaps: float
    same_service: float
    """Share, among swaps and ejections, of those with a process of the same service."""
    ejections: float
    ways_home: float
    """Share, among shifts and ejections, of those of processes that are away."""
    similar: float
    """Share, among the other swaps and ejections, of those with a process that needs almost the same."""


@compiled
def anneal(
    fleet: TwineArrays,
    state: TwineState,
    proposals: int,
    temperature: float,
    excess_price: float,
    broken_price: float,
    away_price: float,
    movable: int,
    shares: OperatorShares,
    best: NDArray[np.int32],
    best_cost: FloatArray,
) -> None:
    """Propose that many changes of the ``movable`` largest processes.

    ``shares``: an ``OperatorShares``. ``best`` and ``best_cost[0]`` keep the cheapest state without excess or broken
    rules; ``proposals`` is at most ``ROUND``.
    """
    machines = state.cost.shape[0]
    random, machine, total = state.random, state.machine, state.total
    by_size, home = fleet.by_size, fleet.home
    swaps, kin, ejections, homeward = (
        shares.swaps,
        shares.same_service,
        shares.swaps + shares.ejections,
        shares.ways_home,
    )
    partners = fleet.alike.shape[1]
    likeness = shares.similar if partners > 0 else 0.0
    state.trail_end[0] = 0
    best_end = -1
    for _ in range(proposals):
        p = by_size[below(random, movable)]
        source = machine[p]
        kind = uniform(random)
        if kind < ejections:
            service = fleet.service[p]
            first = fleet.member_start[service]
            members = fleet.member_start[service + 1] - first
            if members > 1 and uniform(random) < kin:
                q = fleet.member[first + below(random, members)]
            elif uniform(random) < likeness:
                q = fleet.alike[p, rank(random, partners)]
            else:
                q = by_size[below(random, movable)]
            if machine[q] == source:
                continue
            if kind < swaps:
                made = swap_processes(fleet, state, p, q, temperature, excess_price, broken_price, away_price)
            else:
                third = sample_compatible(fleet, random, q, machines)
                if machine[q] != home[q] and uniform(random) < homeward:
                    third = home[q]
                if third == source or third == machine[q]:
                    continue
                made = ejection_move(fleet, state, p, q, third, temperature, excess_price, broken_price, away_price)
        else:
            target = sample_compatible(fleet, random, p, machines)
            if source != home[p] and uniform(random) < homeward:
                target = home[p]
            if target == source:
                continue
            made = shift_process(fleet, state, p, target, temperature, excess_price, broken_price, away_price)
        if made and total[COST] < best_cost[0] and total[EXCESS] == 0.0 and total[BROKEN] == 0.0:
            best_cost[0] = total[COST]
            best_end = state.trail_end[0]
    if best_end >= 0:
        for at in range(machine.shape[0]):
            best[at] = machine[at]
        for at in range(state.trail_end[0] - 1, best_end - 1, -1):
            best[state.trail[at, 0]] = state.trail[at, 1]


@inlined
def rank(random: NDArray[np.uint64], count: int) -> int:
    """A number from 0 to count − 1, of about the same chance between each and its double."""
    return min(int(math.exp(uniform(random) * math.log(count + 1.0))) - 1, count - 1)


@inlined
def sample_compatible(fleet: TwineArrays, random: NDArray[np.uint64], process: int, machines: int) -> int:
    """A random machine, of those with room for the process alone where they are listed."""
    first = fleet.reach_start[process]
    count = fleet.reach_start[process + 1] - first
    if count > 0:
        return int(fleet.reach[first + below(random, count)])
    return int(below(random, machines))
