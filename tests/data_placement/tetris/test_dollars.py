"""Dollars in tetris: plans and bounds against HiGHS, limits in dollars, what no plan avoids, what links cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.prices import most_usd
from mast_opt.problems.data_placement.tetris.gibbs.sampler import gibbs_sweep
from mast_opt.problems.data_placement.tetris.incumbent import Assignment, plan_of
from mast_opt.problems.data_placement.tetris.initial_solution import first_state
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of, unavoidable_dollars
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.problems.data_placement.verification.certificate import certified_bound
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound
from tests.data_placement.strategies import problems
from tests.data_placement.tetris.gibbs.test_sweeps import searching
from tests.examples import examples
from tests.narrowing import some

DOLLARS = ("running_cost", "migration_cost")


def priced(seed: int, weights: tuple[float, float]) -> DataPlacement:
    """An instance of 10 × 12 × 3 with a price for everything."""
    problem = mast_opt.generate("data-placement", seed=seed, datasets=10, workloads=12, regions=3)
    rng = np.random.default_rng(seed)
    regions, types = problem.regions.supply_mgpu.shape
    objective = problem.objective
    return replace(
        problem.with_columns(
            {
                "regions.gpu_price_micro": rng.integers(0, 5_000_000, (regions, types)),
                "regions.storage_price_micro": rng.integers(0, 40_000_000, regions),
                "regions.copy_price_micro": rng.integers(0, 90_000_000, regions),
            }
        ),
        objective=replace(objective, weights={**objective.weights, **dict(zip(DOLLARS, weights, strict=True))}),
    )


@pytest.mark.parametrize("weights", [(1e-5, 1e-3), (1e-3, 0.0), (0.0, 1.0)])
def test_plan_and_certified_bound_enclose_the_optimum(weights: tuple[float, float]) -> None:
    problem = priced(1, weights)
    exact = mast_opt.solve(problem, "highs", gap=1e-6, threads=1)
    found = mast_opt.solve(problem, "tetris", iterations=20, threads=1)
    assert exact.objective is not None
    assert found.objective is not None
    assert exact.objective * (1 - 1e-6) <= found.objective <= exact.objective * 1.02
    assert found.certificate is not None
    bound = certified_bound(problem, found.certificate.arrays())
    assert bound == pytest.approx(found.bound)
    assert 0.9 * exact.objective <= bound <= exact.objective * (1 + 1e-9)


def test_a_limit_in_dollars_is_kept_without_a_weight() -> None:
    problem = priced(1, (0.0, 0.0))
    free = mast_opt.solve(problem, "tetris", iterations=10, threads=1)
    cheap = mast_opt.solve(priced(1, (1.0, 0.0)), "tetris", iterations=10, threads=1)
    assert free.verdict is not None
    assert cheap.verdict is not None
    least, most = (one.verdict.terms["running_cost"] for one in (cheap, free) if one.verdict is not None)
    assert least < 0.97 * most
    budget = (least + most) / 2
    kept = mast_opt.solve(problem, "tetris", iterations=10, threads=1, limits={"running_cost": budget})
    assert kept.verdict is not None
    assert kept.verdict.terms["running_cost"] <= budget


@examples(60)
@given(problem=problems(links=False, splits=False, roomy=True))
def test_no_plan_avoids_what_is_unavoidable(problem: DataPlacement) -> None:
    weights = dict.fromkeys(problem.objective.weights, 0.0) | dict.fromkeys(DOLLARS, 1.0)
    exact = mast_opt.solve(problem, "highs", weights=weights, order=(), gap=0.0, threads=1)
    if exact.objective is not None:
        assert unavoidable_dollars(problem, weights) <= exact.objective * (1 + 1e-9) + 1e-9


@examples(40)
@given(problem=problems(links=False, splits=False, refuse=False, roomy=True, priced=True), seed=st.integers(1, 99))
def test_every_part_of_the_search_counts_every_price(problem: DataPlacement, seed: int) -> None:
    """Where nothing but dollars counts and no limit binds, each run and each dataset has a cheapest place of its own.
    HiGHS, the search, the sampler, the bound and what is unavoidable must all find these."""
    p = separable(problem)
    weights = dict(p.objective.weights)
    exact = mast_opt.solve(p, "highs", gap=0.0, threads=1)
    assume(exact.plan is not None)
    optimum = pytest.approx(exact.objective, rel=1e-5)
    assert unavoidable_dollars(p, weights) == optimum
    a = arrays_of(p, weights)
    relaxation = Relaxation(a, bin_packing_peak_bound(p), p.workloads.splittable)
    relaxation.step(3)
    assert relaxation.bound == optimum
    sampled = some(searching(a, first_state(a, False, seed))._gibbs)
    gibbs_sweep(a, sampled, 0, len(p.workloads), 0.0, 0.0, 0.0)
    plan = plan_of(p, Assignment(sampled.option, sampled.region, some(exact.plan).place))
    assert mast_opt.verify(p, plan).objective == optimum


@examples(25)
@given(problem=problems(links=False, splits=False, refuse=False, roomy=True, priced=True))
def test_the_highest_bill_counts_every_price(problem: DataPlacement) -> None:
    """Each run and each dataset is put, by itself, where the verifier's bill is highest."""
    p = separable(problem)
    workloads, datasets, regions = len(p.workloads), len(p.datasets), len(p.regions)
    first = np.searchsorted(p.options.workload, np.arange(workloads))
    everything = np.arange(workloads), np.arange(datasets)

    def bill(option: np.ndarray, region: np.ndarray, held: np.ndarray) -> np.ndarray:
        place = np.zeros((datasets, regions), np.bool_)
        place[everything[1], held] = True
        terms = mast_opt.verify(p, plan_of(p, Assignment(option, region, place))).terms
        return np.array([terms[name] for name in DOLLARS])

    start = (first, np.zeros(workloads, np.int64), np.zeros(datasets, np.int64))
    most = base = bill(*start)
    for w in range(workloads):
        tried = [
            bill(np.where(everything[0] == w, o, start[0]), np.where(everything[0] == w, r, start[1]), start[2])
            for o in np.flatnonzero(p.options.workload == w)
            for r in range(regions)
        ]
        most = most + np.max(tried, axis=0) - base
    for i in range(datasets):
        tried = [bill(*start[:2], np.where(everything[1] == i, r, start[2])) for r in range(regions)]
        most = most + np.max(tried, axis=0) - base
    assert most_usd(p) == pytest.approx(tuple(most), rel=1e-6)


def separable(problem: DataPlacement) -> DataPlacement:
    """The same without reads, pinned replicas, today's runs or limits, with weights for dollars alone."""
    p, regions = problem, len(problem.regions)
    plenty = np.full(regions, 10**12)
    none = np.zeros(0, np.int64)
    return replace(
        p,
        regions=p.regions.with_arrays(
            storage_mb=plenty,
            headroom_milli=0 * plenty,
            cpu_mcores=plenty,
            ingress_limited=np.zeros(regions, np.bool_),
        ),
        datasets=p.datasets.with_arrays(pinned=np.zeros_like(p.datasets.pinned)),
        reads=p.reads.rows(none),
        current_runs=p.current_runs.rows(none),
        cpu_quotas=p.cpu_quotas.rows(none),
        objective=replace(
            p.objective, weights=dict.fromkeys(p.objective.weights, 0.0) | dict(zip(DOLLARS, (1.0, 3.0), strict=True))
        ),
    )


def test_dollars_of_links_are_counted_by_the_last_step_and_refused_beyond_it() -> None:
    problem = mast_opt.generate("data-placement", "links", seed=1, datasets=8, workloads=10, regions=3)
    assert problem.links is not None
    assert problem.links.price_usd_per_tb.any()
    found = mast_opt.solve(problem, "tetris", iterations=5, threads=1, weights={"running_cost": 0.01})
    assert found.verdict is not None
    assert found.verdict.terms["running_cost"] >= 0.0
    with pytest.raises(mast_opt.UsageError, match="tetris does not price running_cost: with prices of links"):
        mast_opt.solve(problem, "tetris", weights={"running_cost": 0.01}, params={"neighbourhoods.link_cells": 1})
