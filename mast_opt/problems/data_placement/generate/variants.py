"""Instance families of data placement that change one property of ``standard`` that helps or hinders heuristics."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from mast_opt.core.units import MB_PER_TB
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.standard import GPU_TYPES, Reads, Recipe, any_readers, bake, every_type
from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints, Links

HOT_READERS = 0.6
"""Share of the workloads that read the hot dataset."""
HOT_SIZE = 0.05
"""Size of the hot dataset, as a share of all other bytes."""
FULL = 0.85
"""Used share of CPU and storage in the weakly coupled family."""
PAIRED = 0.2
"""Share of the datasets that are read in pairs in the weakly coupled family."""
STEPS = ("overload", "peak", "remote", "copy", "storage")
"""Order of the terms in the lexicographic family."""
LINK_DAYS = Fraction(1, 4)
LINK_PRICES = (20, 150)
"""Lowest and highest price of a link, in USD per TB."""


def many_small_regions(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """``standard`` in many regions that have one GPU type each, in turn (both if there is one region)."""

    def one_type(count: int) -> Bools:
        if count == 1:
            return every_type(count)
        return np.equal.outer(np.arange(count) % len(GPU_TYPES), np.arange(len(GPU_TYPES)))

    return bake(rng, Recipe("many-small-regions", types=one_type), datasets, workloads, regions)


def hot_dataset(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """``standard`` with one dataset, the first, that 60% of the workloads read and that is 5% of all other bytes."""

    def reads(rng: np.random.Generator, datasets: int, workloads: int) -> Reads:
        workload, dataset = any_readers(rng, datasets, workloads)
        hot = rng.permutation(workloads)[: max(1, round(HOT_READERS * workloads))]
        return draws.by_workload(
            np.concatenate([workload, hot]), np.concatenate([dataset, np.zeros(len(hot), np.int64)]), datasets
        )

    def resize(size_mb: Ints) -> Ints:
        hot = max(1, round(HOT_SIZE * int(size_mb[1:].sum()) / draws.GB)) * draws.GB
        return np.concatenate([[hot], size_mb[1:]])

    return bake(rng, Recipe("hot-dataset", reads=reads, resize=resize), datasets, workloads, regions)


def tight_storage(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """``standard`` with storage for 1.1 copies of everything instead of 1.8."""
    return bake(rng, Recipe("tight-storage", storage=1.1), datasets, workloads, regions)


def lexicographic(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """``standard`` with its terms minimised one after another: overload, peak, remote, copy, storage."""
    problem = bake(rng, Recipe("lexicographic"), datasets, workloads, regions)
    return replace(problem, objective=replace(problem.objective, order=STEPS))


def links(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """``standard`` with a priced network that binds: copies have a quarter of a day, and the capacity of links is
    little above the need of one simple plan (each workload runs at the home of most of its data, if CPU allows, and
    reads the rest remotely). Prices are 20 to 150 USD a TB; reading everything remotely would cost about one point."""
    problem = bake(rng, Recipe("links"), datasets, workloads, regions)
    region, cpu_mcores = near_data(rng, problem)
    return with_links(rng, replace(problem, regions=replace(problem.regions, cpu_mcores=cpu_mcores)), region)


def with_links(rng: np.random.Generator, problem: DataPlacement, region: Ints) -> DataPlacement:
    """The problem with links that carry the remote reads of work that runs in ``region`` [W] while every dataset stays
    where it is first stored."""
    source, target = problem.datasets.stored.argmax(axis=1)[problem.reads.dataset], region[problem.reads.workload]
    count = len(problem.regions)
    volume = draws.used(problem.reads.mb_per_day, source * count + target, count**2).reshape(count, count)
    np.fill_diagonal(volume, 0)
    source, target = np.nonzero(volume)
    capacity = np.ceil(volume[source, target] * rng.uniform(1.0, 1.3, len(source)) / draws.GB)
    price = np.rint(rng.uniform(*LINK_PRICES, len(source)))
    everything = int(problem.reads.mb_per_day.sum()) / MB_PER_TB * sum(LINK_PRICES) / 2
    weights = dict(problem.objective.weights) | {"egress": float(f"{1 / max(everything, 1):.3g}")}
    return replace(
        problem,
        links=Links(source, target, capacity.astype(np.int64) * draws.GB, price),
        days=LINK_DAYS,
        objective=replace(problem.objective, weights=weights),
    )


def near_data(rng: np.random.Generator, problem: DataPlacement) -> tuple[Ints, Ints]:
    """Region of every workload [W]: where most of its data is today if CPU allows, else any that has room; and the CPU
    capacities [R] in millicores, enlarged where a workload fitted nowhere."""
    local = rng.random(problem.allowed.shape)
    reads, at = np.nonzero(problem.datasets.stored[problem.reads.dataset])
    np.add.at(local, (problem.reads.workload[reads], at), problem.reads.mb_per_day[reads])
    may = np.zeros(problem.allowed.shape, np.bool_)
    np.logical_or.at(may, problem.options.workload, problem.option_regions)
    room = problem.regions.cpu_mcores.copy()
    region = np.zeros(len(problem.workloads), np.int64)
    for w in np.argsort(-problem.workloads.cpu_mcores, kind="stable").tolist():
        fits = may[w] & (room >= problem.workloads.cpu_mcores[w])
        score = np.where(fits, local[w], -1.0) if fits.any() else np.where(may[w], room, -np.inf)
        region[w] = np.argmax(score)
        room[region[w]] -= problem.workloads.cpu_mcores[w]
    return region, problem.regions.cpu_mcores - np.minimum(room, 0)


def weakly_coupled(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """One home region per dataset, and each workload reads one dataset; a fifth of the datasets come in pairs that are
    read together. CPU and storage are 85% full, remote reads forbidden, GPU balance soft. Exact solvers remain
    competitive longest here. Capacities are derived from an existing plan, so every instance is feasible."""
    read = np.arange(workloads) % datasets
    paired = round(PAIRED * datasets) // 2 * 2
    partner = np.flatnonzero(read < paired)
    workload, dataset = draws.by_workload(
        np.concatenate([np.arange(workloads), partner]), np.concatenate([read, read[partner] ^ 1]), datasets
    )
    recipe = Recipe("weakly-coupled", reads=lambda *_: (workload, dataset), copies_max=1)
    problem = bake(rng, recipe, datasets, workloads, regions)
    home = rng.choice(regions, datasets, p=rng.dirichlet(np.full(regions, 4.0)))
    home[1:paired:2] = home[0:paired:2]
    need, size = problem.workloads.cpu_mcores, problem.datasets.size_mb
    cpu = np.ceil(draws.used(need, home[read], regions) / FULL / draws.DECICORE).astype(np.int64) * draws.DECICORE
    storage = np.ceil(draws.used(size, home, regions) / FULL / draws.GB).astype(np.int64) * draws.GB
    today, storage = draws.settle(rng, size, storage, np.ones((1, regions), np.bool_), np.zeros(datasets, np.int64))
    return problem.with_columns(
        {
            "regions.storage_mb": storage,
            "regions.cpu_mcores": cpu,
            "regions.supply_mgpu": np.maximum(problem.regions.supply_mgpu, draws.GPU),
            "datasets.stored": today[:, None] == np.arange(regions),
            "remote_reads": False,
        }
    )
