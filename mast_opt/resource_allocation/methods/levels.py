"""Policies that raise the worst-off job: max-min (leximin), water filling over groups, and the makespan.

A level is the optimum of one linear program. Jobs whose rate has a price there are saturated: by complementary
slackness they have no more in any allocation that reaches the level. They keep their rate, and the others go on.
At least one job is saturated at each level, so there are at most as many programs as jobs.

Under max-min a job is saturated too where it runs all the time in its fastest configuration. Most levels of real mixes
are such ceilings, so a level there is the largest one at which all jobs have it or are at their ceiling.
"""

from __future__ import annotations

import numpy as np

from mast_opt.kind.problem_data import Bools, Floats
from mast_opt.resource_allocation.formulation.formulation import level_weights, slopes
from mast_opt.resource_allocation.methods.columns import Columns, Found
from mast_opt.resource_allocation.methods.incumbent import Incumbent
from mast_opt.resource_allocation.methods.solves import Stopped
from mast_opt.resource_allocation.policies import HIERARCHICAL
from mast_opt.resource_allocation.problem import ResourceAllocation

SATURATED = 1e-7
"""Price of a job's rate, as a part of those of all jobs of the level, above which it is no round-off."""
AT_CEILING = 1e-9
"""Part of its largest rate that a job may lack and be at it."""
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
    hierarchical = problem.objective.policy == HIERARCHICAL
    ceiling = np.full(len(problem.jobs), np.inf) if hierarchical else largest_rate(problem)
    slope = slopes(problem)
    level, found = one_level(columns, slope)
    incumbent.offer(found.share)
    incumbent.prove(found.prices)
    held, done = slope * level, _saturated(found.weight * slope)
    while not done.all():
        slope = level_weights(problem, done) * problem.jobs.fair_rate if hierarchical else problem.normal_rate * ~done
        base = (held if hierarchical else held * done) * (1 - GIVE)
        try:
            if hierarchical:
                level, found = one_level(columns, slope, base)
                reached = slope * level
            else:
                reached, found = _capped_level(columns, slope, base, np.where(done, 0.0, ceiling))
        except Stopped as stopped:
            return f"stopped at a later level: {stopped}"
        plan = incumbent.offer(found.share)
        if incumbent.plan is not plan:
            incumbent.settle(plan)
        held = np.where(slope > 0, (held if hierarchical else 0.0) + reached, held)
        done |= _saturated(found.weight * slope) | ((slope > 0) & (held >= ceiling * (1 - AT_CEILING)))
    return ""


def _capped_level(columns: Columns, slope: Floats, base: Floats, ceiling: Floats) -> tuple[Floats, Found]:
    """[J] the rates at the largest level t at which every job has min(slope·t, ceiling), and what reaches them.

    Newton's method from above, where each job is at its ceiling. A program finds how much of these rates an allocation
    can give to all jobs, and its prices w: no allocation gives more than W = Σ w·rate, so Σ w·min(slope·t, ceiling) ≤ W
    limits t. min(slope·t, ceiling) is concave and piecewise linear in t, so this ends after a few programs, where one
    level at a time would take one for each ceiling.

    Raises:
        Stopped: no allocation keeps the floors, or a limit came first.
    """
    at = np.divide(ceiling, slope, out=np.zeros(len(slope)), where=slope > 0)
    level = float(at.max())
    while True:
        rates = np.minimum(slope * level, ceiling)
        part, found = one_level(columns, rates, base)
        lower = _level_of(found.weight, slope, ceiling, at, part)
        if part >= 1 - GIVE or not lower < level * (1 - GIVE):
            return rates * min(part, 1.0), found
        level = lower


def _level_of(weight: Floats, slope: Floats, ceiling: Floats, at: Floats, worth: float) -> float:
    """The largest t with Σ weight·min(slope·t, ceiling) ≤ worth; infinite where every t has it."""
    order = np.argsort(at)
    rising = (weight * slope)[order]
    speed = rising.sum() - np.concatenate([[0.0], np.cumsum(rising)[:-1]])
    below = np.concatenate([[0.0], np.cumsum((weight * ceiling)[order])[:-1]])
    reached = below + speed * at[order]
    first = int(np.searchsorted(reached, worth, side="right"))
    if first == len(order):
        return float("inf")
    return float((worth - below[first]) / speed[first])


def largest_rate(problem: ResourceAllocation) -> Floats:
    """[J] what a job has that runs all the time in its fastest configuration: no allocation gives it more."""
    rate = np.zeros(len(problem.jobs))
    np.maximum.at(rate, problem.members.job, problem.members.rate)
    return rate


def _saturated(part: Floats) -> Bools:
    """[J] whose rate has a price, by the part of it in the price of the level."""
    return np.asarray(part > min(SATURATED * part.sum(), part.max() / 2))
