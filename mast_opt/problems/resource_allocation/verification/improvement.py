"""Changes of one configuration by which a plan is better at some level: what the smallest value cannot show.

No solver's help is needed to see them. A plan without one is not proven to be leximin; a plan with one is not.
"""

from __future__ import annotations

import numpy as np

from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.policies import FINISH_TIME, HIERARCHICAL, MAKESPAN, MAX_MIN
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.measures import Measure
from mast_opt.problems.resource_allocation.verification.verifier import verify

SMALL = 1e-5
"""Part of a job's largest rate that is no rounding."""


def improvement(problem: ResourceAllocation, plan: Plan) -> str:
    """A change that makes a plan better at some level, in words; "" where there is none of this sort.

    With whole shares, one more configuration runs, in the place of those in which its jobs are now, and the utilities
    in ascending order become larger. With fractional ones, a configuration runs longer on what is left over, so that
    nobody has less.
    """
    if problem.objective.policy not in (MAX_MIN, MAKESPAN, FINISH_TIME, HIERARCHICAL):
        return ""
    better = _exchange(problem, plan) if problem.whole else _left_over(problem, plan)
    if better < 0:
        return ""
    return f"{problem.configurations.labels[better]} can run more"


def _left_over(problem: ResourceAllocation, plan: Plan) -> int:
    """A configuration with room for more of it that its jobs would notice, or −1."""
    p, members, uses, measure = problem, problem.members, problem.uses, Measure(problem, plan)
    room = 1.0 - plan.share
    np.minimum.at(room, members.configuration, 1.0 - measure.time[members.job])
    some = uses.amount > 0
    free: Floats = (p.resources.amount - measure.use)[uses.resource[some]] / uses.amount[some]
    np.minimum.at(room, uses.configuration[some], free)
    largest = np.zeros(len(p.jobs))
    np.maximum.at(largest, members.job, members.rate)
    noticed = members.rate * room[members.configuration] > SMALL * largest[members.job]
    return int(members.configuration[np.argmax(noticed)]) if noticed.any() else -1


def _exchange(problem: ResourceAllocation, plan: Plan) -> int:
    """A configuration that raises the utilities in ascending order, in the place of what its jobs run in, or −1."""
    p, members = problem, problem.members
    now, time = np.sort(Measure(p, plan).utility), np.zeros((len(p.jobs), len(p.configurations)), np.bool_)
    time[members.job, members.configuration] = True
    for configuration in np.flatnonzero(plan.share < 0.5).tolist():
        share = np.where(time[time[:, configuration]].any(axis=0), 0.0, plan.share)
        share[configuration] = 1.0
        other = Plan.of_shares(p, share)
        then = np.sort(Measure(p, other).utility)
        first = int(np.argmax(~np.isclose(now, then, rtol=SMALL, atol=0.0)))
        if then[first] > now[first] * (1 + SMALL) and verify(p, other).ok:
            return configuration
    return -1
