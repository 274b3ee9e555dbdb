"""Process moves of twine: shift, swap and ejection. Kernels; each returns whether it was made.

A change is made by Metropolis' rule, if it adds no more than temperature · (−ln u) to cost + excess price · excess +
broken price · missing locations and dependencies + away price · processes that are not at home. The cheap parts come
first, so that most changes are turned down after a look at the levels of the machines.

Moves are evaluated as if constraints had prices: excess over a capacity and missing locations or dependencies
are counted, never forbidden, except for conflicts and transient capacities, which no move may break. Costs are those of
the machines that a change touches, after the change.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.exact_sums_jit import inlined
from mast_opt.problems.search.random_state import uniform
from mast_opt.problems.task_reassignment.twine.instance_arrays import TwineArrays
from mast_opt.problems.task_reassignment.twine.state import BROKEN, COST, EXCESS, TwineState


@inlined
def runs_on(fleet: TwineArrays, state: TwineState, service: int, machine: int) -> bool:
    """Whether the service has a process on the machine."""
    for at in range(fleet.member_start[service], fleet.member_start[service + 1]):
        if state.machine[fleet.member[at]] == machine:
            return True
    return False


@inlined
def compatible(fleet: TwineArrays, process: int, machine: int) -> bool:
    """Whether the machine has room for the process alone, as far as that is known."""
    return fleet.fits.shape[0] == 0 or bool(fleet.fits[process, machine])


@inlined
def travel_price(fleet: TwineArrays, process: int, machine: int) -> float:
    """Process and machine move cost of running the process there."""
    home = fleet.home[process]
    if home == machine:
        return 0.0
    price: float = fleet.move_price[process] + fleet.group_price[fleet.group[home], fleet.group[machine]]
    return price


@inlined
def travel_change(fleet: TwineArrays, process: int, source: int, target: int) -> float:
    """Change in process and machine move cost."""
    return travel_price(fleet, process, target) - travel_price(fleet, process, source)


@inlined
def away_change(fleet: TwineArrays, process: int, source: int, target: int) -> int:
    """1 if the process leaves home, −1 if it comes back, else 0."""
    home = fleet.home[process]
    return int(source == home) - int(target == home)


@inlined
def service_change(fleet: TwineArrays, state: TwineState, process: int, source: int, target: int) -> float:
    """Change in the service move cost if the process goes from source to target."""
    home = fleet.home[process]
    moved = state.moved[fleet.service[process]]
    most = state.most_moved[0]
    if source == home and moved == most:
        return fleet.service_price
    if target == home and moved == most and state.with_moved[most] == 1:
        return -fleet.service_price
    return 0.0


@inlined
def location_change(fleet: TwineArrays, state: TwineState, service: int, source: int, target: int) -> int:
    """Change in missing locations if a process of the service goes from one location to another."""
    row = fleet.spread_row[service]
    if row < 0 or source == target:
        return 0
    before = state.locations[row]
    after = before
    if state.at_location[row, source] == 1:
        after -= 1
    if state.at_location[row, target] == 0:
        after += 1
    least = fleet.spread_min[row]
    change: int = max(0, least - after) - max(0, least - before)
    return change


@inlined
def dependency_change(fleet: TwineArrays, state: TwineState, service: int, source: int, target: int) -> int:
    """Change in missing dependencies if a process of the service goes from one neighbourhood to another."""
    row = fleet.near_row[service]
    if row < 0 or source == target:
        return 0
    near = state.at_neighbourhood
    change = 0
    if near[row, target] == 0:
        for at in range(fleet.asks_start[row], fleet.asks_start[row + 1]):
            if near[fleet.asks[at], target] == 0:
                change += 1
        for at in range(fleet.asked_start[row], fleet.asked_start[row + 1]):
            if near[fleet.asked[at], target] > 0:
                change -= 1
    if near[row, source] == 1:
        for at in range(fleet.asks_start[row], fleet.asks_start[row + 1]):
            if near[fleet.asks[at], source] == 0:
                change -= 1
        for at in range(fleet.asked_start[row], fleet.asked_start[row + 1]):
            if near[fleet.asked[at], source] > 0:
                change += 1
    return change


@inlined
def relocate(fleet: TwineArrays, state: TwineState, process: int, target: int) -> None:
    """Move the process and bring every count and total up to date."""
    source = state.machine[process]
    service = fleet.service[process]
    home = fleet.home[process]
    total = state.total

    end = state.trail_end[0]
    state.trail[end, 0] = process
    state.trail[end, 1] = source
    state.trail_end[0] = end + 1

    for at in range(fleet.firm.shape[0]):
        need = fleet.feature[process, fleet.firm[at]]
        if source != home:
            state.spare[source, at] += need
        if target != home:
            state.spare[target, at] -= need
    cost_source, cost_target = 0.0, 0.0
    for j in range(fleet.price.shape[0]):
        level = state.level[source, j] - fleet.feature[process, j]
        state.level[source, j] = level
        cost_source += fleet.price[j] * max(0.0, level)
        level = state.level[target, j] + fleet.feature[process, j]
        state.level[target, j] = level
        cost_target += fleet.price[j] * max(0.0, level)
    excess_source, excess_target = 0.0, 0.0
    for k in range(fleet.scarcity.shape[0]):
        excess_source += fleet.scarcity[k] * max(0.0, state.level[source, k] - fleet.slack[source, k])
        excess_target += fleet.scarcity[k] * max(0.0, state.level[target, k] - fleet.slack[target, k])
    total[COST] += cost_source - state.cost[source] + cost_target - state.cost[target]
    total[COST] += travel_change(fleet, process, source, target)
    total[EXCESS] += excess_source - state.excess[source] + excess_target - state.excess[target]
    state.cost[source] = cost_source
    state.cost[target] = cost_target
    state.excess[source] = excess_source
    state.excess[target] = excess_target
    state.machine[process] = target

    here, there = fleet.location[source], fleet.location[target]
    total[BROKEN] += location_change(fleet, state, service, here, there)
    row = fleet.spread_row[service]
    if row >= 0:
        state.at_location[row, here] -= 1
        if state.at_location[row, here] == 0:
            state.locations[row] -= 1
        state.at_location[row, there] += 1
        if state.at_location[row, there] == 1:
            state.locations[row] += 1
    here, there = fleet.neighbourhood[source], fleet.neighbourhood[target]
    total[BROKEN] += dependency_change(fleet, state, service, here, there)
    row = fleet.near_row[service]
    if row >= 0:
        state.at_neighbourhood[row, here] -= 1
        state.at_neighbourhood[row, there] += 1

    if source == home or target == home:
        count_moved(fleet, state, service, 1 if source == home else -1)


@inlined
def count_moved(fleet: TwineArrays, state: TwineState, service: int, change: int) -> None:
    """Count a process of the service that left home (+1) or came back (−1)."""
    before = state.moved[service]
    after = before + change
    state.moved[service] = after
    state.with_moved[before] -= 1
    state.with_moved[after] += 1
    most = state.most_moved[0]
    if after > most:
        state.most_moved[0] = after
        state.total[COST] += fleet.service_price
    elif state.with_moved[most] == 0:
        state.most_moved[0] = most - 1
        state.total[COST] -= fleet.service_price


@inlined
def left_cost(price: FloatArray, feature: FloatArray, level: FloatArray, process: int, machine: int) -> float:
    """Cost of the machine without the process."""
    cost = 0.0
    for j in range(price.shape[0]):
        cost += price[j] * max(0.0, level[machine, j] - feature[process, j])
    return cost


@inlined
def joined_cost(price: FloatArray, feature: FloatArray, level: FloatArray, process: int, machine: int) -> float:
    """Cost of the machine with the process."""
    cost = 0.0
    for j in range(price.shape[0]):
        cost += price[j] * max(0.0, level[machine, j] + feature[process, j])
    return cost


@inlined
def replaced_cost(
    price: FloatArray, feature: FloatArray, level: FloatArray, leaver: int, joiner: int, machine: int
) -> float:
    """Cost of the machine with one process in the place of another."""
    cost = 0.0
    for j in range(price.shape[0]):
        cost += price[j] * max(0.0, level[machine, j] + feature[joiner, j] - feature[leaver, j])
    return cost


@inlined
def shifted_cost(
    price: FloatArray, feature: FloatArray, level: FloatArray, process: int, source: int, target: int
) -> float:
    """Cost of both machines after the process has gone from one to the other."""
    cost = 0.0
    for j in range(price.shape[0]):
        f = feature[process, j]
        cost += price[j] * (max(0.0, level[source, j] - f) + max(0.0, level[target, j] + f))
    return cost


@inlined
def swapped_cost(
    price: FloatArray, feature: FloatArray, level: FloatArray, p: int, q: int, source: int, target: int
) -> float:
    """Cost of both machines after p, on the source, and q, on the target, have changed places."""
    cost = 0.0
    for j in range(price.shape[0]):
        f = feature[p, j] - feature[q, j]
        cost += price[j] * (max(0.0, level[source, j] - f) + max(0.0, level[target, j] + f))
    return cost


@inlined
def left_excess(
    scarcity: FloatArray, feature: FloatArray, level: FloatArray, slack: FloatArray, process: int, machine: int
) -> float:
    """Weighted excess of the machine without the process."""
    excess = 0.0
    for k in range(scarcity.shape[0]):
        excess += scarcity[k] * max(0.0, level[machine, k] - feature[process, k] - slack[machine, k])
    return excess


@inlined
def joined_excess(
    scarcity: FloatArray, feature: FloatArray, level: FloatArray, slack: FloatArray, process: int, machine: int
) -> float:
    """Weighted excess of the machine with the process."""
    excess = 0.0
    for k in range(scarcity.shape[0]):
        excess += scarcity[k] * max(0.0, level[machine, k] + feature[process, k] - slack[machine, k])
    return excess


@inlined
def replaced_excess(
    scarcity: FloatArray,
    feature: FloatArray,
    level: FloatArray,
    slack: FloatArray,
    leaver: int,
    joiner: int,
    machine: int,
) -> float:
    """Weighted excess of the machine with one process in the place of another."""
    excess = 0.0
    for k in range(scarcity.shape[0]):
        f = feature[joiner, k] - feature[leaver, k]
        excess += scarcity[k] * max(0.0, level[machine, k] + f - slack[machine, k])
    return excess


@inlined
def firm_room(
    firm: NDArray[np.int32], feature: FloatArray, spare: FloatArray, home: NDArray[np.int32], process: int, machine: int
) -> bool:
    """Whether the machine has room for the transient needs of the process; it has for those at home there."""
    room = True
    for at in range(firm.shape[0]):
        room &= feature[process, firm[at]] <= spare[machine, at]
    return room or home[process] == machine


@inlined
def firm_room_replaced(
    firm: NDArray[np.int32],
    feature: FloatArray,
    spare: FloatArray,
    home: NDArray[np.int32],
    leaver: int,
    joiner: int,
    machine: int,
) -> bool:
    """Whether the machine has room for the joiner's transient needs once the other has left."""
    given = 0.0 if home[leaver] == machine else 1.0
    room = True
    for at in range(firm.shape[0]):
        k = firm[at]
        room &= feature[joiner, k] - given * feature[leaver, k] <= spare[machine, at]
    return room or home[joiner] == machine


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
