"""The base formulation of resource allocation, as in ``models/resource_allocation.mod``: the linear policies.

The other policies are no linear programs; ``methods`` solves them by several. ``max-min`` and ``hierarchical`` are
stated up to their first level, and ``makespan`` by its inverse: steps/rate ≤ T for all jobs means rate ≥ steps·(1/T).
"""

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.mip.size import Size
from mast_opt.problems.resource_allocation import policies
from mast_opt.problems.resource_allocation.formulation.feasibility import within_limits
from mast_opt.problems.resource_allocation.formulation.program import AllocationProgram
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

LINEAR = (policies.TOTAL_RATE, policies.RATE_PER_COST, policies.COST)
"""Policies whose objective is linear in the shares."""
LEVELS = (policies.MAX_MIN, policies.MAKESPAN, policies.HIERARCHICAL)
"""Policies whose objective, or first level, is the largest level that all jobs reach."""


def base(problem: ResourceAllocation) -> Formulation[Plan]:
    """The program of a linear policy. Raises UsageError for another one."""
    policy = problem.objective.policy
    program = AllocationProgram(problem)
    slope: Floats | None = None
    if policy in LINEAR:
        program.linear(gains(problem))
    elif policy in LEVELS:
        slope = slopes(problem)
        program.level(slope, np.zeros(len(slope)))
    else:
        known = ", ".join((*LINEAR, *LEVELS))
        raise UsageError(f"{policy} is no linear program, so it cannot be written down as one; these are: {known}")
    mip = program.build(maximise=policy != policies.COST)
    shares = len(problem.configurations)

    def decode(x: FloatArray) -> Plan:
        return Plan.of_shares(problem, within_limits(problem, x[:shares]))

    def encode(plan: Plan) -> FloatArray:
        if slope is None:
            return plan.share.astype(np.float64)
        rising = slope > 0
        return np.append(plan.share, (plan.rate[rising] / slope[rising]).min(initial=np.inf))

    return Formulation(mip, decode, encode)


def gains(problem: ResourceAllocation) -> Floats:
    """[C] what a share adds to the objective of a linear policy."""
    members, policy = problem.members, problem.objective.policy
    if policy == policies.COST:
        return problem.configurations.cost
    worth = problem.jobs.weight[members.job] if policy == policies.TOTAL_RATE else 1.0
    gain: Floats = np.zeros(len(problem.configurations))
    np.add.at(gain, members.configuration, worth * members.rate)
    return gain / problem.configurations.cost if policy == policies.RATE_PER_COST else gain


def slopes(problem: ResourceAllocation) -> Floats:
    """[J] the rate that a job has at level 1 of the policy's (first) level; 0 for a job that the level leaves out."""
    policy = problem.objective.policy
    if policy == policies.MAKESPAN:
        return problem.jobs.steps
    if policy == policies.MAX_MIN:
        return problem.normal_rate
    return level_weights(problem, np.zeros(len(problem.jobs), np.bool_)) * problem.jobs.fair_rate


def level_weights(problem: ResourceAllocation, done: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    """[J] the weights of water filling over groups, where some jobs can gain no more; 0 for those and for who waits.

    A group's weight is split among its other jobs by their weights, or goes to the first of them by ``submitted_s``.
    """
    jobs, groups = problem.jobs, problem.groups
    active = np.flatnonzero(~done)
    weight = np.zeros(len(jobs))
    if problem.fifo:
        order = active[np.lexsort((active, jobs.submitted_s[active]))]
        _, first = np.unique(jobs.group[order], return_index=True)
        weight[order[first]] = groups.weight[jobs.group[order[first]]]
        return weight
    total = np.bincount(jobs.group[active], jobs.weight[active], minlength=len(groups))
    of = jobs.group[active]
    weight[active] = groups.weight[of] * jobs.weight[active] / total[of]
    return weight


def size(problem: ResourceAllocation) -> Size:
    """Exact but for jobs that a level leaves out, which count."""
    p, members, jobs = problem, len(problem.members), len(problem.jobs)
    floors, group_floors = p.jobs.min_rate > 0, np.append(p.groups.min_rate > 0, False)
    levels = p.objective.policy in LEVELS
    return Size.of(
        {"share": len(problem.configurations), "level": int(levels)},
        {
            "one": (jobs, members),
            "capacity": (len(problem.resources), len(problem.uses)),
            "floor": (int(floors.sum()), int(floors[p.members.job].sum())),
            "group_floor": (int(group_floors.sum()), int(group_floors[p.jobs.group][p.members.job].sum())),
            "reach": (jobs * levels, (members + jobs) * levels),
        },
    )
