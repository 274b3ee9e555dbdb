"""The spectral bound holds for any shift and vectors, and is none where they prove nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import PlanError
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.generate.blank import plain
from mast_opt.problems.data_placement.problem import TERMS
from mast_opt.problems.data_placement.tetris.lagrangian.spectral import SpectralParams, spectrum_of
from mast_opt.problems.data_placement.verification.certificate import certified_bound
from mast_opt.problems.data_placement.verification.spectral_bound import Spectrum, cut_graph, spectral_bound
from mast_opt.problems.kind.header import Objective
from tests.narrowing import some


def partition(rng: np.random.Generator, datasets: int, workloads: int, regions: int, reads: int = 2) -> DataPlacement:
    """Datasets of one copy, in two groups that share readers, and regions with storage for a few more than an equal
    share."""
    size = rng.integers(1, 4, datasets)
    chosen = [
        np.sort(rng.choice(np.flatnonzero(np.arange(datasets) % 2 == rng.integers(2)), reads, replace=False))
        if rng.random() < 0.8
        else np.sort(rng.choice(datasets, reads, replace=False))
        for _ in range(workloads)
    ]
    columns: dict[str, Any] = {
        "name": "partition",
        "regions.labels": tuple(f"r{r}" for r in range(regions)),
        "gpu_types": (),
        "datasets.labels": tuple(f"d{i}" for i in range(datasets)),
        "workloads.labels": tuple(f"w{w}" for w in range(workloads)),
        "regions.storage_mb": np.full(regions, -(-int(size.sum()) // regions) + 2),
        "regions.cpu_mcores": np.full(regions, workloads * 1000),
        "regions.supply_mgpu": np.zeros((regions, 0), np.int64),
        "datasets.size_mb": size,
        "datasets.stored": np.zeros((datasets, regions), np.bool_),
        "datasets.copies_max": np.ones(datasets, np.int64),
        "workloads.cpu_mcores": np.full(workloads, 1000),
        "options.workload": np.arange(workloads),
        "options.gpu_type": np.zeros(workloads, np.int64),
        "options.mgpu": np.zeros(workloads, np.int64),
        "reads.workload": np.repeat(np.arange(workloads), reads),
        "reads.dataset": np.concatenate(chosen),
        "reads.mb_per_day": rng.integers(1, 9, workloads * reads),
        "objective": Objective(weights=dict.fromkeys(TERMS, 0.0) | {"remote": 100.0, "storage": 1.0}),
    }
    return plain(work_tier=np.zeros(workloads, np.int64), columns=columns)


def best_spectrum(problem: DataPlacement, seed: int = 1) -> Spectrum:
    return some(spectrum_of(problem, lambda: False, np.random.default_rng(seed), SpectralParams()))


@pytest.mark.parametrize("seed", range(6))
def test_no_spectrum_exceeds_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = partition(rng, 8, 14, 2 + seed % 2, 2 + seed % 3 // 2)
    weights = problem.objective.weights
    best = some(mast_opt.solve(problem, gap=1e-9).objective)
    found = best_spectrum(problem)
    assert 1.0 < spectral_bound(problem, weights, found) <= best + 1e-9
    nodes = len(some(cut_graph(problem)).size)
    for _ in range(40):
        shift = rng.normal(0, 3, nodes)
        vectors = found.vectors + rng.normal(0, rng.choice([0, 1e-3, 0.3]), found.vectors.shape)
        drop, level = rng.uniform(0, 20, len(found.drop)), rng.normal(0, 3, 1)
        for one in (
            Spectrum(shift, vectors, drop, level),
            Spectrum(found.shift, vectors, found.drop, found.level - rng.uniform(0, 1)),
            replace(found, level=found.level + rng.uniform(0, 1)),
        ):
            assert spectral_bound(problem, weights, one) <= best + 1e-9


def test_a_level_at_the_eigenvalue_is_within_rounding_and_refused() -> None:
    """The least eigenvalue of a Laplacian is 0: only rounding could factorise what is left of it."""
    problem = partition(np.random.default_rng(4), 8, 14, 2)
    nodes = len(some(cut_graph(problem)).size)
    at_zero = Spectrum(np.zeros(nodes), np.zeros((nodes, 1)), np.zeros(1), np.zeros(1))
    weights = problem.objective.weights
    for level, proven in ((-1e-6, True), (0.0, False), (1e-14, False), (1e-6, False)):
        bound = spectral_bound(problem, weights, replace(at_zero, level=np.array([level])))
        assert np.isfinite(bound) == proven, level


def test_two_groups_are_proven_not_to_be_worth_cutting_further() -> None:
    """Two cliques, one a region, with one reader across: the bound is within a tenth of what cutting it costs."""
    problem = partition(np.random.default_rng(1), 8, 14, 2)
    pairs = [(i, j) for group in (range(4), range(4, 8)) for i in group for j in group if i < j] + [(0, 4)]
    reads = np.array(pairs).ravel()
    problem = problem.with_columns(
        {
            "datasets.size_mb": np.ones(8, np.int64),
            "regions.storage_mb": np.full(2, 4),
            "workloads.labels": tuple(f"w{w}" for w in range(len(pairs))),
            "workloads.cpu_mcores": np.zeros(len(pairs), np.int64),
            **{f"workloads.{name}": np.zeros(len(pairs), np.int64) for name in ("tier", "app", "output_mb")},
            "workloads.splittable": np.zeros(len(pairs), np.bool_),
            **{f"workloads.{name}": np.zeros((len(pairs), 2), np.bool_) for name in ("pinned", "forbidden")},
            "options.workload": np.arange(len(pairs)),
            "options.gpu_type": np.zeros(len(pairs), np.int64),
            "options.mgpu": np.zeros(len(pairs), np.int64),
            "reads.workload": np.repeat(np.arange(len(pairs)), 2),
            "reads.dataset": reads,
            "reads.mb_per_day": np.ones(len(reads), np.int64),
        }
    )
    bound = spectral_bound(problem, problem.objective.weights, best_spectrum(problem))
    assert 0.8 < (bound - 1.0) * len(reads) / 100 <= 1.0


@pytest.mark.parametrize("rule", ["copies", "none", "refuse", "no remote reads"])
def test_where_plans_are_no_partitions_there_is_no_graph(rule: str) -> None:
    problem = partition(np.random.default_rng(2), 8, 14, 2)
    counts = {"copies": ("copies_max", 2), "none": ("copies_min", 0)}
    if rule in counts:
        name, count = counts[rule]
        problem = problem.with_columns({f"datasets.{name}": np.full(8, count)})
    elif rule == "refuse":
        problem = replace(problem, may_refuse=True)
    else:
        problem = replace(problem, remote_reads=False)
    assert cut_graph(problem) is None


def test_a_solve_keeps_the_spectrum_in_its_certificate() -> None:
    problem = partition(np.random.default_rng(3), 30, 90, 3)
    solution = mast_opt.solve(problem, "tetris", iterations=2, threads=1)
    arrays = dict(some(solution.certificate).arrays())
    bound = certified_bound(problem, arrays)
    assert bound == pytest.approx(some(solution.bound))
    without = {name: array for name, array in arrays.items() if not name.startswith("spectrum")}
    assert certified_bound(problem, without) < bound
    raised = arrays | {"spectrum_level": arrays["spectrum_level"] + 1}
    assert certified_bound(problem, raised) == certified_bound(problem, without)
    assert certified_bound(problem, arrays | {"spectrum_drop": -arrays["spectrum_drop"]}) < bound
    with pytest.raises(PlanError, match="spectrum_level"):
        certified_bound(problem, {name: array for name, array in arrays.items() if name != "spectrum_level"})


def test_there_is_none_without_the_time_to_check_it(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = partition(np.random.default_rng(3), 30, 90, 3)
    for share, kept in ((0.0, False), (0.5, True)):
        monkeypatch.setattr(mast_opt.TetrisParams, "spectral", SpectralParams(share=share))
        certificate = some(mast_opt.solve(problem, "tetris", time_limit_s=0.5, threads=1).certificate)
        assert ("spectrum_level" in certificate.arrays()) is kept
    monkeypatch.setattr(mast_opt.TetrisParams, "spectral", SpectralParams(iterations=0))
    none = mast_opt.solve(problem, "tetris", iterations=1, threads=1)
    assert "spectrum_level" not in some(none.certificate).arrays()
