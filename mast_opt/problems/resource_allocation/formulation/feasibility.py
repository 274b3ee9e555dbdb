"""Shares of a solver, which are feasible to its tolerance, made feasible to rounding.

A vertex of a linear program is where some limits hold exactly. Limits that are broken, and those that hold, become
equations; the shares move by the shortest way to where these hold. What is left is divided away.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import lsmr

from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.plan import job_rates
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

NOTHING = 1e-11
"""Shares up to this are 0."""
EXACT = 1e-11
"""Relative distance from a limit that needs no correction."""
TIGHT = 1e-6
"""Relative distance from a limit within which it is taken to hold as an equation."""
ROUNDS = 4
"""Corrections: each makes what is broken smaller by many digits."""


def within_limits(problem: ResourceAllocation, share: Floats) -> Floats:
    """[C] shares close to the given ones that keep every limit, as far as the limits of a vertex allow."""
    share = np.clip(np.where(np.abs(share) <= NOTHING, 0.0, share), 0.0, 1.0)
    if problem.whole:
        return np.rint(share)
    limits = _Limits(problem)
    for _ in range(ROUNDS):
        excess, scale = limits.excess(share)
        if not (excess > EXACT * scale).any():
            break
        rows = np.flatnonzero(excess > -TIGHT * scale)
        free = np.flatnonzero((share > NOTHING) & (share < 1.0))
        factor = 1.0 / scale[rows]
        part = limits.matrix[rows][:, free].multiply(factor[:, None]).tocsr()
        step = lsmr(part, -excess[rows] * factor, atol=1e-15, btol=1e-15, conlim=1e12)[0]
        share[free] = np.clip(share[free] + step, 0.0, 1.0)
    return _divided(problem, share)


class _Limits:
    """Every limit as matrix · share ≤ limit; required time as two of them."""

    def __init__(self, problem: ResourceAllocation) -> None:
        p = self._problem = problem
        self._must, self._floor = np.flatnonzero(p.jobs.required), np.flatnonzero(p.jobs.min_rate > 0)
        self._group_floor = np.flatnonzero(p.groups.min_rate > 0)
        self._limit = np.concatenate(
            [
                np.ones(len(p.jobs)),
                p.resources.amount,
                -np.ones(len(self._must)),
                -p.jobs.min_rate[self._floor],
                -p.groups.min_rate[self._group_floor],
            ]
        )

    def excess(self, share: Floats) -> tuple[Floats, Floats]:
        """Excess of an allocation over each limit (negative where there is none), and the magnitude that it is compared
        with.
        """
        p = self._problem
        time, use = _sums(p, share)
        rate = job_rates(p, share)
        group_rate = np.bincount(p.jobs.group, rate, minlength=len(p.groups))
        value = np.concatenate([time, use, -time[self._must], -rate[self._floor], -group_rate[self._group_floor]])
        return value - self._limit, np.maximum(np.maximum(np.abs(value), np.abs(self._limit)), np.finfo(float).tiny)

    @cached_property
    def matrix(self) -> csr_array:
        """Matrix of an allocation's limits: one row for each limit, one column for each share."""
        p, shape = self._problem, len(self._problem.configurations)
        members, uses = p.members, p.uses
        time = csr_array((np.ones(len(members)), (members.job, members.configuration)), (len(p.jobs), shape))
        rate = csr_array((members.rate, (members.job, members.configuration)), (len(p.jobs), shape))
        use = csr_array((uses.amount, (uses.resource, uses.configuration)), (len(p.resources), shape))
        grouped = np.flatnonzero(p.jobs.group < len(p.groups))
        group = csr_array((np.ones(len(grouped)), (p.jobs.group[grouped], grouped)), (len(p.groups), len(p.jobs)))
        parts = (time, use, -time[self._must], -rate[self._floor], -(group @ rate)[self._group_floor])
        return csr_array(vstack(parts, format="csr"))


def _sums(problem: ResourceAllocation, share: Floats) -> tuple[Floats, Floats]:
    """Time [J] of each job and use [K] of each resource."""
    members, uses = problem.members, problem.uses
    time: Floats = np.zeros(len(problem.jobs))
    use: Floats = np.zeros(len(problem.resources))
    np.add.at(time, members.job, share[members.configuration])
    np.add.at(use, uses.resource, uses.amount * share[uses.configuration])
    return time, use


def _divided(problem: ResourceAllocation, share: Floats) -> Floats:
    """The shares, each divided by the largest overuse among its jobs' time and its resources."""
    members, uses = problem.members, problem.uses
    time, use = _sums(problem, share)
    none = (use > 0) & (problem.resources.amount <= 0)
    over = np.ones(len(share))
    np.maximum.at(over, members.configuration, time[members.job])
    ratio = np.divide(use, problem.resources.amount, out=np.ones(len(use)), where=problem.resources.amount > 0)
    np.maximum.at(over, uses.configuration, np.where(uses.amount > 0, ratio[uses.resource], 1.0))
    share = share / over
    share[uses.configuration[none[uses.resource] & (uses.amount > 0)]] = 0.0
    return share
