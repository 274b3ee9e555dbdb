"""Simulated annealing over shifts and swaps, as a kernel."""

from __future__ import annotations

import math

from numba import njit

from mast_opt.task_reassignment.heuristics.compiled import OPTIONS
from mast_opt.task_reassignment.heuristics.draws import below, uniform
from mast_opt.task_reassignment.heuristics.evaluate import (
    exchanged_excess,
    exchanged_levels,
    firm_room,
    firm_room_exchanged,
    shifted_excess,
    shifted_levels,
)
from mast_opt.task_reassignment.heuristics.moves import (
    dependency_change,
    location_change,
    relocate,
    runs_on,
    service_change,
    travel_change,
)
from mast_opt.task_reassignment.heuristics.state import BROKEN, COST, EXCESS


@njit(**OPTIONS)
def anneal(fleet, state, proposals, temperature, excess_price, broken_price, movable, swaps, kin, best, best_cost):
    """Propose that many moves of the ``movable`` largest processes and accept by Metropolis' rule.

    ``swaps`` is the share of proposals that are swaps, ``kin`` the share of those within a service. ``best`` and
    ``best_cost[0]`` keep the cheapest state without excess or broken rules.
    """
    machines = state.cost.shape[0]
    random, machine, cost, total = state.random, state.machine, state.cost, state.total
    level, free = state.level, state.free
    need, feature, price = fleet.need, fleet.feature, fleet.price
    firm, loose, scarcity = fleet.firm, fleet.loose, fleet.scarcity
    by_size, home, service_of = fleet.by_size, fleet.home, fleet.service
    for _ in range(proposals):
        allowance = -temperature * math.log(uniform(random))
        p = by_size[below(random, movable)]
        source = machine[p]
        service = service_of[p]
        hope = allowance + excess_price * total[EXCESS] + broken_price * total[BROKEN] + 2 * fleet.service_price
        if uniform(random) < swaps:
            first = fleet.member_start[service]
            members = fleet.member_start[service + 1] - first
            if members > 1 and uniform(random) < kin:
                q = fleet.member[first + below(random, members)]
            else:
                q = by_size[below(random, movable)]
            target = machine[q]
            if source == target:
                continue
            p_home, q_home = home[p], home[q]
            p_here, p_there = int(p_home == source), int(p_home == target)
            q_here, q_there = int(q_home == source), int(q_home == target)
            if not firm_room_exchanged(firm, need, free, p, q, source, target, p_here, p_there, q_here, q_there):
                continue
            change = exchanged_levels(price, feature, level, p, q, source, target) - cost[source] - cost[target]
            if p_here or p_there or q_here or q_there:
                change += travel_change(fleet, p, source, target) + travel_change(fleet, q, target, source)
            if change > hope:
                continue
            change += excess_price * exchanged_excess(
                loose, scarcity, need, free, p, q, source, target, p_here, p_there, q_here, q_there
            )
            if change > allowance + broken_price * total[BROKEN] + 2 * fleet.service_price:
                continue
            theirs = service_of[q]
            if service != theirs and (runs_on(fleet, state, service, target) or runs_on(fleet, state, theirs, source)):
                continue
            before = total[COST] + excess_price * total[EXCESS] + broken_price * total[BROKEN]
            relocate(fleet, state, p, target)
            relocate(fleet, state, q, source)
            after = total[COST] + excess_price * total[EXCESS] + broken_price * total[BROKEN]
            if after - before > allowance:
                relocate(fleet, state, q, target)
                relocate(fleet, state, p, source)
                continue
        else:
            first = fleet.reach_start[p]
            reached = fleet.reach_start[p + 1] - first
            target = fleet.reach[first + below(random, reached)] if reached > 0 else below(random, machines)
            if source == target:
                continue
            here, there = int(home[p] == source), int(home[p] == target)
            if not firm_room(firm, need, free, p, target, there):
                continue
            change = shifted_levels(price, feature, level, p, source, target) - cost[source] - cost[target]
            change += travel_change(fleet, p, source, target)
            if change > hope:
                continue
            change += excess_price * shifted_excess(loose, scarcity, need, free, p, source, target, here, there)
            if change > allowance + broken_price * total[BROKEN] + fleet.service_price:
                continue
            if runs_on(fleet, state, service, target):
                continue
            broken = location_change(fleet, state, service, fleet.location[source], fleet.location[target])
            broken += dependency_change(fleet, state, service, fleet.neighbourhood[source], fleet.neighbourhood[target])
            change += broken_price * broken + service_change(fleet, state, p, source, target)
            if change > allowance:
                continue
            relocate(fleet, state, p, target)
        if total[COST] < best_cost[0] and total[EXCESS] == 0.0 and total[BROKEN] == 0.0:
            best_cost[0] = total[COST]
            best[:] = machine
