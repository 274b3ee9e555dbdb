"""Prices of an allocation program: the certificate of a bound, made of the prices of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mast_opt.kind.problem_data import Floats
from mast_opt.mip import Mip
from mast_opt.resource_allocation.formulation.program import block_values
from mast_opt.resource_allocation.problem import ResourceAllocation


@dataclass(frozen=True, eq=False)
class Prices:
    """What one more unit is worth, in a program that maximises; see ``verification/price_bound.py``."""

    rate_weight: Floats
    """[J] p: what the policy gives for a unit of each job's rate."""
    job_price: Floats
    """[J] of a job's time."""
    floor_price: Floats
    """[J] what a unit of a job's floor costs."""
    resource_price: Floats
    """[K]"""
    group_floor_price: Floats
    """[G]"""

    def arrays(self) -> Mapping[str, Floats]:
        """What a certificate keeps."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def prices_of(
    problem: ResourceAllocation, mip: Mip, row_price: Floats, rate_weight: Floats, gain: Floats | None = None
) -> Prices:
    """The prices of a program's rows, without the round-off of a solver.

    Prices that are slightly negative become 0. Where a share still has a profit, the time of one of its jobs becomes
    dearer by as much, so that the bound needs no slack.

    Args:
        row_price: [rows] of the program, which minimises.
        rate_weight: [J] p.
        gain: [C] what a share adds to the objective beyond Σ p·rate; nothing unless given.
    """
    p = problem
    jobs, resources, groups = len(p.jobs), len(p.resources), len(p.groups)
    rate_weight = np.maximum(rate_weight, 0.0)
    time = -block_values(mip, "one", row_price, jobs)
    time = np.where(p.jobs.required, time, np.maximum(time, 0.0))
    resource = np.maximum(-block_values(mip, "capacity", row_price, resources), 0.0)
    floor = np.maximum(block_values(mip, "floor", row_price, jobs), 0.0)
    group_floor = np.maximum(block_values(mip, "group_floor", row_price, groups), 0.0)
    worth = rate_weight + floor + np.append(group_floor, 0.0)[p.jobs.group]
    members, uses, shares = p.members, p.uses, len(p.configurations)
    profit: Floats = np.zeros(shares) if gain is None else gain.copy()
    profit += np.bincount(members.configuration, worth[members.job] * members.rate - time[members.job], shares)
    profit -= np.bincount(uses.configuration, resource[uses.resource] * uses.amount, shares)
    payer = np.zeros(shares, np.int64)
    payer[members.configuration] = members.job
    extra = np.zeros(jobs)
    np.maximum.at(extra, payer, profit)
    return Prices(rate_weight, time + extra, floor, resource, group_floor)
