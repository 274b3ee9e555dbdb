"""Process moves of twine: shift, swap and ejection. Kernels; each returns whether it was made.

A change is made by Metropolis' rule, if it adds no more than temperature · (−ln u) to cost + excess price · excess +
broken price · missing locations and dependencies + away price · processes that are not at home. The cheap parts come
first, so that most changes are turned down after a look at the levels of the machines.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.exact_sums_jit import inlined
from mast_opt.problems.search.random_state import uniform
from mast_opt.problems.task_reassignment.twine.instance_arrays import TwineArrays
from mast_opt.problems.task_reassignment.twine.operators.delta_costs import (
    firm_room,
    firm_room_replaced,
    joined_cost,
    joined_excess,
    left_cost,
    left_excess,
    replaced_cost,
    replaced_excess,
    shifted_cost,
    swapped_cost,
)
from mast_opt.problems.task_reassignment.twine.operators.move_effects import (
    away_change,
    compatible,
    dependency_change,
    location_change,
    relocate,
    runs_on,
    service_change,
    travel_change,
)
from mast_opt.problems.task_reassignment.twine.state import BROKEN, COST, EXCESS, TwineState

FARTHEST = 37.0
"""Largest −ln u that ``uniform`` yields, rounded up."""


@inlined
def shift_process(
    fleet: TwineArrays,
    state: TwineState,
    p: int,
    target: int,
    temperature: float,
    excess_price: float,
    broken_price: float,
    away_price: float,
) -> bool:
    """Try to move a process to another machine."""
    source = state.machine[p]
    service = fleet.service[p]
    change = shifted_cost(fleet.price, fleet.feature, state.level, p, source, target)
    change -= state.cost[source] + state.cost[target]
    change += travel_change(fleet, p, source, target) + away_price * away_change(fleet, p, source, target)
    gain = excess_price * state.excess[source] + broken_price * state.total[BROKEN] + fleet.service_price
    allowance = metropolis_accepts(state.random, change, gain, temperature)
    if allowance < 0.0 or not compatible(fleet, p, target):
        return False
    if not firm_room(fleet.firm, fleet.feature, state.spare, fleet.home, p, target):
        return False
    excess = joined_excess(fleet.scarcity, fleet.feature, state.level, fleet.slack, p, target) - state.excess[target]
    if state.excess[source] > 0.0:
        excess += left_excess(fleet.scarcity, fleet.feature, state.level, fleet.slack, p, source)
        excess -= state.excess[source]
    change += excess_price * excess + service_change(fleet, state, p, source, target)
    if change > allowance + broken_price * state.total[BROKEN] or runs_on(fleet, state, service, target):
        return False
    broken = location_change(fleet, state, service, fleet.location[source], fleet.location[target])
    broken += dependency_change(fleet, state, service, fleet.neighbourhood[source], fleet.neighbourhood[target])
    if change + broken_price * broken > allowance:
        return False
    relocate(fleet, state, p, target)
    return True


@inlined
def swap_processes(
    fleet: TwineArrays,
    state: TwineState,
    p: int,
    q: int,
    temperature: float,
    excess_price: float,
    broken_price: float,
    away_price: float,
) -> bool:
    """Try to exchange the machines of two processes."""
    source, target = state.machine[p], state.machine[q]
    change = swapped_cost(fleet.price, fleet.feature, state.level, p, q, source, target)
    change -= state.cost[source] + state.cost[target]
    change += travel_change(fleet, p, source, target) + travel_change(fleet, q, target, source)
    away = away_price * (away_change(fleet, p, source, target) + away_change(fleet, q, target, source))
    change += away
    had = state.excess[source] + state.excess[target]
    gain = broken_price * state.total[BROKEN] + 2 * fleet.service_price
    allowance = metropolis_accepts(state.random, change, gain + excess_price * had, temperature)
    if allowance < 0.0 or not compatible(fleet, p, target) or not compatible(fleet, q, source):
        return False
    room = firm_room_replaced(fleet.firm, fleet.feature, state.spare, fleet.home, q, p, target)
    if not room or not firm_room_replaced(fleet.firm, fleet.feature, state.spare, fleet.home, p, q, source):
        return False
    excess = replaced_excess(fleet.scarcity, fleet.feature, state.level, fleet.slack, q, p, target)
    excess += replaced_excess(fleet.scarcity, fleet.feature, state.level, fleet.slack, p, q, source)
    change += excess_price * (excess - had)
    if change > allowance + gain:
        return False
    mine, theirs = fleet.service[p], fleet.service[q]
    if mine != theirs and (runs_on(fleet, state, mine, target) or runs_on(fleet, state, theirs, source)):
        return False
    before = weighed(state, excess_price, broken_price)
    relocate(fleet, state, p, target)
    relocate(fleet, state, q, source)
    if weighed(state, excess_price, broken_price) - before + away > allowance:
        relocate(fleet, state, q, target)
        relocate(fleet, state, p, source)
        return False
    return True


@inlined
def ejection_move(
    fleet: TwineArrays,
    state: TwineState,
    p: int,
    q: int,
    third: int,
    temperature: float,
    excess_price: float,
    broken_price: float,
    away_price: float,
) -> bool:
    """Try to move p to the machine of q, and q to a third machine."""
    source, target = state.machine[p], state.machine[q]
    change = left_cost(fleet.price, fleet.feature, state.level, p, source) - state.cost[source]
    change += joined_cost(fleet.price, fleet.feature, state.level, q, third) - state.cost[third]
    change += replaced_cost(fleet.price, fleet.feature, state.level, q, p, target) - state.cost[target]
    change += travel_change(fleet, p, source, target) + travel_change(fleet, q, target, third)
    away = away_price * (away_change(fleet, p, source, target) + away_change(fleet, q, target, third))
    change += away
    had = state.excess[source] + state.excess[target] + state.excess[third]
    gain = broken_price * state.total[BROKEN] + 2 * fleet.service_price
    allowance = metropolis_accepts(state.random, change, gain + excess_price * had, temperature)
    if allowance < 0.0 or not compatible(fleet, p, target) or not compatible(fleet, q, third):
        return False
    room = firm_room_replaced(fleet.firm, fleet.feature, state.spare, fleet.home, q, p, target)
    if not room or not firm_room(fleet.firm, fleet.feature, state.spare, fleet.home, q, third):
        return False
    excess = replaced_excess(fleet.scarcity, fleet.feature, state.level, fleet.slack, q, p, target)
    excess += joined_excess(fleet.scarcity, fleet.feature, state.level, fleet.slack, q, third)
    if state.excess[source] > 0.0:
        excess += left_excess(fleet.scarcity, fleet.feature, state.level, fleet.slack, p, source)
    change += excess_price * (excess - had)
    if change > allowance + gain:
        return False
    mine, theirs = fleet.service[p], fleet.service[q]
    if runs_on(fleet, state, theirs, third) or (mine != theirs and runs_on(fleet, state, mine, target)):
        return False
    before = weighed(state, excess_price, broken_price)
    relocate(fleet, state, q, third)
    relocate(fleet, state, p, target)
    if weighed(state, excess_price, broken_price) - before + away > allowance:
        relocate(fleet, state, p, source)
        relocate(fleet, state, q, target)
        return False
    return True


@inlined
def metropolis_accepts(random: NDArray[np.uint64], change: float, gain: float, temperature: float) -> float:
    """Increase that is allowed, drawn by Metropolis' rule; negative where the change adds more, all that it may yet
    gain included."""
    if change > FARTHEST * temperature + gain:
        return -1.0
    allowance = -temperature * math.log(uniform(random))
    return -1.0 if change > allowance + gain else allowance


@inlined
def weighed(state: TwineState, excess_price: float, broken_price: float) -> float:
    """Objective that the search minimises at these prices."""
    price: float = state.total[COST] + excess_price * state.total[EXCESS] + broken_price * state.total[BROKEN]
    return price
