"""Tetris end to end: verified plans and sound bounds in every family, the same answer for the same seed."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import mast_opt
from mast_opt.core.solve_result import Event, Limit, SolveParams, SolveResult, Status
from mast_opt.planner.solving import Solution
from mast_opt.problems import backends
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.formulation.formulation import base, exact_shares
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.tetris import instance_arrays as arrays_module
from mast_opt.problems.data_placement.tetris.initial_solution import first_state
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.state import excess, state_of
from mast_opt.problems.data_placement.verification.certificate import certified_bound
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, StoppingCriteria
from tests.data_placement.strategies import problems
from tests.data_placement.support import RELATIVE, made, no_solver, proven, same_plan
from tests.examples import examples
from tests.narrowing import some

ITERATIONS = 8


def run(problem: DataPlacement, **given: Any) -> Solution[Any]:
    return mast_opt.solve(problem, "tetris", **({"iterations": ITERATIONS, "threads": 2, "gap": 0.0} | given))


@pytest.mark.parametrize("family", FAMILIES)
def test_plan_and_bound_enclose_the_optimum(family: str) -> None:
    problem = made(family)
    solution = run(problem)
    assert solution.status.has_solution
    assert solution.verdict is not None
    assert solution.verdict.ok
    order = problem.objective.order
    if order:
        weights = dict.fromkeys(problem.objective.weights, 0.0) | {order[0]: 1.0}
        problem = replace(problem, objective=replace(problem.objective, weights=weights, order=()))
        objective, bound = solution.verdict.terms[order[0]], solution.stages[0].bound
    else:
        objective, bound = solution.verdict.objective, solution.bound
        assert solution.objective == objective
    exact = mast_opt.solve(problem, "highs", time_limit_s=4, threads=1)
    assert bound is not None
    assert bound <= objective
    if exact.objective is not None:
        assert bound <= exact.objective * (1 + RELATIVE) + 1e-9
    if exact.bound is not None:
        assert objective >= exact.bound * (1 - RELATIVE) - 1e-9


@pytest.mark.parametrize("family", ["standard", "lexicographic"])
def test_the_certificate_proves_the_stated_bound(family: str) -> None:
    problem = made(family)
    solution = run(problem)
    assert solution.certificate is not None
    stated = solution.stages[0].bound if solution.stages else solution.bound
    assert certified_bound(problem, solution.certificate.arrays()) == pytest.approx(stated, rel=1e-12)


@examples(25)
@given(problem=problems(roomy=True))
def test_any_small_instance_is_enclosed(problem: DataPlacement) -> None:
    solution = run(problem, iterations=3)
    relaxed, whole = proven(base(problem).mip), proven(exact_shares(problem).mip)
    if solution.plan is None:
        assert whole.objective is None
        return
    assert relaxed.objective is not None
    assert solution.objective is not None
    assert solution.objective >= relaxed.objective * (1 - RELATIVE) - 1e-9
    assert solution.bound is not None
    assert solution.bound <= relaxed.objective * (1 + RELATIVE) + 1e-7


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_seed_gives_the_same_answer(threads: int) -> None:
    problem = made("features", datasets=15, workloads=20, regions=4)
    one, other = (run(problem, iterations=4, seed=7, threads=threads) for _ in range(2))
    assert same_plan(some(one.plan), some(other.plan))
    assert one.objective == other.objective
    assert one.bound == other.bound


def test_a_warm_start_is_kept_or_improved_by_few_moves() -> None:
    problem = made("standard", datasets=20, workloads=30, regions=4)
    first = run(problem, iterations=20)
    assert isinstance(first.plan, Plan)
    again = run(problem, start=first.plan, iterations=5, seed=9)
    assert first.objective is not None
    assert again.objective is not None
    assert again.objective <= first.objective * (1 + 1e-9)
    assert isinstance(again.plan, Plan)
    stayed = np.mean(again.plan.run_region == first.plan.run_region)
    assert stayed >= 0.5


def test_an_optimal_start_is_returned() -> None:
    problem = made("standard", datasets=5, workloads=7, regions=2)
    best = mast_opt.solve(problem, "highs", gap=0.0, threads=1)
    assert best.status is Status.OPTIMAL
    again = run(problem, start=best.plan, iterations=3)
    assert again.objective == pytest.approx(best.objective, rel=RELATIVE)


def test_cancel_returns_the_incumbent() -> None:
    problem = made("standard", datasets=20, workloads=30, regions=4)
    cancel = threading.Event()
    seen: list[Event] = []

    def on_event(event: Event) -> None:
        seen.append(event)
        if event.incumbent is not None:
            cancel.set()

    solution = mast_opt.solve(problem, "tetris", gap=0.0, threads=2, cancel=cancel, on_event=on_event)
    assert solution.limit is Limit.INTERRUPT
    assert solution.plan is not None
    assert solution.verdict is not None
    assert solution.verdict.ok


def test_events_never_get_worse() -> None:
    solution = run(made("standard"), iterations=20)
    objectives = [event.incumbent for event in solution.events if event.incumbent is not None]
    bounds = [event.bound for event in solution.events if event.bound is not None]
    assert objectives == sorted(objectives, reverse=True)
    assert bounds == sorted(bounds)
    assert len(objectives) > 1
    assert len(bounds) > 1


def test_events_of_a_stage_tell_that_term() -> None:
    solution = run(made("lexicographic"))
    for stage in solution.stages:
        seen = [event.incumbent for event in solution.events if event.stage == stage.term]
        assert seen[-1] is not None
        assert stage.objective is not None
        assert (
            seen[-1] <= 10 * stage.objective + 1
        )  # not a sum with the terms before, which weigh a thousand times more
        bounds = [event.bound for event in solution.events if event.stage == stage.term and event.bound is not None]
        assert all(bound <= stage.objective * (1 + RELATIVE) + 1e-9 for bound in bounds)


def test_later_terms_keep_the_value_of_those_before() -> None:
    solution = run(made("lexicographic"))
    assert solution.verdict is not None
    for stage in solution.stages:
        assert stage.objective == solution.verdict.terms[stage.term]
    assert [stage.term for stage in solution.stages] == list(made("lexicographic").objective.order)


def in_order(problem: DataPlacement, *order: str) -> DataPlacement:
    return replace(problem, objective=replace(problem.objective, order=order))


def split_work(seed: int = 4) -> DataPlacement:
    return replace(made("features", seed=seed, datasets=8, workloads=12), links=None)


@pytest.mark.parametrize("order", [("remote", "peak"), ("peak", "remote")])
def test_a_later_term_costs_split_work_nothing_of_the_first(order: tuple[str, ...]) -> None:
    """The search begins with work in one place, so the plan before may be no state of it that keeps the caps."""
    one, both = (run(in_order(split_work(), *terms), iterations=4, seed=1) for terms in (order[:1], order))
    assert one.verdict is not None
    assert both.verdict is not None
    before, after = one.verdict.terms, both.verdict.terms
    assert after[order[0]] <= before[order[0]] * (1 + 1e-6) + 1e-9
    worth = [TetrisParams().lexicographic_weight * terms[order[0]] + terms[order[1]] for terms in (before, after)]
    assert worth[1] <= worth[0] + 1e-9


@pytest.mark.parametrize("order", [(), ("peak", "remote")])
def test_a_feasible_start_of_split_work_is_never_lost(order: tuple[str, ...]) -> None:
    problem = split_work()
    exact = mast_opt.solve(in_order(problem, *order), "highs", gap=0.0, threads=1)
    assert exact.status is Status.OPTIMAL
    assert exact.verdict is not None
    found = run(in_order(problem, *order), start=exact.plan, iterations=2)
    assert found.verdict is not None
    for term in order:
        assert found.verdict.terms[term] == pytest.approx(exact.verdict.terms[term], rel=1e-5, abs=1e-6)
    if not order:
        price = 0.0 if found.last_pass is None else found.last_pass.price
        assert found.verdict.objective - price == pytest.approx(exact.verdict.objective, rel=RELATIVE)


def test_whole_work_without_links_needs_no_mip_solver() -> None:
    from mast_opt.problems.data_placement.tetris.solver import tetris

    tools = SearchContext(
        np.random.default_rng(1), SearchMonitor(StoppingCriteria(gap=0.0, iterations=5)), 2, lambda name: no_solver
    )
    found = tetris(made("weakly-coupled"), tools, None, TetrisParams())
    assert found.plan is not None
    assert found.limit is Limit.ITERATIONS


@pytest.mark.parametrize("price", [1e3, 1e7])
def test_remote_reads_at_any_price_are_allowed(price: float) -> None:
    """Expensive is not the same as forbidden, even at the very price that stands for it."""
    problem = made("standard", datasets=6, workloads=12, regions=3)
    tight = problem.with_columns(
        {"datasets.copies_max": np.ones(6, np.int64), "datasets.copies_min": np.ones(6, np.int64)}
    )
    weights = dict(problem.objective.weights) | {"remote": price * float(problem.reads.mb_per_day.sum())}
    expensive = replace(tight, objective=replace(problem.objective, weights=weights))
    arrays = arrays_of(expensive, weights)
    assert arrays.remote_price == pytest.approx(price)
    state = first_state(arrays, False, 1)
    state.place[:] = False
    apart = state_of(arrays, state.option, state.region, state.place, 1)
    apart.copies[:] = 1
    assert excess(arrays, apart, True) == 0
    closed = arrays_of(replace(expensive, remote_reads=False), weights)
    assert excess(closed, apart, True) > 0


@pytest.mark.parametrize(("times", "price"), [(1e4, 1e3), (1.0, 1e-3)])
def test_no_plan_with_a_forbidden_read_is_kept(times: float, price: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the price that stands for it grows with the others or, as here too, is far too low."""
    problem = made("weakly-coupled", seed=2, datasets=12, workloads=12, regions=4)
    start = run(problem).plan
    assert start is not None
    monkeypatch.setattr(arrays_module, "FORBIDDEN_READ", price)
    expensive = {term: times * weight for term, weight in problem.objective.weights.items()}
    assert run(
        replace(problem, objective=replace(problem.objective, weights=expensive)), start=start
    ).status.has_solution


def test_forbidden_reads_are_as_dear_as_the_objective() -> None:
    problem = made("weakly-coupled")
    usual = dict(problem.objective.weights)
    prices = [
        arrays_of(problem, {term: times * weight for term, weight in usual.items()}) for times in (1.0, 10.0, 1e6)
    ]
    assert [a.remote_price for a in prices] == [1e3, 1e3, 1e8]
    assert [a.relief for a in prices] == [100.0, 100.0, 1e7]


def test_where_rounds_are_counted_the_solver_counts_nodes() -> None:
    asked: list[SolveParams] = []

    def solver(mip: Mip, params: SolveParams) -> SolveResult:
        asked.append(params)
        return backends.get("highs").solve(mip, params)

    from mast_opt.problems.data_placement.tetris.solver import tetris

    stop = StoppingCriteria(gap=0.0, iterations=3)
    tools = SearchContext(np.random.default_rng(1), SearchMonitor(stop), 1, lambda name: solver)
    assert tetris(made("links"), tools, None, TetrisParams()).plan is not None
    assert len(asked) == 2  # with what the annealing decided, which exceeds links, and with nothing held
    assert all(params.time_limit_s is None and params.node_limit for params in asked)


def test_an_interrupt_while_the_plan_is_finished_is_told() -> None:
    from mast_opt.problems.data_placement.tetris.solver import tetris

    stop = StoppingCriteria(gap=0.0, time_limit_s=1.0)

    def solver(mip: Mip, params: SolveParams) -> SolveResult:
        stop.cancel.set()
        return backends.get("highs").solve(mip, replace(params, cancel=threading.Event()))

    tools = SearchContext(np.random.default_rng(1), SearchMonitor(stop), 1, lambda name: solver)
    found = tetris(made("weakly-coupled"), tools, None, TetrisParams())
    assert found.plan is not None
    assert found.limit is Limit.INTERRUPT
