"""Portfolio of solvers (``auto``): an exact solver and a heuristic side by side, the best plan and bound of both."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from mast_opt import backends
from mast_opt.backends.base import WATCH_INTERVAL_S, interruptibly
from mast_opt.core.errors import MastOptError, UnsupportedOption, UsageError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import AGREEMENT, ROUND_OFF, Event, Limit, Status, within_gap
from mast_opt.kind.kind import Kind
from mast_opt.kind.problem import PlanT, Problem
from mast_opt.registry import check_plan, kind_of
from mast_opt.search.params import Params
from mast_opt.search.strategy import LOG
from mast_opt.solving.auto_strategy import AUTO, AutoParams, Portfolio, choose_strategy
from mast_opt.solving.exchange import PlanExchange
from mast_opt.solving.kernel_compilation import processors
from mast_opt.solving.request import Request, check_terms
from mast_opt.solving.solution import Solution
from mast_opt.solving.solver_params import class_of


def portfolio_of(kind: Kind[Any, Any], request: Request[Any], params: AutoParams) -> Portfolio:
    """Who solves the problem for ``auto``.

    Raises:
        UsageError: options of a solver are given, or there is no backend of the name that ``params`` states.
    """
    if request.asked.options:
        raise UsageError(f"{AUTO} takes no options of a solver; choose the solver that they are for")
    if params.exact not in backends.names():
        raise UsageError(f"parameter exact is {params.exact!r}; expected one of: {', '.join(backends.names())}")
    if request.start is not None:
        check_plan(kind, request.problem, request.start)
    size = None if kind.formulation.size is None else kind.formulation.size(request.problem).columns
    asked = request.asked
    threads = asked.threads if asked.threads is not None else processors()
    return choose_strategy(size, _able(kind, request.problem), threads, params, asked.time_limit_s)


def _able(kind: Kind[Any, Any], problem: Problem[Any]) -> str:
    """The heuristic that improves a plan and takes every term and limit of the problem; empty where there is none."""
    for name in kind.solvers.heuristics:
        if name not in kind.solvers.constructive:
            try:
                check_terms(kind, problem, name, None)
            except UnsupportedOption:
                continue
            return name
    return ""


class _Member(threading.Thread):
    """One solver of the portfolio, in a thread of its own."""

    def __init__(self, name: str, run: Callable[[], Solution[Any]]) -> None:
        super().__init__(name=f"mast-opt-{name}", daemon=True)
        self.solver = name
        self.outcome: Future[Solution[Any]] = Future()
        self._run_it = run

    def run(self) -> None:
        try:
            self.outcome.set_result(self._run_it())
        except BaseException as error:
            self.outcome.set_exception(error)

    @property
    def solution(self) -> Solution[Any] | None:
        """What it found; None where it failed or has not ended."""
        if not self.outcome.done() or self.outcome.exception() is not None:
            return None
        return self.outcome.result()


class _Board:
    """What the members know together: the best incumbent and the tightest bound."""

    def __init__(
        self,
        sense: Sense,
        near: Callable[[float | None, float | None], bool],
        merged: bool,
        on_event: Callable[[Event], None] | None,
    ) -> None:
        self._sense, self._near = sense, near
        self._merged = merged
        self._on_event = on_event
        self._lock = threading.Lock()
        self._began = time.perf_counter()
        self.events: list[Event] = []
        self.incumbent: float | None = None
        self.finder = ""
        """The member that found the incumbent."""
        self.bound: float | None = None
        self.enough = threading.Event()
        """Set once the incumbent is within the gap of the bound."""

    def hear(self, name: str, event: Event) -> None:
        """Take note of an event of a member; pass it on where it is news to all."""
        with self._lock:
            if event.compiling or not self._merged:
                self._pass_on(event)
                return
            better = self._improves(event.incumbent, self.incumbent)
            tighter = self._improves(self.bound, event.bound) if self.bound is not None else event.bound is not None
            if better:
                self.incumbent, self.finder = event.incumbent, name
            if tighter and event.bound is not None:
                self.bound = event.bound
            if better or tighter:
                self._pass_on(replace(event, incumbent=self.incumbent, bound=self.bound))
                if self._near(self.incumbent, self.bound):
                    self.enough.set()

    def _improves(self, value: float | None, known: float | None) -> bool:
        """Whether a value is smaller, where the objective is minimised."""
        if value is None or known is None:
            return value is not None
        return self._sense.minimised(value) < self._sense.minimised(known)

    def _pass_on(self, event: Event) -> None:
        now = replace(event, elapsed_s=time.perf_counter() - self._began)
        self.events.append(now)
        if self._on_event is not None:
            self._on_event(now)


def by_portfolio(
    solve: Callable[[Request[PlanT]], Solution[PlanT]], request: Request[PlanT], strategy: Portfolio
) -> Solution[PlanT]:
    """Solve with every member of the strategy at once; they stop when one has proven enough.

    Args:
        solve: solves with one solver.
        request: what is asked, with the parameters of ``auto``.
        strategy: who solves.

    Raises:
        MastOptError: no member came to an answer; the error of the first one.
    """
    LOG.info("strategy: %s", strategy)
    problem, asked = request.problem, request.asked
    assert isinstance(request.params, AutoParams)
    began = time.perf_counter()
    merged = not problem.objective.lexicographic and not problem.objective.policy
    board = _Board(problem.sense, _within(problem, asked.gap), merged, asked.on_event)
    stop = threading.Event()
    exchange = _exchange(strategy, problem) if merged else None

    def member(name: str, threads: int) -> _Member:
        limit_s = asked.time_limit_s
        left_s = None if limit_s is None else max(0.01, limit_s - (time.perf_counter() - began))
        if strategy.in_turn and name == strategy.exact and left_s is not None:
            left_s = min(left_s, strategy.head_start_s)
        mine = replace(asked, threads=threads, on_event=partial(board.hear, name), cancel=stop, time_limit_s=left_s)
        params = _defaults(kind_of(problem), name)
        one = replace(request, solver=name, params=params, asked=mine, exchange=exchange)
        return _Member(name, lambda: solve(one))

    def run() -> list[_Member]:
        waiting = [(strategy.heuristic, strategy.heuristic_threads)] if strategy.heuristic else []
        running: list[_Member] = []
        if strategy.exact:
            running.append(member(strategy.exact, strategy.exact_threads))
            running[0].start()
        while True:
            elapsed_s = time.perf_counter() - began
            joins = elapsed_s >= strategy.head_start_s and not strategy.in_turn
            if waiting and not stop.is_set() and (joins or not _busy(running)):
                if not any(_settles(one) for one in running):
                    running.append(member(*waiting[0]))
                    running[-1].start()
                waiting = []
            if asked.cancel.is_set() or board.enough.is_set() or any(_settles(one) for one in running):
                stop.set()
            if not _busy(running) and (not waiting or stop.is_set()):
                return running
            next((one for one in running if one.is_alive()), running[0]).join(WATCH_INTERVAL_S)

    members = interruptibly(run, asked.cancel)
    interrupted = asked.cancel.is_set()
    return _together(members, strategy, request.params, board, _within(problem, asked.gap), interrupted)


def _exchange(strategy: Portfolio, problem: Problem[Any]) -> PlanExchange | None:
    """Where the heuristic leaves its plans for the exact solver; None where that takes none or runs alone."""
    together = strategy.exact and strategy.heuristic and not strategy.in_turn
    able = together and getattr(backends.get(strategy.exact), "takes_incumbents", False)
    return PlanExchange(problem.sense) if able else None


def _defaults(kind: Kind[Any, Any], solver: str) -> Params | None:
    cls = class_of(kind, solver)
    return None if cls is None else cls()


def _busy(members: list[_Member]) -> bool:
    return any(one.is_alive() for one in members)


def _settles(member: _Member) -> bool:
    """Whether a member has ended with an answer that the others cannot improve, or a refusal of what is asked."""
    if member.outcome.done() and _refuses(member.outcome.exception()):
        return True
    solution = member.solution
    return solution is not None and (solution.status is Status.OPTIMAL or solution.status.is_infeasible)


def _refuses(error: BaseException | None) -> bool:
    """Whether what is asked makes no sense for any solver; the subclasses speak of one solver."""
    return type(error) is UsageError


def _within(problem: Problem[Any], gap: float) -> Callable[[float | None, float | None], bool]:
    """Whether an objective is within the gap of a bound."""
    return lambda objective, bound: within_gap(objective, bound, gap, sense=problem.sense, scale=problem.gap_scale)


def _together(
    members: list[_Member],
    strategy: Portfolio,
    params: AutoParams,
    board: _Board,
    near: Callable[[float | None, float | None], bool],
    interrupted: bool,
) -> Solution[Any]:
    """The best plan with the tightest bound, and who found them."""
    found = [(one.solver, one.solution) for one in members if one.solution is not None]
    failures = [(one.solver, error) for one in members if (error := one.outcome.exception()) is not None]
    refusal = next((error for _, error in failures if _refuses(error)), None)
    if refusal is not None or not found:
        raise refusal or failures[0][1]
    for _, error in failures:
        if not isinstance(error, (MastOptError, MemoryError)):
            raise error
    sense = found[0][1].sense
    infeasible = next((known for _, known in found if known.status.is_infeasible), None)
    ranked = sorted(found, key=lambda one: _rank(one[1], sense))
    planner, best = next((one for one in ranked if one[0] == board.finder and _ties(one[1], ranked[0][1])), ranked[0])
    best = infeasible if infeasible is not None and best.plan is None else best
    prover, bound = _tightest(found, best, sense)
    status, limit = best.status, best.limit
    if best.plan is not None and best.term is None:
        proven = near(best.objective, bound) or any(
            known.status is Status.OPTIMAL and _ties(known, best) for _, known in found
        )
        status = Status.OPTIMAL if proven else Status.FEASIBLE
        limit = None if proven else Limit.INTERRUPT if interrupted else best.limit
        if limit is Limit.INTERRUPT and not interrupted:
            limit = next((known.limit for _, known in found if known.limit not in (None, Limit.INTERRUPT)), limit)
    words = [f"plan by {planner}"] if best.plan is not None else []
    words += [f"bound by {prover}"] if prover else []
    words += [f"{name} failed: {error}" for name, error in failures]
    by_heuristic = next((known.certificate for name, known in found if name == prover), None)
    return replace(
        best,
        solver=AUTO,
        status=status,
        bound=bound,
        limit=limit,
        message="; ".join(words) or best.message,
        versions={name: text for _, known in found for name, text in known.versions.items()},
        params=params.differences(),
        strategy={
            **best.strategy,
            **strategy.facts,
            "plan_by": planner if best.plan is not None else "",
            "bound_by": prover,
        },
        events=tuple(board.events),
        certificate=by_heuristic,
    )


def _rank(solution: Solution[Any], sense: Sense) -> tuple[Any, ...]:
    """Plans before none; then term by term, or by the objective."""
    if solution.plan is None or solution.objective is None or solution.verdict is None:
        return (1,)
    if solution.stages:
        return (0, *(solution.verdict.terms[stage.term] for stage in solution.stages))
    return (0, sense.minimised(solution.objective))


def _ties(one: Solution[Any], best: Solution[Any]) -> bool:
    """Whether a plan is as good as the best; the other solver may have been given it."""
    if one.objective is None or best.objective is None or best.stages:
        return one is best
    return math.isclose(one.objective, best.objective, rel_tol=AGREEMENT, abs_tol=ROUND_OFF)


def _tightest(found: list[tuple[str, Solution[Any]]], best: Solution[Any], sense: Sense) -> tuple[str, float | None]:
    """Who proved most of the objective of the best plan, and what; a term's bound is that of the plan's own solve."""
    if best.term is not None:
        return next(name for name, known in found if known is best), best.bound
    proofs = [(name, known.bound) for name, known in found if known.bound is not None and known.term is None]
    if not proofs:
        return "", None
    name, bound = max(proofs, key=lambda one: sense.minimised(one[1]))
    return name, bound if best.objective is None else sense.within(bound, best.objective)
