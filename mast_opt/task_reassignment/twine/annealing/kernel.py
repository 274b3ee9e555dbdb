"""Compiled simulated-annealing loop of twine over shifts, swaps and ejections."""

from __future__ import annotations

import math

from mast_opt.core.exact_sums_jit import compiled, inlined
from mast_opt.search.random_state import below, uniform
from mast_opt.task_reassignment.twine.operators.process_moves import ejection_move, shift_process, swap_processes
from mast_opt.task_reassignment.twine.state import BROKEN, COST, EXCESS


@compiled
def anneal(fleet, state, proposals, temperature, excess_price, broken_price, away_price, movable, mix, best, best_cost):
    """Propose that many changes of the ``movable`` largest processes.

    ``mix`` holds the shares of swaps, of swaps within a service among them, of ejections, of ways home among the
    shifts and ejections of processes that are away, and of partners that need almost the same among those of other
    swaps and ejections. ``best`` and ``best_cost[0]`` keep the cheapest state without excess
    or broken rules; ``proposals`` is at most ``ROUND``.
    """
    machines = state.cost.shape[0]
    random, machine, total = state.random, state.machine, state.total
    by_size, home = fleet.by_size, fleet.home
    swaps, kin, ejections, homeward = mix[0], mix[1], mix[0] + mix[2], mix[3]
    partners = fleet.alike.shape[1]
    likeness = mix[4] if partners > 0 else 0.0
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
def rank(random, count):
    """A number from 0 to count − 1, of about the same chance between each and its double."""
    return min(int(math.exp(uniform(random) * math.log(count + 1.0))) - 1, count - 1)


@inlined
def sample_compatible(fleet, random, process, machines):
    """A random machine, of those with room for the process alone where they are listed."""
    first = fleet.reach_start[process]
    count = fleet.reach_start[process + 1] - first
    if count > 0:
        return fleet.reach[first + below(random, count)]
    return below(random, machines)
