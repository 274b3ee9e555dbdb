"""Blocks of an instance: what belongs together stays together, limits add up, and costs are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.blocks.clusters import block_of_workloads, owner_of_datasets
from mast_opt.problems.data_placement.tetris.blocks.instances import Block, block_instance, block_rows, share_of_costs
from mast_opt.problems.data_placement.tetris.blocks.params import BlockParams
from tests.data_placement.support import made
from tests.data_placement.tetris.multilevel.graphs import communities, problem_of


def divided(problem: DataPlacement, count: int) -> tuple[Ints, list[Block]]:
    block = block_of_workloads(problem, count, BlockParams())
    owner = owner_of_datasets(problem, block, count)
    return block, [block_rows(problem, block, owner, number) for number in range(count)]


def test_clusters_that_share_nothing_are_not_divided() -> None:
    edges = communities(np.random.default_rng(1), 60, 4, 1.0, 0.0)
    problem = problem_of(edges, np.ones(240, np.int64), np.full(4, 100))
    block, rows = divided(problem, 2)
    assert sum(len(one.datasets) for one in rows) == len(problem.datasets)
    assert np.ptp(np.bincount(block)) <= len(block) // 10


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ("links", "features")])
def test_blocks_cover_an_instance_and_its_limits_once(family: str) -> None:
    problem = made(family, datasets=30, workloads=60, regions=4)
    _, rows = divided(problem, 3)
    parts = [block_instance(problem, problem.objective.weights, one) for one in rows]
    for axis, whole in (("workloads", problem.workloads), ("reads", problem.reads)):
        at = np.sort(np.concatenate([getattr(one, axis) for one in rows]))
        np.testing.assert_array_equal(at, np.arange(len(whole)))
    owned = np.sort(np.concatenate([one.datasets[one.owned] for one in rows]))
    np.testing.assert_array_equal(owned, np.arange(len(problem.datasets)))
    data = problem.datasets
    guests = [(data.size_mb[one.datasets] * ~one.owned) @ data.pinned[one.datasets] for one in rows]
    storage = sum(part.usable_storage_mb - pinned for part, pinned in zip(parts, guests, strict=True))
    assert (storage <= problem.usable_storage_mb).all()
    assert (sum(part.regions.cpu_mcores for part in parts) <= problem.regions.cpu_mcores).all()
    assert (sum(part.cpu_quotas.cpu_mcores for part in parts) <= problem.cpu_quotas.cpu_mcores).all()
    extra = len(parts) * (problem.regions.supply_mgpu > 0)  # a region with GPUs keeps one thousandth in each block
    assert (sum(part.regions.supply_mgpu for part in parts) <= problem.regions.supply_mgpu + extra).all()


def test_a_unit_costs_in_a_block_what_it_costs_in_the_whole() -> None:
    problem = made("organisation", datasets=60, workloads=120, regions=4)
    weights = problem.objective.weights
    _, rows = divided(problem, 2)
    for one in rows:
        part = block_instance(problem, weights, one)
        for term, mine, whole in (
            ("remote", part.reads.mb_per_day.sum(), problem.reads.mb_per_day.sum()),
            ("storage", part.datasets.size_mb.sum(), problem.datasets.size_mb.sum()),
            ("copy", part.datasets.size_mb.sum(), problem.datasets.size_mb.sum()),
            ("moved_work", part.demand_mgpu.sum(), problem.demand_mgpu.sum()),
            ("overload", part.regions.supply_mgpu.sum(), problem.regions.supply_mgpu.sum()),
        ):
            assert part.objective.weights[term] / mine == pytest.approx(weights[term] / whole)


def test_what_blocks_bear_of_a_replica_adds_up() -> None:
    problem = made("standard", datasets=20, workloads=80, regions=3)
    _, rows = divided(problem, 3)
    total = np.zeros(len(problem.datasets))
    for one in rows:
        total[one.datasets] += share_of_costs(problem, one)
    np.testing.assert_allclose(total[np.unique(problem.reads.dataset)], 1.0)
