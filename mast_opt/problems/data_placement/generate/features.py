"""Instance family ``features`` of data placement: every optional part of the problem at once, for tests."""

from typing import Any

import numpy as np

from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.standard import Recipe, bake
from mast_opt.problems.data_placement.generate.variants import near_data, with_links
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.kind.header import Objective

APPS = ("ads", "search", "video", "")
TIER_WEIGHTS = {0: 4.0, 1: 2.0, 2: 1.0}
PEAK_LEVELS = {0: 0.5, 1: 0.75, 2: 1.0}
MEDIAN_OUTPUT_MB = 1_000_000


def features(rng: np.random.Generator, *, datasets: int, workloads: int, regions: int) -> DataPlacement:
    """``standard`` with everything optional: two copies of some datasets, pins and bans of datasets and workloads,
    residency, headroom, ingress limits, outputs, applications with quotas, splittable work, types of which different
    numbers do, current runs, work that may stay unserved, links with capacity and price, tier weights, levels of
    peaks, and every term weighed.

    Feasible by construction: the limits leave room for today's replicas and one place to run each workload.
    """
    problem = bake(rng, Recipe("features"), datasets, workloads, regions)
    region, cpu_mcores = near_data(rng, problem)
    problem = problem.with_columns(
        {
            "regions.cpu_mcores": cpu_mcores,
            "options.mgpu": _fewer_of_the_faster(problem),
            "workloads.splittable": _some(rng, 0.3, workloads),
            "may_refuse": True,
            "objective": Objective(
                weights=dict(problem.objective.weights)
                | {"idle": 0.1, "moved_work": 0.5, "retyped_work": 0.3, "moved_items": 0.4},
                tier_weights=TIER_WEIGHTS,
                peak_levels=PEAK_LEVELS,
            ),
        }
    )
    problem = problem.with_columns(_replicas(rng, problem))
    problem = problem.with_columns(_work_rules(rng, problem, region))
    problem = problem.with_columns(_quotas(rng, problem, region))
    problem = problem.with_columns(_storage(rng, problem, region))
    problem = problem.with_columns(_current_runs(rng, problem, region))
    problem = with_links(rng, problem, region)
    return problem.with_columns(_residency(rng, problem, region))


def _some(rng: np.random.Generator, share: float, count: int) -> Bools:
    """[count] of generated datasets or work, true for about this share of them, and for one at least."""
    chosen = np.zeros(count, np.bool_)
    chosen[rng.permutation(count)[: max(1, round(share * count))]] = True
    return chosen


def _fewer_of_the_faster(problem: DataPlacement) -> Ints:
    """Work that runs on either type needs half as many of the second."""
    either = np.bincount(problem.options.workload)[problem.options.workload] > 1
    return np.where(either & (problem.options.gpu_type == 1), problem.options.mgpu // 2, problem.options.mgpu)


def _replicas(rng: np.random.Generator, problem: DataPlacement) -> dict[str, Any]:
    """Some datasets need two copies (and have them today), some are pinned where they are, some banned elsewhere."""
    stored = problem.datasets.stored.copy()
    count, regions = stored.shape
    twice = np.flatnonzero(_some(rng, 0.1, count) & (regions > 1))
    stored[twice, (stored[twice].argmax(axis=1) + 1) % regions] = True
    return {
        "datasets.stored": stored,
        "datasets.copies_min": np.where(stored.sum(axis=1) > 1, 2, 1),
        "datasets.pinned": stored & _some(rng, 0.1, count)[:, None],
        "datasets.forbidden": ~stored & _some(rng, 0.1, stored.size).reshape(stored.shape),
    }


def _residency(rng: np.random.Generator, problem: DataPlacement, region: Ints) -> dict[str, Any]:
    """Some datasets may be stored and read only where they are today and where their readers have a place."""
    needed = problem.datasets.stored.copy()
    needed[problem.reads.dataset, region[problem.reads.workload]] = True
    narrow = np.flatnonzero(~needed.all(axis=1))
    chosen = narrow[_some(rng, 0.2, len(narrow))] if len(narrow) else narrow
    residency = np.zeros_like(needed)
    residency[chosen] = needed[chosen]
    return {"datasets.residency": residency}


def _work_rules(rng: np.random.Generator, problem: DataPlacement, region: Ints) -> dict[str, Any]:
    """Some work is pinned to its region, some banned elsewhere."""
    here = region[:, None] == np.arange(len(problem.regions))
    return {
        "workloads.pinned": here & _some(rng, 0.05, len(region))[:, None],
        "workloads.forbidden": ~here & _some(rng, 0.05, here.size).reshape(here.shape),
    }


def _quotas(rng: np.random.Generator, problem: DataPlacement, region: Ints) -> dict[str, Any]:
    """Applications, and CPU quotas in half of the regions for those that are named."""
    regions, apps = len(problem.regions), len(APPS)
    app = rng.integers(apps, size=len(region))
    need = draws.used(problem.workloads.cpu_mcores, region * apps + app, regions * apps).reshape(regions, apps)
    at = np.nonzero(_some(rng, 0.5, regions * (apps - 1)).reshape(regions, apps - 1))
    return {
        "apps": APPS,
        "workloads.app": app,
        "cpu_quotas.region": at[0],
        "cpu_quotas.app": at[1],
        "cpu_quotas.cpu_mcores": need[at] * 3 // 2 + draws.DECICORE,
    }


def _storage(rng: np.random.Generator, problem: DataPlacement, region: Ints) -> dict[str, Any]:
    """Outputs, headroom, and ingress limits in half of the regions."""
    regions, work = len(problem.regions), len(region)
    written = draws.lognormal(rng, work, median=MEDIAN_OUTPUT_MB, sigma=1.0, step=draws.GB)
    output_mb = np.where(_some(rng, 0.2, work), written, 0)
    headroom = np.where(_some(rng, 0.5, regions), rng.integers(20, 120, regions), 0)
    filled = problem.datasets.stored.T @ problem.datasets.size_mb + draws.used(output_mb, region, regions)
    limited = _some(rng, 0.5, regions)
    return {
        "workloads.output_mb": output_mb,
        "regions.headroom_milli": headroom,
        "regions.storage_mb": np.maximum(
            problem.regions.storage_mb, -(-filled * 1000 // (1000 - headroom) // draws.GB) * draws.GB
        ),
        "regions.ingress_limited": limited,
        "regions.ingress_mb_per_day": np.where(limited, problem.regions.storage_mb, 0),
    }


def _current_runs(rng: np.random.Generator, problem: DataPlacement, region: Ints) -> dict[str, Any]:
    """Present runs of four fifths of the work: here or there, some of it in two places, some on a type not stated."""
    regions, types = len(problem.regions), len(problem.gpu_types)
    running = np.flatnonzero(_some(rng, 0.8, len(region)))
    moved = rng.random(len(running)) < 0.3
    first = np.where(moved, rng.integers(regions, size=len(running)), region[running])
    split = problem.workloads.splittable[running] & (rng.random(len(running)) < 0.5) & (regions > 1)
    part = np.where(split, rng.integers(1, SHARE, len(running)), SHARE)
    option = np.searchsorted(problem.options.workload, running)
    kind = np.where(rng.random(len(running)) < 0.2, types, problem.options.gpu_type[option])
    rows = np.concatenate(
        [
            np.stack([running, first, kind, part]),
            np.stack([running, (first + 1) % regions, kind, SHARE - part])[:, split],
        ],
        axis=1,
    )
    workload, where, of_type, share = rows[:, np.lexsort((rows[1], rows[0]))]
    return {
        "current_runs.workload": workload,
        "current_runs.region": where,
        "current_runs.gpu_type": of_type,
        "current_runs.share": share,
    }
