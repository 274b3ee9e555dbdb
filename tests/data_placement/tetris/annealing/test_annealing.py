"""How the annealing of tetris goes about it: multistart or parallel, temperatures, coolings cut short."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.tetris.annealing.multistart import MultistartAnnealing
from mast_opt.problems.data_placement.tetris.annealing.parallel import ParallelAnnealing
from mast_opt.problems.data_placement.tetris.decomposition import decompose
from mast_opt.problems.data_placement.tetris.initial_solution import first_state, randomised_state
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.state import cost, excess, forbidden, state_of
from mast_opt.problems.data_placement.tetris.strategy import MOST_PARTS
from mast_opt.problems.data_placement.tetris.tetris_search import TetrisSearch
from mast_opt.problems.data_placement.tetris.workload_parts import WorkloadParts
from mast_opt.problems.search.budget import TimeBudget
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, StoppingCriteria
from tests.data_placement.support import made, no_solver

MOST_WORKLOADS = TetrisParams().multistart.most_workloads


def searching(problem: DataPlacement, stop: StoppingCriteria, threads: int, start: Plan | None = None) -> TetrisSearch:
    tools = SearchContext(np.random.default_rng(1), SearchMonitor(stop), threads, lambda name: no_solver)
    return TetrisSearch(
        problem,
        WorkloadParts.of(problem, TetrisParams().parts),
        tools,
        start,
        dict(problem.objective.weights),
        (),
        TetrisParams(),
    )


def test_temperatures_do_not_count_the_forbidden_reads_of_a_start() -> None:
    problem = made("weakly-coupled", datasets=40, workloads=40, regions=8)
    search = searching(problem, StoppingCriteria(iterations=20), 1)
    assert forbidden(search.a, search.method.plans[0].state) > 0
    assert isinstance(search.method, ParallelAnnealing)
    hottest = search.method.cooling.temperature(0.0)
    search.run()
    assert search.best is not None
    assert hottest < search.best_cost


def test_there_are_no_more_parts_than_numbers_for_them() -> None:
    problem = made("standard", datasets=20, workloads=30, regions=2 * MOST_PARTS + 2)
    search = searching(problem, StoppingCriteria(iterations=1), MOST_PARTS + 2)
    parts = decompose(search.a, search.method.plans[0].state, search.rng, search.random)
    assert len(parts) == MOST_PARTS


def test_on_a_small_instance_every_thread_cools_plans_of_its_own() -> None:
    problem = made("standard", datasets=12, workloads=18, regions=3)
    search = searching(problem, StoppingCriteria(gap=0.0, iterations=30), 3)
    first, *others = (plan.state for plan in search.method.plans)
    assert len(others) == 2
    assert not any(np.shares_memory(mine, its) for other in others for mine, its in zip(first, other))
    search.run()
    assert isinstance(search.method, MultistartAnnealing)
    assert 2 * 30 <= search.method.coolings <= 3 * 30  # one thread has the relaxation until that stands still
    assert search.best is not None
    for plan in search.method.plans:
        assert plan.cost == pytest.approx(cost(search.a, plan.state), rel=1e-9)
        assert search.best_cost <= plan.cost + 1e-9
    assert len({plan.state.region.tobytes() for plan in search.method.plans} | {search.best.region.tobytes()}) > 1


def test_the_last_cooling_is_as_long_as_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """After four rounds of 0.3 s, a budget of 1.5 s has time for one more; after 1.4 s for a third of one."""
    watch = SearchMonitor(StoppingCriteria(time_limit_s=2.0))
    now = [0.0]
    monkeypatch.setattr(SearchMonitor, "elapsed_s", property(lambda _: now[0]))
    pace = TimeBudget(watch, 1.5)
    assert pace.rounds_left == math.inf
    watch.round, now[0] = 4, 1.2
    assert pace.rounds_left == pytest.approx(1.0)
    now[0] = 1.4
    assert pace.rounds_left == pytest.approx(0.1 / 0.35)
    assert not pace.over()
    now[0] = 1.5
    assert pace.over()


def test_a_cooling_that_is_cut_short_ends_cold_and_counts_right() -> None:
    problem = made("standard", datasets=12, workloads=18, regions=3)
    stop = StoppingCriteria(iterations=5)
    search = searching(problem, stop, 1)
    stop.cancel.set()
    with ThreadPoolExecutor() as pool:
        search.method.round(pool, 1, None)
    (plan,) = search.method.plans
    assert plan.cost == pytest.approx(cost(search.a, plan.state), rel=1e-9)
    assert plan.cost < cost(search.a, first_state(search.a, False, 1))


def test_a_given_start_and_a_large_instance_are_searched_by_all_threads_together() -> None:
    small, large = (
        made("standard", datasets=12, workloads=18, regions=4),
        made("standard", workloads=MOST_WORKLOADS + 1, regions=4),
    )
    start = mast_opt.solve(small, "tetris", iterations=8).plan
    assert start is not None
    for problem, begin in ((small, start), (large, None)):
        search = searching(problem, StoppingCriteria(iterations=1), 2, begin)
        assert len(search.method.plans) == 1
        assert len(search.random) == 2


@pytest.mark.parametrize("family", ["standard", "tight-storage", "weakly-coupled"])
def test_data_scattered_at_random_is_legal_and_lies_elsewhere_every_time(family: str) -> None:
    problem = made(family, datasets=20, workloads=30, regions=4)
    a = arrays_of(problem, dict(problem.objective.weights))
    rng = np.random.default_rng(1)
    states = [randomised_state(a, False, rng) for _ in range(10)]
    assert len({s.place.tobytes() for s in states}) == 10
    for s in states:
        assert (s.place & a.pinned).sum() == a.pinned.sum()
        assert not (s.place & a.forbidden).any()
        assert (s.storage <= a.storage).all()
        assert (s.copies <= a.copies_max).all()
        again = state_of(a, s.option, s.region, s.place, 1)
        for name in ("volume", "demand", "cpu", "storage", "copies"):
            assert np.array_equal(getattr(again, name), getattr(s, name)), name


def test_a_slice_that_waits_for_a_thread_is_not_taken_for_a_long_one() -> None:
    """With one thread the relaxation has its turn first; slices had become shorter and shorter for that."""
    search = searching(
        made("standard", workloads=MOST_WORKLOADS + 1, regions=4), StoppingCriteria(time_limit_s=60.0), 1
    )
    assert isinstance(search.method, ParallelAnnealing)
    with ThreadPoolExecutor(1) as pool:
        search.method.round(pool, 1, None)  # compiles the kernels where that has not been done
        pool.submit(time.sleep, 2.0)
        search.method.round(pool, 1, None)
    assert search.method.slice_s < 2.0


def test_coolings_from_scattered_data_find_what_others_never_do() -> None:
    """One dataset has no room but where it is today, unless the others leave: its optimum is 10.748, and all
    coolings from today's replicas end at 11.804."""
    problem = made("standard", 15, datasets=12, workloads=18, regions=3)
    search = searching(problem, StoppingCriteria(gap=0.0, iterations=40), 2)
    search.run()
    assert search.best_cost < 11.0


@pytest.mark.parametrize(("family", "seed"), [("standard", 1), ("many-small-regions", 1), ("hot-dataset", 13)])
def test_in_a_first_plan_what_few_regions_can_hold_finds_room_before_all_else(family: str, seed: int) -> None:
    problem = made(family, seed=seed, datasets=100, workloads=150, regions=40)
    a = arrays_of(problem, dict(problem.objective.weights))
    assert (np.sort(a.cpu)[-10] < a.cpu_need).any()  # some fit into fewer than ten of the forty regions, even empty
    assert excess(a, first_state(a, False, 1), False) == 0


@pytest.mark.parametrize(
    ("family", "rounds", "least", "guided"),
    [
        ("standard", 10, MOST_WORKLOADS + 10, True),
        ("standard", 10, MOST_WORKLOADS + 11, False),
        ("standard", 1_000, 0, False),
        ("weakly-coupled", 10, 0, False),
    ],
)
def test_changes_are_guided_on_large_instances_where_there_is_time_for_few(
    family: str, rounds: int, least: int, guided: bool
) -> None:
    search = searching(
        made(family, datasets=150, workloads=MOST_WORKLOADS + 10, regions=8), StoppingCriteria(iterations=rounds), 1
    )
    assert isinstance(search.method, ParallelAnnealing)
    search.method.slices.params = replace(search.method.slices.params, guided_from=least)
    assert not search.method.slices.mix.guided
    with ThreadPoolExecutor(1) as pool:
        search.method.round(pool, 1, None)
    assert search.method.slices.mix.guided == guided
