"""Policies that raise the worst-off job: max-min, makespan, finish-time fairness, and water filling over groups.

A level is the optimum of one linear program, or of a few. Jobs whose rate has a price there are saturated: by
complementary slackness they have no more in any allocation that reaches the level. They keep their rate, and the others
go on. At least one job is saturated at each level, so there are at most as many levels as jobs.

A job is saturated too where it runs all the time in its fastest configuration. Most levels of real mixes are such
ceilings, so a level after the first is the largest one at which all jobs have it or are at their ceiling.

A ratio needs the rates steps/(ρ·fair − elapsed). One linear program says by which factor an allocation can exceed (or
must miss) all of them together; its prices say at which ratio they cease to be affordable. That is a bound on every
ratio, and the next ratio to try: Newton's method on a convex function, which converges quadratically from below.
"""

from dataclasses import dataclass

import numpy as np

from mast_opt.core.errors import BackendError
from mast_opt.problems.kind.problem_data import Bools, Floats
from mast_opt.problems.resource_allocation.formulation.formulation import level_weights, slopes
from mast_opt.problems.resource_allocation.formulation.program import Utility
from mast_opt.problems.resource_allocation.methods.columns import Columns, Found
from mast_opt.problems.resource_allocation.methods.incumbent import Incumbent
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.methods.solves import Stopped
from mast_opt.problems.resource_allocation.policies import MAKESPAN
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

SATURATED = 1e-7
"""Price of a job's rate, as a part of those of all jobs of the level, above which it is no round-off."""
AT_CEILING = 1e-9
"""Part of its largest rate that a job may lack and be at it."""
GIVE = 1e-12
"""Part of a level by which later levels may fall short of it: solvers round."""
HALVINGS = 100
"""Halvings of an interval that holds a level; more than a float has bits."""


def one_level(columns: Columns, slope: Floats, held: Floats | None = None) -> tuple[float, Found]:
    """The largest level at which every job has a rate of at least held + slope·level, and what reaches it.

    Raises:
        Stopped: no allocation keeps the floors, or a limit came first.
    """
    base = np.zeros(len(slope)) if held is None else held
    found = columns.solve(lambda _, program: program.level(slope, base), maximise=True, block="reach")
    return float(found.rest[0]), found


def leximin(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent) -> str:
    """Raise the jobs level after level under ``max-min`` or ``makespan``; returns what stopped it, or nothing."""
    slope, makespan = slopes(problem), problem.objective.policy == MAKESPAN
    if makespan:  # relative to the longest, or the rates' prices are below what solvers tell from 0
        most = largest_rate(problem)
        slope = slope / (np.divide(slope, most, out=np.zeros(len(slope)), where=most > 0).max() or 1.0)
    level, found = one_level(columns, slope)
    if makespan and level <= 0:
        return ""
    incumbent.offer(found.share)
    incumbent.prove(found.prices)
    return next_levels(problem, columns, incumbent, slope * level, saturated(found.weight * slope))


def next_levels(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent, held: Floats, done: Bools) -> str:
    """Raise the jobs over the first level of a policy in ``LEXIMIN`` until every job is saturated.

    Args:
        held: [J] rates at the first level.
        done: [J] the jobs that it saturates.

    Returns:
        What stopped it, or nothing.
    """
    utility, ceiling = Utility.of(problem), largest_rate(problem)
    while not done.all():
        try:
            level = _capped_level(columns, utility, held * done * (1 - GIVE), np.where(done, 0.0, ceiling))
        except Stopped as stopped:
            return later_level(stopped)
        if not incumbent.settle(incumbent.offer(level.found.share)):
            return "rounding breaks a limit at a later level"
        held = np.where(done, held, level.rate)
        done = done | level.saturated | (held >= ceiling * (1 - AT_CEILING))
    return ""


def water_filling(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent) -> str:
    """Fill groups by their weights until every job is saturated; returns what stopped it, or nothing."""
    slope = slopes(problem)
    level, found = one_level(columns, slope)
    incumbent.offer(found.share)
    incumbent.prove(found.prices)
    held, done = slope * level, saturated(found.weight * slope)
    while not done.all():
        slope = level_weights(problem, done) * problem.jobs.fair_rate
        try:
            level, found = one_level(columns, slope, held * (1 - GIVE))
        except Stopped as stopped:
            return later_level(stopped)
        if not incumbent.settle(incumbent.offer(found.share)):
            return "rounding breaks a limit at a later level"
        held = held + slope * level
        done |= saturated(found.weight * slope)
    return ""


def later_level(stopped: Stopped) -> str:
    """Message on what stopped the program of a later level of rates.

    Raises:
        BackendError: no limit did. What reaches the level before is a solution of this program.
    """
    if stopped.result.limit is None:
        raise BackendError(f"the solver calls a level {stopped.result.status.value} that has a solution: {stopped}")
    return f"stopped at a later level: {stopped}"


@dataclass(frozen=True, eq=False)
class _Level:
    """A level after the first."""

    rate: Floats
    """[J] that the jobs have at it."""
    saturated: Bools
    """Mask of the saturated jobs, [J]."""
    found: Found


def _capped_level(columns: Columns, utility: Utility, base: Floats, ceiling: Floats) -> _Level:
    """The largest utility t at which every job has rates(t) or its ceiling.

    Newton's method from above, where each job is at its ceiling. A program finds how much of these rates an allocation
    can give to all jobs, and its prices w: no allocation gives more than W = Σ w·rate, so Σ w·min(rates(t), ceiling) ≤
    W limits t. This ends after a few programs, where one level at a time would take one for each ceiling.

    Args:
        base: [J] what the jobs that are saturated keep.
        ceiling: [J] 0 for these.

    Raises:
        Stopped: no allocation keeps the floors, or a limit came first.
    """
    level = float(utility.of_rates(ceiling).max())
    while True:
        rates = np.minimum(utility.rates(level), ceiling)
        part, found = one_level(columns, rates, base)
        lower = _affordable(utility, found.weight, ceiling, part, level)
        if part >= 1 - GIVE or part <= GIVE or not lower < level * (1 - GIVE):
            return _Level(rates * min(part, 1.0), saturated(found.weight * rates), found)
        level = lower


def _affordable(utility: Utility, weight: Floats, ceiling: Floats, worth: float, level: float) -> float:
    """The largest utility up to this level at which Σ weight·min(rates, ceiling) is at most ``worth``, from above."""
    low, high = 0.0, level
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        most = float(weight @ np.minimum(utility.rates(middle), ceiling))
        low, high = (middle, high) if most <= worth else (low, middle)
    return high


def largest_rate(problem: ResourceAllocation) -> Floats:
    """[J] what a job has that runs all the time in its fastest configuration: no allocation gives it more."""
    rate = np.zeros(len(problem.jobs))
    np.maximum.at(rate, problem.members.job, problem.members.rate)
    return rate


def saturated(part: Floats) -> Bools:
    """[J] whose rate has a price, by the part of it in the price of the level."""
    return np.asarray(part >= min(SATURATED * part.sum(), part.max() / 2))


def finish_time(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent, params: AllocationParams) -> str:
    """Iterate until objective and bound agree, then raise the other jobs; returns what stopped it, or nothing."""
    jobs = problem.jobs
    fair = problem.fair_finish_s
    least = float((jobs.elapsed_s / fair).max())
    slope = jobs.steps / fair
    for round_ in range(params.most_rounds):
        try:
            level, found = one_level(columns, slope)
        except Stopped:
            if round_:
                return "a limit stopped the iteration"
            raise
        if level <= 0:
            return ""
        incumbent.offer(found.share)
        incumbent.prove(found.prices)
        if incumbent.objective is None or incumbent.bound is None:
            return "rounding breaks a limit"
        if incumbent.gap() <= params.finish_time_gap:
            return next_levels(problem, columns, incumbent, slope * level, saturated(found.weight * slope))
        ratio = incumbent.bound
        if not ratio > least * (1 + 1e-12):
            ratio = (max(ratio, least) + incumbent.objective) / 2
        slope = jobs.steps / np.maximum(ratio * fair - jobs.elapsed_s, np.finfo(float).tiny)
    return f"the iteration took {params.most_rounds} rounds (most_rounds)"
