"""Policies that raise the worst-off job: max-min (leximin), water filling over groups, and the makespan.

A level is the optimum of one linear program. Jobs whose rate has a price there are saturated: by complementary
slackness they have no more in any allocation that reaches the level. They keep their rate, and the others go on.
At least one job is saturated at each level, so there are at most as many programs as jobs.
"""

from __future__ import annotations

import numpy as np

from mast_opt.kind.problem_data import Floats
from mast_opt.resource_allocation.formulation.formulation import level_weights, slopes
from mast_opt.resource_allocation.formulation.program import AllocationProgram, block_values
from mast_opt.resource_allocation.methods.incumbent import Incumbent
from mast_opt.resource_allocation.methods.prices import Prices, prices_of
from mast_opt.resource_allocation.methods.solves import Solved, Solves, Stopped
from mast_opt.resource_allocation.policies import HIERARCHICAL
from mast_opt.resource_allocation.problem import ResourceAllocation

SATURATED = 1e-7
"""Price of a job's rate, as a part of those of all jobs of the level, above which it is no round-off."""
GIVE = 1e-12
"""Part of a level by which later levels may fall short of it: solvers round."""


def one_level(problem: ResourceAllocation, solves: Solves, slope: Floats) -> tuple[float, Solved, Prices]:
    """The largest level at which every job has a rate of at least slope·level; its solution, and prices of the rates.

    Raises:
        Stopped: no allocation keeps the floors, or a limit came first.
    """
    level, solved = _level(problem, solves, slope, np.zeros(len(slope)))
    assert solved.prices is not None
    weight = block_values(solved.mip, "reach", solved.prices, len(slope))
    return level, solved, prices_of(problem, solved.mip, solved.prices, weight)


def leximin(problem: ResourceAllocation, solves: Solves, incumbent: Incumbent) -> str:
    """Raise level after level until every job is saturated; returns what stopped it, or nothing."""
    slope = slopes(problem)
    jobs, shares = len(problem.jobs), len(problem.configurations)
    held, done = np.zeros(jobs), np.zeros(jobs, np.bool_)
    first = True
    while not done.all():
        if not first:
            slope = _next_slopes(problem, done)
        base = held if problem.objective.policy == HIERARCHICAL else np.where(done, held, 0.0)
        try:
            level, solved = _level(problem, solves, slope, base * (1 - GIVE))
        except Stopped as stopped:
            if first:
                raise
            return f"stopped at a later level: {stopped}"
        assert solved.prices is not None
        price = block_values(solved.mip, "reach", solved.prices, jobs)
        plan = incumbent.offer(solved.x[:shares])
        if first:
            incumbent.prove(prices_of(problem, solved.mip, solved.prices, price))
        elif incumbent.plan is not plan:
            incumbent.settle(plan)
        part = price * slope
        held = np.where(slope > 0, base + slope * level, held)
        done |= part > min(SATURATED * part.sum(), part.max() / 2)
        first = False
    return ""


def _level(problem: ResourceAllocation, solves: Solves, slope: Floats, held: Floats) -> tuple[float, Solved]:
    program = AllocationProgram(problem)
    program.level(slope, held)
    solved = solves(program.build(maximise=True), prices=True)
    return float(solved.x[len(problem.configurations)]), solved


def _next_slopes(problem: ResourceAllocation, done: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    if problem.objective.policy == HIERARCHICAL:
        return level_weights(problem, done) * problem.jobs.fair_rate
    return np.where(done, 0.0, problem.normal_rate)
