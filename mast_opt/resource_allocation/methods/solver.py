"""Solver of resource allocation: which method solves which policy, and what is said where there is no allocation."""

from __future__ import annotations

import numpy as np

from mast_opt.core.solve_result import Limit, Status
from mast_opt.resource_allocation.formulation.formulation import LINEAR, gains
from mast_opt.resource_allocation.formulation.program import AllocationProgram
from mast_opt.resource_allocation.methods.concave import concave
from mast_opt.resource_allocation.methods.finish_time import finish_time
from mast_opt.resource_allocation.methods.incumbent import Incumbent
from mast_opt.resource_allocation.methods.levels import leximin, one_level
from mast_opt.resource_allocation.methods.prices import prices_of
from mast_opt.resource_allocation.methods.solves import Solves, Stopped
from mast_opt.resource_allocation.methods.whole import whole
from mast_opt.resource_allocation.plan import Plan
from mast_opt.resource_allocation.policies import COST, FINISH_TIME, HARMONIC, MAKESPAN, NASH, TOTAL_RATE
from mast_opt.resource_allocation.problem import ResourceAllocation
from mast_opt.resource_allocation.verification.verifier import verify
from mast_opt.search.interface import SearchContext, SearchResult


def solve_policy(problem: ResourceAllocation, tools: SearchContext, start: Plan | None) -> SearchResult[Plan]:
    """Solve the policy of a problem by programs that ``tools.mip_solver`` solves.

    Args:
        start: a plan to begin with; a MIP backend gets it as an incumbent where shares are whole. With fractional
            shares it is what remains if a limit comes before the first program is solved.
    """
    incumbent, solves = Incumbent(problem, tools.watch), Solves(tools)
    if start is not None and verify(problem, start).ok:
        incumbent.settle(start)
    limit: Limit | None = None
    try:
        if problem.whole:
            solved = whole(problem, solves, incumbent, start)
            limit, words = solved.limit, solved.message
        else:
            words = _fractional(problem, solves, incumbent)
    except Stopped as stopped:
        result = stopped.result
        if result.status.is_infeasible:
            return SearchResult(None, None, None, result.message, status=Status.INFEASIBLE)
        limit, words = result.limit or Limit.OTHER, result.message
    if incumbent.plan is None and incumbent.bound is None and limit is None:
        return SearchResult(None, None, None, _nobody_runs(problem, solves), status=Status.INFEASIBLE)
    limit = limit or tools.watch.limit() or (Limit.OTHER if words else None)
    return SearchResult(incumbent.plan, incumbent.bound, limit, words, incumbent.prices)


def _fractional(problem: ResourceAllocation, solves: Solves, incumbent: Incumbent) -> str:
    """Solve by linear programs; returns what stopped the method, or nothing."""
    policy = problem.objective.policy
    if policy in LINEAR:
        return _linear(problem, solves, incumbent)
    if policy == MAKESPAN:
        level, solved, prices = one_level(problem, solves, problem.jobs.steps)
        if level > 0:
            incumbent.offer(solved.x[: len(problem.configurations)])
            incumbent.prove(prices)
        return ""
    if policy == FINISH_TIME:
        return finish_time(problem, solves, incumbent)
    if policy in (NASH, HARMONIC):
        return concave(problem, solves, incumbent)
    return leximin(problem, solves, incumbent)


def _linear(problem: ResourceAllocation, solves: Solves, incumbent: Incumbent) -> str:
    policy, gain = problem.objective.policy, gains(problem)
    program = AllocationProgram(problem)
    program.linear(gain)
    solved = solves(program.build(maximise=policy != COST), prices=True)
    incumbent.offer(solved.x[: len(problem.configurations)])
    assert solved.prices is not None
    weight = problem.jobs.weight if policy == TOTAL_RATE else np.zeros(len(problem.jobs))
    extra = None if policy == TOTAL_RATE else -gain if policy == COST else gain
    incumbent.prove(prices_of(problem, solved.mip, solved.prices, weight, extra))
    return ""


def _nobody_runs(problem: ResourceAllocation, solves: Solves) -> str:
    """The jobs that no allocation lets run: those whose rates have a price at the level 0."""
    _, _, prices = one_level(problem, solves, problem.jobs.fair_rate)
    names = [problem.jobs.labels[at] for at in np.flatnonzero(prices.rate_weight > 0).tolist()]
    return f"{problem.objective.policy} needs every job to run, and no allocation lets these run: {', '.join(names)}"
