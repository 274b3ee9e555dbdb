"""Trees of reads that do not fit into one region lift the bound, and never above the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.kept_certificate import kept_certificate
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.problems.data_placement.tetris.lagrangian.tree_cut_relaxation import TreeCutRelaxation, saved_cuts
from mast_opt.problems.data_placement.verification.certificate import Certificate, certified_bound
from mast_opt.problems.data_placement.verification.certificate_bound import LEVELS
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound
from tests.data_placement.support import proven


def without_gpus(family: str, seed: int, **sizes: int) -> DataPlacement:
    """An instance in which only what is read, copied and stored costs anything."""
    problem = FAMILIES[family].generate(np.random.default_rng(seed), **sizes)
    weights = dict(problem.objective.weights) | {"peak": 0.0, "overload": 0.0}
    return replace(problem, objective=replace(problem.objective, weights=weights))


def treed(problem: DataPlacement, seed: int = 0) -> TreeCutRelaxation:
    a = arrays_of(problem, dict(problem.objective.weights))
    return TreeCutRelaxation(
        a, bin_packing_peak_bound(problem), problem.workloads.splittable, np.random.default_rng(seed)
    )


def certificate_of(problem: DataPlacement, relaxation: TreeCutRelaxation) -> Certificate:
    trees = saved_cuts(relaxation.trees)
    weights = problem.objective.weights
    return kept_certificate(problem, weights, relaxation.best, relaxation.gangs.size, trees)


CASES = [
    *(("standard", seed, {"datasets": 10, "workloads": 15, "regions": 3}) for seed in range(1, 7)),
    *(("weakly-coupled", seed, {"datasets": 8, "workloads": 8, "regions": 3}) for seed in range(1, 4)),
    *(("tight-storage", seed, {"datasets": 8, "workloads": 12, "regions": 3}) for seed in range(1, 4)),
    *(("features", seed, {"datasets": 8, "workloads": 10, "regions": 3}) for seed in range(1, 4)),
]


@pytest.mark.parametrize(("family", "seed", "sizes"), CASES)
def test_the_bound_with_trees_is_below_the_optimum(family: str, seed: int, sizes: dict[str, int]) -> None:
    problem = without_gpus(family, seed, **sizes)
    best = proven(base(problem).mip).objective
    assert best is not None
    relaxation = treed(problem)
    relaxation.step(3000)
    bound = certificate_of(problem, relaxation).bound(problem)
    assert bound <= best + 1e-7 * max(1.0, abs(best))
    rounding = len(problem.regions) * problem.objective.weights["remote"] / LEVELS
    """What two bytes for the price of each read can cost."""
    assert bound == pytest.approx(relaxation.bound, rel=1e-4, abs=rounding)


def test_trees_lift_the_bound() -> None:
    problem = without_gpus("standard", 1, datasets=40, workloads=60, regions=6)
    plain = Relaxation(
        arrays_of(problem, dict(problem.objective.weights)),
        bin_packing_peak_bound(problem),
        problem.workloads.splittable,
    )
    plain.step(2000)
    relaxation = treed(problem)
    relaxation.step(4000)
    assert relaxation.trees.count > 0
    assert certificate_of(problem, relaxation).bound(problem) > 1.1 * plain.bound


def test_a_file_brings_the_trees_back() -> None:
    problem = without_gpus("standard", 2, datasets=20, workloads=30, regions=4)
    relaxation = treed(problem)
    relaxation.step(2000)
    certificate = certificate_of(problem, relaxation)
    assert len(certificate.trees.root) > 0
    assert certified_bound(problem, certificate.arrays()) == certificate.bound(problem)


def test_the_same_seed_finds_the_same_trees() -> None:
    problem = without_gpus("standard", 2, datasets=20, workloads=30, regions=4)
    one, other = treed(problem), treed(problem)
    one.step(1500)
    for _ in range(15):
        other.step(100)
    assert one.bound == other.bound
    assert (one.trees.read == other.trees.read).all()


def test_trees_wait_until_they_are_asked_for() -> None:
    problem = without_gpus("standard", 2, datasets=20, workloads=30, regions=4)
    a = arrays_of(problem, dict(problem.objective.weights))
    relaxation = TreeCutRelaxation(
        a, bin_packing_peak_bound(problem), problem.workloads.splittable, np.random.default_rng(0), waits=True
    )
    while not relaxation.converged:
        relaxation.step(50)
    assert not relaxation.has_cuts
    before = relaxation.bound
    relaxation.step(500)
    assert relaxation.bound == before
    relaxation.go_on()
    assert not relaxation.converged
    relaxation.step(4000)
    assert relaxation.has_cuts
    assert relaxation.bound > before


def test_a_counted_search_finds_trees_and_its_certificate_holds_them() -> None:
    problem = without_gpus("standard", 2, datasets=20, workloads=30, regions=4)
    solution = mast_opt.solve(problem, "tetris", iterations=400, threads=1)
    assert solution.certificate is not None
    arrays = solution.certificate.arrays()
    assert len(arrays["tree_root"]) > 0
    assert solution.bound == certified_bound(problem, arrays)
    assert solution.objective is not None
    assert solution.bound <= solution.objective
