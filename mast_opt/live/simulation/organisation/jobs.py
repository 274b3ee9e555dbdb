"""Jobs of an organisation: each namespace submits work of each tier at a pace that keeps to its target.

The next job comes when the work submitted so far is what the target makes of the time that has passed, so that the
demand keeps close to the target, as under quotas. Jobs that would run at the beginning come then, with what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.live.simulation.organisation.params import OrganisationParams
from mast_opt.live.simulation.organisation.structure import GPU_TYPES, RECURRING, WEEK_DAYS, Ints, Structure, generator
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.published import PARETO_INDEX as GPU_INDEX

HOURS_SIGMA = 1.3
"""Lognormal σ of the hours of a job."""
MOST_HOURS = 120.0
MORE_TABLES = 1.5
"""Mean of the Poisson number of partitions that a job reads beyond the first."""
MOST_TABLES = 5
ELSEWHERE = 0.1
"""Share of the first-time jobs that read a partition of another namespace of their team."""
EITHER_TYPE = 0.25
"""Share of the recurring workloads that accept a second type."""
HOUR_S = 3600
DAY_H = 24


@dataclass(frozen=True)
class OrganisationJob:
    """A job."""

    submitted_s: int
    duration_s: int
    namespace: int
    tier: int
    gpus: int
    workload: int
    """-1 for first-time work."""
    types: tuple[int, ...]
    """Empty for any."""
    reads: tuple[int, ...]


def jobs_of(params: OrganisationParams, made: Structure) -> list[OrganisationJob]:
    """All of them, by submission."""
    jobs: list[OrganisationJob] = []
    namespaces, tiers, _ = made.target.shape
    for n in range(namespaces):
        workloads = _recurring(params, made, n)
        for tier in range(tiers):
            jobs += _paced(params, made, n, tier, workloads)
    return sorted(jobs, key=lambda job: (job.submitted_s, job.namespace, job.tier, job.gpus, job.duration_s))


_Workload = tuple[tuple[int, ...], tuple[int, ...]]
"""Types and partitions."""


def _recurring(params: OrganisationParams, made: Structure, n: int) -> list[_Workload]:
    rng = generator(params.seed, "recurring", n)
    old = made.partitions(n)
    old = old[made.created_day[old] == 0]
    found = []
    for w in range(RECURRING):
        kind = int(made.nominal[n, w])
        other = (kind + int(rng.integers(1, len(GPU_TYPES)))) % len(GPU_TYPES)
        types = (kind, other) if rng.random() < EITHER_TYPE else (kind,)
        found.append((tuple(sorted(types)), _some(rng, old)))
    return found


def _some(rng: np.random.Generator, partitions: Ints) -> tuple[int, ...]:
    wanted = 1 + min(MOST_TABLES - 1, int(rng.poisson(MORE_TABLES)))
    chosen = rng.choice(partitions, min(wanted, len(partitions)), replace=False)
    return tuple(sorted(chosen.tolist()))


def _largest(params: OrganisationParams, made: Structure, n: int, tier: int) -> int:
    """No gang is larger than what its namespace has on average, nor than the smallest part of its home."""
    most = min(float(made.target[n, tier].mean()), float(made.supply[made.home[n]].min()), params.largest_gpus)
    return 1 << max(0, int(np.log2(max(1.0, most))))


def _paced(
    params: OrganisationParams, made: Structure, n: int, tier: int, workloads: list[_Workload]
) -> list[OrganisationJob]:
    rng = generator(params.seed, "jobs", n * 16 + tier)
    days = np.arange(made.target.shape[2] * WEEK_DAYS + 1) - WEEK_DAYS
    target = np.repeat(made.target[n, tier], WEEK_DAYS) * np.where(days[:-1] < params.ramp_days, params.ramp_load, 1.0)
    asked_h = np.concatenate([[0.0], (target * DAY_H).cumsum()])  # GPU-hours by then
    largest = _largest(params, made, n, tier)
    gpus, hours = np.zeros(0, np.int64), np.zeros(0)
    while (gpus * hours).sum() < asked_h[-1] * 1.1:
        gpus = np.concatenate([gpus, draws.pareto_powers_of_two(rng, 64, largest, GPU_INDEX)])
        drawn = rng.lognormal(np.log(params.median_hours), HOURS_SIGMA, 64)
        hours = np.concatenate([hours, np.minimum(drawn, MOST_HOURS)])
    work = gpus * hours
    due = np.concatenate([[0.0], work.cumsum()[:-1]]) - rng.random() * work[0]
    begin_h: NDArray[np.float64] = np.interp(due, asked_h, days * DAY_H)
    jobs = []
    for at in np.flatnonzero((due >= 0) & (due < asked_h[-1])).tolist():
        left_h = float(hours[at]) + min(0.0, float(begin_h[at]))
        submitted_s = max(0, round(float(begin_h[at]) * HOUR_S))
        first_time = rng.random() * 100 < params.first_time_percent
        which = int(rng.integers(RECURRING))
        reads = _fresh(rng, made, n, submitted_s / (DAY_H * HOUR_S)) if first_time else workloads[which][1]
        if left_h <= 0 or submitted_s >= params.days * DAY_H * HOUR_S:
            continue
        duration_s = max(60, round(left_h * HOUR_S))
        types = () if first_time else workloads[which][0]
        workload = -1 if first_time else n * RECURRING + which
        jobs.append(OrganisationJob(submitted_s, duration_s, n, tier, int(gpus[at]), workload, types, reads))
    return jobs


def _fresh(rng: np.random.Generator, made: Structure, n: int, day: float) -> tuple[int, ...]:
    """Partitions that first-time work reads: some of the hot ones that there are."""

    def hot(namespace: int) -> Ints:
        own = made.partitions(namespace)
        return own[made.hot[own] & (made.created_day[own] <= day)]

    reads = _some(rng, hot(n))
    if rng.random() < ELSEWHERE:
        reads = tuple(sorted({*reads[1:], int(rng.choice(hot(int(made.partner[n]))))}))
    return reads
