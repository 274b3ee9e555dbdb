"""Service moves of twine: a service's processes change neighbourhood, with their dependency closure.

Kernels. What depends on them there goes along, and what they depend on themselves. One at a time such processes cannot
leave: each step alone would break a dependency. Each goes to the machine of the other neighbourhood where it costs
least.
"""

from __future__ import annotations

from mast_opt.core.exact_sums_jit import compiled
from mast_opt.task_reassignment.twine.operators.delta_costs import firm_room, joined_cost, joined_excess
from mast_opt.task_reassignment.twine.operators.move_effects import away_change, relocate, runs_on, travel_price
from mast_opt.task_reassignment.twine.operators.process_moves import metropolis_accepts, weighed
from mast_opt.task_reassignment.twine.state import TOGETHER


@compiled
def shift_service(fleet, state, service, here, there, temperature, excess_price, broken_price, away_price):
    """Try to move the service's processes from one neighbourhood to another, and what has to go with them."""
    row = fleet.near_row[service]
    if row >= 0 and state.at_neighbourhood[row, here] > TOGETHER:
        return False
    allowance = metropolis_accepts(state.random, 0.0, 0.0, temperature)
    before = weighed(state, excess_price, broken_price)
    begin = at = state.trail_end[0]
    possible = send(fleet, state, service, here, there, TOGETHER, begin, excess_price)
    while possible and at < state.trail_end[0]:
        possible = take_along(fleet, state, fleet.service[state.trail[at, 0]], here, there, begin, excess_price)
        at += 1
    end = state.trail_end[0]
    change = weighed(state, excess_price, broken_price) - before
    for at in range(begin, end):
        process, source = state.trail[at, 0], state.trail[at, 1]
        change += away_price * away_change(fleet, process, source, state.machine[process])
    if possible and end > begin and change <= allowance:
        return True
    for at in range(end - 1, begin - 1, -1):
        relocate(fleet, state, state.trail[at, 0], state.trail[at, 1])
    state.trail_end[0] = begin
    return False


@compiled
def take_along(fleet, state, service, here, there, begin, excess_price):
    """Move what keeps the service's dependencies after one of its processes has gone; False where that cannot be."""
    row = fleet.near_row[service]
    if row < 0:
        return True
    near = state.at_neighbourhood
    if near[row, here] == 0:
        for at in range(fleet.asked_start[row], fleet.asked_start[row + 1]):
            needy = fleet.asked[at]
            other = fleet.near_service[needy]
            if near[needy, here] > 0 and not send(fleet, state, other, here, there, TOGETHER, begin, excess_price):
                return False
    for at in range(fleet.asks_start[row], fleet.asks_start[row + 1]):
        needed = fleet.asks[at]
        other = fleet.near_service[needed]
        if near[needed, there] == 0 and not send(fleet, state, other, here, there, 1, begin, excess_price):
            return False
    return True


@compiled
def send(fleet, state, service, here, there, most, begin, excess_price):
    """Move at most that many of the service's processes; False where one finds no machine or too many have gone."""
    for at in range(fleet.member_start[service], fleet.member_start[service + 1]):
        process = fleet.member[at]
        if fleet.neighbourhood[state.machine[process]] != here:
            continue
        if most == 0:
            break
        most -= 1
        machine = cheapest(fleet, state, process, there, excess_price)
        if machine < 0 or state.trail_end[0] - begin >= TOGETHER:
            return False
        relocate(fleet, state, process, machine)
    return True


@compiled
def cheapest(fleet, state, process, neighbourhood, excess_price):
    """The machine of the neighbourhood where the process costs least, or −1 where it cannot run on any."""
    service = fleet.service[process]
    best, least = -1, 0.0
    for at in range(fleet.nearby_start[neighbourhood], fleet.nearby_start[neighbourhood + 1]):
        machine = fleet.nearby[at]
        cost = joined_cost(fleet.price, fleet.feature, state.level, process, machine) - state.cost[machine]
        cost += travel_price(fleet, process, machine)
        if best >= 0 and cost >= least:
            continue
        excess = joined_excess(fleet.scarcity, fleet.feature, state.level, fleet.slack, process, machine)
        cost += excess_price * (excess - state.excess[machine])
        if best >= 0 and cost >= least:
            continue
        if runs_on(fleet, state, service, machine):
            continue
        if firm_room(fleet.firm, fleet.feature, state.spare, fleet.home, process, machine):
            best, least = machine, cost
    return best
