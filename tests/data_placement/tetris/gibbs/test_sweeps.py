"""Gibbs sweeps: read costs follow from reduced costs, sums are right, prices level, and plans are repaired."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled
from mast_opt.core.solve_result import SolveParams, SolveResult
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.gibbs.congestion_prices import (
    CongestionPrices,
    congestion_prices_of,
    price_regions,
)
from mast_opt.problems.data_placement.tetris.gibbs.params import GibbsParams
from mast_opt.problems.data_placement.tetris.gibbs.replica_reduced_costs import (
    change_reduced_cost,
    fill_reduced_costs,
    find_order_statistics,
    level_without,
    read_cost,
    reduced_cost_buffers,
    replicas_of,
)
from mast_opt.problems.data_placement.tetris.gibbs.sampler import GibbsState, gibbs_sweep
from mast_opt.problems.data_placement.tetris.gibbs.sweeps import GibbsSweeps
from mast_opt.problems.data_placement.tetris.incumbent import SearchPlan
from mast_opt.problems.data_placement.tetris.initial_solution import first_state
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays, arrays_of
from mast_opt.problems.data_placement.tetris.kernel_rehearsals import rehearsals
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, excess, state_of
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.budget import TimeBudget
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, StoppingCriteria
from tests.data_placement.support import made
from tests.narrowing import some

REGIONS = 6
PARAMS = GibbsParams()


@compiled
def cost_of_read(
    a: TetrisArrays, reduced_cost: Singles, i: int, r: int, volume: np.float32, least: Singles
) -> np.float32:
    find_order_statistics(a, reduced_cost, i, least)
    regions = a.stored.shape[1]
    return read_cost(reduced_cost[i, r], level_without(reduced_cost, i, 0, np.float32(0), regions), volume)


@compiled
def levels_after(
    a: TetrisArrays, reduced_cost: Singles, i: int, at: Ints, change: Singles, least: Singles
) -> FloatArray:
    """[changes, 2] the level without a read after each change, as kept and as found afresh."""
    regions, fresh = a.stored.shape[1], reduced_cost.copy()
    levels = np.empty((len(at), 2))
    find_order_statistics(a, reduced_cost, i, least)
    for j in range(len(at)):
        change_reduced_cost(a, reduced_cost, i, at[j], change[j], least)
        fresh[i, :] = reduced_cost[i, :]
        find_order_statistics(a, fresh, i, least)
        r = (at[j] + j) % regions
        levels[j, 0] = level_without(reduced_cost, i, r, np.float32(0.5), regions)
        levels[j, 1] = level_without(fresh, i, r, np.float32(0.5), regions)
    return levels


@compiled
def priced(a: TetrisArrays, levelling: CongestionPrices, stiffness: float) -> None:
    price_regions(a, levelling, stiffness)


@pytest.fixture(scope="module")
def begun() -> tuple[TetrisArrays, TetrisState]:
    problem = made("standard", datasets=60, workloads=90, regions=REGIONS)
    a = arrays_of(problem, dict(problem.objective.weights))
    return a, first_state(a, False, 1)


def searching(
    a: TetrisArrays, s: TetrisState, stop: StoppingCriteria | None = None, refuse: bool = False
) -> GibbsSweeps:
    """Sweeps that begin with the state; nothing goes on after them."""

    class Nothing:
        name = "nothing"
        plans = (SearchPlan(s, cost(a, s)),)

    pace = TimeBudget(SearchMonitor(stop or StoppingCriteria(iterations=100)), 1.0)
    return GibbsSweeps(a, refuse, cost(a, s) / len(a.tier), Nothing(), pace, np.random.default_rng(1), PARAMS)  # type: ignore[arg-type]


def best_sets(values: np.ndarray, fewest: int, most: int) -> float:
    """Least sum of as many reduced costs as there may be copies."""
    return min(
        float(sum(values[list(chosen)]))
        for n in range(fewest, most + 1)
        for chosen in itertools.combinations(range(REGIONS), n)
    )


@pytest.mark.parametrize(("fewest", "most"), [(1, 4), (1, 1), (2, 3), (3, 3), (1, 6), (2, 6), (6, 6)])
def test_a_read_costs_what_the_best_replicas_cost_more(
    begun: tuple[TetrisArrays, TetrisState], fewest: int, most: int
) -> None:
    a, _ = begun
    rng = np.random.default_rng(fewest + 10 * most)
    a = a._replace(copies_min=np.full_like(a.copies_min, fewest), copies_max=np.full_like(a.copies_max, most))
    reduced_cost, least = reduced_cost_buffers(len(a.size), REGIONS), np.zeros(REGIONS + 1, np.float32)
    for i in range(len(a.size)):
        reduced_cost[i, :REGIONS] = rng.normal(rng.normal(), 1, REGIONS)
        volume, r = np.float32(rng.exponential()), int(rng.integers(REGIONS))
        row = reduced_cost[i, :REGIONS].astype(float)
        with_read = row.copy()
        with_read[r] -= volume
        expected = volume + best_sets(with_read, fewest, most) - best_sets(row, fewest, most)
        assert cost_of_read(a, reduced_cost, i, r, volume, least) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("fewest", "most"), [(1, 4), (1, 1), (2, 3), (1, 6)])
def test_what_decides_stays_right_while_outlays_change(
    begun: tuple[TetrisArrays, TetrisState], fewest: int, most: int
) -> None:
    a, _ = begun
    rng = np.random.default_rng(1)
    a = a._replace(copies_min=np.full_like(a.copies_min, fewest), copies_max=np.full_like(a.copies_max, most))
    reduced_cost = reduced_cost_buffers(len(a.size), REGIONS)
    reduced_cost[0, :REGIONS] = rng.normal(size=REGIONS)
    at, change = rng.integers(REGIONS, size=500), rng.normal(size=500).astype(np.float32)
    levels = levels_after(a, reduced_cost, 0, at, change, np.zeros(REGIONS + 1, np.float32))
    np.testing.assert_array_equal(levels[:, 0], levels[:, 1])


def counted_afresh(a: TetrisArrays, b: GibbsState) -> tuple[TetrisState, np.ndarray]:
    """The sums of the plan in the gibbs, and its reduced costs without any price of storage."""
    place = np.zeros(a.stored.shape, np.bool_)
    replicas_of(a, b.reduced_cost, b.least, place)
    reduced_cost = reduced_cost_buffers(*a.stored.shape)
    fill_reduced_costs(a, b.volume, b.region, reduced_cost, b.least)
    return state_of(a, b.option, b.region, place, 1), reduced_cost


@pytest.mark.parametrize("family", ["standard", "features", "tight-storage"])
def test_sweeps_keep_count_and_stay_within_cores_and_quotas(family: str) -> None:
    problem = made(family, datasets=60, workloads=90, regions=REGIONS)
    a = arrays_of(problem, dict(problem.objective.weights))
    s = first_state(a, problem.may_refuse, 1)
    b = searching(a, s)._gibbs
    assert b is not None
    unit = cost(a, s) / len(a.tier)
    moved = [gibbs_sweep(a, b, 0, len(a.tier), unit * hot, 1.0, unit) for hot in (1.0, 0.3, 0.1, 0.0)]
    assert moved[0] > 0
    after, reduced_cost = counted_afresh(a, b)
    np.testing.assert_array_equal(b.gpus.demand, after.demand)
    np.testing.assert_array_equal(b.cpu, after.cpu)
    np.testing.assert_array_equal(b.quota, after.quota)
    np.testing.assert_allclose(b.reduced_cost[:, :REGIONS], reduced_cost[:, :REGIONS], rtol=1e-3, atol=1e-5)
    assert a.option_region[b.option, b.region].all()
    assert (after.cpu <= np.maximum(a.cpu, s.cpu)).all()
    assert (after.quota <= np.maximum(a.quota, s.quota)).all()
    assert (after.copies >= a.copies_min).all()
    assert (after.copies <= a.copies_max).all()


def test_prices_of_the_regions_add_up_to_that_of_the_peak(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    a = a._replace(overload_price=0 * a.overload_price, idle_price=0 * a.idle_price, peak_level=0 * a.peak_level)
    levelling = congestion_prices_of(a, s.demand, PARAMS.ramp)
    priced(a, levelling, 3.0)
    paid = levelling.entry.astype(float) * a.supply.T[:, None, :]  # cumulative over the tiers that count
    expected = np.cumsum(a.peak_price[::-1])[::-1]
    np.testing.assert_allclose(paid.sum(axis=2), np.broadcast_to(expected, paid.shape[:2]), rtol=1e-5)
    ratio = s.demand / np.maximum(a.supply, 1)[:, :, None]
    k, last = 0, len(a.peak_price) - 1
    busiest = int(np.argmax(ratio[:, k, last]))
    assert paid[k, last, busiest] > a.peak_price[last] * a.supply[busiest, k] / a.supply[:, k].sum()
    high = a._replace(peak_level=np.full_like(a.peak_level, ratio.max() + 1))
    within = congestion_prices_of(high, s.demand, PARAMS.ramp)
    priced(high, within, 3.0)
    assert not within.entry.any()  # a ratio below the level costs nothing anywhere


def test_sweeps_lead_to_a_better_plan_within_the_limits() -> None:
    problem = made("standard", datasets=2_000, workloads=3_000, regions=REGIONS)
    a = arrays_of(problem, dict(problem.objective.weights))
    s = first_state(a, False, 1)
    search = searching(a, s)
    with ThreadPoolExecutor(max_workers=1) as pool:
        for number in range(50):
            search._pace._watch.round = number
            search.round(pool, 1, None)
    plan = search.plans[0]
    assert plan.within_limits
    assert excess(a, plan.state, False) == 0
    assert plan.cost == pytest.approx(cost(a, plan.state))
    assert plan.cost < 0.95 * cost(a, s)


def test_gpus_are_used_alike_where_others_came_first_to_the_cores() -> None:
    problem = made("standard", datasets=20_000, workloads=20_000, regions=REGIONS)
    supply, need = problem.regions.supply_mgpu.sum(axis=1), problem.workloads.cpu_mcores
    with_gpus = need[np.unique(problem.options.workload[problem.options.mgpu > 0])].sum()
    short = int(np.argmin(problem.regions.cpu_mcores / supply))
    cores = 2 * problem.regions.cpu_mcores
    cores[short] = int(0.42 * with_gpus * supply[short] / supply.sum())
    a = arrays_of(replace(problem, regions=replace(problem.regions, cpu_mcores=cores)), dict(problem.objective.weights))
    search = searching(a, first_state(a, False, 1))
    with ThreadPoolExecutor(max_workers=1) as pool:
        for number in range(40):
            search._pace._watch.round = number
            search.round(pool, 1, None)
    assert search._gibbs is not None
    used = search._gibbs.gpus.demand[:, :, -1] / a.supply
    np.testing.assert_allclose(used, np.broadcast_to(used.mean(axis=0), used.shape), rtol=0.05)


def test_a_cancelled_sweep_ends_where_it_is(begun: tuple[TetrisArrays, TetrisState]) -> None:
    a, s = begun
    cancel = threading.Event()
    cancel.set()
    search = searching(a, s, StoppingCriteria(iterations=100, cancel=cancel))
    assert search._gibbs is not None
    search._sweep(search._gibbs, 0.5)
    assert search._sweeps == 0


def test_the_rest_of_a_search_has_a_course_of_its_own() -> None:
    watch = SearchMonitor(StoppingCriteria(iterations=100))
    pace = TimeBudget(watch, 1.0)
    rest = pace.after(0.6)
    watch.round = 40
    assert rest.done == 0.0
    watch.round = 80
    assert rest.done == pytest.approx(0.5)
    assert rest.in_all(1.0) == pytest.approx(40)
    assert rest.counted


@pytest.mark.parametrize("family", ["standard", pytest.param("features", marks=pytest.mark.second_tier)])
def test_solving_with_sweeps_gives_the_same_plan_again(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps = {"gibbs.workloads": 1}
    monkeypatch.setattr(GibbsParams, "gang_share", 1.0)
    problem = replace(made(family, datasets=300, workloads=600, regions=REGIONS), links=None)
    first, again = (
        mast_opt.solve(problem, "tetris", iterations=60, threads=2, seed=3, params=sweeps) for _ in range(2)
    )
    assert first.verdict is not None
    assert first.verdict.ok
    assert first.objective == again.objective
    np.testing.assert_array_equal(some(first.plan).place, some(again.plan).place)
    without = mast_opt.solve(problem, "tetris", iterations=60, threads=2, seed=3, params={"gibbs.workloads": 10**9})
    assert first.objective != without.objective


def test_warming_up_goes_on_until_a_plan_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    repairs, repair = [], GibbsSweeps._repaired

    def watched(search: GibbsSweeps, b: GibbsState) -> SearchPlan:
        repairs.append(repair(search, b))
        return repairs[-1]

    monkeypatch.setattr(GibbsSweeps, "_repaired", watched)
    (sweeps,) = (rehearsal for rehearsal in rehearsals(None) if rehearsal.name == "sweeps")
    sweeps.run(
        SearchContext(np.random.default_rng(0), SearchMonitor(StoppingCriteria(iterations=1)), 1, lambda name: never)
    )
    assert len(repairs) == 1


def never(mip: Mip, params: SolveParams) -> SolveResult:
    raise AssertionError("no program is solved")
