"""Plans for every goal (``solve --goals``), to be compared side by side with doing nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Unpack

from mast_opt.core.arguments import a_text, anything, checked, mapping_of, optional
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveControl, keywords_of
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import plain
from mast_opt.planner.analysis.migration_plan import steps
from mast_opt.planner.solving import Solution, solve
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.dispatch import stated_goal
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, check_plan, kind_of

NOTHING, PLAN = "do nothing", "this plan"


@dataclass(frozen=True)
class Figures:
    """Figures of one state: the present one, or a plan."""

    verdict: Verdict
    steps: int = 0
    days: int | None = None
    """Days that the way to it takes; None where steps take no days."""
    stuck: int = 0
    """Steps that cannot be carried out."""


@dataclass(frozen=True, repr=False)
class Goals(Summarised, Generic[PlanT]):
    """The answer of ``solve_goals``."""

    kind: str
    solutions: Mapping[str, Solution[PlanT]]
    """Goal → its solution."""
    figures: Mapping[str, Figures]
    """``do nothing``, where the present state is known, then each goal with a plan."""
    refused: Mapping[str, str]
    """Goal that means nothing for this instance → the reason."""

    def _summary(self) -> Summary:
        """Summary of the plans for all goals: the outcome and objective of each."""
        facts = tuple((name, found.outcome) for name, found in self.solutions.items())
        rows = tuple((name, plain(found.objective)) for name, found in self.solutions.items())
        return Summary("Goals", (("kind", self.kind), *facts), ("goal", "objective"), rows)


@checked(keywords_of(SolveControl), solver=a_text, limits=optional(mapping_of(anything)))
def solve_goals(
    problem: Problem[PlanT],
    *,
    solver: SolverName = DEFAULT_SOLVER,
    limits: Mapping[str, float | str | Fraction | None] | None = None,
    near: PlanT | None = None,
    **control: Unpack[SolveControl],
) -> Goals[PlanT]:
    """A plan for each goal of the kind that means something for the instance.

    Args:
        problem: an instance.
        solver: any solver of the kind.
        limits, near: as in ``solve``.
        control: see ``SolveControl``; ``time_limit_s`` is for all goals together.

    Raises:
        UsageError: the kind has no goals, or an argument that cannot be honoured.
    """
    goals, clock = kind_of(problem).goals, Clock(control["time_limit_s"])
    if not goals:
        raise UsageError(f"{problem.kind} has no goals: its objective is a policy")
    refused: dict[str, str] = {}
    for name in goals:
        try:
            stated_goal(problem, name)
        except UsageError as error:
            refused[name] = str(error)
    chosen = [name for name in goals if name not in refused]
    solutions: dict[str, Solution[PlanT]] = {}
    for left, name in zip(range(len(chosen), 0, -1), chosen, strict=True):
        timed: SolveControl = {**control, "time_limit_s": clock.budget_s(1 / left)}
        solutions[name] = solve(problem, solver, goal=name, limits=limits, near=near, **timed)
    plans = {name: found.plan for name, found in solutions.items() if found.plan is not None}
    return Goals(problem.kind, solutions, figures_of(problem, plans), refused)


def figures_of(problem: Problem[PlanT], plans: Mapping[str, PlanT], *, with_steps: bool = True) -> dict[str, Figures]:
    """Figures of doing nothing, where the present state is known, and of each plan, perhaps with the way to it."""
    kind = kind_of(problem)
    state, now = kind.analysis.current_state(problem), kind.analysis.current_plan(problem)
    known = now is not None and (state is None or state.complete)
    return {
        **({NOTHING: Figures(kind.verification.verify(problem, now))} if known and now is not None else {}),
        **{name: _figures(problem, plan, with_steps) for name, plan in plans.items()},
    }


def _figures(problem: Problem[Any], plan: object, with_steps: bool) -> Figures:
    """Figures of a plan for a goal: its verdict, and the number and days of the steps to it."""
    kind = kind_of(problem)
    check_plan(kind, problem, plan)
    verdict = kind.verification.verify(problem, plan)
    if not with_steps or not verdict.ok or kind.migration.steps is None:
        return Figures(verdict)
    order = steps(problem, plan)
    return Figures(verdict, len(order.moves), order.days, len(order.stuck))
