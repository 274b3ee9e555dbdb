"""Prices of an allocation program: the certificate of a bound, made of the prices of its rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.mip import Mip
from mast_opt.problems.resource_allocation.formulation.formulation import gains
from mast_opt.problems.resource_allocation.formulation.program import block_values
from mast_opt.problems.resource_allocation.policies import COST, RATE_PER_COST
from mast_opt.problems.resource_allocation.problem import ResourceAllocation


@dataclass(frozen=True, eq=False)
class Prices:
    """Values of one more unit, in a program that maximises; see ``verification/price_bound.py``."""

    rate_weight: Floats
    """[J] p: what the policy gives for a unit of each job's rate."""
    job_price: Floats
    """[J] of a job's time."""
    floor_price: Floats
    """[J] what a unit of a job's floor costs."""
    resource_price: Floats
    """Price of each resource, [K]."""
    group_floor_price: Floats
    """Price of each group's floor, [G]."""

    def arrays(self) -> Mapping[str, Floats]:
        """Arrays of an allocation's certificate as a file keeps them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def prices_of(problem: ResourceAllocation, mip: Mip, row_price: Floats, rate_weight: Floats) -> Prices:
    """The prices of a program's rows; those that round-off has made slightly negative become 0.

    Args:
        problem: the program's.
        mip: the program, which minimises.
        row_price: [rows] of the program.
        rate_weight: [J] p.
    """
    jobs, resources, groups = len(problem.jobs), len(problem.resources), len(problem.groups)
    time = -block_values(mip, "one", row_price, jobs)
    return Prices(
        rate_weight=np.maximum(rate_weight, 0.0),
        job_price=np.where(problem.jobs.required, time, np.maximum(time, 0.0)),
        floor_price=np.maximum(block_values(mip, "floor", row_price, jobs), 0.0),
        resource_price=np.maximum(-block_values(mip, "capacity", row_price, resources), 0.0),
        group_floor_price=np.maximum(block_values(mip, "group_floor", row_price, groups), 0.0),
    )


def gain_of_shares(problem: ResourceAllocation) -> Floats | None:
    """[C] what a share adds to the maximised objective beyond Σ p·rate; None for nothing."""
    policy = problem.objective.policy
    if policy == COST:
        return -gains(problem)
    return gains(problem) if policy == RATE_PER_COST else None


def profits(problem: ResourceAllocation, prices: Prices, gain: Floats | None = None) -> Floats:
    """[C] what each configuration earns beyond what it pays; at the optimum none earns anything.

    ``gain``: [C] what a share adds to the objective beyond Σ p·rate; nothing unless given.
    """
    p, members, uses, shares = problem, problem.members, problem.uses, len(problem.configurations)
    worth = prices.rate_weight + prices.floor_price + np.append(prices.group_floor_price, 0.0)[p.jobs.group]
    earned = worth[members.job] * members.rate - prices.job_price[members.job]
    profit: Floats = np.zeros(shares) if gain is None else gain.copy()
    profit += np.bincount(members.configuration, earned, shares)
    profit -= np.bincount(uses.configuration, prices.resource_price[uses.resource] * uses.amount, shares)
    return profit


def without_profit(problem: ResourceAllocation, prices: Prices, gain: Floats | None = None) -> Prices:
    """Prices with the time of a job raised where a share still has a profit, so that their bound needs no slack."""
    profit, extra = profits(problem, prices, gain), np.zeros(len(problem.jobs))
    payer = np.zeros(len(profit), np.int64)
    payer[problem.members.configuration] = problem.members.job
    np.maximum.at(extra, payer, profit)
    return replace(prices, job_price=prices.job_price + extra)
