"""Instance family ``published`` of data placement: a fleet as skewed as the published one, not Meta's data."""

import numpy as np

from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.standard import Recipe, bake
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement, Ints

PARETO_INDEX = 0.7
LARGEST_GANG = 512
TIER_SHARES = np.array([0.03, 0.20, 0.16, 0.54, 0.07])
SUPPLY_ALPHA = 1.5
STORAGE = 2.0
"""One copy more than necessary: the published overhead is 75–125%."""
LOAD = 1.05
POOR_SHARE = 0.002
"""The region with almost no GPUs has this share of each type."""
WORST_BEFORE = 2.63
"""Tier-0 demand over supply today, in the worst region."""


def published(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """``standard`` with the published skew. GPUs per workload are Pareto with index 0.7, by powers of two up to 512.
    Five tiers hold 3, 20, 16, 54 and 7% of the workloads, the largest the most important. The last region has almost
    no GPUs. There is storage for two copies of everything. All GPU work runs somewhere today, at random, and supply is
    such that tier-0 demand is 2.63 times supply in the worst region of each type and no more elsewhere."""
    problem = bake(rng, Recipe("published", storage=STORAGE), datasets, workloads, regions)
    gpu_free = len(problem.gpu_types)
    needs = np.bincount(problem.options.workload, weights=problem.options.mgpu, minlength=workloads) > 0
    gpus = np.where(needs, draws.pareto_powers_of_two(rng, workloads, LARGEST_GANG, PARETO_INDEX), 0)
    work_tier = tiers(rng, gpus)
    today = rng.integers(max(1, regions - 1), size=workloads)
    kind = problem.options.gpu_type[np.searchsorted(problem.options.workload, np.arange(workloads))]
    supply = np.empty((regions, gpu_free), np.int64)
    for k in range(gpu_free):
        urgent = (kind == k) & (work_tier == 0)
        total = max(1, round(int(gpus[kind == k].sum()) / LOAD))
        supply[:, k] = skewed_supply(rng, total, draws.used(gpus[urgent], today[urgent], regions), SUPPLY_ALPHA)
    running = np.flatnonzero(needs)
    numbers, at = np.unique(work_tier, return_inverse=True)
    return problem.with_columns(
        {
            "tiers": tuple(numbers.tolist()),
            "workloads.tier": at.astype(np.int64),
            "options.mgpu": gpus[problem.options.workload] * draws.GPU,
            "regions.supply_mgpu": supply * draws.GPU,
            "current_runs.workload": running,
            "current_runs.region": today[running],
            "current_runs.gpu_type": kind[running],
            "current_runs.share": np.full(len(running), SHARE),
        }
    )


def tiers(rng: np.random.Generator, gpus: Ints) -> Ints:
    """[W] the published shares of tiers, the larger workloads first; ties at random."""
    order = np.lexsort((rng.random(len(gpus)), -gpus))
    tier = np.empty(len(gpus), np.int64)
    tier[order] = np.repeat(np.arange(len(TIER_SHARES)), draws.shared_out(len(gpus), TIER_SHARES))
    return tier


def skewed_supply(rng: np.random.Generator, total: int, urgent: Ints, alpha: float) -> Ints:
    """[R] about ``total`` GPUs of generated regions: in each region what today's tier-0 demand ``urgent`` needs at the
    worst ratio, in the last one almost nothing, and the rest by Dirichlet(``alpha``) everywhere but there and in the
    region of most demand.
    """
    supply = np.ceil(urgent / WORST_BEFORE).astype(np.int64)
    poor = len(supply) - 1
    supply[poor] = max(int(supply[poor]), 1, round(POOR_SHARE * total))
    share = rng.dirichlet(np.full(len(supply), alpha))
    if poor > 1:
        share[[poor, int(np.argmax(urgent))]] = 0.0
    return supply + draws.shared_out(max(0, total - int(supply.sum())), share)
