"""A solve by one solver: what is checked before, the route that it takes, and the solution that comes of it.

There are five routes: an instance whose limits contradict one another is infeasible; a solve that is interrupted while
kernels are compiled ends with its start; a heuristic searches; a method of the kind's own has a backend search; and any
other kind's program goes to a backend.
"""

import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib.metadata import version
from typing import Any, Generic

from mast_opt.core.errors import Interrupted, UsageError, VerificationError
from mast_opt.core.solve_result import Event, Limit, Status
from mast_opt.core.verdict import Conflict
from mast_opt.core.wording import plain, seconds
from mast_opt.planner.solving.clock import COMPILE, Clock
from mast_opt.planner.solving.fixed_parts import Frozen, frozen
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.planner.solving.mip_route import Answer, ExactSolve
from mast_opt.planner.solving.request import Request, check_start, check_terms
from mast_opt.planner.solving.search_route import by_search, search_context
from mast_opt.planner.solving.solution import UNIMPROVED, Solution, Stage
from mast_opt.planner.solving.solver_params import SubSolvers
from mast_opt.problems import backends
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of
from mast_opt.problems.search.interface import Certificate, Heuristic
from mast_opt.problems.search.params import Params, Value, value_text
from mast_opt.problems.search.strategy import LOG, Strategy


@dataclass(frozen=True)
class _Ended:
    """Result of a route."""

    answer: Answer
    certificate: Certificate | None = None
    strategy: Strategy | None = None
    conflicts: tuple[Conflict, ...] = ()


def solved(request: Request[PlanT], clock: Clock | None = None) -> Solution[PlanT]:
    """The solution by one solver.

    Args:
        clock: of the call that this solve is part of; None to begin one now.
    """
    problem, solver, chosen = request.problem, request.solver, request.params
    clock = clock or Clock(request.asked.time_limit_s)
    kind = kind_of(problem)
    check_terms(kind, problem, solver, chosen)
    check_start(kind, problem, solver, request.start, request.freeze)
    log_begin(request, kind)
    events: list[Event] = []
    asked = replace(request.asked, on_event=_recorder(events, request.asked.on_event, clock))
    changed = {} if chosen is None else _logged(chosen)
    run = _Run(replace(request, asked=asked), kind, clock)
    ended = run.by_its_route()
    if run.fixed is not None and ended.answer.plan is not None:
        ended = replace(ended, answer=_verified_with_rules(ended.answer, run.fixed), certificate=None)
    answer = ended.answer
    unimproved = answer.status is Status.FEASIBLE and _no_better(kind, problem, answer, run.begin)
    message = "; ".join(words for words in (answer.message, UNIMPROVED if unimproved else "", run.unfit) if words)
    log_end(solver, answer.status, answer.objective, answer.bound)
    return Solution(
        kind=kind.name,
        solver=solver,
        **{**vars(answer), "message": message},
        unimproved=unimproved,
        seed=asked.seed,
        runtime_s=dict(clock.spent_s),
        versions={"mast-opt": _own_version(), "python": platform.python_version(), **run.versions},
        params=changed,
        strategy={} if ended.strategy is None else ended.strategy.facts,
        conflicts=ended.conflicts,
        events=tuple(events),
        certificate=ended.certificate,
        frozen={} if run.fixed is None else run.fixed.parts,
        sense=problem.sense,
    )


class _Run(Generic[PlanT]):
    """One solver at work on one instance."""

    def __init__(self, request: Request[PlanT], kind: Kind[Any, PlanT], clock: Clock) -> None:
        problem = request.problem
        self._request, self._kind, self._clock = request, kind, clock
        self.fixed: Frozen | None = None
        """The part of a plan that is frozen, if any."""
        if request.freeze:
            self.fixed = frozen(kind, problem, request.start, request.freeze)
        self._heuristic = kind.solvers.heuristics.get(request.solver)
        self._stated = self.fixed.rules(request.solver) if self.fixed and self._heuristic else problem
        self.unfit = "" if self._heuristic is None or request.carried else self._unfit(request.start)
        """Words on a start that a heuristic is not given, because it breaks a limit."""
        self._inside = SubSolvers()
        self._backend: Backend | None = None
        self._own_versions: dict[str, str] = {}

    def _unfit(self, start: PlanT | None) -> str:
        """Words on a start that breaks a limit: searches that repaired one ended with worse plans than without it."""
        broken = () if start is None else self._kind.verification.verify(self._request.problem, start).violations
        return f"the start breaks {broken[0].name}, so the search began without it" if broken else ""

    @property
    def versions(self) -> dict[str, str]:
        """Library → version of a solve, of those that were called."""
        return {**self._own_versions, **self._inside.versions}

    @cached_property
    def begin(self) -> PlanT | None:
        """The plan to begin with: the caller's; the present state, for a backend that is given none."""
        start = None if self.unfit else self._request.start
        if self.fixed is not None and self._backend is None:
            start = self.fixed.plan
        if self._backend is not None and start is None:
            with self._clock.phase("verify"):
                start = feasible_current_plan(self._kind, self._request.problem)
        return start

    def by_its_route(self) -> _Ended:
        """The end of the route that instance and solver ask for."""
        conflicts = self._kind.analysis.conflicts(self._stated)
        if conflicts:
            return _contradicted(conflicts)
        self._load()
        try:
            self._compile()
        except Interrupted as interrupted:
            return self._uncompiled(str(interrupted))
        if self._heuristic is not None:
            return self._searched(self._heuristic.search)
        if self._kind.solvers.method is not None:
            return self._searched(self._kind.solvers.method)
        return self._programmed()

    def _uncompiled(self, words: str) -> _Ended:
        """Answer of a solve before there was a search: the start, if it is valid."""
        problem, start = self._stated, self.begin
        with self._clock.phase("verify"):
            verdict = None if start is None else self._kind.verification.verify(problem, start)
        if verdict is None or not verdict.ok:
            return _Ended(Answer(Status.NO_SOLUTION, None, None, None, None, Limit.INTERRUPT, words))
        stages = tuple(Stage(term, verdict.terms[term], 0.0) for term in problem.objective.order)
        objective, term = (stages[0].objective, stages[0].term) if stages else (verdict.objective, None)
        bound = 0.0 if stages else None
        limit = Limit.INTERRUPT
        return _Ended(Answer(Status.FEASIBLE, start, verdict, objective, bound, limit, words, stages, term))

    def _searched(self, search: Heuristic) -> _Ended:
        """The end of a search, by a heuristic alone or by a method that has the backend solve its programs."""
        request, limits = self._request, self._kind.solvers.grid_limits
        tools = search_context(request, self._clock, self._inside, self._backend, limits)
        answer, certificate = by_search(
            self._kind, search, self._stated, request.solver, tools, self.begin, self._clock
        )
        return _Ended(answer, certificate, tools.watch.strategy)

    def _programmed(self) -> _Ended:
        """The end of a solve of the kind's program by the backend."""
        request, begin = self._request, self.begin
        assert self._backend is not None
        formulate: Callable[[Any], Formulation[Any]] = partial(self._kind.formulate, name=request.formulation)
        if self.fixed is not None:
            formulate = _after(formulate, self.fixed.formulation)
        solve = ExactSolve(
            *(self._kind, request.problem, self._backend, request.asked, self._clock, request.offers, request.others)
        )
        return _Ended(solve.run(formulate, begin))

    def _load(self) -> None:
        """Load the library of the backend; of a heuristic, check the backends that it calls.

        Raises UsageError for options that no backend gets, BackendUnavailable for a library that is missing.
        """
        solver, options = self._request.solver, self._request.asked.options
        if self._heuristic is None:
            self._backend = backends.get(solver)
            with self._clock.phase(COMPILE):
                self._own_versions = {solver: self._backend.version()}
            return
        if options:
            raise UsageError(f"{solver} takes no options of its own; {options[0][0]} is for MIP backends")
        if self._heuristic is not None and self._heuristic.package is not None:
            self._own_versions = {solver: self._heuristic.package}
        with self._clock.phase(COMPILE):
            self._inside.check(self._request.params)

    def _compile(self) -> None:
        """Compile the kernels that the solve needs, or load them; this is no part of the time limit."""
        asked, said = self._request.asked, list[bool]()

        def say(compiling: bool) -> None:
            said.append(compiling)
            if asked.on_event is not None:
                asked.on_event(Event(0.0, None, None, compiling=compiling))

        try:
            with self._clock.phase(COMPILE):
                rehearsals = needed(self._kind, self._request.solver, self._stated)
                rehearse(self._kind, rehearsals, asked.cancel, lambda: say(True))
        finally:
            if said:
                say(False)


def _contradicted(conflicts: tuple[Conflict, ...]) -> _Ended:
    """The end of an instance that no plan can satisfy, as is seen without solving."""
    words = "; ".join(conflict.message for conflict in conflicts)
    return _Ended(Answer(Status.INFEASIBLE, None, None, None, None, None, words), conflicts=conflicts)


@cache
def _own_version() -> str:
    """Our version for a solution, which takes a millisecond to look up."""
    return version("mast-opt")


def log_begin(request: Request[PlanT], kind: Kind[Any, Any]) -> None:
    """Log that a solver begins."""
    limit_s = request.asked.time_limit_s
    LOG.info(
        "solving %s (%s) with %s, seed %d, time limit %s",
        *(request.problem.name, kind.name, request.solver, request.asked.seed),
        "none" if limit_s is None else seconds(limit_s),
    )


def log_end(solver: str, status: Status, objective: float | None, bound: float | None) -> None:
    """Log what a solver has ended with."""
    LOG.info("%s ended %s, objective %s, bound %s", solver, status.value, plain(objective), plain(bound))


def _logged(params: Params) -> dict[str, Value]:
    """The solver's parameters that are not at their defaults, which the log states."""
    changed = params.differences()
    words = ", ".join(f"{name} = {value_text(value)}" for name, value in changed.items())
    LOG.info("parameters: %s", words or "defaults")
    return changed


def _no_better(kind: Kind[Any, PlanT], problem: Problem[PlanT], answer: Answer, begin: PlanT | None) -> bool:
    """Whether a plan is worth no more than the one that the search began with."""
    before = None if begin is None else kind.verification.verify(problem, begin)
    if before is None or answer.verdict is None or not before.ok:
        return False
    order = problem.objective.order
    if order:
        return [answer.verdict.terms[term] for term in order] >= [before.terms[term] for term in order]
    return problem.sense.minimised(before.objective) <= problem.sense.minimised(answer.verdict.objective)


def _after(
    formulate: Callable[[Any], Formulation[Any]], change: Callable[[Formulation[Any]], Formulation[Any]]
) -> Callable[[Any], Formulation[Any]]:
    """The formulation of a problem after a change, such as fixed columns."""
    return lambda problem: change(formulate(problem))


def _verified_with_rules(answer: Answer, fixed: Frozen) -> Answer:
    """The answer of a solve, once it is sure that it keeps the part and that the rules which did so changed nothing
    else.
    """
    fixed.check(answer.plan)
    verdict = fixed.kind.verification.verify(fixed.problem, answer.plan)
    if not verdict.ok or answer.verdict is None or verdict.terms != answer.verdict.terms:
        raise VerificationError("the rules that keep a part of the plan change what the plan is worth")
    return replace(answer, verdict=verdict)


def feasible_current_plan(kind: Kind[Any, PlanT], problem: Problem[PlanT]) -> PlanT | None:
    """The present state, if it is known and breaks no rule."""
    plan = kind.analysis.current_plan(problem)
    return plan if plan is not None and kind.verification.verify(problem, plan).ok else None


def _recorder(events: list[Event], on_event: Callable[[Event], None] | None, clock: Clock) -> Callable[[Event], None]:
    """Listener that keeps the events of a solve, logs them, and passes them on with the time since it began."""

    def record(event: Event) -> None:
        since_start = replace(event, elapsed_s=clock.elapsed_s)
        events.append(since_start)
        LOG.debug("%.1f s: incumbent %s, bound %s", since_start.elapsed_s, plain(event.incumbent), plain(event.bound))
        if on_event is not None:
            on_event(since_start)

    return record
