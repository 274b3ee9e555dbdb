"""What several tests of resource allocation do: Gavel's instances, and random small ones with floors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import mast_opt
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.resource_allocation import ResourceAllocation
from mast_opt.problems.resource_allocation.policies import POLICIES

INSTANCES = Path(__file__).parents[2] / "instances" / "resource_allocation"
TYPES = ("v100", "p100", "k80")
COST = (3.1, 2.0, 0.8)
RATES = ((2.0, 1.0, 0.5), (3.0, 2.0, 1.0))
"""Steps a second of Gavel's two jobs on its three types."""


def gavel(
    policy: str,
    supply: Sequence[float] = (1, 1, 1),
    rates: Sequence[Sequence[float]] = RATES,
    shares: str = "fractional",
    **jobs: Sequence[Any],
) -> ResourceAllocation:
    """Jobs on GPUs of three types, one at a time, in the way of Gavel.

    Args:
        rates: a row for each job, a column for each type.
        jobs: further columns of the table ``jobs``; ``fair_rate`` is that of an equal split unless given.
    """
    speed, gpus = np.array(rates, float), np.array(supply, float)
    equal = gpus / len(speed)
    columns = {"fair_rate": (speed @ (equal / max(1.0, equal.sum()))).tolist(), **jobs}
    pairs = [(j, k) for j in range(len(speed)) for k in range(len(TYPES))]
    names = [f"job-{j}@{TYPES[k]}" for j, k in pairs]
    return mast_opt.from_tables(
        "resource-allocation",
        {
            "resources": {"resource": TYPES, "amount": gpus},
            "jobs": {"job": [f"job-{j}" for j in range(len(speed))], **columns},
            "configurations": {"configuration": names, "cost": [COST[k] for _, k in pairs]},
            "members": {
                "configuration": names,
                "job": [f"job-{j}" for j, _ in pairs],
                "rate": [float(speed[j, k]) for j, k in pairs],
            },
            "uses": {"configuration": names, "resource": [TYPES[k] for _, k in pairs], "amount": np.ones(len(pairs))},
        },
        objective={"policy": policy},
        rules={"shares": shares},
    )


def with_policy(problem: ResourceAllocation, policy: str, inside: str = "") -> ResourceAllocation:
    """The same instance under another policy, its default inside of groups unless one is named."""
    default = POLICIES[policy].inside[0] if POLICIES[policy].inside else ""
    return replace(problem, objective=Objective({}, policy=policy, inside=inside or default))


def small(seed: int, policy: str, *, whole: bool = False, jobs: int = 4, types: int = 2) -> ResourceAllocation:
    """A random small instance with pairs, floors and groups; every job in a group where the policy needs it."""
    problem = mast_opt.generate("resource-allocation", "features", seed=seed, jobs=jobs, types=types)
    grouped = replace(problem.jobs, group=np.arange(jobs) % 2)
    return replace(with_policy(replace(problem, jobs=grouped), policy), whole=whole)


def odd(seed: int, policy: str, *, whole: bool = False) -> ResourceAllocation:
    """A random small instance with equal numbers, rates of 0, resources of which there is none, pairs and floors."""
    rng = np.random.default_rng([seed, 77])
    jobs, types = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    sets = [(j,) for j in range(jobs) for _ in range(int(rng.integers(1, 4)))]
    sets += [tuple(rng.choice(jobs, 2, replace=False).tolist()) for _ in range(int(rng.integers(0, 4)))]
    configuration, job = np.array([(at, j) for at, members in enumerate(sets) for j in members]).T
    rates = np.where(rng.random(len(job)) < 0.07, 0, rng.integers(1, 6, len(job)))
    held = rng.random((len(sets), types)) < 0.6
    use = np.nonzero(held)
    return ResourceAllocation.from_arrays(
        policy,
        whole=whole,
        inside=("max-min", "fifo")[seed % 2] if policy == "hierarchical" else "",
        resources={"amount": rng.integers(0, max(2, jobs), types)},
        groups={"weight": rng.choice([1.0, 2.0, 3.0], 2), "min_rate": np.where(rng.random(2) < 0.1, 0.4, 0.0)},
        jobs={
            "weight": rng.choice([0.5, 1.0, 1.0, 2.0], jobs),
            "fair_rate": rng.choice([0.7, 1.0, 1.0, 2.0], jobs),
            "group": rng.integers(0, 2 if policy == "hierarchical" else 3, jobs),
            "required": (rng.random(jobs) < 0.15) & (seed % 3 == 0),
            "min_rate": np.where((rng.random(jobs) < 0.2) & (seed % 3 == 1), 0.3, 0.0),
            "steps": rng.choice([1.0, 10.0, 500.0], jobs),
            "elapsed_s": rng.choice([0.0, 30.0, 1000.0], jobs),
            "fair_elapsed_s": rng.choice([0.0, 20.0, 800.0], jobs),
            "submitted_s": rng.integers(0, 3, jobs),
        },
        configurations={"cost": rng.choice([0.5, 1.0, 2.0], len(sets))},
        members={"configuration": configuration, "job": job, "rate": rates},
        uses={"configuration": use[0], "resource": use[1], "amount": rng.integers(0, 3, len(use[0]))},
    )
