"""Scenario analysis (``whatif``): what happens to an instance and its plan if something changes."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Generic, Unpack

import numpy as np

from mast_opt.core.arguments import a, a_function, a_text, checked, each, optional
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveLimits, keywords_of, params_of
from mast_opt.core.solve_result import Status, relative_gap
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import plain
from mast_opt.planner.analysis.common import asked, exact_solver
from mast_opt.planner.analysis.first_stage import recovery, way
from mast_opt.planner.analysis.migration_plan import NO_WAY, Way, way_of
from mast_opt.planner.analysis.region_loss import RegionLoss, can_lose_regions, region_loss, unavoidable
from mast_opt.planner.analysis.scenario_files import BASE, Scenario, check_scenarios, happened
from mast_opt.planner.analysis.solves import solving
from mast_opt.planner.analysis.two_stage import Robust, RobustSearch
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER, EXACT
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.planner.solving.solver_params import solver_params
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks, Loss
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.migration_plan import Order, Waiting
from mast_opt.problems.kind.problem import PlanT, Problem, ProblemT
from mast_opt.problems.registry import SolverName, check_plan
from mast_opt.problems.search.params import Params

OBJECTIVES = ("worst", "weighted")
GIVEN, PLANNED = "the plan that was given, not planned again", "a new plan, since none was given"
"""Sentences on the base plan."""
LEAST_SHARE = 1e-7
"""Share of an objective below which what a plan can change of it is no more than a solver's tolerance."""
AGAIN_S = 60.0
"""Seconds, without a time limit, for a further proof of what a plan can change."""


@dataclass(frozen=True)
class Outcome(Generic[PlanT]):
    """One scenario, planned again."""

    name: str
    problem: Any
    """The instance after the scenario, of the base's type, with work that cannot be served priced."""
    solution: Solution[PlanT]
    moved: Mapping[str, float]
    """Amounts to move from the base plan to this one, by unit."""
    base_verdict: Verdict | None
    """The base plan under the scenario, nothing planned again: its violations are what would break. None without a
    base plan."""
    lost: Loss | None = None
    """Data that the scenario destroys, and the work that reads it; None where a kind has no data that can be lost."""
    unavoidable: float = 0.0
    """The part of the objective that is work whose data is lost, which no plan can change; 0 where the terms are
    minimised one after another."""
    first: PlanT | None = None
    """First stage after the loss of regions: a plan without copies, from which the solution's terms count; None where
    no work starts sooner by it."""

    @property
    def after_loss(self) -> RegionLoss | None:
        """The GPUs missing in a scenario that loses regions, after planning again; None in others and without GPUs."""
        verdict = self.solution.verdict
        if verdict is None or self.lost is None or self.lost.gpus is None or not can_lose_regions(self.problem):
            return None
        return region_loss(self.name, verdict.metrics, self.lost, self.solution.status is Status.OPTIMAL)

    @cached_property
    def order(self) -> Order | None:
        """The steps from today, as it is in the scenario, to its plan; None without a plan or an order."""
        return way(self.problem, self.first, self.solution.plan)

    @property
    def down_gpus(self) -> float:
        """GPUs that work of lost regions used, which stands still until it starts again."""
        down = () if self.order is None else self.order.stopped
        return sum(one.gpus for one in down if one.lost is not None)

    @property
    def base_breaks(self) -> int | None:
        """Limits that the base plan breaks; None without a base plan, and where it breaks none only because its work in
        lost regions stands still."""
        broken = None if self.base_verdict is None else len(self.base_verdict.violations)
        return None if broken == 0 and self.down_gpus else broken

    @property
    def way(self) -> Way:
        """The size of the way from today, as it is in the scenario, to its plan."""
        return NO_WAY if self.order is None else way_of(self.problem, self.order)

    @property
    def waiting(self) -> tuple[tuple[Waiting, ...], ...]:
        """Work without GPUs after a loss: in the first stage, if there is one, and in the plan."""
        return () if self.order is None or self.after_loss is None else self.order.waiting

    @property
    def open_gap(self) -> float | None:
        """The gap relative to what a plan can change of the objective; None where objective or bound is unknown."""
        return _open_gap(self.solution, self.unavoidable)


@dataclass(frozen=True, repr=False)
class WhatIf(Summarised, Generic[PlanT]):
    """The answer of ``whatif``."""

    kind: str
    base: Outcome[PlanT]
    """The instance as it is, with the plan that was given or, without one, a new plan."""
    given: bool
    """Whether the base plan was given, and so is not planned again."""
    outcomes: tuple[Outcome[PlanT], ...]
    robust: Robust[PlanT] | None
    """One plan for all scenarios, where that was asked for and nobody cancelled before."""

    @property
    def base_words(self) -> str:
        """A sentence on where the base plan comes from."""
        return f"base is {GIVEN if self.given else PLANNED}."

    def _summary(self) -> Summary:
        """Summary of a scenario analysis: status and objective under each scenario, and limits that the base plan
        breaks.
        """
        rows = tuple(
            (
                outcome.name,
                outcome.solution.status.value,
                plain(outcome.solution.objective),
                "" if outcome.base_breaks is None else f"{outcome.base_breaks:,}",
            )
            for outcome in (self.base, *self.outcomes)
        )
        facts = (("kind", self.kind), *((name, f"{status} {value}") for name, status, value, _ in rows))
        return Summary("WhatIf", facts, ("scenario", "status", "objective", "limits that the base plan breaks"), rows)


@checked(
    keywords_of(SolveLimits),
    scenarios=each(a(Scenario)),
    robust=optional(a_text),
    on_outcome=optional(a_function),
)
def whatif(
    problem: Problem[PlanT],
    scenarios: Sequence[Scenario],
    plan: PlanT | None = None,
    *,
    robust: str | None = None,
    solver: SolverName = DEFAULT_SOLVER,
    jobs: int = 1,
    params: Params | Mapping[str, Any] | None = None,
    on_outcome: Callable[[Outcome[PlanT]], None] | None = None,
    **limits: Unpack[SolveLimits],
) -> WhatIf[PlanT]:
    """Solve the instance under every scenario, beginning with the base plan, and compare with it.

    A base plan that is given is judged, and not planned again. Where work is lost whatever the plan, the gap asked for
    is that of the rest of the objective.

    Work that cannot be served is priced in every scenario and in the base, never forbidden; data that has no room left
    is not priced, so a scenario may still be infeasible, and says so.

    A scenario that loses regions loses the data of which no replica is elsewhere. The replicas are those of ``plan``
    where it is given (the regions are lost after it is carried out), else today's. Work that reads lost data is never
    served.

    With ``robust`` there is also one plan for all scenarios: what is decided beforehand (replicas) is the same in all,
    the rest is decided again in each (two-stage stochastic programming with recourse, stated as one MIP). ``worst``
    minimises the largest objective over the base and the scenarios, then the mean; ``weighted`` minimises the mean by
    their weights, where the base has weight 1. The plans are verified scenario by scenario, and so are those with
    the base plan's replicas; where these lack one that a scenario pins, they have no plan there.

    Args:
        problem: an instance.
        scenarios: see ``read_scenarios``; the keys are those of the instance's kind.
        plan: the base plan; found by ``solver`` unless given. Given, its replicas are those that lost regions hit.
        robust: ``worst`` or ``weighted``; None for no robust plan. MIP solvers only.
        solver: any solver of the kind.
        jobs: scenarios that are solved at the same time.
        params: of a heuristic, as in ``solve``.
        on_outcome: called with each scenario once it is planned, and with the base; with ``jobs``, from any thread.
        limits: of each solve, see ``SolveLimits``. ``cancel`` stops all; every solve keeps its best plan.

    Raises:
        UsageError: a scenario or an argument that cannot be honoured.
        PlanError: the plan was made for another instance.
        Interrupted: cancelled before the kernels were compiled.
    """
    kind, questions = asked(problem)
    exact = EXACT
    if kind.solvers.method is not None:
        solver = exact_solver(kind, solver)
    chosen = solver_params(kind, solver, params)
    check_scenarios(kind, scenarios)
    if plan is not None:
        problem = check_plan(kind, problem, plan)
    if robust is not None:
        _check_robust(kind, questions, problem, robust)
        exact = exact_solver(kind, solver)
    cancel = limits.pop("cancel") or threading.Event()
    instances = {BASE: questions.priced(problem)}
    judged = None if plan is None else _judged(kind, instances[BASE], plan, solver)
    unsettled = dict(instances)
    losses = {BASE: _settled(questions, problem, problem, {}, plan)[1]}
    for scenario in scenarios:
        changed = happened(kind, problem, scenario)
        unsettled[scenario.name] = questions.priced(changed)
        settled, losses[scenario.name] = _settled(questions, problem, changed, scenario.changes, plan)
        instances[scenario.name] = questions.priced(settled)

    given = {**limits, "params": chosen}
    stochastic = None
    with solving(jobs, cancel) as pool:
        rehearse(kind, needed(kind, solver, problem), cancel)
        base = judged or pool.solve(solver, instances[BASE], None, given)
        before = plan if plan is not None else base.plan

        def outcome(name: str) -> Outcome[PlanT]:
            instance = instances[name]
            begin = None if before is None else questions.adapted(instance, before)
            solution, least, stage = base, unavoidable(instance, losses[name]), None
            if name != BASE:
                solution, least, stage = _planned(partial(pool.solve, solver), instance, begin, given, losses[name])
            unknown = before is None or solution.plan is None
            moved = {} if unknown else questions.moved(problem, instance, before, solution.plan)
            base_verdict = None if begin is None else kind.verification.verify(instance, begin)
            found = Outcome(name, instance, solution, moved, base_verdict, losses[name], least, stage)
            if on_outcome is not None:
                on_outcome(found)
            return found

        first, *others = pool.each(outcome, instances)
        if robust is not None and questions.two_stage is not None and before is not None and not cancel.is_set():
            weights = np.array([1.0, *(scenario.weight for scenario in scenarios)])
            asked_of, clock = (
                params_of({**limits, "cancel": cancel, "time_limit_s": None}),
                Clock(limits["time_limit_s"]),
            )
            search = RobustSearch(kind, questions.two_stage, unsettled, weights, robust, exact, asked_of, clock, pool)
            stochastic = search.plan(before)
    if stochastic is not None and before is not None:
        changes = {BASE: {}, **{scenario.name: scenario.changes for scenario in scenarios}}
        lost = partial(_losses, questions, problem, unsettled, changes)
        stochastic = replace(stochastic, robust_lost=lost(stochastic.plan), base_lost=lost(before))
    return WhatIf(kind.name, first, plan is not None, tuple(others), stochastic)


def _judged(kind: Kind[Any, PlanT], problem: Problem[PlanT], plan: PlanT, solver: str) -> Solution[PlanT]:
    """A given plan as a solution, without a bound. Raises UsageError where it breaks limits."""
    verdict, order = kind.verification.verify(problem, plan), problem.objective.order
    if not verdict.ok:
        raise UsageError(
            f"the base plan breaks limits: {verdict.violations[0]}; 'mast-opt verify' lists all. A limit for scenarios "
            "alone belongs to them, as in limits = { copied_tb = 0 }"
        )
    return Solution(
        kind=kind.name,
        solver=solver,
        status=Status.FEASIBLE,
        plan=plan,
        verdict=verdict,
        objective=verdict.terms[order[0]] if order else verdict.objective,
        bound=None,
        limit=None,
        message=GIVEN,
        seed=0,
        runtime_s={},
        term=order[0] if order else None,
        sense=problem.sense,
    )


def _open_gap(solution: Solution[Any], least: float) -> float | None:
    """The gap relative to what is above a part that no plan can change; None where objective or bound is unknown."""
    if solution.objective is None or solution.bound is None:
        return None
    return relative_gap(solution.objective - least, max(0.0, solution.bound - least))


def _planned(
    solve: Callable[[Any, PlanT | None, Mapping[str, Any]], Solution[PlanT]],
    instance: Problem[PlanT],
    begin: PlanT | None,
    given: Mapping[str, Any],
    loss: Loss | None,
) -> tuple[Solution[PlanT], float, PlanT | None]:
    """The solution of a scenario, the part of its objective that no plan can change, and its first stage."""
    clock = Clock(given["time_limit_s"])

    def solved(
        of: Problem[PlanT], start: PlanT | None, limits: Mapping[str, Any], lost: Loss | None
    ) -> Solution[PlanT]:
        """A solution within the gap asked for of what a plan can change."""
        return _solved(partial(solve, of), start, limits, unavoidable(of, lost))

    found = None if loss is None else recovery(instance, loss, begin, solved, given)
    if found is not None:
        return found.solution, found.unavoidable, found.first
    return solved(instance, begin, {**given, "time_limit_s": clock.budget_s()}, loss), unavoidable(instance, loss), None


def _solved(
    solve: Callable[[PlanT | None, Mapping[str, Any]], Solution[PlanT]],
    begin: PlanT | None,
    given: Mapping[str, Any],
    least: float,
) -> Solution[PlanT]:
    """A solution within the gap asked for of what a plan can change, or one that is not called optimal.

    A solve that stops earlier is followed by one at a smaller gap, in the time that is left.

    Args:
        solve: (plan to begin with, limits) → solution.
        begin: a plan to begin with.
        given: limits of the solve.
        least: part of the objective that no plan can change.
    """
    clock, asked = Clock(given["time_limit_s"]), given["gap"]
    found = solve(begin, given)
    whole = found.objective or 0.0
    if not _too_open(found, least, asked):
        return found
    tighter = {"gap": asked * (whole - least) / whole, "time_limit_s": clock.budget_s() or AGAIN_S}
    again = solve(found.plan, {**given, **tighter})
    bounds = [one.bound for one in (found, again) if one.bound is not None]
    better = replace(found if again.plan is None else again, bound=max(bounds, default=None))
    return replace(better, status=Status.FEASIBLE) if _too_open(better, least, asked) else better


def _too_open(solution: Solution[Any], least: float, gap: float) -> bool:
    """Whether a solution that is called optimal has a larger gap than the one asked for, of what a plan can change."""
    if solution.status is not Status.OPTIMAL or not least or solution.objective is None:
        return False
    open_gap = _open_gap(solution, least)
    return open_gap is not None and open_gap > gap and solution.objective - least > LEAST_SHARE * solution.objective


def _check_robust(kind: Kind[Any, Any], questions: AnalysisHooks, problem: Problem[Any], robust: str) -> None:
    """Raises UsageError where there can be no robust plan."""
    if robust not in OBJECTIVES:
        raise UsageError(f"robust is {robust!r}; expected one of: {', '.join(OBJECTIVES)}")
    if questions.two_stage is None:
        raise UsageError(f"{kind.name} has no plan that is made before it is known which scenario comes")
    if problem.objective.lexicographic:
        raise UsageError("a robust plan needs a weighted objective; this instance has a lexicographic one")


def _losses(
    questions: AnalysisHooks,
    problem: Problem[Any],
    unsettled: Mapping[str, Problem[Any]],
    changes: Mapping[str, Mapping[str, Any]],
    decided: object | None,
) -> dict[str, Loss | None]:
    """The data that each scenario loses once a plan is carried out; nothing without a plan."""
    if decided is None:
        return {}
    return {
        name: _settled(questions, problem, unsettled[name], happens, decided)[1] for name, happens in changes.items()
    }


def _settled(
    questions: AnalysisHooks, problem: ProblemT, changed: ProblemT, changes: Mapping[str, Any], plan: object
) -> tuple[ProblemT, Loss | None]:
    """A changed instance without the data that is lost, and that loss; None where there is no data."""
    return (changed, None) if questions.loss is None else questions.loss(problem, changed, changes, plan)
