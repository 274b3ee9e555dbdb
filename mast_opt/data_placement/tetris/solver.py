"""Solver ``tetris`` of data placement: simulated annealing for the plan, Lagrangian relaxation for its bound."""

from __future__ import annotations

from mast_opt.data_placement.plan import Plan
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.data_placement.tetris.params import TetrisParams
from mast_opt.data_placement.tetris.tetris_search import EpsilonConstraint, TetrisSearch
from mast_opt.data_placement.verification.verifier import verify
from mast_opt.search.interface import SearchContext, SearchResult, StageBound


def tetris(
    problem: DataPlacement, tools: SearchContext, start: Plan | None, params: TetrisParams
) -> SearchResult[Plan]:
    """Minimise a data-placement problem heuristically, with a proven lower bound.

    Deterministic for equal seed, threads and number of rounds. With a time limit, the cooling follows the clock.
    """
    if problem.objective.lexicographic:
        return _lexicographic(problem, tools, start, params)
    search = TetrisSearch(problem, tools, start, dict(problem.objective.weights), (), params)
    search.run()
    return search.found()


def _lexicographic(
    problem: DataPlacement, tools: SearchContext, start: Plan | None, params: TetrisParams
) -> SearchResult[Plan]:
    """One search a term; the terms before weigh ``lexicographic_weight`` times as much and have caps.

    The plan of a stage is the start of the next and within those caps, so no stage ends with a worse one. The first
    ones, which decide most, have more of the time.
    """
    order = problem.objective.order
    caps: list[EpsilonConstraint] = []
    stages: list[StageBound] = []
    first: SearchResult[Plan] | None = None
    found: SearchResult[Plan] | None = None
    for position, term in enumerate(order):
        tools.watch.begin(term)
        weights = dict.fromkeys(problem.objective.weights, 0.0) | {term: 1.0}
        weights |= {cap.term: params.lexicographic_weight for cap in caps}
        share = 2 / (len(order) - position + 1)
        search = TetrisSearch(problem, tools, start, weights, tuple(caps), params, share)
        search.run()
        found = search.found()
        first = first or found
        bound = (
            None if found.bound is None else found.bound - sum(params.lexicographic_weight * cap.value for cap in caps)
        )
        stages.append(StageBound(term, None if bound is None else max(0.0, bound)))
        if found.plan is None or tools.watch.stop.cancel.is_set():
            break
        value = verify(problem, found.plan).terms[term]
        caps.append(
            EpsilonConstraint(
                term, value * (1 + 1e-6) + 1e-9, arrays_of(problem, dict.fromkeys(weights, 0.0) | {term: 1.0})
            )
        )
        start = found.plan
    assert first is not None
    assert found is not None
    return SearchResult(found.plan, first.bound, found.limit, found.message, first.certificate, tuple(stages))
