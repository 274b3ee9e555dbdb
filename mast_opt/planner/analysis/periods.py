"""Plans for several periods (``periods``): demand grows, hardware arrives, each plan begins where the last one ends."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Generic, Unpack

from mast_opt.core.arguments import a, a_function, a_text, checked, each, optional
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveLimits, keywords_of
from mast_opt.planner.analysis.common import asked, solve_from
from mast_opt.planner.analysis.migration_plan import NO_WAY, Way, way_to
from mast_opt.planner.analysis.scenario_files import Scenario, check_scenarios, dated, happened
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks, Rolling
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, kind_of


@dataclass(frozen=True, eq=False)
class Period(Generic[PlanT]):
    """One period and its plan."""

    name: str
    instance: Problem[PlanT]
    """The instance with the changes up to this period, and the plan of the one before as its present state."""
    solution: Solution[PlanT]
    moved: Mapping[str, float]
    """Amounts that move from the plan before (or from today), by unit; empty where one of them is not known."""
    begins_day: int = 0
    """Day on which the period begins; day 0 is today."""
    prepares: bool = False
    """Whether this plan was made again, so that the next period has one."""

    @cached_property
    def way(self) -> Way:
        """The way to its plan from that of the period before, or from today."""
        return way_to(self.instance, self.solution.plan)

    @cached_property
    def over_before_gpus(self) -> float | None:
        """GPUs over the supply on the day when the period begins, before its moves; None where the plan before, or the
        present state, is not known."""
        kind = kind_of(self.instance)
        now = kind.analysis.current_plan(self.instance)
        return None if now is None else kind.verification.verify(self.instance, now).metrics.get("overload_gpus")

    @property
    def done_day(self) -> int | None:
        """First day on which nothing of the way to its plan is left; None where the way is not known or blocked."""
        if self.way.stuck or self.way.days is None:
            return self.begins_day if self.way is not NO_WAY and not self.way.steps else None
        return self.begins_day + self.way.days

    @property
    def moves_until_day(self) -> int | None:
        """Last day of the way to its plan; None where that is not known."""
        return None if self.done_day is None else max(self.begins_day, self.done_day - 1)


@dataclass(frozen=True, eq=False)
class Periods(Generic[PlanT]):
    """The answer of ``plan_periods``; it ends with the first period that has no plan."""

    kind: str
    periods: tuple[Period[PlanT], ...]
    planned: int
    """Number of periods that were asked for."""

    @property
    def complete(self) -> bool:
        """Whether every period has a plan."""
        return len(self.periods) == self.planned and self.periods[-1].solution.plan is not None

    @property
    def objective(self) -> float | None:
        """Sum of the objectives of all periods; None where one has no plan."""
        return total_objective(self.periods) if self.complete else None

    @property
    def moved(self) -> dict[str, float]:
        """Amounts that move in all periods together, by unit."""
        total: dict[str, float] = {}
        for period in self.periods:
            for unit, amount in period.moved.items():
                total[unit] = total.get(unit, 0.0) + amount
        return total


def total_objective(periods: Sequence[Period[Any]]) -> float:
    """The sum of the objectives of periods that all have a plan."""
    return sum(one.solution.objective for one in periods if one.solution.objective is not None)


@checked(keywords_of(SolveLimits), periods=each(a(Scenario)), solver=a_text, on_period=optional(a_function))
def plan_periods(
    problem: Problem[PlanT],
    periods: Sequence[Scenario],
    *,
    solver: SolverName = DEFAULT_SOLVER,
    on_period: Callable[[Period[PlanT]], None] | None = None,
    **limits: Unpack[SolveLimits],
) -> Periods[PlanT]:
    """A plan for each period, one after another; changes stay, and each plan begins with the one before.

    Where a period has no plan because what it needs cannot be brought in time, the plan of the period before is made
    again so that it has that ready: the replicas of a plan of the later period without a limit on time. Other conflicts
    end the run, and the last period says what they are.

    Args:
        problem: an instance; its present state is what the first period begins with.
        periods: their changes, as of scenarios; see ``read_periods``.
        solver: any solver of the kind.
        on_period: called with each period once it is planned.
        limits: of each solve, see ``SolveLimits``. ``cancel`` stops all; every solve keeps its best plan.

    Raises:
        UsageError: a period or an argument that cannot be honoured.
    """
    kind, hooks = asked(problem)
    if hooks.rolling is None:
        raise UsageError(f"{kind.name} is not planned over periods")
    check_scenarios(kind, periods)
    cancel = limits["cancel"] or threading.Event()
    chain = Chain(kind, hooks, hooks.rolling, partial(solve_from, kind, solver, {**limits, "cancel": cancel}), cancel)
    rehearse(kind, needed(kind, solver, problem), cancel)
    for period, _, day in tuple(dated(kind, problem, periods, hooks.rolling.days)):
        chain.step(problem, partial(happened, kind, scenario=period), period.name, day)
        if on_period is not None:
            on_period(chain.done[-1])
        if chain.done[-1].solution.plan is None or cancel.is_set():
            break
    return Periods(kind.name, tuple(chain.done), len(periods))


class Chain:
    """Plans of the periods so far, each from the one before.

    Args:
        solve: (instance, a plan to begin with or None, the solution of the period before or None) → solution.
        proven_only: prepare a period only where it is proven to have no plan, and not where time ran out.
    """

    def __init__(
        self,
        kind: Kind[Any, Any],
        hooks: AnalysisHooks,
        rolling: Rolling,
        solve: Callable[[Any, Any, Solution[Any] | None], Solution[Any]],
        cancel: threading.Event,
        proven_only: bool = False,
    ) -> None:
        self.kind, self.hooks, self.rolling, self.solve, self.cancel = kind, hooks, rolling, solve, cancel
        self.proven_only = proven_only
        self.done: list[Period[Any]] = []

    def now(self, problem: Problem[Any]) -> Any:  # noqa: ANN401 - an instance of the kind
        """The instance after the periods so far."""
        last = self.done[-1] if self.done else None
        return problem if last is None else self.rolling.carried(last.instance, last.solution.plan)

    def step(self, problem: Problem[Any], change: Callable[[Any], Any], name: str, day: int) -> None:
        """Plan one more period; prepare it in the one before where it has no plan otherwise.

        Args:
            problem: the instance before all periods.
            change: what the period does to an instance.
        """
        instance = change(self.now(problem))
        found = self._planned(instance)
        wanted = found.status.is_infeasible or (found.plan is None and not self.proven_only)
        if wanted and self.done and not self.cancel.is_set():
            earlier = self._prepared(instance)
            if earlier is not None:
                self.done[-1] = earlier
                instance = change(self.now(problem))
                found = self._planned(instance)
        self.done.append(Period(name, instance, found, self.moved(instance, found), day))

    def _planned(self, instance: Problem[Any]) -> Solution[Any]:
        """Solution of a period's instance, which begins with the plan of the period before."""
        return self.solve(instance, self._start(instance), self.done[-1].solution if self.done else None)

    def _start(self, instance: Problem[Any]) -> Any | None:  # noqa: ANN401 - a plan of the kind
        """The plan before, as a plan of this instance; None in the first period."""
        last = self.done[-1] if self.done else None
        plan = self.rolling.today(instance) if last is not None else None
        return plan if plan is not None and self.kind.verification.verify(instance, plan).ok else None

    def _prepared(self, instance: Problem[Any]) -> Period[Any] | None:
        """The period before, planned again so that it has ready what this one needs; None where that fails."""
        later = self.solve(self.rolling.unhurried(instance), None, None)
        if later.plan is None:
            return None
        last = self.done[-1]
        bound = self.rolling.prepared(last.instance, later.plan)
        again = self.solve(bound, None, None)
        if again.plan is None or not self.kind.verification.verify(last.instance, again.plan).ok:
            return None
        return replace(last, solution=again, prepares=True, moved=self.moved(last.instance, again))

    def moved(self, instance: Problem[Any], found: Solution[Any]) -> Mapping[str, float]:
        """Amounts that move to reach a period's plan, by unit."""
        before = self.rolling.today(instance)
        if before is None or found.plan is None:
            return {}
        return self.hooks.moved(instance, instance, before, found.plan)
