"""Public ``solve`` and ``verify``: dispatch to every kind of problem and every solver."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack

from mast_opt.core.arguments import a, a_finite, a_text, anything, checked, mapping_of, option_values, optional, texts
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveControl, keywords_of, params_of
from mast_opt.core.solve_result import SolveParams
from mast_opt.core.verdict import Verdict
from mast_opt.planner.solving.auto_strategy import AUTO, EXACT, AutoParams
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.cross_check import SHARE, check_second, cross_checked
from mast_opt.planner.solving.last_pass import (
    KEPT,
    SLACK,
    Settling,
    as_good,
    most_allowed,
    params_of_pass,
    settling_of,
)
from mast_opt.planner.solving.one_solver import log_begin, log_end, solved
from mast_opt.planner.solving.portfolio import by_portfolio, portfolio_of
from mast_opt.planner.solving.request import Request, check_request
from mast_opt.planner.solving.solution import Solution
from mast_opt.planner.solving.solver_params import solver_params
from mast_opt.problems import backends
from mast_opt.problems.kind.carry_over import carried_over
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.origin import made_for
from mast_opt.problems.kind.overrides import Overrides, Secured, stated_limit
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, TermName, check_plan, kind_of
from mast_opt.problems.search.interface import Carried
from mast_opt.problems.search.params import Params

OptionValue = str | int | float | bool
SECURING = 0.7
"""Part of the time of a goal in which it chooses replicas by the loss of a region."""


def verify(problem: Problem[PlanT], plan: PlanT) -> Verdict:
    """Check a plan against every hard constraint and recompute its objective, without any solver's help.

    Raises:
        UsageError: the plan is not one for this kind of problem.
        PlanError: the plan was made for another instance.
    """
    kind = kind_of(problem)
    return kind.verification.verify(check_plan(kind, problem, plan), plan)


@checked(
    keywords_of(SolveControl),
    options=option_values,
    freeze=optional(mapping_of(texts)),
    weights=optional(mapping_of(a_finite)),
    order=optional(texts),
    goal=optional(a_text),
    limits=optional(mapping_of(anything)),
    cross_check=optional(a_text),
    carried=optional(a(Carried)),
)
def solve(  # noqa: PLR0913 - what can be asked of a solve is said in one call
    problem: Problem[PlanT],
    solver: SolverName = "auto",
    *,
    start: PlanT | None = None,
    formulation: str = "base",
    options: Mapping[str, OptionValue] | tuple[tuple[str, OptionValue], ...] = (),
    params: Params | Mapping[str, Any] | None = None,
    freeze: Mapping[str, Collection[str]] | None = None,
    weights: Mapping[TermName, float] | None = None,
    order: Sequence[TermName] | None = None,
    goal: str | None = None,
    limits: Mapping[str, float | str | Fraction | None] | None = None,
    cross_check: SolverName | None = None,
    near: PlanT | None = None,
    carried: Carried | None = None,
    **control: Unpack[SolveControl],
) -> Solution[PlanT]:
    """Solve a problem and verify the plan.

    Args:
        problem: an instance, from ``mast_opt.read`` or a generator.
        solver: a MIP backend (``highs``, ``cpsat``, …), a heuristic of the problem's kind, or ``auto``: HiGHS and the
            heuristic side by side, each on threads of its own, with the best plan and the tightest bound of both; a
            small instance is HiGHS's alone for a while, and a kind without a heuristic altogether. Its answer is the
            same every time where HiGHS proves it alone; otherwise it depends on the clock.
        start: a plan to begin from; it may break rules, but then helps less. One of another instance is matched by
            label, and ``Solution.unmatched`` says what is missing here. An exact solver that is given none
            begins with the present state, where the instance gives it and it breaks no rule. It is an error for
            heuristics that build one plan and end, such as ``exhaustive``.
        formulation: one of the kind's formulations, for MIP backends.
        options: for the backend, by its own names: ``{"presolve": "off"}``; an unknown one is an error.
        params: of the heuristic, or of ``auto``: an object of its class (``RasParams`` for ``ras``), or a mapping from
            names to values that differ from the defaults, ``{"sub_mip.gap": 0.01}``; a backend takes none.
        freeze: the part of ``start`` (or of the present state) that stays as it is: ``{"region": ["eu"]}`` keeps every
            row of the plan that mentions eu, and adds none. Bound and status are then those of the rest.
        weights: term → weight, instead of the instance's: ``{"remote": 500.0}``. The solution records them, and a plan
            that is written for the instance states them, so that it is verified with them.
        order: the terms to minimise one after another, instead of what the instance says; empty for a weighted sum.
        goal: ``least-change``, ``balanced``, ``cheapest`` or ``safest``, where the kind has it, instead of weights or
            an order.
        limits: name → the most that a whole plan may have of it, instead of the instance's: ``{"copied_tb": 12}``; None
            for no limit.
        cross_check: another exact solver, which then solves the problem again, with the base formulation and without
            options and start; a time limit is shared half and half. ``Solution.cross_check`` says what it found.
        near: a plan, such as last week's, from which as few rows as possible are to differ among plans within 0.1% of
            the objective that is found, or, without a proof, within a tenth of the gap. It is also the start where none
            is given, and ``gap`` is at least 0.1%.
            Without it the last pass refers to today, and costs no more than the gap.
        carried: what ``resolve`` takes over from an earlier solve.
        control: see ``SolveControl``: ``time_limit_s`` (of all that this call does except loading the solver's library
            and compiling kernels), ``gap``, ``seed``, ``threads``, ``iterations``, ``on_event`` and ``cancel``, which
            keeps the incumbent, as Ctrl-C does.

    Raises:
        UsageError: an argument that cannot be honoured.
        Contradiction: the second solver and the first prove what cannot both be true.
        PlanError: the start, or the plan to stay near, does not fit.
        FormulationTooLarge: a MIP backend would need more memory than there is.
        BackendError: the solver failed or is missing.
        VerificationError: the verifier rejects what the solver calls a solution.
    """
    kind, asked_for, iterations = kind_of(problem), problem, control["iterations"]
    start, unmatched = _by_label(kind, problem, start)
    near, others = _by_label(kind, problem, near)
    if near is not None:
        start, control["gap"] = near if start is None else start, max(control["gap"], SLACK)
    solver = EXACT if solver == AUTO and kind.solvers.method is not None else solver
    check_request(kind, solver, iterations, formulation)
    problem, overrides = _overridden(problem, weights, order, limits, goal)
    secured, time_limit_s = secured_for(goal, problem, solver, params_of(control), choosing=not freeze)
    problem, overrides = secured.problem, overrides.followed_by(secured.overrides)
    settling = settling_of(kind, problem, near, freeze, between=carried is not None)
    clock = Clock(time_limit_s if time_limit_s is None or settling is None else time_limit_s * (1 - KEPT))
    request = Request(
        problem=problem,
        solver=solver,
        params=solver_params(kind, solver, params),
        asked=replace(
            params_of(control),
            time_limit_s=time_limit_s,
            on_event=control["on_event"],
            options=tuple(options.items()) if isinstance(options, Mapping) else options,
        ),
        iterations=iterations,
        start=secured.plan if start is None else start,
        formulation=formulation,
        freeze=freeze,
        carried=carried,
    )

    def found(asked: Request[PlanT], clock: Clock | None = None) -> Solution[PlanT]:
        known = tuple(dict.fromkeys((*unmatched, *others)))
        solution = replace(_found(asked, clock), overrides=overrides, unmatched=known)
        if solution.plan is None:
            return solution
        left_s = None if time_limit_s is None else KEPT * time_limit_s + (clock.remaining_s if clock else 0.0)
        if settling is not None and not asked.asked.cancel.is_set() and settling.has_time(left_s):
            solution = _settled(settling, solution, asked, left_s)
        tidied = _tidied(kind, problem, _whole(settling, solution, asked))
        return replace(tidied, plan=made_for(asked_for, tidied.plan, overrides), least_missing_gpus=secured.least_gpus)

    if cross_check is None:
        return found(request, clock)
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

    return cross_checked(first, cross_check, again, request.asked.cancel, request.asked.gap)


def _by_label(kind: Kind[Any, Any], problem: Problem[Any], plan: PlanT | None) -> tuple[PlanT | None, tuple[str, ...]]:
    """A plan to begin from or to stay near, carried over where it is another instance's, and what did not match."""
    return (None, ()) if plan is None else carried_over(kind, problem, plan)


def _settled(
    settling: Settling, solution: Solution[PlanT], request: Request[PlanT], left_s: float | None
) -> Solution[PlanT]:
    """The solution of a solve after its last pass."""
    assert solution.verdict is not None
    assert solution.objective is not None
    asked, near = request.asked, settling.name == "near" and request.carried is None
    most = most_allowed(solution.status, solution.objective, solution.bound, asked.gap, near=near)
    params = params_of_pass(asked, left_s)
    plan, verdict, changed = settling.settled(solution.plan, solution.verdict, most, backends.get(EXACT), params)
    return replace(_with_plan(solution, plan, verdict), last_pass=changed)


def _with_plan(solution: Solution[PlanT], plan: PlanT | None, verdict: Verdict) -> Solution[PlanT]:
    """The solution with another plan."""
    value = verdict.terms[solution.term] if solution.term else verdict.objective
    stages = tuple(
        stage if stage.objective is None else replace(stage, objective=verdict.terms[stage.term])
        for stage in solution.stages
    )
    return replace(solution, plan=plan, verdict=verdict, objective=value, stages=stages)


def _whole(settling: Settling | None, solution: Solution[PlanT], request: Request[PlanT]) -> Solution[PlanT]:
    """The solution without parts of work that are too small to be moved, where that and the last pass together cost no
    more than the pass may. What is frozen, or equals a plan to stay near, stays as it is."""
    assert solution.plan is not None
    assert solution.verdict is not None
    assert solution.objective is not None
    problem, gap, kind = request.problem, request.asked.gap, kind_of(request.problem)
    plan, last, before = kind.migration.whole(problem, solution.plan), solution.last_pass, solution.verdict
    if request.freeze or plan is solution.plan or (last is not None and last.reference == "near" and not last.rows):
        return solution
    verdict = kind.verification.verify(problem, plan)
    found = solution.objective - (0.0 if last is None else last.price)
    most = max(solution.objective, most_allowed(solution.status, found, solution.bound, gap))
    fewest = settling.rows(solution.plan) if settling is not None and last is not None else 0
    near = settling is None or last is None or last.reference != "near" or settling.rows(plan) <= fewest
    if not near or not as_good(problem, verdict, before, most):
        return solution
    if last is not None and settling is not None:
        price = last.price + verdict.objective - before.objective
        last = replace(last, rows=settling.rows(plan), price=price)
    return replace(_with_plan(solution, plan, verdict), last_pass=last)


def _tidied(kind: Kind[Any, PlanT], problem: Problem[PlanT], solution: Solution[PlanT]) -> Solution[PlanT]:
    """The solution with what the objective leaves open decided by price, where no term that counts grows."""
    assert solution.plan is not None
    assert solution.verdict is not None
    plan, before = kind.tidied(problem, solution.plan), solution.verdict
    if plan is solution.plan:
        return solution
    verdict, order = kind.verification.verify(problem, plan), problem.objective.order
    if not verdict.ok or verdict.objective > before.objective:
        return solution
    if any(verdict.terms[term] > before.terms[term] for term in order):
        return solution
    value = verdict.terms[solution.term] if solution.term else verdict.objective
    return replace(solution, plan=plan, verdict=verdict, objective=value)


def _found(request: Request[PlanT], clock: Clock | None) -> Solution[PlanT]:
    """The solution by one solver or by the portfolio.

    Args:
        clock: of the call that this solve is part of; None to begin one now.
    """
    if not isinstance(request.params, AutoParams):
        return solved(request, clock)
    kind = kind_of(request.problem)
    log_begin(request, kind)
    found = by_portfolio(solved, request, portfolio_of(kind, request, request.params))
    log_end(request.solver, found.status, found.objective, found.bound)
    return found


def secured_for(
    goal: str | None, problem: Problem[Any], solver: str, params: SolveParams, *, choosing: bool = True
) -> tuple[Secured, float | None]:
    """The replicas of a goal that chooses them by the loss of a region, in a part of the time; the time that is left.

    Other goals get the problem as it is. Heuristics that begin with no plan only get the number of copies, as where
    replicas are not to be chosen.
    """
    kind, clock = kind_of(problem), Clock(params.time_limit_s)
    if goal is None or goal not in kind.secured:
        return Secured(problem), params.time_limit_s
    asked = replace(params, time_limit_s=clock.budget_s(SECURING))
    none = not choosing or kind.solvers.is_constructive(solver)
    return kind.secured[goal](problem, None if none else asked), clock.budget_s()


def stated_goal(problem: Problem[Any], goal: str, most: Mapping[str, Fraction | None]) -> Overrides:
    """The objective of a goal for a solve with these limits on the whole plan. Raises UsageError where the kind does
    not have it, or it means nothing here.
    """
    goals = kind_of(problem).goals
    if goal not in goals:
        known = f"it has {', '.join(goals)}" if goals else "its objective is a policy"
        raise UsageError(f"{problem.kind} has no goal called {goal!r}: {known}")
    return goals[goal](problem.with_limits(most)).followed_by(Overrides(limits=most))


def _overridden(
    problem: Problem[PlanT],
    weights: Mapping[str, float] | None,
    order: Sequence[str] | None,
    limits: Mapping[str, float | str | Fraction | None] | None,
    goal: str | None,
) -> tuple[Problem[PlanT], Overrides]:
    """The problem as it is to be solved, and what differs from what it says."""
    most = {name: stated_limit(name, value) for name, value in (limits or {}).items()}
    overrides = Overrides(dict(weights or {}), None if order is None else tuple(order), most)
    if goal is not None:
        if overrides.weights or order is not None:
            raise UsageError(f"the goal {goal} states the objective; leave out weights and order, or the goal")
        overrides = stated_goal(problem, goal, most)
    return overrides.applied_to(problem), overrides
