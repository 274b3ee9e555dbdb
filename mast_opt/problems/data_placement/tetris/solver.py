"""Solver ``tetris`` of data placement: simulated annealing for the plan, Lagrangian relaxation for its bound."""

from dataclasses import replace
from functools import partial

from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.plan_limits import search_within_limits
from mast_opt.problems.data_placement.tetris.tetris_search import EpsilonConstraint, TetrisSearch
from mast_opt.problems.data_placement.tetris.workload_parts import WorkloadParts
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.search.interface import SearchContext, SearchResult
from mast_opt.problems.search.lexicographic import SearchStage, search_in_order, with_slack


def tetris(
    problem: DataPlacement, tools: SearchContext, start: Plan | None, params: TetrisParams
) -> SearchResult[Plan]:
    """Minimise a data-placement problem heuristically, with a proven lower bound.

    Deterministic for equal seed, threads and number of rounds. With a time limit, the cooling follows the clock.
    """
    if problem.limits:
        return search_within_limits(problem, tools, start, params.plan_limits, partial(_weighted, params))
    if problem.objective.lexicographic:
        return _lexicographic(problem, tools, start, params)
    return _weighted(params, problem, tools, start, dict(problem.objective.weights))


def _weighted(
    params: TetrisParams, problem: DataPlacement, tools: SearchContext, start: Plan | None, weights: dict[str, float]
) -> SearchResult[Plan]:
    """One search with a weight for each term."""
    search = TetrisSearch(problem, WorkloadParts.of(problem, params.parts), tools, start, weights, (), params)
    search.run()
    return search.found()


def _lexicographic(
    problem: DataPlacement, tools: SearchContext, start: Plan | None, params: TetrisParams
) -> SearchResult[Plan]:
    """One search a term; the terms before weigh ``lexicographic_weight`` times as much and have caps.

    The plan of a stage is the start of the next and within those caps, so no stage ends with a worse one. The first
    ones, which decide most, have more of the time.
    """
    objective, weight = problem.objective, params.lexicographic_weight
    parts = WorkloadParts.of(problem, params.parts)
    before: list[EpsilonConstraint] = []

    def stage(now: SearchStage[Plan]) -> SearchResult[Plan]:
        for term in list(now.caps)[len(before) :]:
            arrays = arrays_of(parts.problem, dict.fromkeys(now.weights, 0.0) | {term: 1.0}, parts.share)
            before.append(EpsilonConstraint(term, now.caps[term], arrays))
        search = TetrisSearch(problem, parts, tools, now.start, now.weights, tuple(before), params, 2 / (now.left + 1))
        search.run()
        found = search.found()
        earlier = sum(weight * cap.value for cap in before)
        return found if found.bound is None else replace(found, bound=found.bound - earlier)

    def cap(plan: Plan, term: str) -> float:
        return with_slack(verify(problem, plan).terms[term])

    return search_in_order(objective.order, objective.weights, tools.watch, start, weight, stage, cap)
