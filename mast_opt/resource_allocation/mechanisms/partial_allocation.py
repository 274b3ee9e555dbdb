"""Partial allocation: each job keeps the part of its rate that the others lose by its presence (Cole et al., EC'13).

On top of an allocation of the highest Π rate^weight, job j keeps

    kept[j] = Π_{k≠j} (rate[k] / rate of k in the best allocation without j)^(weight[k]/weight[j])

What j keeps is worth Π_k rate[k]^(weight[k]/weight[j]) over a number that j's report does not enter. The allocation
maximises that product, so the truth is best. Themis uses it for auctions, Gavel for strategy-proof shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mast_opt.kind.problem_data import Floats
from mast_opt.resource_allocation.problem import ResourceAllocation


def kept_parts(weight: Floats, rate: Floats, rate_without: Floats) -> Floats:
    """[J] the part of its rate that each job keeps, from 0 to 1.

    Args:
        weight: [J] above 0.
        rate: [J] of the best allocation, above 0.
        rate_without: [J, J] in row j, the rates of the best allocation without j, above 0; the entry of j itself
            is not looked at.
    """
    lost = weight * np.log(rate / np.where(np.eye(len(rate), dtype=np.bool_), rate, rate_without))
    parts: Floats = np.minimum(np.exp(lost.sum(axis=1) / weight), 1.0)
    return parts


def partial_allocation(weight: Floats, rate: Floats, best_without: Callable[[int], Floats]) -> Floats:
    """[J] the parts that the jobs keep.

    Args:
        weight, rate: as in ``kept_parts``.
        best_without: position of a job → [J − 1] the rates of the others in the best allocation without it.
    """
    without = np.ones((len(rate), len(rate)))
    for job in range(len(rate)):
        without[job, np.arange(len(rate)) != job] = best_without(job)
    return kept_parts(weight, rate, without)


def without_job(problem: ResourceAllocation, job: int) -> ResourceAllocation:
    """The problem without a job and every configuration that it is in, and without the mechanism.

    Raises:
        InstanceError: another job has no configuration without this one.
    """
    p = problem
    other = np.arange(len(p.jobs)) != job
    stays = np.ones(len(p.configurations), np.bool_)
    stays[p.members.configuration[p.members.job == job]] = False
    members, uses = p.members.rows(stays[p.members.configuration]), p.uses.rows(stays[p.uses.configuration])
    at_job, at = np.cumsum(other) - 1, np.cumsum(stays) - 1
    return replace(
        p,
        jobs=p.jobs.rows(other),
        configurations=p.configurations.rows(stays),
        members=replace(members, configuration=at[members.configuration], job=at_job[members.job]),
        uses=replace(uses, configuration=at[uses.configuration]),
        objective=replace(p.objective, mechanism=""),
    )
