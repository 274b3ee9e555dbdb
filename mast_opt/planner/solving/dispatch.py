"""Public ``solve`` and ``verify``: dispatch to every kind of problem and every solver."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from importlib.metadata import version
from typing import Any

from mast_opt.core.arguments import (
    a_finite,
    a_function,
    a_text,
    a_whole,
    anything,
    checked,
    mapping_of,
    option_values,
    optional,
    texts,
)
from mast_opt.core.arrays import labels_of
from mast_opt.core.errors import Interrupted, UsageError, VerificationError
from mast_opt.core.number_format import plain, seconds
from mast_opt.core.solve_result import Event, Limit, SolveParams, Status
from mast_opt.core.verdict import Verdict
from mast_opt.planner.solving.auto_strategy import AUTO, EXACT, AutoParams
from mast_opt.planner.solving.clock import COMPILE, Clock
from mast_opt.planner.solving.cross_check import SHARE, check_second, cross_checked
from mast_opt.planner.solving.fixed_parts import Frozen, frozen
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.planner.solving.last_pass import (
    KEPT,
    LONGEST_S,
    NODES,
    SLACK,
    Settling,
    most_allowed,
    settling_of,
)
from mast_opt.planner.solving.mip_route import Answer, ExactSolve
from mast_opt.planner.solving.portfolio import by_portfolio, portfolio_of
from mast_opt.planner.solving.request import Request, check_request, check_start, check_terms
from mast_opt.planner.solving.search_route import by_search, search_context
from mast_opt.planner.solving.solution import UNIMPROVED, Solution, Stage
from mast_opt.planner.solving.solver_params import SubSolvers, solver_params
from mast_opt.problems import backends
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.backends.supervise import check_params
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.overrides import Overrides, stated_limit
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, TermName, check_plan, kind_of
from mast_opt.problems.search.interface import (
    Certificate,
)
from mast_opt.problems.search.params import Params, Value, value_text
from mast_opt.problems.search.strategy import LOG, Strategy

OptionValue = str | int | float | bool


def verify(problem: Problem[PlanT], plan: PlanT) -> Verdict:
    """Check a plan against every hard constraint and recompute its objective, without any solver's help.

    Raises:
        UsageError: the plan is not one for this kind of problem.
        PlanError: the plan was made for another instance.
    """
    kind = kind_of(problem)
    check_plan(kind, problem, plan)
    return kind.verification.verify(problem, plan)


@checked(
    iterations=optional(a_whole(1, note=", or None for no limit")),
    on_event=optional(a_function),
    options=option_values,
    freeze=optional(mapping_of(texts)),
    weights=optional(mapping_of(a_finite)),
    order=optional(texts),
    limits=optional(mapping_of(anything)),
    cross_check=optional(a_text),
)
def solve(  # noqa: PLR0913 - what can be asked of a solve is said in one call
    problem: Problem[PlanT],
    solver: SolverName = "auto",
    *,
    time_limit_s: float | None = None,
    gap: float = 1e-4,
    seed: int = 0,
    threads: int | None = None,
    iterations: int | None = None,
    start: PlanT | None = None,
    formulation: str = "base",
    on_event: Callable[[Event], None] | None = None,
    cancel: threading.Event | None = None,
    options: Mapping[str, OptionValue] | tuple[tuple[str, OptionValue], ...] = (),
    params: Params | Mapping[str, Any] | None = None,
    freeze: Mapping[str, Collection[str]] | None = None,
    weights: Mapping[TermName, float] | None = None,
    order: Sequence[TermName] | None = None,
    limits: Mapping[str, float | str | Fraction | None] | None = None,
    cross_check: SolverName | None = None,
    near: PlanT | None = None,
) -> Solution[PlanT]:
    """Solve a problem and verify the plan.

    Args:
        problem: an instance, from ``mast_opt.read`` or a generator.
        solver: a MIP backend (``highs``, ``cpsat``, …), a heuristic of the problem's kind, or ``auto``: HiGHS and the
            heuristic side by side, each on threads of its own, with the best plan and the tightest bound of both; a
            small instance is HiGHS's alone for a while, and a kind without a heuristic altogether. Its answer is the
            same every time where HiGHS proves it alone; otherwise it depends on the clock.
        time_limit_s: for everything that this call does except loading the solver's library and compiling kernels;
            None for no limit.
        gap: relative gap at which the search may stop.
        seed: of every random choice.
        threads: None leaves it to the solver.
        iterations: rounds of a heuristic; with it, equal seeds and threads give equal plans on every machine, unless
            the solver's page names an exception. For heuristics that build one plan and end, such as ``exhaustive``,
            it is an error, and so is a start.
        start: a plan to begin from; it may break rules, but then helps less. An exact solver that is given none
            begins with the present state, where the instance gives it and it breaks no rule.
        formulation: one of the kind's formulations, for MIP backends.
        on_event: called with incumbent and bound whenever either improves, from the solving thread. Where kernels have
            to be compiled first, also with ``compiling`` when that begins, and with nothing known when it has ended.
        cancel: set it from any thread to stop and keep the incumbent; Ctrl-C does the same.
        options: for the backend, by its own names: ``{"presolve": "off"}``; an unknown one is an error.
        params: of the heuristic, or of ``auto``: an object of its class (``RasParams`` for ``ras``), or a mapping from
            names to values that differ from the defaults, ``{"sub_mip.gap": 0.01}``; a backend takes none.
        freeze: the part of ``start`` (or of the present state) that stays as it is: ``{"region": ["eu"]}`` keeps every
            row of the plan that mentions eu, and adds none. Bound and status are then those of the rest.
        weights: term → weight, instead of the instance's: ``{"remote": 500.0}``. The solution records them, and a plan
            that is written for the instance states them, so that it is verified with them.
        order: the terms to minimise one after another, instead of what the instance says; empty for a weighted sum.
        limits: name → the most that a whole plan may have of it, instead of the instance's: ``{"copied_tb": 12}``; None
            for no limit.
        cross_check: another exact solver, which then solves the problem again, with the base formulation and without
            options and start; a time limit is shared half and half. ``Solution.cross_check`` says what it found.
        near: a plan, such as last week's, from which as few rows as possible are to differ among plans within 0.1% of
            the objective that is found. It is also the start where none is given, and ``gap`` is at least 0.1%.
            Without it the last pass refers to today, and costs no more than the gap.

    Raises:
        UsageError: an argument that cannot be honoured.
        Contradiction: the second solver and the first prove what cannot both be true.
        PlanError: the start was made for another instance.
        FormulationTooLarge: a MIP backend would need more memory than there is.
        BackendError: the solver failed or is missing.
        VerificationError: the verifier rejects what the solver calls a solution.
    """
    kind = kind_of(problem)
    start, gap = (start, gap) if near is None else (near if start is None else start, max(gap, SLACK))
    if solver == AUTO and kind.solvers.method is not None:
        solver = EXACT
    check_request(kind, solver, iterations, formulation)
    problem, overrides = _overridden(problem, weights, order, limits)
    settling = settling_of(kind, problem, near, freeze)
    clock = Clock(time_limit_s if time_limit_s is None or settling is None else time_limit_s * (1 - KEPT))
    request = Request(
        problem=problem,
        solver=solver,
        params=solver_params(kind, solver, params),
        asked=SolveParams(
            time_limit_s=time_limit_s,
            gap=gap,
            seed=seed,
            threads=threads,
            on_event=on_event,
            cancel=cancel or threading.Event(),
            options=tuple(options.items()) if isinstance(options, Mapping) else options,
        ),
        iterations=iterations,
        start=start,
        formulation=formulation,
        freeze=freeze,
    )

    def found(asked: Request[PlanT], clock: Clock | None = None) -> Solution[PlanT]:
        solution = replace(_found(asked, clock), overrides=overrides)
        if settling is None or solution.plan is None or asked.asked.cancel.is_set():
            return solution
        left_s = None if time_limit_s is None else KEPT * time_limit_s + (0.0 if clock is None else clock.remaining_s)
        return _settled(settling, solution, asked.asked, left_s) if settling.has_time(left_s) else solution

    if cross_check is None:
        return found(request, clock)
    check_params(request.asked)
    check_second(request, cross_check)
    first = found(replace(request, asked=replace(request.asked, time_limit_s=clock.budget_s(SHARE))))

    def again() -> Solution[PlanT]:
        asked = replace(request.asked, time_limit_s=clock.budget_s(), on_event=None, options=())
        return found(
            replace(
                request,
                solver=cross_check,
                params=None,
                asked=asked,
                iterations=None,
                start=request.start if request.freeze else None,
                formulation="base",
            )
        )

    return cross_checked(first, cross_check, again, request.asked.cancel, gap)


def _settled(
    settling: Settling, solution: Solution[PlanT], asked: SolveParams, left_s: float | None
) -> Solution[PlanT]:
    """The solution after its last pass."""
    assert solution.verdict is not None
    assert solution.objective is not None
    most = most_allowed(solution.status, solution.objective, solution.bound, asked.gap)
    limit_s = LONGEST_S if left_s is None else max(min(LONGEST_S, left_s), 0.01)
    params = SolveParams(
        time_limit_s=limit_s,
        seed=asked.seed,
        threads=asked.threads,
        cancel=asked.cancel,
        options=(("mip_max_nodes", NODES),),
    )
    plan, verdict, changed = settling.settled(solution.plan, solution.verdict, most, backends.get(EXACT), params)
    value = verdict.terms[solution.term] if solution.term else verdict.objective
    stages = tuple(
        stage if stage.objective is None else replace(stage, objective=verdict.terms[stage.term])
        for stage in solution.stages
    )
    return replace(solution, plan=plan, verdict=verdict, objective=value, stages=stages, last_pass=changed)


def _found(request: Request[PlanT], clock: Clock | None) -> Solution[PlanT]:
    """The solution by one solver or by the portfolio; ``clock``: begun already, or None to begin now."""
    if not isinstance(request.params, AutoParams):
        return _solved(request, clock)
    kind = kind_of(request.problem)
    check_params(request.asked)
    _log_begin(request, kind)
    found = by_portfolio(_solved, request, portfolio_of(kind, request, request.params))
    _log_end(request.solver, found.status, found.objective, found.bound)
    return found


def _solved(request: Request[PlanT], clock: Clock | None = None) -> Solution[PlanT]:
    """The solution by one solver; ``clock``: begun already, or None to begin now."""
    problem, solver, chosen, start = request.problem, request.solver, request.params, request.start
    clock = clock or Clock(request.asked.time_limit_s)
    kind = kind_of(problem)
    check_terms(kind, problem, solver, chosen)
    check_start(kind, problem, solver, start, request.freeze)
    _log_begin(request, kind)
    events: list[Event] = []
    asked = replace(request.asked, on_event=_recorder(events, request.asked.on_event, clock))
    check_params(asked)
    changed = {} if chosen is None else _logged(chosen)
    fixed = frozen(kind, problem, start, request.freeze) if request.freeze else None
    stated = problem if fixed is None or solver not in kind.solvers.heuristics else fixed.rules(solver)
    conflicts = kind.analysis.conflicts(stated)
    certificate: Certificate | None = None
    strategy: Strategy | None = None
    versions: dict[str, str] = {}
    inside = SubSolvers()
    backend: Backend | None = None
    uncompiled: Interrupted | None = None
    if not conflicts:
        backend, versions = _loaded(kind, solver, asked, clock, inside, chosen)
        try:
            _compile(kind, solver, stated, asked, clock)
        except Interrupted as interrupted:
            uncompiled = interrupted
    begin = start if fixed is None or backend is not None else fixed.plan
    if backend is not None and begin is None:
        with clock.phase("verify"):
            begin = feasible_current_plan(kind, problem)
    if conflicts:
        words = "; ".join(conflict.message for conflict in conflicts)
        answer = Answer(Status.INFEASIBLE, None, None, None, None, None, words)
    elif uncompiled is not None:
        answer = _unsolved(kind, stated, begin, str(uncompiled), clock)
    elif backend is None or kind.solvers.method is not None:
        tools = search_context(
            asked,
            request.iterations,
            clock,
            inside,
            chosen,
            problem,
            backend,
            kind.solvers.grid_limits,
            request.offers,
        )
        search = kind.solvers.heuristics[solver].search if backend is None else kind.solvers.method
        answer, certificate = by_search(kind, search, stated, solver, tools, begin, clock)
        strategy = tools.watch.strategy
    else:
        formulate: Callable[[Any], Formulation[Any]] = partial(kind.formulate, name=request.formulation)
        if fixed is not None:
            formulate = _after(formulate, fixed.formulation)
        answer = ExactSolve(kind, problem, backend, asked, clock, request.offers, request.others).run(formulate, begin)
    if fixed is not None and answer.plan is not None:
        answer, certificate = _verified_with_rules(answer, fixed), None
    unimproved = answer.status is Status.FEASIBLE and _no_better(kind, problem, answer, begin)
    message = "; ".join(words for words in (answer.message, UNIMPROVED if unimproved else "") if words)
    _log_end(solver, answer.status, answer.objective, answer.bound)
    return Solution(
        kind=kind.name,
        solver=solver,
        status=answer.status,
        plan=answer.plan,
        verdict=answer.verdict,
        objective=answer.objective,
        bound=answer.bound,
        limit=answer.limit,
        message=message,
        unimproved=unimproved,
        seed=request.asked.seed,
        runtime_s=dict(clock.spent_s),
        versions={"mast-opt": _own_version(), "python": platform.python_version(), **versions, **inside.versions},
        params=changed,
        strategy={} if strategy is None else strategy.facts,
        stages=answer.stages,
        term=answer.term,
        conflicts=conflicts,
        events=tuple(events),
        certificate=certificate,
        frozen={} if fixed is None else fixed.parts,
        labels=labels_of(problem),
        sense=problem.sense,
    )


def _overridden(
    problem: Problem[PlanT],
    weights: Mapping[str, float] | None,
    order: Sequence[str] | None,
    limits: Mapping[str, float | str | Fraction | None] | None,
) -> tuple[Problem[PlanT], Overrides]:
    """The problem as it is to be solved, and what differs from what it says."""
    most = {name: stated_limit(name, value) for name, value in (limits or {}).items()}
    overrides = Overrides(dict(weights or {}), None if order is None else tuple(order), most)
    return overrides.applied_to(problem), overrides


@cache
def _own_version() -> str:
    """Our version, which takes a millisecond to look up."""
    return version("mast-opt")


def _log_begin(request: Request[PlanT], kind: Kind[Any, Any]) -> None:
    limit_s = request.asked.time_limit_s
    LOG.info(
        "solving %s (%s) with %s, seed %d, time limit %s",
        *(request.problem.name, kind.name, request.solver, request.asked.seed),
        "none" if limit_s is None else seconds(limit_s),
    )


def _log_end(solver: str, status: Status, objective: float | None, bound: float | None) -> None:
    LOG.info("%s ended %s, objective %s, bound %s", solver, status.value, plain(objective), plain(bound))


def _logged(params: Params) -> dict[str, Value]:
    """The parameters that are not at their defaults, which the log states."""
    changed = params.differences()
    words = ", ".join(f"{name} = {value_text(value)}" for name, value in changed.items())
    LOG.info("parameters: %s", words or "defaults")
    return changed


def _loaded(
    kind: Kind[Any, Any], solver: str, asked: SolveParams, clock: Clock, inside: SubSolvers, chosen: Params | None
) -> tuple[Backend | None, dict[str, str]]:
    """The backend, its library loaded, and its version; neither for a heuristic, whose solvers inside are checked.

    Raises UsageError for options that no backend gets, BackendUnavailable for a library that is missing.
    """
    if solver not in kind.solvers.heuristics:
        backend = backends.get(solver)
        with clock.phase(COMPILE):
            return backend, {solver: backend.version()}
    if asked.options:
        raise UsageError(f"{solver} takes no options of its own; {asked.options[0][0]} is for MIP backends")
    with clock.phase(COMPILE):
        inside.check(chosen)
    return None, {}


def _compile(kind: Kind[Any, Any], solver: str, problem: Problem[Any], params: SolveParams, clock: Clock) -> None:
    """Compile the kernels that the solve needs, or load them; this is no part of the time limit."""
    said: list[bool] = []

    def say(compiling: bool) -> None:
        said.append(compiling)
        if params.on_event is not None:
            params.on_event(Event(0.0, None, None, compiling=compiling))

    try:
        with clock.phase(COMPILE):
            rehearse(kind, needed(kind, solver, problem), params.cancel, lambda: say(True))
    finally:
        if said:
            say(False)


def _unsolved(kind: Kind[Any, PlanT], problem: Problem[PlanT], start: PlanT | None, words: str, clock: Clock) -> Answer:
    """Answer before there was a search: the start, if it is valid."""
    with clock.phase("verify"):
        verdict = None if start is None else kind.verification.verify(problem, start)
    if verdict is None or not verdict.ok:
        return Answer(Status.NO_SOLUTION, None, None, None, None, Limit.INTERRUPT, words)
    stages = tuple(Stage(term, verdict.terms[term], 0.0) for term in problem.objective.order)
    objective, term = (stages[0].objective, stages[0].term) if stages else (verdict.objective, None)
    bound = 0.0 if stages else None
    return Answer(Status.FEASIBLE, start, verdict, objective, bound, Limit.INTERRUPT, words, stages, term)


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
    return lambda problem: change(formulate(problem))


def _verified_with_rules(answer: Answer, fixed: Frozen) -> Answer:
    """The answer, once it is sure that it keeps the part and that the rules which did so changed nothing else."""
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
    def record(event: Event) -> None:
        since_start = replace(event, elapsed_s=clock.elapsed_s)
        events.append(since_start)
        LOG.debug("%.1f s: incumbent %s, bound %s", since_start.elapsed_s, plain(event.incumbent), plain(event.bound))
        if on_event is not None:
            on_event(since_start)

    return record
