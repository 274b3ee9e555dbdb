"""Solver of resource allocation: which method solves which policy, and what is said where there is no allocation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.core.errors import InstanceError
from mast_opt.core.solve_result import AGREEMENT, Limit, Status
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.formulation.formulation import LINEAR, gains
from mast_opt.problems.resource_allocation.formulation.program import LEXIMIN
from mast_opt.problems.resource_allocation.mechanisms.partial_allocation import partial_allocation
from mast_opt.problems.resource_allocation.methods.columns import Columns
from mast_opt.problems.resource_allocation.methods.concave import concave
from mast_opt.problems.resource_allocation.methods.incumbent import Incumbent
from mast_opt.problems.resource_allocation.methods.levels import finish_time, leximin, one_level, water_filling
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.methods.pop import pop
from mast_opt.problems.resource_allocation.methods.prices import gain_of_shares
from mast_opt.problems.resource_allocation.methods.solves import Solves, Stopped
from mast_opt.problems.resource_allocation.methods.subproblems import equal_jobs, without_job
from mast_opt.problems.resource_allocation.methods.whole import raise_levels, whole
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.policies import (
    COST,
    FINISH_TIME,
    HARMONIC,
    HIERARCHICAL,
    NASH,
    PARTIAL_ALLOCATION,
    TOTAL_RATE,
)
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult


def solve_policy(problem: ResourceAllocation, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Solve the policy of a problem by programs that ``tools.mip_solver`` solves, and apply its mechanism.

    Args:
        start: a plan to begin with; a MIP backend gets it as an incumbent where shares are whole. With fractional
            shares its configurations are in the first program, and it is what remains if a limit comes before that is
            solved.
    """
    params = tools.params_as(AllocationParams)
    params.refuse_unused()
    if params.pop > 1:
        return pop(problem, tools, start, _allocation, _by_method)
    result = _allocation(problem, tools, start)
    if problem.objective.mechanism != PARTIAL_ALLOCATION or result.plan is None:
        return result
    return _partial(problem, tools, result, result.plan)


def _partial(
    problem: ResourceAllocation, tools: SearchContext, result: SearchResult[Plan], plan: Plan
) -> SearchResult[Plan]:
    """The result with the parts that the jobs keep; it takes one more allocation for each job, or each set of equal
    jobs."""
    gap = tools.params_as(AllocationParams).iteration_gap
    stop = replace(tools.watch.stop, gap=min(tools.watch.stop.gap, gap))
    rates: list[Floats] = []
    like = equal_jobs(problem).tolist() if problem.objective.policy == NASH else list(range(len(problem.jobs)))
    for job, label in enumerate(problem.jobs.labels if len(problem.jobs) > 1 else ()):
        if like[job] < job:
            rates.append(_exchanged(rates[like[job]], like[job], job))
            continue
        left = None if stop.time_limit_s is None else max(tools.watch.remaining_s, 0.01)
        watch = SearchMonitor(replace(stop, time_limit_s=left), sense=problem.sense, gap_scale=problem.gap_scale)
        try:
            other = _allocation(without_job(problem, job), replace(tools, watch=watch), None)
        except InstanceError as error:  # another job runs only next to this one
            other = SearchResult(None, None, Limit.OTHER, str(error))
        if other.plan is None or not _known(watch, float(problem.jobs.weight.sum()), gap):
            words = (
                f"what the jobs keep is not known, since the best allocation without {label} is not: {other.message}"
            )
            return SearchResult(None, result.bound, other.limit or Limit.OTHER, words, result.certificate)
        rates.append(other.plan.rate)
    kept = partial_allocation(problem.jobs.weight, plan.rate, rates.__getitem__) if rates else plan.kept
    return replace(result, plan=Plan.of_shares(problem, plan.share, kept))


def _exchanged(rate: Floats, one: int, other: int) -> Floats:
    """[J − 1] the rates without the one job as those without the other, which is equal to it."""
    every = np.insert(rate, one, 0.0)
    every[one] = every[other]
    without: Floats = np.delete(every, other)
    return without


def _known(watch: SearchMonitor, weights: float, gap: float) -> bool:
    """Whether Σ weight·ln rate is known well enough for what the jobs keep, which is its exponential.

    It may be 0, so the gap is compared with the sum of the weights.
    """
    if watch.objective is None or watch.bound is None:
        return False
    return abs(watch.objective - watch.bound) <= gap * max(weights, abs(watch.objective)) * (1 + AGREEMENT)


def _allocation(problem: ResourceAllocation, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    incumbent, solves, params = Incumbent(problem, tools.watch), Solves(tools), tools.params_as(AllocationParams)
    used = None if start is None or not start.share.any() else start.share > 0
    columns = Columns(problem, solves, params, used)
    if start is not None:
        incumbent.settle(start)
    return _by_method(problem, tools, start, columns, incumbent)


def _by_method(
    problem: ResourceAllocation, tools: SearchContext, start: Plan | None, columns: Columns, incumbent: Incumbent
) -> SearchResult[Plan]:
    """The result of the policy's method, which begins with these columns and this incumbent."""
    solves, params = columns.solves, tools.params_as(AllocationParams)
    leveled = problem.objective.policy in (*LEXIMIN, HIERARCHICAL)
    limit: Limit | None = None
    finished = not leveled
    try:
        if problem.whole:
            solved = whole(problem, solves, incumbent, start)
            limit, words = solved.limit, solved.message
            if leveled and limit is None:
                open_level = raise_levels(problem, solves, incumbent)
                finished, words = not open_level, open_level or words
        else:
            words = _fractional(problem, columns, incumbent, params)
            finished = not leveled or (not words and columns.complete)
    except Stopped as stopped:
        result = stopped.result
        if result.status.is_infeasible:
            return SearchResult(None, None, None, result.message, status=Status.INFEASIBLE)
        limit, words = result.limit or Limit.OTHER, result.message
    if incumbent.plan is None and incumbent.bound is None and limit is None:
        return SearchResult(None, None, None, _nobody_runs(problem, columns), status=Status.INFEASIBLE)
    limit = limit or tools.watch.limit() or (Limit.OTHER if words else None)
    return SearchResult(incumbent.plan, incumbent.bound, limit, words, incumbent.prices, finished=finished)


def _fractional(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent, params: AllocationParams) -> str:
    """Solve by linear programs; returns what stopped the method, or nothing."""
    policy = problem.objective.policy
    if policy in LINEAR:
        return _linear(problem, columns, incumbent)
    if policy == FINISH_TIME:
        return finish_time(problem, columns, incumbent, params)
    if policy in (NASH, HARMONIC):
        return concave(problem, columns, incumbent, params)
    return (
        water_filling(problem, columns, incumbent) if policy == HIERARCHICAL else leximin(problem, columns, incumbent)
    )


def _linear(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent) -> str:
    policy, none = problem.objective.policy, np.zeros(len(problem.jobs))
    rates = policy == TOTAL_RATE
    found = columns.solve(
        lambda part, program: program.linear(gains(part)),
        maximise=policy != COST,
        gain=gain_of_shares(problem),
        weight=problem.jobs.weight if rates else none,
    )
    incumbent.offer(found.share)
    incumbent.prove(found.prices)
    return ""


def _nobody_runs(problem: ResourceAllocation, columns: Columns) -> str:
    """The jobs that no allocation lets run: those whose rates have a price at the level 0."""
    _, found = one_level(columns, problem.jobs.fair_rate)
    names = [problem.jobs.labels[at] for at in np.flatnonzero(found.prices.rate_weight > 0).tolist()]
    return f"{problem.objective.policy} needs every job to run, and no allocation lets these run: {', '.join(names)}"
