"""First stage after the loss of regions: a plan without copies, by which work starts at once, and the plan from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.migration_plan import executable, steps
from mast_opt.planner.analysis.region_loss import unavoidable
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.last_pass import SLACK, as_good
from mast_opt.problems.kind.analysis_hooks import Loss
from mast_opt.problems.kind.migration_plan import Order
from mast_opt.problems.kind.origin import made_for
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of

FIRST_SHARE = 0.3
"""Share of the time limit for the first stage, whose program has no replicas to decide."""


@dataclass(frozen=True)
class Recovery(Generic[PlanT]):
    """A first stage, and the plan that is solved from it."""

    first: PlanT
    solution: Solution[PlanT]
    """Its terms count from the first stage."""
    unavoidable: float
    """Part of its objective that is work whose data is lost, which no plan can change."""


def recovery(
    problem: Problem[PlanT],
    loss: Loss,
    begin: PlanT | None,
    solved: Callable[[Any, PlanT | None, Mapping[str, Any], Loss], Solution[PlanT]],
    limits: Mapping[str, Any],
) -> Recovery[PlanT] | None:
    """The first stage of an instance that has lost regions, and the plan from there.

    None where no work starts sooner by it: what is down waits for no copies, its data is lost, or nothing runs without
    copies within the limits.

    Args:
        problem: the instance after the loss.
        loss: the data that is gone, and the work that reads it.
        begin: a plan to begin with.
        solved: (instance, plan to begin with, limits, loss) → a solution within the gap asked for of what a plan can
            change after the loss.
        limits: of the solves; the time limit is for both.
    """
    kind = kind_of(problem)
    hooks = kind.analysis.hooks()
    if hooks.first_stage is None or hooks.restarted is None or loss.gpus is None:
        return None
    clock, at_once = Clock(limits["time_limit_s"]), hooks.first_stage(problem)
    if at_once is None:
        return None
    early = solved(at_once, begin, {**limits, "time_limit_s": clock.budget_s(FIRST_SHARE)}, loss).plan
    first = None if early is None else executable(problem, made_for(problem, hooks.kept_runs(problem, early)))
    started = {one.what for one in _down(problem, first) if one.days is not None}
    if first is None or not started:
        return None
    after, rest = hooks.restarted(problem, first, loss)
    found = solved(after, first, {**limits, "time_limit_s": clock.budget_s()}, rest)
    found = _with_replicas(after, found, hooks.kept_replicas, limits["gap"], unavoidable(after, rest))
    plan = None if found.plan is None else made_for(problem, found.plan)
    waiting = {one.what for one in _down(problem, plan) if one.waits_for or one.room_in}
    if not waiting & started:
        return None
    return Recovery(first, replace(found, plan=plan), unavoidable(after, rest))


def _with_replicas(
    after: Problem[PlanT], found: Solution[PlanT], kept: Callable[[Any, Any], Any], gap: float, least: float
) -> Solution[PlanT]:
    """The solution with the replicas of today that it deletes, where it is as good but for ``SLACK`` and done as soon;
    no longer optimal where the gap of what a plan can change, above ``least``, is then larger than the one asked for.
    """
    meant = found.overrides.applied_to(after)
    plan = None if found.plan is None else kept(meant, found.plan)
    if found.verdict is None or found.objective is None or plan is None or plan is found.plan:
        return found
    verdict = kind_of(after).verification.verify(meant, plan)
    before, then = (way(after, made_for(after, one)) for one in (found.plan, plan))
    late = then is None or bool(then.stuck) or (before is not None and (then.days or 0) > (before.days or 0))
    if late or not as_good(meant, verdict, found.verdict, found.objective * (1 + SLACK)):
        return found
    if meant.objective.order:
        return replace(found, plan=plan, verdict=verdict)
    proven = found.bound is not None and verdict.objective - found.bound <= gap * (verdict.objective - least)
    status = Status.FEASIBLE if found.status is Status.OPTIMAL and not proven else found.status
    return replace(found, status=status, plan=plan, verdict=verdict, objective=verdict.objective)


def _down(problem: Problem[PlanT], plan: PlanT | None) -> tuple[Any, ...]:
    """Work that is down from the start on the way to a plan; nothing without a plan, or where it breaks a limit."""
    order = way(problem, plan)
    return () if order is None else tuple(one for one in order.stopped if one.lost is not None)


def way(problem: Problem[PlanT], *plans: PlanT | None) -> Order | None:
    """The steps through plans, of which None are left out; None where they cannot be ordered."""
    stated = [plan for plan in plans if plan is not None]
    try:
        return steps(problem, stated[0], then=stated[1:]) if stated else None
    except UsageError:
        return None
