"""Solver ``ras`` of server assignment: one search, or one a term."""

from __future__ import annotations

from mast_opt.search.interface import SearchContext, SearchResult, StageBound
from mast_opt.server_assignment.plan import Plan
from mast_opt.server_assignment.problem import ServerAssignment
from mast_opt.server_assignment.ras.params import RasParams
from mast_opt.server_assignment.ras.ras_search import RasSearch
from mast_opt.server_assignment.verification.verifier import verify


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
    stages: list[StageBound] = []
    caps: dict[str, float] = {}
    results: list[SearchResult[Plan]] = []
    for position, term in enumerate(objective.order):
        tools.watch.begin(term)
        weights = dict.fromkeys(objective.weights, 0.0) | dict.fromkeys(caps, params.lexicographic_weight) | {term: 1.0}
        search = RasSearch(problem, tools, start, weights, caps, params)
        search.run(tools.watch.elapsed_s + tools.watch.remaining_s / (len(objective.order) - position))
        found = search.found()
        results.append(found)
        assert found.plan is not None
        stages.append(StageBound(term, found.bound))
        if tools.watch.stop.cancel.is_set():
            break
        start = found.plan
        caps = caps | {term: verify(problem, start).terms[term]}
    first, last = results[0], results[-1]
    return SearchResult(last.plan, first.bound, last.limit, last.message, first.certificate, tuple(stages))
