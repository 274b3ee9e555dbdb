"""Solves by a search: what a heuristic or a kind's own method is given, and its result, verified."""

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mast_opt.core.errors import UnsupportedOption, VerificationError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Limit, SolveParams, SolveResult, Status, within_gap
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.mip_route import Answer
from mast_opt.planner.solving.request import Request
from mast_opt.planner.solving.solution import Stage
from mast_opt.planner.solving.solver_params import SubSolvers
from mast_opt.problems import backends
from mast_opt.problems.backends.base import Backend, cancelling, interruptibly
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.mip import Mip
from mast_opt.problems.search import interface
from mast_opt.problems.search.strategy import LOG

LARGE_LINEAR = 4_000
"""Columns from which on a linear program is large."""


def search_context(
    request: Request[Any], clock: Clock, inside: SubSolvers, backend: Backend | None, grid_limits: str
) -> interface.SearchContext:
    """Context for a search.

    Args:
        backend: that of a kind's own method, None for a heuristic.
        grid_limits: see ``SolverInterface``.
    """
    asked, problem = request.asked, request.problem
    stop = interface.StoppingCriteria(clock.budget_s(), asked.gap, request.iterations, asked.cancel)
    said = partial(LOG.info, "strategy: %s")
    mip_solver = None if backend is None else _AsAsked(backend, asked.options, asked.threads, asked.seed, grid_limits)
    offer = None if request.offers is None else request.offers.offer
    return interface.SearchContext(
        rng=np.random.default_rng(asked.seed),
        watch=interface.SearchMonitor(stop, asked.on_event, said, problem.sense, problem.gap_scale, offer),
        threads=asked.threads if asked.threads is not None else os.cpu_count() or 1,
        backends=inside,
        params=request.params,
        mip_solver=mip_solver,
        certificate=None if request.carried is None else request.carried.certificate,
    )


def by_search(
    kind: Kind[Any, PlanT],
    search: interface.Heuristic,
    problem: Problem[PlanT],
    solver: str,
    tools: interface.SearchContext,
    start: PlanT | None,
    clock: Clock,
) -> tuple[Answer, interface.Certificate | None]:
    """The answer of a search, its plan verified, and the certificate of its bound.

    Raises:
        VerificationError: the plan breaks a limit.
    """
    stop, sense = tools.watch.stop, tools.watch.sense
    with clock.phase("solve"):
        if tools.mip_solver is None:
            found = interruptibly(lambda: search(problem, tools, start), stop.cancel)
        else:  # the backend has a thread of its own, and a method is not long without it
            with cancelling(stop.cancel):
                found = search(problem, tools, start)
    if problem.objective.lexicographic and not found.stages:
        found = _unguided(problem.objective.order, found)
    if found.plan is None:
        status = found.status or Status.NO_SOLUTION
        return Answer(status, None, None, None, found.bound, found.limit, found.message), found.certificate
    with clock.phase("verify"):
        verdict = kind.verification.verify(problem, found.plan)
    if not verdict.ok:
        raise VerificationError(f"{solver} returned a plan that breaks {verdict.violations[0]}")
    stages = tuple(
        Stage(stage.term, verdict.terms[stage.term], _within(Sense.MIN, stage.bound, verdict.terms[stage.term]))
        for stage in found.stages
    )
    objective, bound, term = verdict.objective, _within(sense, found.bound, verdict.objective), None
    if stages:
        open_stages = (stage for stage in stages if not within_gap(stage.objective, stage.bound, stop.gap))
        headline = next(open_stages, stages[-1])
        assert headline.objective is not None
        objective, bound, term = headline.objective, headline.bound, headline.term
    finished = found.finished and (not stages or len(stages) == len(problem.objective.order))
    proven = finished and within_gap(objective, bound, stop.gap, sense=sense, scale=tools.watch.gap_scale)
    better = kind.verification.improvement(problem, found.plan) if proven else ""
    proven = proven and not better
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    limit = None if proven else found.limit
    words = f"not optimal at a later level: {better}" if better else found.message
    answer = Answer(status, found.plan, verdict, objective, bound, limit, words, stages, term)
    return answer, found.certificate


@dataclass(frozen=True)
class _AsAsked:
    """A backend with the options, threads and seed that the caller asked for; on linear programs with its own
    preferences for large and for small ones, unless an option says otherwise. Pickled, the backend is a name."""

    backend: Backend
    options: tuple[tuple[str, str | int | float | bool], ...]
    threads: int | None
    seed: int
    grid_limits: str

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.backend.name, self.options, self.threads, self.seed, self.grid_limits)

    def __call__(self, mip: Mip, params: SolveParams) -> SolveResult:
        backend = self.backend
        if getattr(backend, "grid", False) and not mip.integral.all():
            raise UnsupportedOption(
                f"{backend.name} places fractions on a grid, and this problem needs them to nine digits; "
                f"choose highs, scip or cbc. {backend.name} solves {self.grid_limits or 'programs without fractions'}"
            )
        plain = replace(params, options=self.options, threads=self.threads, seed=self.seed)
        large = len(mip.cost) >= LARGE_LINEAR and params.basis is None
        preferred = getattr(backend, "large_linear" if large else "small_linear", ())
        given = {name for name, _ in self.options}
        preferred = tuple(one for one in preferred if one[0] not in given)
        if preferred and not mip.integral.any():
            result = backend.solve(mip, replace(plain, options=(*preferred, *plain.options)))
            if result.limit is not Limit.OTHER:
                return result
        return backend.solve(mip, plain)


def _by_name(name: str, *asked: Any) -> _AsAsked:  # noqa: ANN401 - the other fields
    """Backend by its name, with what is asked of the solve."""
    return _AsAsked(backends.get(name), *asked)


UNGUIDED = "searched by weights, not in the order"


def _unguided(order: tuple[str, ...], found: interface.SearchResult[Any]) -> interface.SearchResult[Any]:
    """A search's result found by weights, stated term by term; of terms that were not searched for, 0 is the bound."""
    words = f"{found.message}; {UNGUIDED} {', '.join(order)}".removeprefix("; ")
    stages = () if found.plan is None else tuple(interface.StageBound(term, 0.0) for term in order)
    return replace(found, bound=None, message=words, stages=stages)


def _within(sense: Sense, bound: float | None, objective: float) -> float | None:
    """A search's bound that rounding does not put on the wrong side of the objective."""
    return None if bound is None else sense.within(bound, objective)
