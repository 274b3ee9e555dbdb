"""Policies that raise the worst-off job: max-min (leximin), water filling over groups, and the makespan.

A level is the optimum of one linear program. Jobs whose rate has a price there are saturated: by complementary
slackness they have no more in any allocation that reaches the level. They keep their rate, and the others go on.
At least one job is saturated at each level, so there are at most as many programs as jobs.
"""

from __future__ import annotations

import numpy as np

from mast_opt.kind.problem_data import Floats
from mast_opt.resource_allocation.formulation.formulation import level_weights, slopes
from mast_opt.resource_allocation.methods.columns import Columns, Found
from mast_opt.resource_allocation.methods.incumbent import Incumbent
from mast_opt.resource_allocation.methods.solves import Stopped
from mast_opt.resource_allocation.policies import HIERARCHICAL
from mast_opt.resource_allocation.problem import ResourceAllocation

SATURATED = 1e-7
"""Price of a job's rate, as a part of those of all jobs of the level, above which it is no round-off."""
GIVE = 1e-12
"""Part of a level by which later levels may fall short of it: solvers round."""


def one_level(columns: Columns, slope: Floats, held: Floats | None = None) -> tuple[float, Found]:
    """The largest level at which every job has a rate of at least held + slope·level, and what reaches it.

    Raises:
        Stopped: no allocation keeps the floors, or a limit came first.
    """
    base = np.zeros(len(slope)) if held is None else held
    found = columns.solve(lambda _, program: program.level(slope, base), maximise=True, block="reach")
    return float(found.rest[0]), found


def leximin(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent) -> str:
    """Raise level after level until every job is saturated; returns what stopped it, or nothing."""
    slope = slopes(problem)
    held, done = np.zeros(len(problem.jobs)), np.zeros(len(problem.jobs), np.bool_)
    first = True
    while not done.all():
        if not first:
            slope = _next_slopes(problem, done)
        base = held if problem.objective.policy == HIERARCHICAL else np.where(done, held, 0.0)
        try:
            level, found = one_level(columns, slope, base * (1 - GIVE))
        except Stopped as stopped:
            if first:
                raise
            return f"stopped at a later level: {stopped}"
        plan = incumbent.offer(found.share)
        if first:
            incumbent.prove(found.prices)
        elif incumbent.plan is not plan:
            incumbent.settle(plan)
        part = found.weight * slope
        held = np.where(slope > 0, base + slope * level, held)
        done |= part > min(SATURATED * part.sum(), part.max() / 2)
        first = False
    return ""


def _next_slopes(problem: ResourceAllocation, done: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    if problem.objective.policy == HIERARCHICAL:
        return level_weights(problem, done) * problem.jobs.fair_rate
    return np.where(done, 0.0, problem.normal_rate)
