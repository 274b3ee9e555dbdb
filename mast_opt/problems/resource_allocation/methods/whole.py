"""Whole shares: each job has the rate of one configuration, so every policy but water filling is one program."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.formulation.formulation import LINEAR, gains, slopes
from mast_opt.problems.resource_allocation.formulation.program import AllocationProgram, Utility
from mast_opt.problems.resource_allocation.methods.incumbent import Incumbent
from mast_opt.problems.resource_allocation.methods.levels import later_level
from mast_opt.problems.resource_allocation.methods.solves import Solved, Solves, Stopped
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.policies import COST, FINISH_TIME, HARMONIC, MAKESPAN, NASH
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

SAME = 1e-12
"""Relative difference up to which two levels are one."""
ONE_JOB = 0.5
"""Gap of a number of jobs that proves it."""


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
    """Make the incumbent of a policy in ``LEXIMIN`` leximin; returns what stopped it, or nothing.

    A choice is leximin where the number of jobs up to a level is the smallest possible, for every level in ascending
    order, which is linear in the shares and says nothing of which jobs these are. The levels are the utilities in the
    incumbent, the next higher one after each program. Every job has the level 0, in a configuration or in none.
    """
    members, jobs, width = problem.members, len(problem.jobs), len(problem.configurations)
    utility = Utility.of(problem)
    of_member = utility.of_rates(members.rate, members.job)
    levels: list[float] = []
    least: list[int] = []
    """Jobs that have each level, or a higher one."""
    while incumbent.plan is not None:
        reached = utility.of_rates(incumbent.plan.rate)
        higher = reached[reached > levels[-1] * (1 + SAME)] if levels else reached
        if not len(higher):
            break
        levels.append(float(higher.min()))
        least.append(len(higher))
        program = AllocationProgram(problem)
        first = int(levels[0] <= 0)
        above = np.array(levels[first:])
        rows = program.m.rows("at_least", [[str(at) for at in range(len(above))]], lower=np.array(least[first:], float))
        level, row = np.nonzero(of_member >= above[:, None] * (1 - SAME))
        rows.add(level, program.share[members.configuration[row]])
        over = of_member > levels[-1] * (1 + SAME)
        program.linear(np.bincount(members.configuration[over], minlength=width).astype(np.float64))
        try:
            solved = solves(program.build(maximise=True), start=incumbent.plan.share, gap=ONE_JOB / jobs)
        except Stopped as stopped:
            return later_level(stopped)
        if solved.limit is not None:
            return f"stopped at a later level: {solved.message}"
        if not incumbent.settle(incumbent.offer(solved.x[:width])):
            return "rounding breaks a limit at a later level"
        if least[-1] == jobs and (utility.of_rates(incumbent.plan.rate) <= levels[-1] * (1 + SAME)).any():
            incumbent.claim(incumbent.objective)  # in integers: not all jobs can have more
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
