"""Portfolio of solvers (``auto``): an exact solver and a heuristic side by side, the best plan and bound of both."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Event, Status, within_gap
from mast_opt.planner.solving.auto_strategy import AUTO, AutoParams, Portfolio, choose_strategy
from mast_opt.planner.solving.exchange import PlanExchange
from mast_opt.planner.solving.fixed_parts import frozen
from mast_opt.planner.solving.kernel_compilation import processors
from mast_opt.planner.solving.portfolio_answer import KeptPlan, Outcomes, refuses, together
from mast_opt.planner.solving.request import Request, check_terms
from mast_opt.planner.solving.solution import Solution
from mast_opt.planner.solving.solver_params import class_of
from mast_opt.problems import backends
from mast_opt.problems.backends.base import WATCH_INTERVAL_S, interruptibly
from mast_opt.problems.backends.progress import overdue
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of
from mast_opt.problems.search.params import Params
from mast_opt.problems.search.strategy import LOG


def portfolio_of(kind: Kind[Any, Any], request: Request[Any], params: AutoParams) -> Portfolio:
    """Choose the solvers that ``auto`` runs on a problem.

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
    return choose_strategy(size, able(kind, request.problem), threads, params, asked.time_limit_s)


def able(kind: Kind[Any, Any], problem: Problem[Any]) -> str:
    """The heuristic that improves a plan and takes every term and limit of the problem; empty where there is none."""
    for name, heuristic in kind.solvers.usable():
        if not heuristic.constructive:
            try:
                check_terms(kind, problem, name, None)
            except UnsupportedOption:
                continue
            return name
    return ""


class _Member(threading.Thread):
    """One solver of the portfolio, in a thread of its own."""

    def __init__(self, name: str, run: Callable[[], Solution[Any]], offers: PlanExchange | None) -> None:
        super().__init__(name=f"mast-opt-{name}", daemon=True)
        self.solver = name
        self.offers = offers
        """The plans that it has found so far; None where they are not comparable."""
        self.looked_at: float | None = None
        """Objective of the last offer that was verified."""
        self.outcome: Future[Solution[Any]] = Future()
        self._run_it = run

    def run(self) -> None:
        """Solve as this member, and keep the solution or the error."""
        try:
            self.outcome.set_result(self._run_it())
        except BaseException as error:
            self.outcome.set_exception(error)

    @property
    def failure(self) -> BaseException | None:
        """Error with which a member of the portfolio failed; None where it did not, or has not ended."""
        return self.outcome.exception() if self.outcome.done() else None

    @property
    def solution(self) -> Solution[Any] | None:
        """Solution that a member of the portfolio found; None where it failed or has not ended."""
        return self.outcome.result() if self.outcome.done() and self.outcome.exception() is None else None

    @property
    def settles(self) -> bool:
        """Whether a member of the portfolio has ended with an answer that the others cannot improve, or a refusal of
        what is asked.
        """
        solution = self.solution
        if solution is None:
            return refuses(self.failure)
        return solution.status is Status.OPTIMAL or solution.status.is_infeasible


class _Board:
    """Board of what the members say: the best incumbent, not verified yet, and what each has proven."""

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
        self._bounds: dict[str, float] = {}
        self.events: list[Event] = []
        self.incumbent: float | None = None
        self.finder = ""
        """The member that found the incumbent."""
        self.bound: float | None = None
        self.failure: BaseException | None = None
        """Error that the caller's ``on_event`` has raised."""

    def hear(self, name: str, event: Event) -> None:
        """Take note of an event of a member; pass it on where it is news to all."""
        with self._lock:
            if event.compiling or not self._merged:
                self._pass_on(event)
                return
            if event.bound is not None:
                self._bounds[name] = event.bound
            better = self._improves(event.incumbent, self.incumbent)
            tighter = self._improves(self.bound, event.bound) if self.bound is not None else event.bound is not None
            if better:
                self.incumbent, self.finder = event.incumbent, name
            if tighter and event.bound is not None:
                self.bound = event.bound
            if better or tighter:
                self._pass_on(replace(event, incumbent=self.incumbent, bound=self.bound))

    def proves(self, objective: float | None, failed: set[str]) -> bool:
        """Whether a portfolio's objective is within the gap of what a member has proven that has not failed."""
        with self._lock:
            bounds = [bound for name, bound in self._bounds.items() if name not in failed]
        return self._near(objective, max(bounds, key=self._sense.minimised, default=None))

    def _improves(self, value: float | None, known: float | None) -> bool:
        """Whether a value of a portfolio's member is smaller, where the objective is minimised."""
        if value is None or known is None:
            return value is not None
        return self._sense.minimised(value) < self._sense.minimised(known)

    def _pass_on(self, event: Event) -> None:
        """Pass an event of a portfolio's member on to the caller, and keep what the listener raises."""
        now = replace(event, elapsed_s=time.perf_counter() - self._began)
        self.events.append(now)
        if self._on_event is not None:
            try:
                self._on_event(now)
            except BaseException as failure:
                self.failure = failure
                raise


def by_portfolio(
    solve: Callable[[Request[PlanT]], Solution[PlanT]], request: Request[PlanT], strategy: Portfolio
) -> Solution[PlanT]:
    """Solve with every member of the strategy at once, until a plan that the verifier accepts is proven enough.

    What a solver says of a plan that the verifier has not accepted stops nobody.

    Args:
        solve: solves with one solver.
        request: what is asked, with the parameters of ``auto``.
        strategy: who solves.

    Raises:
        MastOptError: no member came to an answer; the error of the first one.
        VerificationError: what one member proves rules out a plan of another that the verifier accepts.
    """
    LOG.info("strategy: %s", strategy)
    assert isinstance(request.params, AutoParams)
    race = _Race(solve, request, strategy)
    members = interruptibly(race.run, request.asked.cancel)
    if race.board.failure is not None:
        raise race.board.failure
    outcomes = Outcomes(
        [(one.solver, one.solution) for one in members if one.solution is not None],
        [(one.solver, one.failure) for one in members if one.failure is not None],
        race.kept,
        race.board.finder,
        tuple(race.board.events),
        request.asked.cancel.is_set(),
        request.asked.time_limit_s is not None,
    )
    return together(outcomes, strategy, request.params, race.near)


class _Race:
    """The members at work on one request."""

    def __init__(
        self, solve: Callable[[Request[Any]], Solution[Any]], request: Request[Any], strategy: Portfolio
    ) -> None:
        problem, asked = request.problem, request.asked
        self._solve, self._request, self._strategy = solve, request, strategy
        self._began = time.perf_counter()
        self._stop, self._late = threading.Event(), threading.Event()
        self._exact_turn: tuple[float, float | None] = (0.0, None)
        """Begin and time limit of the exact solver in seconds; beyond that it is not waited for."""
        self.near = partial(_near, problem, asked.gap)
        merged = not problem.objective.lexicographic and not problem.objective.policy
        names = [name for name in (strategy.exact, strategy.heuristic) if name and merged]
        self._offers = {name: PlanExchange(problem.sense) for name in names}
        self.board = _Board(problem.sense, self.near, merged, asked.on_event)
        self.members: list[_Member] = []
        self.kept: list[KeptPlan] = []

    def run(self) -> list[_Member]:
        """Start the portfolio's members when it is their turn; all of them, once they have ended."""
        strategy, stop, running = self._strategy, self._stop, self.members
        waiting = [(strategy.heuristic, strategy.heuristic_threads)] if strategy.heuristic else []
        if strategy.exact:
            self._begin(strategy.exact, strategy.exact_threads)
        while True:
            elapsed_s = time.perf_counter() - self._began
            joins = elapsed_s >= strategy.head_start_s and not strategy.in_turn
            if waiting and not stop.is_set() and (joins or not self._busy):
                if not any(one.settles for one in running):
                    self._begin(*waiting[0])
                waiting = []
            if self._request.asked.cancel.is_set() or any(one.settles or self._proven(one) for one in running):
                stop.set()
            if stop.is_set() or overdue(elapsed_s - self._exact_turn[0], self._exact_turn[1]):
                self._late.set()
            if not self._busy and (not waiting or stop.is_set()):
                return running
            next((one for one in running if one.is_alive()), running[0]).join(WATCH_INTERVAL_S)

    @property
    def _busy(self) -> bool:
        """Whether any member of the portfolio still runs."""
        return any(one.is_alive() for one in self.members)

    def _begin(self, name: str, threads: int) -> None:
        """Let a solver of the portfolio begin."""
        strategy, asked = self._strategy, self._request.asked
        limit_s = asked.time_limit_s
        left_s = None if limit_s is None else max(0.01, limit_s - (time.perf_counter() - self._began))
        exact = name == strategy.exact
        if strategy.in_turn and exact and left_s is not None:
            left_s = min(left_s, strategy.head_start_s)
        if exact:
            self._exact_turn = time.perf_counter() - self._began, left_s
        heard, cancel = partial(self.board.hear, name), self._late if exact else self._stop
        mine = replace(asked, threads=threads, on_event=heard, cancel=cancel, time_limit_s=left_s)
        params = _defaults(kind_of(self._request.problem), name)
        takes = exact and not strategy.in_turn and getattr(backends.get(name), "takes_incumbents", False)
        others = self._offers.get(strategy.heuristic) if takes else None
        offers = self._offers.get(name)
        one = replace(self._request, solver=name, params=params, asked=mine, offers=offers, others=others)
        self.members.append(_Member(name, lambda: self._solve(one), offers))
        self.members[-1].start()

    def _proven(self, one: _Member) -> bool:
        """Whether a plan of the portfolio's member is valid and near enough to what is proven by now."""
        failed = {other.solver for other in self.members if other.failure is not None}
        if one.solution is not None:
            return one.solution.term is None and self.board.proves(one.solution.objective, failed)
        offer = None if one.offers is None or one.solver in failed else one.offers.best
        if offer is None or offer[0] == one.looked_at or not self.board.proves(offer[0], failed):
            return False
        one.looked_at = offer[0]
        plan = offer[1]()
        verdict = kind_of(self._request.problem).verification.verify(self._request.problem, plan)
        if not verdict.ok or not self.board.proves(verdict.objective, failed) or not self._keeps_frozen(plan):
            LOG.info("%s has a plan that the verifier does not accept with its objective %.9g", one.solver, offer[0])
            return False
        self.kept.append(KeptPlan(one.solver, plan, verdict))
        return True

    def _keeps_frozen(self, plan: object) -> bool:
        """Whether a plan of the portfolio keeps the part that is to stay."""
        request = self._request
        if request.freeze:
            try:
                frozen(kind_of(request.problem), request.problem, request.start, request.freeze).check(plan)
            except UsageError:
                return False
        return True


def _near(problem: Problem[Any], gap: float, objective: float | None, bound: float | None) -> bool:
    """Whether an objective in the portfolio is within the gap of a bound."""
    return within_gap(objective, bound, gap, sense=problem.sense, scale=problem.gap_scale)


def _defaults(kind: Kind[Any, Any], solver: str) -> Params | None:
    """Parameters of a solver in the portfolio at their defaults; None where it has none."""
    cls = class_of(kind, solver)
    return None if cls is None else cls()
