"""Generated resource-allocation instances, by family.

A family, its sizes and the state of a NumPy ``Generator`` determine the instance, array by array.

    standard    jobs on GPUs of several types, max-min fair
    packing     the same with pairs of jobs that share a GPU
    features    every optional table and column, floors, one of the policies at random; for tests

Instance families of resource allocation: jobs on GPUs of several types, alone or in pairs, some with floors.
"""

from dataclasses import replace

import numpy as np

from mast_opt.problems.kind.family import Family
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.kind.problem_data import Floats, Ints
from mast_opt.problems.resource_allocation.entities import Configurations, Groups, Jobs, Members, Resources, Uses
from mast_opt.problems.resource_allocation.policies import HIERARCHICAL, MAX_MIN, POLICIES
from mast_opt.problems.resource_allocation.problem import ResourceAllocation

GPUS_A_JOB = 0.6
"""GPUs of all types over jobs: enough that most jobs run part of the time."""
SPEED_SPREAD = 0.5
"""Spread of a job's speed on a type around that type's (standard deviation of its logarithm)."""
PACKED = (0.55, 1.0)
"""A packed job's rate over its rate alone, uniform between these."""
PARTNERS = 6
"""Jobs that each job may be packed with."""
YEAR_FACTOR = 1.8
"""A type is so many times as fast as the next older one, and costs so many times as much."""
FLOOR = 0.2
"""Floors of ``features`` as a share of the rate under an equal split."""


def standard(rng: np.random.Generator, *, jobs: int, types: int) -> ResourceAllocation:
    """Each job can run on each type of GPU alone; newer types are faster for every job, but not equally so."""
    rate, gpus = _speeds(rng, jobs, types), _supply(rng, jobs, types)
    return _instance(rng, f"standard-{jobs}x{types}", rate, gpus, np.zeros((0, 2), np.int64))


def packing(rng: np.random.Generator, *, jobs: int, types: int) -> ResourceAllocation:
    """``standard`` with half the GPUs, and pairs of jobs that may share one."""
    rate, gpus = _speeds(rng, jobs, types), np.ceil(_supply(rng, jobs, types) / 2)
    partners = min(PARTNERS, jobs - 1)
    first = np.repeat(np.arange(jobs), partners)
    others = rng.permuted(np.tile(np.arange(1, jobs), (jobs, 1)), axis=1)[:, :partners]
    second = (first + others.ravel()) % jobs
    pairs = np.unique(np.sort(np.stack([first, second], axis=1), axis=1), axis=0)
    return _instance(rng, f"packing-{jobs}x{types}", rate, gpus, pairs)


def features(rng: np.random.Generator, *, jobs: int, types: int) -> ResourceAllocation:
    """A small instance with two groups, floors that can be met, required jobs, and a policy drawn at random."""
    problem = packing(rng, jobs=jobs, types=types)
    policy = list(POLICIES)[int(rng.integers(len(POLICIES)))]
    inside = POLICIES[policy].inside
    chosen = str(rng.choice(inside)) if inside else ""
    group = np.arange(jobs) % 2
    if policy != HIERARCHICAL:
        group[rng.random(jobs) < 0.3] = 2
    floor = np.where(rng.random(jobs) < 0.5, FLOOR * problem.jobs.fair_rate, 0.0)
    fair = np.bincount(group, problem.jobs.fair_rate, minlength=3)[:2]
    group_floor = np.where(rng.random(2) < 0.5, FLOOR * fair, 0.0)
    return replace(
        problem,
        name=f"features-{jobs}x{types}",
        objective=Objective({}, policy=policy, inside=chosen),
        groups=Groups(("research", "product"), np.array([1.0, 2.5]), group_floor),
        jobs=replace(
            problem.jobs,
            weight=rng.choice([0.5, 1.0, 2.0], jobs),
            group=group,
            required=(np.arange(jobs) == 0) & (types > 1),
            min_rate=floor,
            elapsed_s=np.round(rng.uniform(0, 4000, jobs)),
            fair_elapsed_s=np.round(rng.uniform(0, 4000, jobs)),
        ),
    )


def _speeds(rng: np.random.Generator, jobs: int, types: int) -> Floats:
    """[J, T] steps a second of each generated job alone on each type, the newest first."""
    size = rng.lognormal(0.0, 0.8, (jobs, 1))
    speed = 1.0 / YEAR_FACTOR ** np.arange(types)
    return np.round(size * speed * rng.lognormal(0.0, SPEED_SPREAD, (jobs, types)) * 10, 4) + 0.001


def _supply(rng: np.random.Generator, jobs: int, types: int) -> Floats:
    """[T] GPUs of each generated type, at least one."""
    part = rng.dirichlet(np.full(types, 4.0))
    return np.maximum(1.0, np.round(part * jobs * GPUS_A_JOB))


def _instance(rng: np.random.Generator, name: str, rate: Floats, gpus: Floats, pairs: Ints) -> ResourceAllocation:
    """Configurations: each job on each type, then each pair on each type."""
    jobs, types = rate.shape
    kinds, labels = [f"gpu-{t + 1}" for t in range(types)], [f"job-{j + 1}" for j in range(jobs)]
    alone = [f"{label}@{kind}" for label in labels for kind in kinds]
    packed = [f"{labels[a]}+{labels[b]}@{kind}" for a, b in pairs.tolist() for kind in kinds]
    slowed = rng.uniform(*PACKED, (len(pairs), types, 2))
    at = np.arange(len(alone) + len(packed))
    kind = np.concatenate([np.tile(np.arange(types), jobs), np.tile(np.arange(types), len(pairs))])
    pair_at = np.repeat(at[len(alone) :], 2)
    pair_rate = np.round(np.stack([rate[pairs[:, 0]], rate[pairs[:, 1]]], axis=2) * slowed, 4)
    equal = gpus / jobs
    fair = rate @ (equal / max(1.0, equal.sum()))
    zero = np.zeros(jobs)
    return ResourceAllocation(
        name=name,
        provenance=f"generated: family {name.split('-')[0]}",
        resources=Resources(tuple(kinds), gpus),
        groups=Groups((), np.zeros(0), np.zeros(0)),
        jobs=Jobs(
            labels=tuple(labels),
            weight=np.ones(jobs),
            group=np.zeros(jobs, np.int64),
            required=np.zeros(jobs, np.bool_),
            min_rate=zero,
            fair_rate=fair,
            steps=np.round(fair * rng.lognormal(9.0, 1.0, jobs)) + 1,
            elapsed_s=zero,
            fair_elapsed_s=zero,
            submitted_s=np.cumsum(np.round(rng.exponential(120.0, jobs))),
        ),
        configurations=Configurations((*alone, *packed), np.round(3.0 / YEAR_FACTOR**kind, 2)),
        members=Members(
            np.concatenate([at[: len(alone)], pair_at]),
            np.concatenate([np.repeat(np.arange(jobs), types), np.repeat(pairs, types, axis=0).ravel()]),
            np.concatenate([rate.ravel(), pair_rate.ravel()]),
        ),
        uses=Uses(at, kind, np.ones(len(at))),
        whole=False,
        objective=Objective({}, policy=MAX_MIN),
    )


FAMILIES = {
    "standard": Family(standard, {"jobs": 128, "types": 3}, "jobs on GPUs of several types, max-min fair"),
    "packing": Family(packing, {"jobs": 48, "types": 3}, "standard, with pairs of jobs that share a GPU"),
    "features": Family(features, {"jobs": 8, "types": 2}, "every optional table and column at once; for tests"),
}

__all__ = ["FAMILIES", "features", "packing", "standard"]
