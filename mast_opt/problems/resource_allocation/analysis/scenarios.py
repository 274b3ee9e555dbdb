"""Scenarios of resource allocation: what can happen to a cluster and its jobs, as keys of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.problems.kind.analysis_hooks import PLAUSIBLE_GROWTH, Change
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.kind.scenario_values import amounts, factors, positions
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

CHANGED = 1e-6
"""Change of a share above which it is no round-off."""


def lose_resources(problem: ResourceAllocation, value: object) -> ResourceAllocation:
    """The instance with nothing of these resources."""
    amount = problem.resources.amount.copy()
    amount[positions("lose_resources", "resource", problem.resources.labels, value)] = 0.0
    return _with_amounts(problem, amount)


def add_resources(problem: ResourceAllocation, value: object) -> ResourceAllocation:
    """More of some resources; below 0 takes away."""
    amount = problem.resources.amount.copy()
    for at, more in amounts("add_resources", "resource", problem.resources.labels, value).items():
        amount[at] += more
        if amount[at] < 0:
            raise UsageError(f"add_resources takes more {problem.resources.labels[at]} than there is")
    return _with_amounts(problem, amount)


def _with_amounts(problem: ResourceAllocation, amount: Floats) -> ResourceAllocation:
    return replace(problem, resources=replace(problem.resources, amount=amount))


def scale_weights(problem: ResourceAllocation, value: object) -> ResourceAllocation:
    """Weights of jobs, of all or by job, times a factor."""
    times = factors("scale_weights", "job", problem.jobs.labels, value)
    if (times <= 0).any():
        raise UsageError("scale_weights: expected factors above 0; a job without weight can be left out")
    return replace(problem, jobs=replace(problem.jobs, weight=problem.jobs.weight * times))


def scale_floors(problem: ResourceAllocation, value: object) -> ResourceAllocation:
    """Floors of jobs, of all or by job, times a factor."""
    times = factors("scale_floors", "job", problem.jobs.labels, value)
    return replace(problem, jobs=replace(problem.jobs, min_rate=problem.jobs.min_rate * times))


CHANGES = {
    "lose_resources": Change(lose_resources, 'lose_resources = ["k80"]', "resources of which nothing is left"),
    "add_resources": Change(add_resources, "add_resources = { v100 = 8 }", "more of a resource, or less"),
    "scale_weights": Change(
        scale_weights, "scale_weights = { bert = 2 }", "weights of jobs times a factor", plausible=PLAUSIBLE_GROWTH
    ),
    "scale_floors": Change(
        scale_floors, "scale_floors = { bert = 1.2 }", "floors of jobs times a factor", plausible=PLAUSIBLE_GROWTH
    ),
}


def moved(problem: ResourceAllocation, scenario: ResourceAllocation, before: Plan, after: Plan) -> Mapping[str, float]:
    """Configurations whose share changes, and the sum of what shares lose."""
    change = after.share - before.share
    return {
        "changed_shares": float((np.abs(change) > CHANGED).sum()),
        "shifted_time": float(np.maximum(-change, 0.0).sum()),
    }
