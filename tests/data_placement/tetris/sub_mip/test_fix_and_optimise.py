"""Large neighbourhoods keep the limits of links, and reach the optimum where they cover everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.sub_mip.fix_and_optimise import FixAndOptimise
from mast_opt.problems.data_placement.tetris.sub_mip.params import NeighbourhoodParams
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import MipSolver, SearchContext, SearchMonitor, StoppingCriteria
from tests.narrowing import some

PARAMS = NeighbourhoodParams()
SIZES = {"datasets": 5, "workloads": 7, "regions": 3}


def made(family: str) -> DataPlacement:
    problem: DataPlacement = mast_opt.generate("data-placement", family, seed=3, **SIZES)
    return problem


def searching(stop: StoppingCriteria, solver: MipSolver) -> SearchContext:
    """One thread, and one solver by whatever name."""
    return SearchContext(np.random.default_rng(1), SearchMonitor(stop), 1, lambda name: solver)


def improved(problem: DataPlacement, plan: Plan, objective: StageObjective | None = None) -> Plan:
    tools = searching(StoppingCriteria(gap=0.0, time_limit_s=60), backends.get("highs").solve)
    found = FixAndOptimise(problem, tools, objective or whole(problem), PARAMS).improve(plan)
    assert found is not None
    return found


def beyond_whole() -> DataPlacement:
    """An instance too large to be solved as one, small enough for neighbourhoods."""
    return FAMILIES["standard"].generate(np.random.default_rng(1), datasets=40, workloads=60, regions=5)


def whole(problem: DataPlacement) -> StageObjective:
    return StageObjective(dict(problem.objective.weights), {})


def without_links(problem: DataPlacement) -> Plan:
    """The optimum if every link were wide."""
    plan: Plan | None = mast_opt.solve(replace(problem, links=None), "highs").plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("family", ["weakly-coupled", "links", "tight-storage"])
def test_a_neighbourhood_of_everything_is_the_optimum(family: str) -> None:
    problem = made(family)
    exact = mast_opt.solve(problem, "highs", gap=0.0)
    assert exact.plan is not None
    found = improved(problem, without_links(problem) if family == "links" else exact.plan)
    verdict = verify(problem, found)
    assert verdict.ok, verdict.violations
    assert exact.objective is not None
    assert verdict.objective == pytest.approx(exact.objective, rel=1e-4)


def test_excess_over_links_is_brought_back() -> None:
    problem = made("links")
    start = without_links(problem)
    assert not verify(problem, start).ok
    assert verify(problem, improved(problem, start)).ok


def test_a_plan_within_the_links_is_looked_for_with_all_data_where_it_is() -> None:
    problem = made("links")
    start = without_links(problem)
    assert not np.array_equal(start.place, problem.datasets.stored)
    stop = StoppingCriteria()
    objectives: list[int] = []

    def solver(mip: Mip, params: SolveParams) -> SolveResult:
        objectives.append(int(np.count_nonzero(mip.cost)))
        result = backends.get("highs").solve(mip, params)
        if objectives[-1] < objectives[0]:
            stop.cancel.set()  # before any neighbourhood
        return result

    tools = searching(stop, solver)
    found = FixAndOptimise(problem, tools, whole(problem), PARAMS).improve(start)
    assert problem.links is not None
    assert objectives[-1] == len(problem.links)  # nothing but the excess of each
    assert found is not None
    assert verify(problem, found).ok
    assert np.array_equal(found.place, problem.datasets.stored)


def test_a_plan_that_exceeds_links_less_is_a_beginning_too() -> None:
    """Where no plan within the links is found in time, the search goes on from the one that comes nearest."""
    problem = made("links")
    stop = StoppingCriteria()
    excess: list[float] = []

    def solver(mip: Mip, params: SolveParams) -> SolveResult:
        result = backends.get("highs").solve(mip, params)
        assert result.x is not None
        only = np.flatnonzero(mip.cost == 1.0)
        if not excess and len(only) == np.count_nonzero(mip.cost):  # short of time: something is left of the excess
            x = result.x.copy()
            x[only[0]] = 1e-6
            result = replace(result, status=Status.FEASIBLE, x=x)
            excess.append(1e-6)
        elif excess:
            assert params.start is not None
            excess.append(float(params.start[-len(some(problem.links).source) :].sum()))
            stop.cancel.set()
        return result

    tools = searching(stop, solver)
    FixAndOptimise(problem, tools, whole(problem), PARAMS).improve(without_links(problem))
    assert excess == [1e-6, 1e-6]


def test_work_is_placed_again_with_the_replicas_that_are_within_the_links() -> None:
    problem = made("links")
    pinned = problem.with_columns(
        {"datasets.pinned": problem.datasets.stored, "datasets.forbidden": ~problem.datasets.stored}
    )
    exact = mast_opt.solve(pinned, "highs", gap=0.0)
    stop = StoppingCriteria()
    programs: list[tuple[int, int]] = []

    def solver(mip: Mip, params: SolveParams) -> SolveResult:
        programs.append((int(np.count_nonzero(mip.cost)), int(np.count_nonzero(mip.col_lower == mip.col_upper))))
        result = backends.get("highs").solve(mip, replace(params, gap=0.0))
        (priced, held), now = programs[0], programs[-1]
        if now[0] == priced and now[1] < held:  # priced as a whole, and work is free
            stop.cancel.set()
        return result

    tools = searching(stop, solver)
    found = FixAndOptimise(problem, tools, whole(problem), PARAMS).improve(without_links(problem))
    assert len(programs) == 3
    assert found is not None
    assert np.array_equal(found.place, problem.datasets.stored)
    verdict = verify(problem, found)
    assert verdict.ok
    assert verdict.objective == pytest.approx(exact.objective, rel=1e-3)


def test_plans_stay_within_the_caps() -> None:
    problem = made("lexicographic")
    *before, term = problem.objective.order[:3]
    exact, first = (
        mast_opt.solve(replace(problem, objective=replace(problem.objective, order=order)), "highs", gap=0.0)
        for order in ((*before, term), tuple(before))
    )
    assert exact.verdict is not None
    assert first.plan is not None
    best = exact.verdict.terms
    assert verify(problem, first.plan).terms[term] > best[term] + 1e-3
    weights = dict.fromkeys(best, 0.0) | dict.fromkeys(before, 1e3) | {term: 1.0}
    objective = StageObjective(weights, {name: best[name] * (1 + 1e-6) + 1e-9 for name in before})
    after = verify(problem, improved(problem, first.plan, objective))
    assert after.ok
    assert objective.within_caps(after)
    assert after.terms[term] == pytest.approx(best[term], rel=1e-4)
    assert objective.shown(after) == after.terms[term]
    assert not StageObjective(weights, {before[0]: best[before[0]] * 0.99 - 1e-3}).within_caps(after)


@pytest.mark.parametrize("family", ["standard", "weakly-coupled"])
def test_without_a_time_limit_the_search_ends_when_nothing_improves(family: str) -> None:
    problem = made(family) if family == "weakly-coupled" else beyond_whole()
    start = mast_opt.solve(problem, "tetris", iterations=1, threads=1).plan
    assert start is not None
    first: list[SolveResult] = []
    limits: list[float | None] = []

    def as_before(mip: Mip, params: SolveParams) -> SolveResult:
        limits.append(params.time_limit_s)
        assert len(limits) <= PARAMS.patience + 2
        if not first:
            first.append(replace(backends.get("highs").solve(mip, params), status=Status.FEASIBLE))
        return first[0]

    tools = searching(StoppingCriteria(gap=0.0), as_before)
    search = FixAndOptimise(problem, tools, whole(problem), PARAMS, whole=family == "weakly-coupled")
    assert search.improve(start) is not None
    assert len(limits) > PARAMS.patience
    assert None not in limits


def test_a_small_program_of_whole_decisions_is_solved_as_one() -> None:
    problem = mast_opt.generate("data-placement", "weakly-coupled", seed=2, datasets=20, workloads=20, regions=5)
    start = mast_opt.solve(problem, "tetris", iterations=1, threads=1).plan
    exact = mast_opt.solve(problem, "cpsat", gap=0.0, threads=1)
    assert start is not None
    assert exact.status is Status.OPTIMAL
    stop = StoppingCriteria(gap=0.0, time_limit_s=60)
    tools = SearchContext(np.random.default_rng(1), SearchMonitor(stop), 1, lambda name: backends.get(name).solve)
    found = FixAndOptimise(problem, tools, whole(problem), PARAMS, whole=True).improve(start)
    assert found is not None
    assert verify(problem, start).objective > verify(problem, found).objective
    assert verify(problem, found).objective == pytest.approx(exact.objective, rel=1e-6)
