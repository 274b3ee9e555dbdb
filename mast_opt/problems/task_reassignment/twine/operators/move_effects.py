"""Effects of a move in twine, and making it. Kernels; ``fleet`` and ``state`` are the tuples of those modules.

Moves are evaluated as if constraints had prices: excess over a capacity and missing locations or dependencies
are counted, never forbidden, except for conflicts and transient capacities, which no move may break.
"""

from __future__ import annotations

from mast_opt.core.exact_sums_jit import inlined
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
