"""Bound on a policy's value from prices: what the certificate of a solve proves, recomputed without the solve.

By linear duality, for prices y ≥ 0 of resources, u of the jobs' time (≥ 0 unless the job is required), z, v ≥ 0 of
floors, and any weights p ≥ 0 of the rates and gains h of the shares, every allocation has

    Σ_j p·rate + Σ_c h·share ≤ Σ_k y·amount + Σ_j u − Σ_j z·min_rate − Σ_g v·min_rate + Σ_c max(0, left[c]),
    left[c] = h[c] + Σ_{j∈c} (p[j] + z[j] + v[group j])·rate[c,j] − Σ_k y·amount[c,k] − Σ_{j∈c} u[j],

because shares are at most 1. Call the right side B. Each policy's value is bounded by B through its conjugate: for
example ln r ≤ p·r/w + ln(w/p) − 1 for every p > 0.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import Fault, PlanError
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.policies import (
    COST,
    FINISH_TIME,
    HARMONIC,
    HIERARCHICAL,
    MAKESPAN,
    MAX_MIN,
    NASH,
    RATE_PER_COST,
)
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.measures import first_weights

ARRAYS: Mapping[str, str] = {
    "rate_weight": "jobs",
    "job_price": "jobs",
    "floor_price": "jobs",
    "resource_price": "resources",
    "group_floor_price": "groups",
}
"""Array of a certificate (p, u, z, y and v) → its axis."""
HALVINGS = 200
"""Halvings of the interval of a finish-time ratio, more than a float has bits."""


def certified_bound(problem: ResourceAllocation, arrays: Mapping[str, NDArray[Any]]) -> float:
    """The bound, in the sense of the policy, that the arrays of a certificate prove.

    Raises:
        PlanError: an array is missing, has another length, is not finite, or a price has the wrong sign.
    """
    p, u, z, y, v = (_array(problem, arrays, name) for name in ARRAYS)
    signs = {"rate_weight": p, "floor_price": z, "resource_price": y, "group_floor_price": v}
    signs["job_price"] = np.where(problem.jobs.required, 0.0, u)
    for name, values in signs.items():
        if (values < 0).any():
            raise PlanError([Fault("certificate", "prices of at least 0", column=name)])
    policy = problem.objective.policy
    gain = np.zeros(len(problem.configurations))
    if policy == COST:
        p, gain = np.zeros(len(p)), -problem.configurations.cost
    elif policy == RATE_PER_COST:
        members = problem.members
        p = np.zeros(len(p))
        np.add.at(gain, members.configuration, members.rate / problem.configurations.cost[members.configuration])
    elif policy not in (MAX_MIN, HIERARCHICAL, MAKESPAN, FINISH_TIME, NASH, HARMONIC):
        p = problem.jobs.weight
    best = _best(problem, p, gain, (u, z, y, v))
    return policy_bound(problem, p, best)


def _best(problem: ResourceAllocation, p: Floats, gain: Floats, prices: tuple[Floats, ...]) -> float:
    """Upper bound B on Σ p·rate + Σ gain·share of every allocation."""
    u, z, y, v = prices
    members, uses, jobs, groups = problem.members, problem.uses, problem.jobs, problem.groups
    worth = p + z + np.append(v, 0.0)[jobs.group]
    left = gain.copy()
    np.add.at(left, members.configuration, worth[members.job] * members.rate - u[members.job])
    np.add.at(left, uses.configuration, -y[uses.resource] * uses.amount)
    parts = (y * problem.resources.amount, u, -z * jobs.min_rate, -v * groups.min_rate, left[left > 0])
    return math.fsum(np.concatenate(parts).tolist())


def policy_bound(problem: ResourceAllocation, p: Floats, best: float) -> float:
    """The bound on the policy's value that Σ p·rate ≤ best implies."""
    jobs, policy = problem.jobs, problem.objective.policy
    if policy == COST:
        return -best
    if policy in (MAX_MIN, HIERARCHICAL):
        normal = jobs.fair_rate * (jobs.weight if policy == MAX_MIN else first_weights(problem))
        return _ratio(best, math.fsum((p * normal).tolist()))
    if policy == MAKESPAN:
        return _ratio(math.fsum((p * jobs.steps).tolist()), best)
    if policy == FINISH_TIME:
        return _finish_time(problem, p, best)
    if policy == NASH:
        if (p <= 0).any():
            return math.inf
        return math.fsum([*(jobs.weight * (np.log(jobs.weight / p) - 1.0)).tolist(), best])
    if policy == HARMONIC:
        return math.fsum([*(2.0 * np.sqrt(jobs.weight * jobs.fair_rate * p)).tolist(), -best])
    return best


def _finish_time(problem: ResourceAllocation, p: Floats, best: float) -> float:
    """The largest ratio ρ whose rates are worth more than ``best``; no allocation has a ratio up to it.

    A job with the ratio ρ runs at steps/(ρ·fair − elapsed), so Σ p·steps/(ρ·fair − elapsed) falls in ρ.
    """
    jobs = problem.jobs
    fair = jobs.fair_elapsed_s + jobs.steps / jobs.fair_rate
    low = float((jobs.elapsed_s / fair).max())
    weighed = p > 0
    if not weighed.any():
        return low
    steps, fair, elapsed, p = jobs.steps[weighed], fair[weighed], jobs.elapsed_s[weighed], p[weighed]

    def impossible(ratio: float) -> bool:
        left = ratio * fair - elapsed
        return bool((left <= 0).any()) or math.fsum((p * steps / left).tolist()) > best

    if best <= 0:
        return math.inf
    high = 1.0
    while impossible(high):
        high *= 2.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if impossible(middle) else (low, middle)
    return low


def _ratio(over: float, under: float) -> float:
    """Ratio of two rates in a price bound, infinite over 0."""
    return over / under if under > 0 else math.inf


def _array(problem: ResourceAllocation, arrays: Mapping[str, NDArray[Any]], name: str) -> Floats:
    """Array of a resource allocation's certificate. Raises PlanError if it is missing or invalid."""
    length = len(getattr(problem, ARRAYS[name]))
    found = arrays.get(name)
    if found is None or found.dtype.kind != "f" or found.shape != (length,) or not np.isfinite(found).all():
        raise PlanError([Fault("certificate", f"{length} finite numbers", column=name)])
    return found.astype(np.float64)
