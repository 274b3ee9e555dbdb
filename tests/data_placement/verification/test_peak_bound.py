"""The packing floor never lies above a peak that some plan reaches."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.entities import CpuQuotas, CurrentRuns, Reads
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound
from tests.data_placement.strategies import problems
from tests.data_placement.support import proven
from tests.examples import examples


def alone(problem: DataPlacement, sizes: list[int], supply: list[int]) -> DataPlacement:
    """As many pieces of work as sizes, one type, one tier; nothing else matters to the floor."""
    count, regions = len(sizes), len(supply)
    return problem.with_columns(
        {
            "regions.labels": tuple(f"r{r}" for r in range(regions)),
            "gpu_types": ("k",),
            "workloads.labels": tuple(f"w{w}" for w in range(count)),
            "tiers": (0,),
            "regions.supply_mgpu": np.array(supply, np.int64)[:, None],
            "regions.gpu_price_micro": np.zeros((len(supply), 1), np.int64),
            "workloads.tier": np.zeros(count, np.int64),
            "workloads.splittable": np.zeros(count, np.bool_),
            "options.workload": np.arange(count),
            "options.gpu_type": np.zeros(count, np.int64),
            "options.mgpu": np.array(sizes, np.int64),
            "may_refuse": False,
            "objective": replace(problem.objective, peak_levels={0: 0.0}),
            **without_the_rest(count, regions),
        }
    )


def without_the_rest(count: int, regions: int) -> dict[str, Any]:
    """Roomy regions, one dataset that nobody reads, no rules and nothing running today."""
    none = np.zeros(0, np.int64)
    relations = (Reads, CurrentRuns, CpuQuotas)
    empty = {f"{group.AXIS}.{column.name}": none for group in relations for column in group.COLUMNS}
    roomy = np.full(regions, 10**9)
    return empty | {
        "datasets.labels": ("i",),
        "apps": ("",),
        "regions.storage_mb": roomy,
        "regions.headroom_milli": np.zeros(regions, np.int64),
        "regions.storage_price_micro": np.zeros(regions, np.int64),
        "regions.copy_price_micro": np.zeros(regions, np.int64),
        "regions.cpu_mcores": roomy,
        "regions.ingress_mb_per_day": roomy,
        "regions.ingress_limited": np.zeros(regions, np.bool_),
        "datasets.size_mb": np.ones(1, np.int64),
        "datasets.copies_min": np.ones(1, np.int64),
        "datasets.copies_max": np.full(1, regions),
        "datasets.stored": np.ones((1, regions), np.bool_),
        "datasets.pinned": np.zeros((1, regions), np.bool_),
        "datasets.forbidden": np.zeros((1, regions), np.bool_),
        "datasets.residency": np.zeros((1, regions), np.bool_),
        "workloads.cpu_mcores": np.zeros(count, np.int64),
        "workloads.app": np.zeros(count, np.int64),
        "workloads.output_mb": np.zeros(count, np.int64),
        "workloads.pinned": np.zeros((count, regions), np.bool_),
        "workloads.forbidden": np.zeros((count, regions), np.bool_),
        "links": None,
    }


def smallest_peak(sizes: list[int], supply: list[int]) -> float:
    """Every way to spread the work over regions that have the type."""
    best = np.inf
    for where in product([r for r, gpus in enumerate(supply) if gpus], repeat=len(sizes)):
        held = [sum(size for size, r in zip(sizes, where) if r == q) for q in range(len(supply))]
        best = min(best, max(held[q] / supply[q] for q in range(len(supply)) if supply[q]))
    return best


@pytest.fixture(scope="module")
def template() -> DataPlacement:
    from tests.data_placement.workshop import PROBLEM

    return PROBLEM


@examples(150)
@given(
    sizes=st.lists(st.sampled_from((1000, 2000, 4000, 8000, 3000, 500, 7001)), min_size=1, max_size=6),
    supply=st.lists(st.sampled_from((4000, 0, 1500, 9000, 16_000)), min_size=1, max_size=3).filter(any),
)
def test_the_floor_is_below_the_smallest_peak(template: DataPlacement, sizes: list[int], supply: list[int]) -> None:
    floor = bin_packing_peak_bound(alone(template, sizes, supply))
    best = smallest_peak(sizes, supply)
    event(f"tight: {floor[0, 0] > best * (1 - 1e-6)}")
    assert floor.shape == (1, 1)
    assert 0 < floor[0, 0] <= best


@pytest.mark.parametrize(
    ("sizes", "supply", "peak"),
    [
        ([8000] * 3, [8000, 8000], 2.0),  # two gangs must meet, where 1.5 would do for parts
        ([8000, 8000], [4000, 12_000], 4 / 3),  # both in the larger region
        ([5000, 5000, 5000], [8000, 8000], 10 / 8),  # no multiple of anything smaller
        ([7000, 7000], [4000, 4000], 7 / 4),
        ([1000] * 12, [8000, 4000], 1.0),
    ],
)
def test_the_floor_sees_that_gangs_are_whole(
    template: DataPlacement, sizes: list[int], supply: list[int], peak: float
) -> None:
    assert smallest_peak(sizes, supply) == pytest.approx(peak)
    assert bin_packing_peak_bound(alone(template, sizes, supply))[0, 0] == pytest.approx(peak, rel=1e-8)


@examples(80)
@given(problem=problems(roomy=True, refuse=None))
def test_no_plan_is_below_the_floor(problem: DataPlacement) -> None:
    weights = dict.fromkeys(problem.objective.weights, 0.0) | {"peak": 1.0}
    peaks_only = replace(problem, objective=replace(problem.objective, weights=weights))
    best = proven(base(peaks_only).mip).objective
    if best is not None:
        above = bin_packing_peak_bound(problem) - problem.peak_level
        floor = float((above * problem.tier_weight).sum())
        event(f"some floor: {floor > 0}")
        assert floor <= best + 1e-7
