"""Hard limits on a whole plan: searches with rising prices of limited amounts; the verifier checks each plan."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from mast_opt.core.errors import UnsupportedOption
from mast_opt.problems.data_placement.plan import Plan, today
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.verification.verifier import use_of_limits, verify
from mast_opt.problems.search.interface import SearchContext, SearchMonitor, SearchResult
from mast_opt.problems.search.params import Params, parameter

PRICED: Mapping[str, tuple[str, ...]] = {
    "copied_tb": ("copy",),
    "copy": ("copy",),
    "new_replicas": ("copy",),
    "stored_tb": ("storage",),
    "storage": ("storage",),
    "remote_tb_per_day": ("remote",),
    "remote": ("remote",),
    "moved_work": ("moved_work",),
    "moved_workloads": ("moved_work",),
    "moves": ("moved_items",),
    "unserved": ("unserved",),
    "unserved_gpus": ("unserved",),
    "overload_gpus": ("overload",),
    "running_cost": ("running_cost",),
    "migration_cost": ("migration_cost",),
}
"""Limit → the terms whose weights are raised where a plan exceeds it."""


@dataclass(frozen=True)
class PlanLimitParams(Params):
    """Parameters of the searches for a plan within hard limits on the whole plan."""

    searches: int = parameter(
        6,
        "Searches at most, each with an equal share of the time that is left.",
        "Set by hand: a factor of 8 twice, then halvings.",
        low=2,
    )
    first: ClassVar[float] = 0.05
    """First price of an exceeded limit: at it, the plan's amount of the term costs this share of the objective."""
    factor: ClassVar[float] = 8.0
    """Factor on a price that was too low. Set by hand: three searches span a factor of 500."""


@dataclass
class _Price:
    """Price added to the weight of a term, between one that was too low and one that sufficed."""

    now: float
    low: float = 0.0
    high: float = math.inf

    def learn(self, exceeded: bool, factor: float) -> None:
        """Tetris' next price of exceeding a limit, after a search at the present one."""
        if exceeded:
            self.low = self.now
        else:
            self.high = self.now
        if math.isinf(self.high):
            self.now = self.low * factor
        else:
            self.now = math.sqrt(self.low * self.high) if self.low else self.high / factor


Search = Callable[[DataPlacement, SearchContext, Plan | None, dict[str, float]], SearchResult[Plan]]
"""(problem without limits, context, start, weight of every term) → the result at these weights."""


def search_within_limits(
    problem: DataPlacement, tools: SearchContext, start: Plan | None, params: PlanLimitParams, search: Search
) -> SearchResult[Plan]:
    """Find the best plan within ``problem.limits`` by searches at several prices; the result may have no plan.

    The first search has the weights of the instance. Its bound holds for the limited problem too, since limits only
    take plans away. Where a plan exceeds a limit, the terms of ``PRICED`` get prices, which rise by ``factor`` until
    they suffice and are then bisected. ``start`` and the present state count as plans. With rounds instead of seconds,
    each search has all of them.

    Raises:
        UnsupportedOption: the objective is lexicographic.
    """
    if problem.objective.lexicographic:
        raise UnsupportedOption("tetris keeps limits on the whole plan only where the terms have weights, not an order")
    free, weights = replace(problem, limits={}), dict(problem.objective.weights)
    counted = tools.watch.stop.iterations is not None
    prices: dict[str, _Price] = {}
    best = _Best(problem)
    for candidate in (start, today(problem)):
        best.look_at(candidate)
    first: SearchResult[Plan] | None = None
    begin = start
    for left in range(params.searches, 0, -1):
        priced = weights | {term: weights[term] + price.now for term, price in prices.items()}
        inner = replace(tools, watch=_part(tools.watch, left))
        found = search(free, inner, begin, priced)
        if first is None:
            first = found
            if inner.watch.strategy is not None:
                tools.watch.chose(inner.watch.strategy)
        best.look_at(found.plan)
        begin = best.plan or found.plan
        tools.watch.report(None if best.plan is None else best.objective, first.bound)
        if found.plan is None or tools.watch.done:
            break
        exceeded = _exceeded(problem, found.plan)
        if counted and not prices and not exceeded:
            break
        terms = verify(free, found.plan).terms
        total = sum(weights[term] * value for term, value in terms.items())
        for term in prices.keys() | exceeded:
            if term in prices:
                prices[term].learn(term in exceeded, params.factor)
            else:
                prices[term] = _Price(params.first * max(total, 1e-9) / max(terms[term], 1e-9))
    assert first is not None
    tools.watch.round = tools.watch.stop.iterations or 0
    words = (
        first.message
        if best.plan is not None
        else f"{first.message}; no plan within the limits of the whole plan was found"
    )
    return SearchResult(best.plan, first.bound, tools.watch.limit(), words, first.certificate)


class _Best:
    """Best plan so far that breaks no rule and no limit."""

    def __init__(self, problem: DataPlacement) -> None:
        self._problem = problem
        self.plan: Plan | None = None
        self.objective = math.inf

    def look_at(self, plan: Plan | None) -> None:
        """Keep a plan of tetris within limits if it is better."""
        if plan is None:
            return
        verdict = verify(self._problem, plan)
        if verdict.ok and verdict.objective < self.objective:
            self.plan, self.objective = plan, verdict.objective


def _part(watch: SearchMonitor, parts: int) -> SearchMonitor:
    """Monitor of one of the ``parts`` remaining searches of tetris; its reports are not passed on."""
    stop = watch.stop
    seconds = None if stop.time_limit_s is None else watch.remaining_s / parts
    return SearchMonitor(replace(stop, time_limit_s=seconds))


def _exceeded(problem: DataPlacement, plan: Plan) -> set[str]:
    """Terms to be priced, since the plan has more of something than a limit allows."""
    used = use_of_limits(problem, plan)
    return {term for name, most in problem.limits.items() if used[name] > most for term in PRICED[name]}
