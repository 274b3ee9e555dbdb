"""Whole shares: each job has the rate of one configuration, so every policy but water filling is one program."""

from __future__ import annotations

import numpy as np

from mast_opt.kind.problem_data import Floats
from mast_opt.resource_allocation.formulation.formulation import LINEAR, gains, slopes
from mast_opt.resource_allocation.formulation.program import AllocationProgram
from mast_opt.resource_allocation.methods.incumbent import Incumbent
from mast_opt.resource_allocation.methods.solves import Solved, Solves, Stopped
from mast_opt.resource_allocation.plan import Plan
from mast_opt.resource_allocation.policies import COST, FINISH_TIME, HARMONIC, MAKESPAN, NASH
from mast_opt.resource_allocation.problem import ResourceAllocation

SAME = 1e-12
"""Relative difference up to which two levels are one."""


def whole(problem: ResourceAllocation, solves: Solves, incumbent: Incumbent, start: Plan | None) -> Solved:
    """Solve one program with whole shares.

    Raises:
        Stopped: no allocation keeps all limits, or a limit of the solve came first.
    """
    policy = problem.objective.policy
    program = AllocationProgram(problem)
    maximise = policy not in (COST, MAKESPAN, FINISH_TIME, HARMONIC)
    if policy in LINEAR:
        program.linear(gains(problem))
    elif policy in (MAKESPAN, FINISH_TIME):
        program.worst_outcome(_worth(problem))
    elif policy in (NASH, HARMONIC):
        program.sum_of_outcomes(_worth(problem))
    else:
        slope = slopes(problem)
        program.level(slope, np.zeros(len(slope)))
    mip = program.build(maximise)
    values = None if start is None else _with_start(problem, mip.shape[1], start)
    solved = solves(mip, start=values)
    incumbent.offer(solved.x[: len(problem.configurations)])
    if solved.bound is not None:
        incumbent.claim(-solved.bound if maximise else solved.bound)
    return solved


def raise_levels(problem: ResourceAllocation, solves: Solves, incumbent: Incumbent) -> str:
    """Make the incumbent of ``max-min`` leximin; returns what stopped it, or nothing.

    A choice is leximin where the number of jobs up to a level is the smallest possible, for every level in ascending
    order, which is linear in the shares. The levels are those of the incumbent, the next higher one after each program.
    """
    members, width = problem.members, len(problem.configurations)
    normal = members.rate / problem.normal_rate[members.job]
    levels: list[float] = []
    least: list[int] = []
    """Jobs that have each level, or a higher one."""
    while incumbent.plan is not None:
        reached = incumbent.plan.rate / problem.normal_rate
        higher = reached[reached > levels[-1] * (1 + SAME)] if levels else reached
        if not len(higher):
            break
        levels.append(float(higher.min()))
        least.append(len(higher))
        program = AllocationProgram(problem)
        rows = program.m.rows("at_least", [[str(at) for at in range(len(levels))]], lower=np.array(least, np.float64))
        level, row = np.nonzero(normal >= np.array(levels)[:, None] * (1 - SAME))
        rows.add(level, program.share[members.configuration[row]])
        over = normal > levels[-1] * (1 + SAME)
        program.linear(np.bincount(members.configuration[over], minlength=width).astype(np.float64))
        mip = program.build(maximise=True)
        try:
            solved = solves(mip, start=incumbent.plan.share)
        except Stopped as stopped:
            return f"stopped at a later level: {stopped}"
        if solved.limit is not None:
            return f"stopped at a later level: {solved.message}"
        incumbent.settle(incumbent.offer(solved.x[:width]))
    return ""


def _worth(problem: ResourceAllocation) -> Floats:
    """[M] the policy's function of a job's rate, at the rate of each row of ``members``; 0 where that is 0."""
    jobs, members, policy = problem.jobs, problem.members, problem.objective.policy
    of = members.job
    rate = np.where(members.rate > 0, members.rate, 1.0)
    worth = {
        MAKESPAN: lambda: jobs.steps[of] / rate,
        FINISH_TIME: lambda: (jobs.elapsed_s[of] + jobs.steps[of] / rate) / problem.fair_finish_s[of],
        NASH: lambda: jobs.weight[of] * np.log(rate),
        HARMONIC: lambda: problem.normal_rate[of] / rate,
    }[policy]()
    return np.where(members.rate > 0, worth, 0.0)


def _with_start(problem: ResourceAllocation, columns: int, start: Plan) -> Floats:
    """A value for every column: the shares, and what the level or the worst outcome is with them."""
    x = np.zeros(columns)
    x[: len(start.share)] = start.share
    if columns > len(start.share):
        policy = problem.objective.policy
        with np.errstate(divide="ignore"):
            if policy in (MAKESPAN, FINISH_TIME):
                ratio = problem.jobs.elapsed_s + problem.jobs.steps / start.rate
                worst = problem.jobs.steps / start.rate if policy == MAKESPAN else ratio / problem.fair_finish_s
                x[-1] = worst.max() if np.isfinite(worst).all() else 0.0
            else:
                x[-1] = (start.rate / slopes(problem)).min()
    return x
