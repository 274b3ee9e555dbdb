"""Capacity expansion (``buy``): the cheapest purchases that bring the worst ratio to a target."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Unpack

import numpy as np

from mast_opt.core.arguments import a_finite, a_text, a_whole, checked, optional
from mast_opt.core.errors import BackendError, UsageError, VerificationError
from mast_opt.core.solve_limits import SolveLimits, keywords_of, params_of
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.core.verdict import Verdict
from mast_opt.planner.analysis.common import asked, exact_solver, solve_from
from mast_opt.planner.analysis.purchase_question import (
    OUT_OF_REACH,
    BuyParams,
    Purchases,
    Question,
    amount,
    params_given,
    positive,
)
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.auto_strategy import AUTO, DEFAULT_SOLVER, EXACT
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.planner.solving.last_pass import KEPT, as_good, most_allowed, params_of_pass, settling_of
from mast_opt.planner.solving.mip_route import Answer as MipAnswer
from mast_opt.planner.solving.mip_route import ExactSolve
from mast_opt.problems import backends
from mast_opt.problems.kind.analysis_hooks import Steps
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, check_plan

NARROWED_SHARE, NARROWED_GAP = 0.4, 0.05
"""Part of the time that is left for a plan by which a narrower program may look for one to begin with, and its gap."""
RELAXED_SHARE = 0.5
"""Part of the remaining time for a plan with the purchases of the relaxation, which are proven where there is one."""
GIVING_BACK_SHARE = 0.5
"""Part of the time left after the program of purchases for giving back what is not needed, where it found nothing."""
EVERYTHING = "this is everything on offer, needed or not"
STRICTER = (Fraction(1), Fraction(9, 10))
"""Parts of the target that a heuristic aims at in turn, as it may end with a little overload."""


@checked(
    keywords_of(SolveLimits),
    target=a_finite,
    solver=a_text,
    tier=optional(a_whole(0)),
    budget_usd=optional(a_finite),
    within_days=optional(a_whole(0)),
)
def buy(
    problem: Problem[PlanT],
    *,
    target: Fraction | float = 1,
    tier: int | None = None,
    budget_usd: Fraction | float | None = None,
    within_days: int | None = None,
    solver: SolverName = DEFAULT_SOLVER,
    start: PlanT | None = None,
    params: BuyParams | Mapping[str, object] | None = None,
    **limits: Unpack[SolveLimits],
) -> Purchases[PlanT]:
    """The cheapest purchases with which no demand is more than ``target`` times its supply, and a plan that shows it.

    Every workload is served. A MIP solver decides purchases and plan together, and proves that nothing cheaper will do;
    it then plans the instance with these purchases by its own objective, within the target. A heuristic buys what its
    plan lacks, plans again, and proves a bound by a small relaxation: all regions together, shares continuous.

    Args:
        problem: an instance with candidates.
        target: most demand over supply, in every region and type.
        tier: only work up to this tier counts; all unless given.
        budget_usd: the most to spend; where it is too small, the answer says how much is needed.
        within_days: only what can be used after so many days.
        solver: a MIP backend, or a heuristic of the kind.
        start: a plan of the instance to begin from.
        params: how time is divided and how a heuristic searches: ``BuyParams``, or a mapping as in ``{"rounds": 4}``.
        limits: see ``SolveLimits``: ``time_limit_s`` of all solves together, ``gap`` of the price.

    Raises:
        UsageError: nothing is offered, or an argument is out of range.
    """
    kind, hooks = asked(problem)
    if hooks.expansion is None:
        raise UsageError(f"{kind.name} has nothing to buy; ask 'mast-opt whatif' instead")
    ratio, budget = positive("target", target), None if budget_usd is None else amount("budget_usd", budget_usd)
    chosen = params_given(params)
    problem = problem if start is None else check_plan(kind, problem, start)
    question = Question(kind, hooks.expansion, problem, ratio, tier, budget, within_days, chosen)
    before = None if start is None else hooks.expansion.worst(problem, start, question.tier)
    asked_of = params_of(limits)
    helper = next((name for name in kind.solvers.heuristics if solver == AUTO), "")
    rehearse(kind, needed(kind, helper or solver, problem), asked_of.cancel)
    if solver in kind.solvers.heuristics:
        found = by_heuristic(question, solver, asked_of, start)
    else:
        found = _exact(question, exact_solver(kind, solver), asked_of, helper)
    return replace(found, worst_before=before, params=chosen)


@dataclass(frozen=True)
class _Tried:
    """Knowledge of some steps: whether they are proven not to suffice, and a plan at the target if there is one."""

    too_little: bool
    plan: Any | None


@dataclass(frozen=True)
class Cheapest:
    """The cheapest steps that were found for one question, and what is proven of their price."""

    steps: Steps
    plan: Any | None
    """A plan at the target with these steps; None if none was found."""
    bound: float
    proven: bool
    message: str
    out_of_reach: bool = False
    """True if it is proven that nothing on offer suffices."""


def cheapest(question: Question, solver: str, params: SolveParams, clock: Clock, helper: str) -> Cheapest:
    """The cheapest steps by an exact solver: those of the relaxation, which are proven where they suffice; everything
    that there is to buy; then one program, or where it finds nothing in time, everything less what is not needed.

    Args:
        helper: a heuristic that looks for a plan where the solver finds none in time; empty for none.
    """
    q, none = question, np.zeros(len(question.offers), np.int64)
    small = q.hooks.relaxation(q.problem, q.most_steps, q.ratio, q.tier)
    least = backends.get("highs").solve(small.mip, replace(params, time_limit_s=clock.budget_s(q.params.first_share)))
    if least.status.is_infeasible:
        return Cheapest(none, None, 0.0, True, OUT_OF_REACH, out_of_reach=True)
    bound = max(least.bound or 0.0, 0.0)
    relaxed = none if least.x is None else np.rint(least.x[small.buy]).astype(np.int64)
    first = tried_with(q, relaxed, solver, params, clock, "" if relaxed.any() else helper, RELAXED_SHARE)
    if first.plan is not None and (least.status is Status.OPTIMAL or not relaxed.any()):
        words = least.message if relaxed.any() else "no purchase is needed"
        return Cheapest(relaxed, first.plan, bound, True, words)
    most = tried_with(q, q.most_steps, solver, params, clock, helper)
    if most.too_little:
        return Cheapest(none, None, bound, True, OUT_OF_REACH, out_of_reach=True)
    known = (q.most_steps, most.plan) if first.plan is None else (relaxed, first.plan)
    found = _by_purchase_program(q, solver, params, clock, helper, bound, relaxed)
    if found.plan is None and known[1] is not None:
        timed = Clock(clock.budget_s(GIVING_BACK_SHARE))

        def again(fewer: Steps, _: object) -> Any | None:  # noqa: ANN401 - a plan of any kind
            return tried_with(q, fewer, solver, params, timed, helper).plan

        steps, plan = _given_back(q, params, known, timed, again)
        everything = f"{EVERYTHING}; " if (steps == q.most_steps).all() else ""
        words = f"{everything}nothing cheaper was found in time"
        return Cheapest(steps, plan, max(bound, found.bound), False, words)
    return found


def _by_purchase_program(
    question: Question, solver: str, params: SolveParams, clock: Clock, helper: str, bound: float, tried: Steps
) -> Cheapest:
    """The cheapest steps by the program of steps and plan, whose shares are whole thousandths where others do not do.

    Args:
        bound: of the price, by the relaxation.
        tried: steps for which no plan was found.
    """
    q, none = question, np.zeros(len(question.offers), np.int64)
    for exact_shares in (False, True):
        program = q.hooks.program(q.problem, q.most_steps, q.ratio, q.tier, exact_shares)
        timed = replace(params, time_limit_s=clock.budget_s(q.params.purchase_share))
        result = backends.get(solver).solve(program.mip, timed)
        if result.status.is_infeasible:
            return Cheapest(none, None, bound, True, OUT_OF_REACH, out_of_reach=True)
        bound = max(bound, result.bound or 0.0)
        if result.x is None:
            break
        steps = np.rint(result.x[program.buy]).astype(np.int64)
        again = exact_shares or (steps != tried).any()
        plan = tried_with(q, steps, solver, params, clock, helper).plan if again else None
        if plan is not None:
            return Cheapest(steps, plan, bound, result.status is Status.OPTIMAL, result.message)
    return Cheapest(none, None, bound, False, "no plan at the target was found in time, whatever is bought")


def _exact(question: Question, solver: str, params: SolveParams, helper: str) -> Purchases[Any]:
    """Purchases by an exact solver, then the plan by the objective of the instance."""
    q, clock = question, Clock(params.time_limit_s)
    found = cheapest(q, solver, params, clock, helper)
    if found.plan is None:
        status = Status.INFEASIBLE if found.out_of_reach else Status.NO_SOLUTION
        return q.nothing(status, found.message, None if found.out_of_reach else found.bound)
    after = q.hooks.bought(q.problem, found.steps)
    plan = plan_within(q, after, [found.plan], solver, params, clock).plan
    return q.answer(found.steps, plan, found.bound, found.proven, found.message)


def tried_with(
    question: Question,
    steps: Steps,
    solver: str,
    params: SolveParams,
    clock: Clock,
    helper: str,
    share: float = BuyParams.first_share,
) -> _Tried:
    """A plan at the target with these steps, whatever it is worth otherwise; one of the narrower program if it has any,
    since others may read everything remotely."""
    q = question
    after = q.hooks.bought(q.problem, steps)
    timed = Clock(clock.budget_s(share))
    for part, some in ((q.hooks.narrowed(after)[-1], NARROWED_SHARE), (after, 1.0)):
        route = ExactSolve(q.kind_at_target, after, backends.get(solver), params, Clock(timed.budget_s(some)))
        found = route.within(q.hooks.within(part, q.ratio, q.tier), {}, {}, None)
        if found.plan is not None and _at_target(q, after, found.plan):
            return _Tried(False, found.plan)
    if found.status.is_infeasible or not helper:
        return _Tried(found.status.is_infeasible, None)
    return _Tried(False, _searched(q, steps, helper, params, None, clock.budget_s(q.params.first_share)))


def _at_target(question: Question, after: Problem[Any], plan: object) -> bool:
    """Whether a plan of the instance after the purchase breaks no rule and is at the target."""
    return question.judged(after, plan).ok


def plan_within(
    question: Question,
    after: Problem[Any],
    starts: Sequence[Any],
    solver: str,
    params: SolveParams,
    clock: Clock,
) -> Solution[Any]:
    """The best plan at the target that is found for an instance by its objective, and a bound of such plans.

    Args:
        starts: plans to begin with; those that are not at the target do not help. A heuristic looks for any plan at
            the target, and proves nothing.
    """
    q, gap, verify = question, max(params.gap, question.params.plan_gap), question.kind.verification.verify
    fit = [plan for plan in starts if plan is not None and _at_target(q, after, plan)]
    start = min(fit, key=lambda plan: verify(after, plan).objective, default=None)
    timed = Clock(clock.budget_s(1 - KEPT))
    if solver in q.kind.solvers.heuristics:
        found = _by_search(q, after, solver, params, start, timed.budget_s())
    else:
        exact = replace(params, gap=gap)
        for part in q.hooks.narrowed(after):
            first = Clock(timed.budget_s(NARROWED_SHARE))
            plan = _by_program(q, part, solver, replace(exact, gap=max(gap, NARROWED_GAP)), None, first).plan
            if plan is not None and _at_target(q, after, plan):
                start = min([plan, *fit], key=lambda plan: verify(after, plan).objective)
                break
        found = _by_program(q, after, solver, exact, start, timed)
    reached = [found.plan] if found.plan is not None and _at_target(q, after, found.plan) else []
    known = [*reached, *([] if start is None else [start])]
    best = min(known, key=lambda plan: verify(after, plan).objective, default=None)
    status = found.status if best is found.plan else Status.FEASIBLE
    if best is None:
        none = Status.INFEASIBLE if found.status.is_infeasible else Status.NO_SOLUTION
        return _solution(q, solver, none, None, None, found)

    def most(value: float) -> float:
        return most_allowed(status, value, found.bound, gap)

    best = _whole(q, after, _settled(q, after, best, most, params, clock.budget_s()), most)
    return _solution(q, solver, status, best, verify(after, best), found)


def _by_program(
    question: Question, after: Problem[Any], solver: str, params: SolveParams, start: object, clock: Clock
) -> MipAnswer:
    """A plan of an instance at the target by a MIP solver."""
    q = question
    try:
        route = ExactSolve(q.kind_at_target, after, backends.get(solver), params, clock)
        return route.run(lambda problem: q.hooks.within(problem, q.ratio, q.tier), start)
    except (BackendError, VerificationError) as error:
        return MipAnswer(Status.NO_SOLUTION, None, None, None, None, Limit.OTHER, str(error))


def _by_search(
    question: Question, after: Problem[Any], solver: str, params: SolveParams, start: object, seconds: float | None
) -> MipAnswer:
    """A plan of an instance at the target by a heuristic."""
    here = copy(question)
    here.problem = after
    plan = _searched(here, np.zeros(len(here.offers), np.int64), solver, params, start, seconds)
    status = Status.NO_SOLUTION if plan is None else Status.FEASIBLE
    return MipAnswer(status, plan, None, None, None, None, solver)


def _solution(
    question: Question, solver: str, status: Status, plan: object, verdict: Verdict | None, found: MipAnswer
) -> Solution[Any]:
    """A plan at the target, or that there is none, as a solution."""
    objective = None if verdict is None else verdict.objective
    bound = found.bound if objective is None or found.bound is None else min(found.bound, objective)
    limit = None if status in (Status.OPTIMAL, Status.INFEASIBLE) else found.limit
    kind = question.kind.name
    return Solution(kind, solver, status, plan, verdict, objective, bound, limit, found.message, 0, {})


def _settled(
    question: Question,
    after: Problem[Any],
    plan: Any,  # noqa: ANN401 - a plan of any kind
    most: Callable[[float], float],
    params: SolveParams,
    left_s: float | None,
) -> Any:  # noqa: ANN401 - a plan of any kind
    """The plan at the target after the last pass: nothing moves that improves nothing."""
    kind = question.kind_at_target
    settling = settling_of(kind, after, None, None)
    if settling is None or params.cancel.is_set() or not settling.has_time(left_s):
        return plan
    verdict = kind.verification.verify(after, plan)
    limits = params_of_pass(params, left_s)
    return settling.settled(plan, verdict, most(verdict.objective), backends.get(EXACT), limits)[0]


def _whole(question: Question, after: Problem[Any], plan: Any, most: Callable[[float], float]) -> Any:  # noqa: ANN401 - a plan of any kind
    """The plan without parts of work that are too small to be moved, where it is at the target and as good.

    Args:
        most: largest objective that counts as as good as another one.
    """
    kind = question.kind
    whole = kind.migration.whole(after, plan)
    if whole is plan or not _at_target(question, after, whole):
        return plan
    then, now = (kind.verification.verify(after, one) for one in (whole, plan))
    return whole if as_good(after, then, now, most(now.objective)) else plan


def by_heuristic(question: Question, solver: str, params: SolveParams, start: object) -> Purchases[Any]:
    """Buy what a plan lacks, and plan again; then give back steps that a plan does without."""
    q, clock = question, Clock(params.time_limit_s)
    small = q.hooks.relaxation(q.problem, q.most_steps, q.ratio, q.tier)
    result = backends.get("highs").solve(small.mip, replace(params, time_limit_s=clock.budget_s(q.params.bound_share)))
    if result.status.is_infeasible:
        return q.nothing(Status.INFEASIBLE, OUT_OF_REACH)
    bound = 0.0 if result.bound is None else result.bound
    steps: Steps = np.zeros(len(q.offers), np.int64)
    best: tuple[Steps, Any] | None = None
    plan: Any = start
    for tried in (steps, q.most_steps):
        plan = _searched(q, tried, solver, params, start, clock.budget_s(1 / 3))
        if plan is not None:
            best = (tried, plan)
            break
    for left in range(q.params.rounds, 0, -1):
        if best is not None and not best[0].any():
            break
        plan = _planned(q, steps, q.ratio, solver, params, plan or start, clock.budget_s(1 / left))
        if plan is None:
            break
        if _at_target(q, q.hooks.bought(q.problem, steps), plan):
            best = (steps, plan) if best is None or q.price(steps) < q.price(best[0]) else best
            break
        more = q.hooks.next_steps(q.problem, plan, steps, q.most_steps, q.ratio, q.tier)
        if more is None or params.cancel.is_set():
            break
        steps = more
    if best is None:
        return q.nothing(Status.NO_SOLUTION, f"{solver} found no purchase that reaches the target", bound)
    seconds = partial(clock.budget_s, 1 / q.params.rounds)
    best = _given_back(q, params, best, clock, lambda fewer, plan: _searched(q, fewer, solver, params, plan, seconds()))
    proven = float(q.price(best[0])) <= bound + params.gap * max(1.0, bound)
    return q.answer(best[0], best[1], bound, proven, f"{solver}; bound by a relaxation over all regions together")


def _given_back(
    question: Question,
    params: SolveParams,
    best: tuple[Steps, Any],
    clock: Clock,
    found: Callable[[Steps, Any], Any | None],
) -> tuple[Steps, Any]:
    """The best purchase less the steps that a plan at the target does without.

    First the steps that its plan does not need; then the most expensive offers, each of which is left out, or cut in
    half until what is left is needed.

    Args:
        found: (steps, a plan with more steps) → a plan at the target with these steps, or None.
    """
    q = question

    def same(fewer: Steps, plan: Any) -> Any | None:  # noqa: ANN401 - a plan of any kind
        return plan if _at_target(q, q.hooks.bought(q.problem, fewer), plan) else None

    for look in (same, found):
        for at in sorted(range(len(q.offers)), key=lambda one: -q.offers[one].usd * int(best[0][one])):
            enough = 0
            while best[0][at] > enough and not params.cancel.is_set() and (look is same or clock.remaining_s > 0):
                fewer = best[0].copy()
                fewer[at] = (enough + fewer[at]) // 2 if enough else 0
                plan = look(fewer, best[1])
                if plan is None:
                    enough = int(fewer[at]) + 1
                else:
                    best = (fewer, plan)
    return best


def _searched(
    question: Question, steps: Steps, solver: str, params: SolveParams, start: object, seconds: float | None
) -> Any | None:  # noqa: ANN401 - a plan of any kind
    """A plan at the target, looked for at the target and, where that stays a little above it, at stricter ones."""
    after = question.hooks.bought(question.problem, steps)
    clock = Clock(seconds)
    for left, strictness in enumerate(STRICTER):
        share = clock.budget_s(1 / (len(STRICTER) - left))
        plan = _planned(question, steps, question.ratio * strictness, solver, params, start, share)
        if plan is not None and _at_target(question, after, plan):
            return plan
        if params.cancel.is_set():
            break
        start = plan or start
    return None


def _planned(
    question: Question,
    steps: Steps,
    ratio: Fraction,
    solver: str,
    params: SolveParams,
    start: object,
    seconds: float | None,
) -> Any | None:  # noqa: ANN401 - a plan of any kind
    """The plan of a heuristic that above all avoids demand over a ratio."""
    q = question
    instance = q.hooks.stressed(q.hooks.bought(q.problem, steps), ratio, q.tier, q.params.overload_weight)
    limits: Mapping[str, Any] = {
        "time_limit_s": seconds,
        "gap": params.gap,
        "seed": params.seed,
        "threads": params.threads,
        "cancel": params.cancel,
    }
    return solve_from(q.kind, solver, limits, instance, start).plan
