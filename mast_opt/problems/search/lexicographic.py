"""Lexicographic objectives: one search for each term, in order, in which the terms before keep their values."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from mast_opt.problems.search.interface import PlanT, SearchMonitor, SearchResult, StageBound

STAGE_SLACK_RELATIVE, STAGE_SLACK_ABSOLUTE = 1e-6, 1e-9
"""A later stage keeps an earlier term at its value · (1 + relative) + absolute."""


def with_slack(value: float) -> float:
    """The most that a term of this value may be in later stages."""
    return value * (1 + STAGE_SLACK_RELATIVE) + STAGE_SLACK_ABSOLUTE


@dataclass(frozen=True)
class SearchStage(Generic[PlanT]):
    """Objective of one search of a lexicographic solve."""

    weights: dict[str, float]
    """1 for the term of the stage, much more for those before, 0 for the others."""
    caps: Mapping[str, float]
    """Term before → the most that it may be."""
    start: PlanT | None
    """The plan to begin from: that of the stage before."""
    left: int
    """Stages left, this one included."""


def search_in_order(
    order: Sequence[str],
    terms: Collection[str],
    watch: SearchMonitor,
    start: PlanT | None,
    weight: float,
    search: Callable[[SearchStage[PlanT]], SearchResult[PlanT]],
    cap: Callable[[PlanT, str], float],
) -> SearchResult[PlanT]:
    """One search for each term.

    Args:
        order: of the terms that are minimised.
        terms: all terms of the objective.
        watch: of all stages.
        start: of the first stage.
        weight: of the terms before.
        search: of one stage; its bound is that of the stage's term.
        cap: (plan, term) → the most that the term may be after a stage that ends with the plan.
    """
    caps: dict[str, float] = {}
    results: list[SearchResult[PlanT]] = []
    stages: list[StageBound] = []
    for position, term in enumerate(order):
        watch.begin(term)
        weights = dict.fromkeys(terms, 0.0) | dict.fromkeys(caps, weight) | {term: 1.0}
        found = search(SearchStage(weights, caps, start, len(order) - position))
        results.append(found)
        stages.append(StageBound(term, None if found.bound is None else max(0.0, found.bound)))
        if found.plan is None or watch.stop.cancel.is_set():
            break
        start = found.plan
        caps = caps | {term: cap(start, term)}
    first, last = results[0], results[-1]
    return SearchResult(last.plan, first.bound, last.limit, last.message, first.certificate, tuple(stages))
