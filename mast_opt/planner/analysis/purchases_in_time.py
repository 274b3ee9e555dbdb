"""Purchases over several periods (``buy --periods``): what to order when, period by period and in one program."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Generic, Unpack

import numpy as np

from mast_opt.core.arguments import a, a_finite, a_text, a_whole, checked, each, optional
from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveLimits, keywords_of, params_of
from mast_opt.core.solve_result import Event, SolveParams, Status
from mast_opt.core.wording import counted, listed, plain
from mast_opt.planner.analysis.common import asked, exact_solver
from mast_opt.planner.analysis.purchase_plans import GIVEN, Dated, PeriodPurchases, plans_of
from mast_opt.planner.analysis.purchase_question import (
    OUT_OF_REACH,
    SLACK,
    BuyParams,
    Question,
    params_given,
    positive,
)
from mast_opt.planner.analysis.purchases import EVERYTHING, Cheapest, by_heuristic, cheapest, tried_with
from mast_opt.planner.analysis.scenario_files import Scenario, check_scenarios, dated
from mast_opt.planner.solving.auto_strategy import AUTO, DEFAULT_SOLVER
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.problems import backends
from mast_opt.problems.kind.analysis_hooks import Steps
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.extensive import extensive
from mast_opt.problems.mip.transforms import Extension, extended
from mast_opt.problems.registry import SolverName, check_plan

LEAST_STEP = Fraction(1, 2000)
"""Relative precision of the least target that is in reach."""
ORDERS_SHARE = 0.4
"""Part of the time limit after which orders that are found are not improved; the plans get the rest."""
UNPROVEN_SHARE = 0.6
"""Part of the time limit where a lower price is not ruled out."""
PRICE_SHARE = 0.3
"""Part of the time limit for the last period, whose purchases are the price of all."""
NONE_IN_TIME = "no plans at the target were found in time"


@dataclass(frozen=True)
class _Orders:
    """Purchases for each period, before the plans are made."""

    status: Status
    message: str
    steps: Sequence[Steps] = ()
    """Steps of all purchases up to each period; none without an answer."""
    plans: Sequence[Any] = ()
    """A plan at the target of each period, from today."""
    usd: Fraction | None = None
    bound_usd: float | None = None


@dataclass(frozen=True)
class PurchasesInTime(Generic[PlanT]):
    """The answer of ``buy_in_time``."""

    kind: str
    status: Status
    """OPTIMAL: no purchases for all periods are cheaper, and none of these can be ordered later on the whole."""
    periods: tuple[PeriodPurchases[PlanT], ...] = ()
    usd: Fraction | None = None
    bound_usd: float | None = None
    """Proven: no purchases with which every period reaches the target from today are cheaper."""
    message: str = ""


@checked(keywords_of(SolveLimits), periods=each(a(Scenario)), target=a_finite, solver=a_text, tier=optional(a_whole(0)))
def buy_in_time(
    problem: Problem[PlanT],
    periods: Sequence[Scenario],
    *,
    target: Fraction | float = 1,
    tier: int | None = None,
    solver: SolverName = DEFAULT_SOLVER,
    start: PlanT | None = None,
    params: BuyParams | Mapping[str, object] | None = None,
    on_event: Callable[[Event], None] | None = None,
    **limits: Unpack[SolveLimits],
) -> PurchasesInTime[PlanT]:
    """The cheapest purchases with which no demand of any period is more than ``target`` times its supply, and of these
    the ones that are needed latest.

    A period begins when the days of those before are over, and can use what was ordered early enough. A MIP solver
    decides the last period, then each earlier one with at most that, and then, if something is left to prove, all
    periods in one program; a heuristic goes from period to period. Price and days are proven for plans that begin from
    today; then a plan is made for each period that begins with the one of the period before, as in ``plan_periods``.

    Args:
        problem: an instance with candidates.
        periods: their changes, which stay, as in ``plan_periods``.
        target, tier, solver, params, limits: as in ``buy``.
        start: a plan of the instance; where it is at the target in the first period, it is the plan of it.
        on_event: called when a MIP solver turns to a period (``stage``), with the price and bound that are known.

    Raises:
        UsageError: nothing is offered, or a period or an argument cannot be honoured.
    """
    kind, hooks = asked(problem)
    if hooks.expansion is None or hooks.rolling is None:
        raise UsageError(f"{kind.name} has nothing to buy; ask 'mast-opt whatif' instead")
    check_scenarios(kind, periods)
    ratio, chosen = positive("target", target), params_given(params)
    problem = problem if start is None else check_plan(kind, problem, start)
    given = replace(params_of(limits), on_event=on_event)
    helper = next((name for name in kind.solvers.heuristics if solver == AUTO), "")
    rehearse(kind, needed(kind, helper or solver, problem), given.cancel)
    every = [
        (Question(kind, hooks.expansion, now, ratio, tier, None, day, chosen), period, day)
        for period, now, day in tuple(dated(kind, problem, periods, hooks.rolling.days))
    ]
    clock = Clock(given.time_limit_s)
    if solver in kind.solvers.heuristics:
        orders = _in_turn(every, solver, given, Clock(clock.budget_s(ORDERS_SHARE)))
    else:
        solver = exact_solver(kind, solver)
        orders = _exactly(every, solver, given, clock, helper)
    answer = PurchasesInTime[PlanT](kind.name, orders.status, (), orders.usd, orders.bound_usd, orders.message)
    if orders.usd is None:
        return answer
    usd, quiet = float(orders.usd), replace(given, on_event=None)

    def tell(name: str) -> None:
        _tell(given, clock, usd, orders.bound_usd, f"plan of {name}")

    found = plans_of(problem, every, hooks, orders.steps, (start, *orders.plans), solver, quiet, clock, tell)
    if start is not None and found and found[0].planned.solution.solver != GIVEN:
        answer = replace(answer, message=f"{answer.message}; the given plan is not at the target in {found[0].name}")
    return replace(answer, periods=found)


def _exactly(every: Dated, solver: str, params: SolveParams, clock: Clock, helper: str) -> _Orders:
    """The last period first, then each earlier one with at most what the next one has; one program over all periods
    where that leaves something to prove or to find.
    """
    quiet = replace(params, on_event=None)
    timed, longer = (Clock(clock.budget_s(share)) for share in (ORDERS_SHARE, UNPROVEN_SHARE))
    cap, bounds, found = every[-1][0].most_steps, list[float](), list[Cheapest]()
    for left, (q, period, _) in zip(range(len(every), 0, -1), reversed(every), strict=True):
        _tell(
            params, clock, None if not found else float(q.price(found[0].steps)), max(bounds, default=None), period.name
        )
        share = 1 / (left + len(every)) if found else PRICE_SHARE
        one = cheapest(q, solver, quiet, Clock(clock.budget_s(share)), helper)
        if one.out_of_reach:
            return _Orders(Status.INFEASIBLE, _out_of_reach(every))
        bounds.append(one.bound)
        one = _as_later(q, one, found[-1]) if found else one
        if one.plan is None or (one.steps > cap).any():
            fewer = copy(q)
            fewer.most_steps = np.minimum(q.most_steps, cap)
            if one.plan is None:
                any_plan = tried_with(fewer, fewer.most_steps, solver, quiet, clock, helper).plan
                one = replace(one, steps=fewer.most_steps, plan=any_plan, proven=False)
            else:
                one = cheapest(fewer, solver, quiet, Clock(clock.budget_s(1 / (left + len(every)))), helper)
        found.append(one)
        if one.plan is None:
            break
        cap = one.steps
    answer = _Orders(Status.NO_SOLUTION, NONE_IN_TIME, bound_usd=max(bounds))
    if found[-1].plan is not None:
        prices = [float(every[0][0].price(one.steps)) for one in found]
        proven = all(price <= least * (1 + params.gap) + SLACK for price, least in zip(prices, bounds, strict=True))
        steps, plans = [one.steps for one in reversed(found)], [one.plan for one in reversed(found)]
        answer = _answer(every, steps, plans, max(bounds), proven)
    spare = clock if not answer.plans else timed if found[0].proven else longer
    if answer.status is Status.OPTIMAL or spare.remaining_s <= 0 or params.cancel.is_set():
        return answer
    _tell(params, clock, None if answer.usd is None else float(answer.usd), max(bounds), "all periods")
    other = _together(every, solver, quiet, spare, helper, max(bounds))
    better = (
        other.status is Status.OPTIMAL or other.status.is_infeasible or _spent(every, other) < _spent(every, answer)
    )
    best = other if better else answer
    bound = max(bounds) if other.bound_usd is None else max(other.bound_usd, *bounds)
    return best if best.usd is None else replace(best, bound_usd=min(bound, float(best.usd)))


def _as_later(question: Question, one: Cheapest, later: Cheapest) -> Cheapest:
    """The purchases and the plan of the next period for one in which no plan or a more expensive one was found, where
    they are there in time and do."""
    q, worse = question, one.plan is None or question.price(one.steps) > question.price(later.steps)
    if not worse or (later.steps > q.most_steps).any():
        return one
    fits = q.judged(q.hooks.bought(q.problem, later.steps), later.plan).ok
    return replace(one, steps=later.steps, plan=later.plan, proven=False) if fits else one


def _spent(every: Dated, orders: _Orders) -> tuple[Fraction, ...]:
    """Price of all purchases, then what is spent before the last period, added up over periods; infinite without."""
    if orders.usd is None:
        return (Fraction(10**30),)
    return orders.usd, sum((every[0][0].price(steps) for steps in orders.steps[:-1]), Fraction(0))


def _tell(params: SolveParams, clock: Clock, usd: float | None, bound: float | None, what: str) -> None:
    """Say which period is being decided, and what is known of the price."""
    if params.on_event is not None:
        params.on_event(Event(clock.elapsed_s, usd, bound, what))


def _together(every: Dated, solver: str, params: SolveParams, clock: Clock, helper: str, bound: float) -> _Orders:
    """One program for the price, a second one for the latest orders at that price, then a plan of each period."""
    backend, questions = backends.get(solver), [q for q, *_ in every]
    for exact_shares in (False, True):
        mip, buy, price = _program(questions, exact_shares)
        last = _priced(mip, buy[-1:], price)
        result = backend.solve(last, replace(params, time_limit_s=clock.budget_s(0.5)))
        if result.status.is_infeasible:
            return _Orders(Status.INFEASIBLE, _out_of_reach(every))
        bound = max(bound, result.bound or 0.0)
        if result.x is None:
            break
        row, most = np.full(len(price), len(mip.row_lower)), float(price @ np.rint(result.x[buy[-1]]))
        capped = extended(mip, Extension("price", rows=1, row_upper=most, entries=[(row, buy[-1], price)]))
        later = backend.solve(
            _priced(capped, buy[:-1], price), replace(params, start=result.x, time_limit_s=clock.budget_s(0.5))
        )
        x = result.x if later.x is None else later.x
        steps = [np.rint(x[columns]).astype(np.int64) for columns in buy]
        tried = []
        for q, n in zip(questions, steps, strict=True):
            tried.append(tried_with(q, n, solver, params, clock, helper).plan)
            if tried[-1] is None:
                break
        else:
            proven = result.status is Status.OPTIMAL and later.status is Status.OPTIMAL
            return _answer(every, steps, tried, bound, proven)
    return _Orders(Status.NO_SOLUTION, NONE_IN_TIME, bound_usd=bound)


def _program(questions: list[Question], exact_shares: bool) -> tuple[Mip, list[Any], FloatArray]:
    """(the programs of all periods, in which nothing bought is given back; the columns of steps by period; prices)."""
    programs = [q.hooks.program(q.problem, q.most_steps, q.ratio, q.tier, exact_shares) for q in questions]
    mips, none = [one.mip for one in programs], [np.zeros(0, np.int64)] * len(programs)
    side = extensive(mips, none, [np.zeros(0, np.bool_)] * len(programs))
    buy = [columns[one.buy] for columns, one in zip(side.columns, programs, strict=True)]
    mip, price = side.mip, np.array([float(one.usd) for one in questions[0].offers])
    for before, after in pairwise(buy):
        rows = len(mip.row_lower) + np.arange(len(before))
        entries = [(rows, after, 1.0), (rows, before, -1.0)]
        mip = extended(mip, Extension("kept", rows=len(before), row_lower=0.0, entries=entries))
    return mip, buy, price


def _priced(mip: Mip, columns: list[Any], price: FloatArray) -> Mip:
    """The program of all periods with the prices of purchases as its objective."""
    cost = np.zeros(len(mip.cost))
    for steps in columns:
        cost[steps] = price
    return replace(mip, cost=frozen(cost))


def _in_turn(every: Dated, solver: str, params: SolveParams, clock: Clock) -> _Orders:
    """The purchases of a heuristic, period by period; what one period bought is there in the next."""
    steps, plans, bound = list[Steps](), [], 0.0
    for at, (q, period, _) in enumerate(every):
        _tell(params, clock, None, bound if steps else None, period.name)
        least: Steps = steps[-1] if steps else np.zeros(len(q.offers), np.int64)
        q.problem, q.most_steps = q.hooks.bought(q.problem, least), np.maximum(q.most_steps - least, 0)
        found = by_heuristic(
            q, solver, replace(params, on_event=None, time_limit_s=clock.budget_s(1 / (len(every) - at))), None
        )
        if found.plan is None:
            status = Status.INFEASIBLE if found.status.is_infeasible and not steps else Status.NO_SOLUTION
            return _Orders(status, f"{period.name}: {found.message}")
        more = {one.offer.name: one.steps for one in found.bought}
        bound = max(bound, found.bound_usd or 0.0) if not steps else bound
        steps.append(least + np.array([more.get(one.name, 0) for one in q.offers], np.int64))
        plans.append(found.plan)
    return _answer(every, steps, plans, bound, False)


def _answer(every: Dated, steps: list[Steps], plans: list[Any], bound: float, proven: bool) -> _Orders:
    """The purchases for each period, and their price."""
    q = every[-1][0]
    usd = q.price(steps[-1])
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    words = f"{plain(float(usd))} USD for {counted(len(every), 'period')}"
    gone = [one.name for one, n in zip(q.offers, steps[-1].tolist(), strict=True) if n and n == one.most_steps]
    if not proven and steps[-1].any() and (steps[-1] == q.most_steps).all():
        words += f"; {EVERYTHING}"
    elif gone:
        words += f"; sold out after {every[-1][1].name}: {listed(gone)}"
    return _Orders(status, words, steps, plans, usd, min(bound, float(usd)))


def _out_of_reach(every: Dated) -> str:
    """Reason why purchases cannot reach the target: the first period in which everything that can be there by then is
    too little, what comes later, and the least ratio that this leaves.
    """
    for q, period, day in (one for one in every if _too_little(one[0], one[0].ratio)):
        words = f"{OUT_OF_REACH} by {period.name}, which begins on day {day}"
        late = [one.lead_days for one in q.offers if one.lead_days > day]
        if late:
            words += f"; {len(late)} of {len(q.offers)} candidates come later, after {min(late)} days or more"
        if _too_little(q, 64 * q.ratio):
            return words
        low, high = q.ratio, 64 * q.ratio
        while high - low > LEAST_STEP * low:
            middle = (low + high) / 2
            low, high = (middle, high) if _too_little(q, middle) else (low, middle)
        return f"{words}; no target below {float(low):.3f} is in reach then"
    return f"{OUT_OF_REACH} in time"


def _too_little(q: Question, ratio: Fraction) -> bool:
    """Whether everything that can be bought in time is proven to be too little for a ratio."""
    small = q.hooks.relaxation(q.problem, q.most_steps, ratio, q.tier)
    return backends.get("highs").solve(small.mip, SolveParams()).status.is_infeasible
