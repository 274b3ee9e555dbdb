"""Sub-MIPs of twine (task reassignment): some processes of a few machines are re-optimised, the rest is fixed.

The sub-problem is a task-reassignment problem of its own: capacities are what the rest leaves, and a machine without
capacity stands for every home outside. Spread and dependencies are left out, and the largest number of moved processes
counts only what is inside, so an answer is taken only if the verifier finds it feasible and cheaper.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.core.solve_result import SolveParams
from mast_opt.search.interface import SearchContext
from mast_opt.task_reassignment.formulation.formulation import base
from mast_opt.task_reassignment.plan import Plan
from mast_opt.task_reassignment.problem import Ints, TaskReassignment, labels
from mast_opt.task_reassignment.twine.instance_arrays import Small
from mast_opt.task_reassignment.verification.verifier import verify

COUNT = (2, 4)
"""Fewest and most machines of a set."""
FREE = 60
"""Largest number of processes times machines, small enough to be solved to the end in a moment."""
TURNS = 8
"""Sets tried at a time."""
SHARE = 0.05
"""Most of the time that goes into this, where time is the limit."""
SECONDS = 2.0
"""For one set."""


class MachineSubMip:
    """Improves assignments set by set."""

    def __init__(self, problem: TaskReassignment, tools: SearchContext) -> None:
        self._problem, self._tools = problem, tools
        self._spent_s = 0.0

    def improved(self, machine: Small, cost: float, rng: np.random.Generator) -> tuple[Small, float]:
        """The assignment and its cost after a few random sets of machines have been solved anew."""
        for _ in range(TURNS):
            watch = self._tools.watch
            timed = watch.stop.iterations is None and watch.stop.time_limit_s is not None
            busy = timed and self._spent_s > SHARE * watch.elapsed_s
            if watch.done or busy or len(self._problem.machines) < COUNT[0]:
                break
            began = watch.elapsed_s
            machine, cost = self._turn(machine, cost, rng)
            self._spent_s += watch.elapsed_s - began
        return machine, cost

    def _turn(self, machine: Small, cost: float, rng: np.random.Generator) -> tuple[Small, float]:
        chosen = self._choice(rng)
        inside = np.flatnonzero(np.isin(machine, chosen))
        inside = np.sort(rng.permutation(inside)[: FREE // len(chosen)])
        if not len(inside):
            return machine, cost
        plan = Plan(machine.astype(np.int64))
        formulation = base(subproblem(self._problem, plan, chosen, inside))
        watch = self._tools.watch
        params = SolveParams(
            time_limit_s=max(min(SECONDS, watch.remaining_s), 0.01),
            gap=0.0,
            threads=1,
            start=formulation.encode(Plan(np.searchsorted(chosen, plan.machine[inside]))),
            cancel=watch.stop.cancel,
        )
        result = self._tools.mip_solver(formulation.mip, params)
        if result.x is None:
            return machine, cost
        at = formulation.decode(result.x).machine
        if (at >= len(chosen)).any():
            return machine, cost
        better = plan.machine.copy()
        better[inside] = chosen[at]
        verdict = verify(self._problem, Plan(better))
        if not verdict.ok or verdict.objective >= cost:
            return machine, cost
        return better.astype(np.int32), verdict.objective

    def _choice(self, rng: np.random.Generator) -> Ints:
        """A few machines, in half of the cases of one location, so that spread and dependencies stay as they are."""
        p = self._problem
        count = min(int(rng.integers(COUNT[0], COUNT[1] + 1)), len(p.machines))
        near = np.flatnonzero(p.location == p.location[rng.integers(len(p.machines))])
        among = near if len(near) >= count and rng.random() < 0.5 else np.arange(len(p.machines))
        return np.sort(rng.choice(among, count, replace=False))


def subproblem(problem: TaskReassignment, plan: Plan, chosen: Ints, inside: Ints) -> TaskReassignment:
    """The chosen machines (sorted) and the processes inside, with what the others leave; machines beyond the chosen
    ones are homes outside and have no room."""
    p = problem
    rest = np.setdiff1d(np.arange(len(p.processes)), inside)
    held = np.zeros_like(p.capacity)
    np.add.at(held, plan.machine[rest], p.need[rest])
    gone = rest[plan.machine[rest] != p.initial[rest]]
    reserved = np.zeros_like(p.capacity)
    np.add.at(reserved, p.initial[gone], p.need[gone] * p.transient)
    homes = np.setdiff1d(p.initial[inside], chosen)
    machines = np.concatenate([chosen, homes])
    position = np.full(len(p.machines), -1)
    position[machines] = np.arange(len(machines))
    services, service = np.unique(p.service[inside], return_inverse=True)
    capacity, safety = (p.capacity - held - reserved)[machines], (p.safety - held)[machines]
    outside = np.arange(len(machines)) >= len(chosen)
    homes_held = np.zeros_like(capacity)
    np.add.at(homes_held, position[p.initial[inside]], p.need[inside] * p.transient)
    capacity[outside] = homes_held[outside]
    safety[outside] = 0
    none = np.zeros(0, np.int64)
    return replace(
        p,
        machines=tuple(p.machines[m] for m in machines),
        services=labels("s", len(services)),
        processes=tuple(p.processes[i] for i in inside.tolist()),
        location=np.zeros(len(machines), np.int64),
        locations=("l0",),
        neighbourhood=np.zeros(len(machines), np.int64),
        neighbourhoods=("n0",),
        move_group=p.move_group[machines],
        capacity=capacity,
        safety=safety,
        balanced=p.balanced[machines] & ~outside,
        spread_min=np.ones(len(services), np.int64),
        dependent=none,
        dependency=none.copy(),
        service=service,
        need=p.need[inside],
        move_cost=p.move_cost[inside],
        initial=position[p.initial[inside]],
    )
