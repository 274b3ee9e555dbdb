"""Instance family ``standard`` of data placement, and the recipe that the families near it vary."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.blank import plain
from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints

GPU_TYPES = ("a100", "h100")
LARGEST_GANG = 64
BOTH_TYPES = 0.25
"""Share of the GPU workloads that run on either type, with the same number of GPUs."""
TIERS = 3

Reads = tuple[Ints, Ints]
"""(workload, dataset) of every read, sorted."""


def any_readers(rng: np.random.Generator, datasets: int, workloads: int) -> Reads:
    """The published number of readers per dataset, each drawn from all workloads alike."""
    return draws.distinct_readers(rng, draws.reader_counts(rng, datasets, workloads), workloads)


def every_type(regions: int) -> Bools:
    """[R, 2] generated data placement: every region has both GPU types."""
    return np.ones((regions, len(GPU_TYPES)), np.bool_)


@dataclass(frozen=True)
class Recipe:
    """Settings in which the families near ``standard`` differ; the defaults are ``standard`` itself."""

    name: str = "standard"
    storage: float = 1.8
    """All storage, in copies of everything."""
    cpu_fill: float = 0.8
    gpu_load: float = 1.05
    copies_max: int = 4
    reads: Callable[[np.random.Generator, int, int], Reads] = any_readers
    types: Callable[[int], Bools] = every_type
    resize: Callable[[Ints], Ints] = np.asarray
    """Last change to the dataset sizes."""


@dataclass(frozen=True)
class Work:
    """GPU workloads and the types that each accepts; the other workloads need CPU only."""

    gpus: Ints
    """[W] 0 for CPU-only work."""
    nominal: Ints
    """[W] the type that the supply is planned for."""
    either: Bools
    """[W] may it run on the other type as well?"""

    def options(self) -> dict[str, Any]:
        """The option arrays of the generated workloads."""
        accepts = np.zeros((len(self.gpus), len(GPU_TYPES) + 1), np.bool_)
        accepts[np.arange(len(self.gpus)), self.nominal] = True
        accepts[self.either, :-1] = True
        accepts[self.gpus == 0] = [False] * len(GPU_TYPES) + [True]
        workload, kind = np.nonzero(accepts)
        return {"options.workload": workload, "options.gpu_type": kind, "options.mgpu": self.gpus[workload] * draws.GPU}

    def supply(self, rng: np.random.Generator, types: Bools, load: float) -> Ints:
        """[R, K] milli-GPUs: demand over supply is ``load`` for each type, Dirichlet(1.5) over its regions."""
        supply = np.zeros(types.shape, np.int64)
        for kind in range(types.shape[1]):
            total = max(1, round(int(self.gpus[self.nominal == kind].sum()) / load))
            at = np.flatnonzero(types[:, kind])
            supply[at, kind] = draws.dirichlet(rng, 1.5, len(at), total)
        return supply * draws.GPU

    def regions(self, supply: Ints) -> tuple[Bools, Ints]:
        """Sets of regions that have the GPUs that work may need, and the index of each workload's set."""
        has = supply.T > 0
        anywhere = np.ones(len(supply), np.bool_)
        patterns = np.stack([has[0], has[1], has[0] | has[1], anywhere])
        return patterns, np.where(self.gpus == 0, 3, np.where(self.either, 2, self.nominal))


def gpu_work(rng: np.random.Generator, workloads: int) -> Work:
    """Half of the workloads need GPUs: 1, 2, 4 … 64, all equally likely, of one type or of either."""
    gpus = np.zeros(workloads, np.int64)
    gpus[rng.permutation(workloads)[: workloads // 2]] = draws.powers_of_two(rng, workloads // 2, LARGEST_GANG)
    return Work(gpus, rng.integers(len(GPU_TYPES), size=workloads), rng.random(workloads) < BOTH_TYPES)


def bake(rng: np.random.Generator, recipe: Recipe, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """An instance of the recipe."""
    size_mb = recipe.resize(draws.lognormal(rng, datasets, median=draws.MEDIAN_SIZE_MB, sigma=1.4, step=draws.GB))
    storage_mb = draws.dirichlet(rng, 4.0, regions, round(recipe.storage * int(size_mb.sum())), draws.GB)
    anywhere, same = np.ones((1, regions), np.bool_), np.zeros(datasets, np.int64)
    home, storage_mb = draws.settle(rng, size_mb, storage_mb, anywhere, same)
    stored = np.zeros((datasets, regions), np.bool_)
    stored[np.arange(datasets), home] = True

    work = gpu_work(rng, workloads)
    supply_mgpu = work.supply(rng, recipe.types(regions), recipe.gpu_load)
    cpu_need = draws.lognormal(rng, workloads, median=draws.MEDIAN_CPU_MCORES, sigma=1.0, step=draws.DECICORE)
    cpu_mcores = draws.dirichlet(rng, 4.0, regions, round(int(cpu_need.sum()) / recipe.cpu_fill), draws.DECICORE)
    _, cpu_mcores = draws.settle(rng, cpu_need, cpu_mcores, *work.regions(supply_mgpu))

    reader, read = recipe.reads(rng, datasets, workloads)
    work_tier = rng.integers(TIERS, size=workloads)
    sizes = f"{datasets} datasets, {workloads} workloads, {regions} regions"
    columns = {
        "name": f"{recipe.name}-{datasets}x{workloads}x{regions}",
        "provenance": f"Generated, family {recipe.name}: {sizes}.",
        "regions.labels": draws.names("r", regions),
        "gpu_types": GPU_TYPES,
        "datasets.labels": draws.names("d", datasets),
        "workloads.labels": draws.names("w", workloads),
        "regions.storage_mb": storage_mb,
        "regions.cpu_mcores": cpu_mcores,
        "regions.supply_mgpu": supply_mgpu,
        "datasets.size_mb": size_mb,
        "datasets.copies_max": np.full(datasets, min(recipe.copies_max, regions)),
        "datasets.stored": stored,
        "workloads.cpu_mcores": cpu_need,
        **work.options(),
        "reads.workload": reader,
        "reads.dataset": read,
        "reads.mb_per_day": draws.read_volumes(rng, size_mb[read]),
    }
    return plain(work_tier=work_tier, columns=columns)


def standard(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """The family that all figures of the documentation are about.

    Dataset sizes are lognormal (median 10 TB, σ 1.4). P50, P90 and P99 of the readers per dataset are 3, 17 and 45,
    at most a quarter of the workloads; readers are drawn from all workloads alike; a read moves an exponentially
    distributed part of the dataset each day, half of it on average. Half of the workloads need GPUs, 1 to 64 by
    powers of two, of one of two types, a quarter of them of either. CPU need is lognormal (median 32 cores, σ 1).
    Tiers 0 to 2 are equally likely. Storage is 1.8 copies of everything and CPU 80% full, both spread over regions by
    Dirichlet(4); GPU demand is 105% of supply for each type, spread by Dirichlet(1.5). At most 4 copies of a dataset;
    one copy of each is somewhere today, by the room there is; weights are the defaults.

    Feasible by construction: the current replicas and reading everything else remotely fit, and so does the work.
    In very small instances a region is enlarged where its largest item would fit nowhere.
    """
    return bake(rng, Recipe(), datasets, workloads, regions)
