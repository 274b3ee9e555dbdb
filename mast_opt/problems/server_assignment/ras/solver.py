"""Solver ``ras`` of server assignment: one search, or one a term."""

from __future__ import annotations

from mast_opt.problems.search.interface import SearchContext, SearchResult
from mast_opt.problems.search.lexicographic import SearchStage, search_in_order
from mast_opt.problems.server_assignment.plan import Plan
from mast_opt.problems.server_assignment.problem import ServerAssignment
from mast_opt.problems.server_assignment.ras.params import RasParams
from mast_opt.problems.server_assignment.ras.ras_search import RasSearch
from mast_opt.problems.server_assignment.verification.verifier import verify


def ras(problem: ServerAssignment, tools: SearchContext, start: Plan | None, params: RasParams) -> SearchResult[Plan]:
    """Minimise a server-assignment problem heuristically, with a proven lower bound.

    Deterministic for equal seed and number of rounds. A lexicographic objective is searched term by term by weights
    that keep the terms before.
    """
    objective = problem.objective
    if not objective.lexicographic:
        search = RasSearch(problem, tools, start, dict(objective.weights), {}, params)
        search.run(tools.watch.stop.time_limit_s)
        return search.found()

    def stage(now: SearchStage[Plan]) -> SearchResult[Plan]:
        search = RasSearch(problem, tools, now.start, now.weights, dict(now.caps), params)
        search.run(tools.watch.elapsed_s + tools.watch.remaining_s / now.left)
        return search.found()

    def cap(plan: Plan, term: str) -> float:
        return verify(problem, plan).terms[term]

    weight = params.lexicographic_weight
    return search_in_order(objective.order, objective.weights, tools.watch, start, weight, stage, cap)
