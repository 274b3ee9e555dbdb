"""Binding limits of a job's rate: what keeps it from more while every other job keeps its rate, and at which price.

The question is a linear program of its own, whatever the policy: the largest rate of one job, with the rates of the
others as floors. Resources with a price bind; what one more unit of them adds is a difference of two such programs.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from mast_opt.core.wording import listed
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

KEPT = 1e-9
"""Part of their rates that the other jobs may lose: rounding."""
NOTHING = 1e-6
"""Part of a job's largest rate that is no gain."""
NAMED = 3
"""Resources that a sentence names."""


@dataclass(frozen=True, eq=False)
class Binding:
    """Limits that hold one job's rate."""

    best: float
    """The job's largest rate in any configuration."""
    spare: float
    """Rate that it could have in addition while the others keep theirs."""
    price: Floats
    """[K] how much a little more of each resource would add at most, per unit."""
    worth: Floats
    """[K] how much one more unit would add, for the resources with the highest prices; 0 for the others."""
    busy: bool
    """Would more of its own time add to its rate?"""

    def sentence(self, problem: ResourceAllocation) -> str:
        """The limits in words."""
        least = NOTHING * self.best
        if self.spare > least:
            return f"it could have {self.spare:.4g} more while the others keep theirs"
        full = [
            f"one more {problem.resources.labels[k]} would add {self.worth[k]:.4g}"
            for k in np.argsort(-self.worth, kind="stable").tolist()
            if self.worth[k] > least
        ]
        words = [*full, *(["the job runs all the time"] if self.busy else [])]
        return listed(words) if words else "nothing would add to it while the others keep theirs"


def binding(problem: ResourceAllocation, plan: Plan, job: int) -> Binding:
    """Find what holds the rate of a job in a plan without violations.

    Raises:
        ValueError: the plan breaks limits by more than rounding, so that the program has no solution.
    """
    p, width = problem, len(problem.configurations)
    members, uses, jobs = p.members, p.uses, len(p.jobs)
    rate = csr_array((members.rate, (members.job, members.configuration)), (jobs, width))
    time = csr_array((np.ones(len(members)), (members.job, members.configuration)), (jobs, width))
    use = csr_array((uses.amount, (uses.resource, uses.configuration)), (len(p.resources), width))
    others = np.flatnonzero(np.arange(jobs) != job)
    grouped = np.flatnonzero(p.jobs.group < len(p.groups))
    group = csr_array((np.ones(len(grouped)), (p.jobs.group[grouped], grouped)), (len(p.groups), jobs))
    must = np.flatnonzero(p.jobs.required)
    upper = vstack([use, time, -rate[others], -(group @ rate), -time[must]], format="csr")
    floors = np.concatenate([plan.rate[others], p.groups.min_rate, np.ones(len(must))])
    gain = np.asarray(rate[[job]].todense()).ravel()

    def most(amount: Floats) -> tuple[float, Floats]:
        limit = np.concatenate([amount, np.ones(jobs), -floors * (1 - KEPT)])
        found = linprog(-gain, A_ub=upper, b_ub=limit, bounds=(0, 1), method="highs")
        if found.status != 0:
            raise ValueError(found.message)
        return float(-found.fun), np.maximum(-found.ineqlin.marginals, 0.0)

    reached, prices = most(p.resources.amount)
    price, least = prices[: len(p.resources)], NOTHING * float(gain.max())
    worth = np.zeros(len(p.resources))
    for k in np.argsort(-price, kind="stable")[:NAMED].tolist():
        if price[k] > least:
            worth[k] = most(p.resources.amount + (np.arange(len(worth)) == k))[0] - reached
    busy = bool(prices[len(p.resources) + job] > least)
    return Binding(float(gain.max()), reached - float(plan.rate[job]), price, worth, busy)
