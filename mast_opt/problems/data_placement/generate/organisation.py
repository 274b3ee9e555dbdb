"""Instance family ``organisation`` of data placement: teams whose work reads mostly their own data.

Published (sources in ``docs/instances.md``): readers per partition, GPUs per workload, the worst tier-0 ratio, the
region with almost no GPUs, the share of first-time work. The rest is our own choice.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.blank import plain
from mast_opt.problems.data_placement.generate.published import LARGEST_GANG, PARETO_INDEX, skewed_supply, tiers
from mast_opt.problems.data_placement.generate.teams import PARETO_INDEX as TEAM_PARETO_INDEX
from mast_opt.problems.data_placement.generate.teams import Teams
from mast_opt.problems.data_placement.problem import SHARE, TERMS, Bools, DataPlacement, Ints
from mast_opt.problems.kind.header import Objective

GPU_TYPES = ("a100", "h100", "v100")
APPS = ("presto", "spark", "")
GPU_SHARE = 0.6
"""Share of the recurring workloads that need GPUs; the others are applications of Spark and Presto."""
EITHER_TYPE = 0.25
"""Share of the recurring GPU workloads that accept a second type."""
LOW_TIER = 3
"""Tier of first-time work below tier 0."""
URGENT_LOAD = 0.95
"""Ratio of tier-0 demand to supply over all regions."""
OFFERED_LOAD = 1.3
"""Ratio of the demand of all tiers to supply, unless recurring work alone exceeds it."""
SUPPLY_ALPHA = 3.0
MCORES_PER_GPU = 8_000
CPU_FILL = 0.8


@dataclass(frozen=True)
class Work:
    """Recurring workloads, then the forecasts of tier 0 by namespace, then those of the low tier."""

    namespace: Ints
    """[W] namespace of each workload."""
    gpus: Ints
    """[W] GPUs of each workload; 0 for CPU-only work."""
    tier: Ints
    """[W] tier of each workload."""
    today: Ints
    """[W, K] thousandths of the workload on each GPU type today."""
    accepts: Bools
    """[W, K + 1] whether the workload accepts each GPU type; the last column is for work without GPUs."""
    recurring: int
    """Number of recurring workloads; forecasts follow them."""


def organisation(
    rng: np.random.Generator,
    *,
    datasets: int,
    workloads: int,
    regions: int,
    storage_percent: int,
    first_time_percent: int,
) -> DataPlacement:
    """Teams own namespaces, namespaces own tables, and a dataset is a partition of a table.

    P50, P90 and P99 of a partition's readers are 3, 17 and 45, where there are enough workloads; four of five readers
    are of its namespace, one in twenty of another team. Recurring workloads train on GPUs (Pareto with index 0.7, by
    powers of two up to 512, the largest of tier 0) or are applications of Spark and Presto with a quota of CPU in each
    region. First-time work is known as a forecast: each namespace has one splittable workload of tier 0 and one of
    tier 3, which read its most read partitions. Today every team has its data and its work in its home region. Supply
    is such that tier-0 demand is 2.63 times supply in the worst region and 0.95 times supply over all regions; one
    region has 0.2% of the GPUs. Feasible by construction: what is stored and what runs today fits.

    Args:
        rng: source of every draw.
        datasets: number of partitions.
        workloads: number of workloads, forecasts included.
        regions: number of regions.
        storage_percent: storage of all regions, in percent of one copy of everything; at least 100.
        first_time_percent: share of the tier-0 demand that is first-time work.

    Raises:
        UsageError: ``storage_percent`` below 100.
    """
    teams = Teams.drawn(rng, datasets)
    readers = draws.reader_counts(rng, datasets, workloads)
    forecasts = min(len(teams.team), workloads // 4) if first_time_percent else 0
    hot = np.flatnonzero(teams.hot(readers) & (teams.namespace < forecasts))
    readers[hot] = np.maximum(readers[hot] - 2, 0)
    recurring = workloads - 2 * forecasts
    owner, reader, read = teams.readers(rng, readers, recurring)
    reader = np.concatenate([reader, recurring + teams.namespace[hot], recurring + forecasts + teams.namespace[hot]])
    reader, read = draws.by_workload(reader, np.concatenate([read, hot, hot]), datasets)

    work = _work(rng, np.concatenate([owner, np.tile(np.arange(forecasts), 2)]), recurring, first_time_percent)
    home = rng.integers(max(1, regions - 1), size=int(teams.team[-1]) + 1)[teams.team]
    at = home[work.namespace]
    supply = _supply(rng, work, at, regions)
    size_mb = teams.sizes_mb(rng)
    stored = np.zeros((datasets, regions), np.bool_)
    stored[np.arange(datasets), home[teams.namespace]] = True
    used_mb = size_mb @ stored
    free_mb = -(-int(size_mb.sum()) * storage_percent // 100) - int(used_mb.sum())
    sizes = f"{datasets} datasets, {workloads} workloads, {regions} regions"
    knobs = f"storage {storage_percent}%, first-time work {first_time_percent}%"
    columns = {
        "name": f"organisation-{datasets}x{workloads}x{regions}x{storage_percent}x{first_time_percent}",
        "provenance": f"Generated, family organisation: {sizes}, {knobs}.",
        "regions.labels": draws.names("r", regions),
        "gpu_types": GPU_TYPES,
        "apps": APPS,
        "datasets.labels": teams.labels(),
        "workloads.labels": draws.names("w", recurring)
        + tuple(f"{name}-tier{tier}" for tier in (0, LOW_TIER) for name in draws.names("first", forecasts)),
        "regions.storage_mb": used_mb + draws.dirichlet(rng, 4.0, regions, free_mb),
        "regions.supply_mgpu": supply * draws.GPU,
        "datasets.size_mb": size_mb,
        "datasets.stored": stored,
        "workloads.splittable": np.arange(workloads) >= recurring,
        "objective": Objective(weights=dict(TERMS)),
        **_cpu(rng, work, at, supply),
        **_options(work),
        **_runs(work, at),
        "reads.workload": reader,
        "reads.dataset": read,
        "reads.mb_per_day": draws.read_volumes(rng, size_mb[read]),
    }
    return plain(work_tier=work.tier, columns=columns)


def _work(rng: np.random.Generator, namespace: Ints, recurring: int, first_time_percent: int) -> Work:
    """Generated workloads of these namespaces; those after the first ``recurring`` are forecasts."""
    needs = rng.random(recurring) < GPU_SHARE
    gpus = np.where(needs, draws.pareto_powers_of_two(rng, recurring, LARGEST_GANG, PARETO_INDEX), 0)
    tier = tiers(rng, gpus)
    forecasts = (len(namespace) - recurring) // 2
    ahead = np.zeros(0, np.int64)
    if forecasts:
        urgent = int(gpus[tier == 0].sum())
        first_time = urgent * first_time_percent // (100 - first_time_percent)
        offered = round(OFFERED_LOAD / URGENT_LOAD * (urgent + first_time))
        low = max(0, offered - int(gpus.sum()) - first_time)
        popularity = rng.pareto(TEAM_PARETO_INDEX, forecasts) + 1
        ahead = np.concatenate([np.maximum(1, draws.shared_out(total, popularity)) for total in (first_time, low)])
    kinds = len(GPU_TYPES)
    nominal = rng.integers(kinds, size=recurring)
    second = (nominal + rng.integers(1, kinds, size=recurring)) % kinds
    accepts = np.zeros((len(namespace), kinds + 1), np.bool_)
    today = np.zeros((len(namespace), kinds), np.int64)
    rows = np.arange(recurring)
    accepts[rows, nominal] = True
    accepts[rows, second] |= rng.random(recurring) < EITHER_TYPE
    accepts[:recurring][~needs] = [False] * kinds + [True]
    accepts[recurring:, :kinds] = True
    today[rows[needs], nominal[needs]] = SHARE
    today[recurring:] = draws.shared_out(SHARE, np.ones(kinds))
    tier = np.concatenate([tier, np.repeat([0, LOW_TIER], forecasts)])
    return Work(namespace, np.concatenate([gpus, ahead]), tier, today, accepts, recurring)


def _supply(rng: np.random.Generator, work: Work, at: Ints, regions: int) -> Ints:
    """[R, K] whole GPUs; the worst region of each type has 2.63 times as much tier-0 demand today."""
    supply = np.zeros((regions, len(GPU_TYPES)), np.int64)
    demand = work.gpus[:, None] * work.today * (work.tier == 0)[:, None]
    for k in range(len(GPU_TYPES)):
        urgent = -(-draws.used(demand[:, k], at, regions) // SHARE)
        total = max(1, round(int(urgent.sum()) / URGENT_LOAD))
        supply[:, k] = skewed_supply(rng, total, urgent, SUPPLY_ALPHA)
    return supply


def _cpu(rng: np.random.Generator, work: Work, at: Ints, supply: Ints) -> dict[str, Any]:
    """CPU of workloads and regions, and the quotas of Spark and Presto: room for what runs today and for the GPU work
    that the region's GPUs attract; applications take 80% of their quotas, which follow the supply of GPUs."""
    regions, count = len(supply), len(work.gpus)
    share = (supply.sum(axis=1) + 1) / (supply.sum(axis=1) + 1).sum()
    cpu = draws.lognormal(rng, count, median=draws.MEDIAN_CPU_MCORES, sigma=1.0, step=draws.DECICORE)
    app = np.where(work.gpus == 0, rng.integers(2, size=count), 2)
    cpu = np.where(work.gpus == 0, cpu, work.gpus * MCORES_PER_GPU)
    quota = np.zeros((regions, 2), np.int64)
    for a in range(2):
        used = draws.used(np.where(app == a, cpu, 0), at, regions)
        quota[:, a] = np.maximum(used, draws.shared_out(round(int(used.sum()) / CPU_FILL), share))
    gpu_work = draws.used(np.where(app == 2, cpu, 0), at, regions)
    wanted = np.ceil(OFFERED_LOAD / CPU_FILL * MCORES_PER_GPU * supply.sum(axis=1)).astype(np.int64)
    region, which = np.nonzero(np.ones((regions, 2), np.bool_))
    return {
        "workloads.app": app,
        "workloads.cpu_mcores": cpu,
        "regions.cpu_mcores": quota.sum(axis=1) + np.maximum(gpu_work, wanted),
        "cpu_quotas.region": region,
        "cpu_quotas.app": which,
        "cpu_quotas.cpu_mcores": quota.ravel(),
    }


def _options(work: Work) -> dict[str, Any]:
    """The option arrays of the generated workloads."""
    workload, kind = np.nonzero(work.accepts)
    return {"options.workload": workload, "options.gpu_type": kind, "options.mgpu": work.gpus[workload] * draws.GPU}


def _runs(work: Work, at: Ints) -> dict[str, Any]:
    """Present runs of all generated workloads, at home."""
    shares = np.concatenate([work.today, SHARE * (work.gpus == 0)[:, None]], axis=1)
    workload, kind = np.nonzero(shares)
    return {
        "current_runs.workload": workload,
        "current_runs.region": at[workload],
        "current_runs.gpu_type": kind,
        "current_runs.share": shares[workload, kind],
    }
