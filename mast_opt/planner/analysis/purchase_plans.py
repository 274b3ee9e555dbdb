"""Plans behind the purchases over several periods: each begins with the one before, as in ``periods``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic

import numpy as np

from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.core.wording import counted, plain
from mast_opt.planner.analysis.migration_plan import way_to
from mast_opt.planner.analysis.periods import Chain, Period
from mast_opt.planner.analysis.purchase_question import Bill, Purchase, Question
from mast_opt.planner.analysis.purchases import plan_within
from mast_opt.planner.analysis.scenario_files import Scenario, happened
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.clock import Clock
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks, Steps
from mast_opt.problems.kind.problem import PlanT, Problem

PLAN_SHARE = 0.45
"""Part of the remaining time that a period's plan may take, however many follow: most need little of it, and one that
is not found breaks the chain."""
POOR = 10.0
"""Objective of a plan over that of the plan from today, from which on the latter is shown."""

GIVEN = "given"
"""Solver of a plan that is the first period's as it was given."""

Dated = Sequence[tuple[Question, Scenario, int]]
"""Question, changes and first day of each period."""


@dataclass(frozen=True)
class PeriodPurchases(Generic[PlanT]):
    """Purchases that a period needs in addition to those before, and its plan with them."""

    planned: Period[PlanT]
    """The instance with all purchases up to the period and the plan of the period before as its present state, and its
    plan at the target."""
    bought: tuple[Purchase, ...]
    """Purchases that can be used from this period on; to be ordered ``lead_days`` before it begins."""
    worst_after: Fraction
    bill: Bill
    """Running costs with all that is bought up to the period."""
    from_today: str = ""
    """Reason why instance and plan begin from today and not from the period before; empty if they do not."""
    early_day: int | None = None
    """Latest day on which the purchases have to be there so that the moves are done when the period begins; None where
    that is before today or before the moves of the previous period are done, or its demand does not fit the plan."""

    @property
    def name(self) -> str:
        """Name of the period."""
        return self.planned.name

    @property
    def begins_day(self) -> int:
        """Day on which the period begins, at the earliest 0, which is today."""
        return self.planned.begins_day

    def order_day(self, purchase: Purchase) -> int:
        """Day by which a purchase has to be ordered to be there when the period begins."""
        return self.begins_day - purchase.offer.lead_days

    def early_order_day(self, purchase: Purchase) -> int | None:
        """Day by which it has to be ordered so that the moves are done by then; None where it is not possible."""
        day = None if self.early_day is None else self.early_day - purchase.offer.lead_days
        return None if day is None or day < 0 else day

    @property
    def instance(self) -> Problem[PlanT]:
        """Instance that the plan is for."""
        return self.planned.instance

    @property
    def plan(self) -> PlanT:
        """The plan of the period, at the target."""
        plan = self.planned.solution.plan
        assert plan is not None
        return plan


def plans_of(
    problem: Problem[Any],
    every: Dated,
    hooks: AnalysisHooks,
    steps: Sequence[Steps],
    known: Sequence[Any],
    solver: str,
    params: SolveParams,
    clock: Clock,
    tell: Callable[[str], None],
) -> tuple[PeriodPurchases[Any], ...]:
    """The best plan at the target that is found for each period with its purchases, each from the one before.

    Args:
        steps: of all purchases up to each period.
        known: a plan that is the first period's where it is at the target, or None, and then one at the target of
            each period, from today.
        tell: called with the name of each period.
    """
    assert hooks.rolling is not None
    first, left, (given, *known) = every[0][0], len(every), known
    own = known[0]

    def solve(instance: Problem[Any], start: object, _: Solution[Any] | None) -> Solution[Any]:
        timed = Clock(clock.budget_s(1.0 if left == 1 else PLAN_SHARE))
        served = first.hooks.served(instance)
        if given is not None and not chain.done:
            plan = hooks.adapted(served, given)
            verdict = first.judged(served, plan)
            if verdict.ok:
                kind, value = first.kind.name, verdict.objective
                return Solution(kind, GIVEN, Status.FEASIBLE, plan, verdict, value, None, None, GIVEN, 0, {})
        return plan_within(first, served, [start, own, first.hooks.refilled(served, own)], solver, params, timed)

    chain = Chain(first.kind, hooks, hooks.rolling, solve, params.cancel, solver not in first.kind.solvers.heuristics)
    reasons, before = [], np.zeros_like(steps[0])
    for at, ((q, scenario, day), now) in enumerate(zip(every, steps, strict=True)):
        left, own, more = len(every) - at, known[at], now - before
        tell(scenario.name)

        def change(instance: Any, q: Question = q, scenario: Scenario = scenario, more: Steps = more) -> Any:  # noqa: ANN401
            return q.hooks.bought(happened(q.kind, instance, scenario), more)

        chain.step(problem, change, scenario.name, day)
        reasons.append(_from_today(chain, q, now, known[at]))
        before = now
    rows = [
        _row(q, one, now, now - then, reason)
        for (q, *_), one, now, then, reason in zip(
            every, chain.done, steps, [np.zeros_like(steps[0]), *steps], reasons, strict=False
        )
    ]
    earlier: Problem[Any] = problem
    done: int | None = 0
    for at, (row, more) in enumerate(zip(rows, np.diff([np.zeros_like(steps[0]), *steps], axis=0), strict=False)):
        early = (
            None if row.from_today else _early_day(every[at][0], hooks, row, every[at][0].hooks.bought(earlier, more))
        )
        rows[at] = replace(row, early_day=None if early is None or done is None or early < done else early)
        earlier, done = chain.rolling.carried(row.instance, row.plan), row.planned.done_day
    return tuple(rows)


def _early_day(question: Question, hooks: AnalysisHooks, row: PeriodPurchases[Any], before: Problem[Any]) -> int | None:
    """Latest day on which the way to a period's plan can begin and be done when the period begins; None where the plan
    does not fit the instance before the period with the purchases, or the way is not known.
    """
    done = row.planned.done_day
    fits = done is not None and question.judged(before, hooks.adapted(before, row.plan)).ok
    return 2 * row.begins_day - done if fits and done is not None else None


def _from_today(chain: Chain, question: Question, steps: Steps, plan: object) -> str:
    """Put the plan from today in the place of one that was not found, or is poor and not proven; returns the reason,
    empty where the plan stays."""
    q, last = question, chain.done[-1]
    stuck, instance = last.solution.status is Status.INFEASIBLE, q.hooks.bought(q.stated, steps)
    verdict = q.kind.verification.verify(instance, plan)
    found = None if last.solution.plan is None else last.solution.objective
    if found is not None and (last.solution.status is Status.OPTIMAL or found <= POOR * verdict.objective):
        return ""
    solution = replace(
        last.solution, status=Status.FEASIBLE, plan=plan, verdict=verdict, objective=verdict.objective, bound=None
    )
    chain.done[-1] = replace(last, instance=instance, solution=solution, moved=chain.moved(last.instance, solution))
    way = way_to(chain.rolling.unhurried(last.instance), plan)
    words = (
        f"no {'plan' if found is None else 'good plan'} at the target "
        + ("is within reach of" if stuck else "was found in time from")
        + " the plan before"
    )
    words += "; the one shown begins from today"
    if way.days is not None:
        allowed = plain(float(chain.rolling.days(last.instance)))
        words += f" and takes {counted(way.days, 'day')} from the plan before, where copies may take {allowed}"
    return words if stuck else f"{words}. More time (--time-limit) may find one"


def _row(question: Question, planned: Period[Any], steps: Steps, more: Steps, reason: str) -> PeriodPurchases[Any]:
    """Purchases and plan of a period."""
    q, plan = question, planned.solution.plan
    new = tuple(Purchase(one, int(n)) for one, n in zip(q.offers, more, strict=True) if n)
    worst = q.hooks.worst(planned.instance, plan, q.tier)
    return PeriodPurchases(planned, new, worst, q.bill(steps, plan), reason)
