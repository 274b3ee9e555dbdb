"""All periods in one program (``periods --joint``): what planning them together is worth against one after another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, Unpack

import numpy as np

from mast_opt.core.arguments import a, a_text, checked, each, optional
from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError, VerificationError
from mast_opt.core.solve_limits import SolveLimits, keywords_of, params_of
from mast_opt.core.solve_result import AGREEMENT, SolveResult, Status, relative_gap
from mast_opt.planner.analysis.common import asked, exact_solver
from mast_opt.planner.analysis.periods import Period, Periods, total_objective
from mast_opt.planner.analysis.scenario_files import Scenario, check_scenarios, dated, happened
from mast_opt.planner.analysis.two_stage import stated
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.problems import backends
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks, JointProgram, Link, Rolling, Stage
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.extensive import Extensive, extensive
from mast_opt.problems.mip.transforms import extended
from mast_opt.problems.registry import SolverName


@dataclass(frozen=True, eq=False)
class JointPeriods(Generic[PlanT]):
    """The answer of ``plan_periods_jointly``."""

    status: Status
    periods: tuple[Period[PlanT], ...]
    """Each with its plan, verified with the plan before as its present state; none where no plan was found."""
    objective: float | None
    """Sum of the objectives of all periods."""
    bound: float | None
    """Proven: no plans of these periods have a smaller sum."""
    message: str
    """The solver's own words."""

    @property
    def gap(self) -> float | None:
        """Relative gap of all periods' objective and bound; None if either is missing."""
        return relative_gap(self.objective, self.bound)


@checked(keywords_of(SolveLimits), periods=each(a(Scenario)), solver=a_text, start=optional(a(Periods)))
def plan_periods_jointly(
    problem: Problem[PlanT],
    periods: Sequence[Scenario],
    *,
    start: Periods[PlanT] | None = None,
    solver: SolverName = DEFAULT_SOLVER,
    **limits: Unpack[SolveLimits],
) -> JointPeriods[PlanT]:
    """The plans of all periods that have the smallest sum of objectives, by one program over all of them.

    A replica or a run that the period before has costs no copy and no move, as in ``plan_periods``; here earlier
    plans also take later periods into account. The program has the columns of all periods together, so it is for
    instances that a MIP solver solves with ease.

    Args:
        problem: an instance; its present state is what the first period begins with.
        periods: their changes, which stay.
        start: plans of the same periods, one after another, to begin with.
        solver: a MIP backend.
        limits: of the program, see ``SolveLimits``. ``cancel`` keeps the best plans so far.

    Raises:
        UsageError: the kind, the instance or a period has something that cannot be stated together.
        FormulationTooLarge: the program would need more memory than there is.
        VerificationError: the verifier rejects what the solver calls a solution.
    """
    kind, hooks = asked(problem)
    rolling = hooks.rolling
    if rolling is None or rolling.joint is None:
        raise UsageError(f"{kind.name} has no program of several periods")
    check_scenarios(kind, periods)
    exact = exact_solver(kind, solver)
    every = tuple(dated(kind, problem, periods, rolling.days))
    instances: list[Any] = [instance for _, instance, _ in every]
    reason = rolling.joint.refusal(instances, [key for one in periods for key in one.changes])
    if reason:
        raise UsageError(f"periods are not planned together with {reason}; leave out --joint, or that")
    kind.check_memory(problem, together=len(instances), heuristics_too=False)
    program = _Program(kind, rolling.joint, instances)
    plans: Sequence[Any] = () if start is None or not start.complete else [one.solution.plan for one in start.periods]
    params = replace(params_of(limits), start=program.encoded(plans) if plans else None)
    result = backends.get(exact).solve(program.mip, params)
    plans = () if result.x is None else program.plans(result.x)
    found = _verified(kind, hooks, rolling, problem, every, plans, exact) if plans else ()
    return _answer(found, result, len(instances))


class _Program:
    """The programs of all periods side by side, linked in a row; its objective is the mean over the periods."""

    def __init__(self, kind: Kind[Any, Any], joint: JointProgram, instances: Sequence[Any]) -> None:
        alone = [instances[0], *map(joint.fresh, instances[1:])]
        formulate = kind.formulation.formulations["base"]
        self._formulations: list[Formulation[Any]] = [formulate(one) for one in alone]
        mips = [one.mip for one in self._formulations]
        none = [np.zeros(0, np.int64)] * len(mips)
        side: Extensive = extensive(mips, none, [np.zeros(0, np.bool_)] * len(mips))
        rows = np.concatenate([[0], np.cumsum([len(mip.row_lower) for mip in mips])]).tolist()
        self._columns = side.columns
        self.mip: Mip = stated(side, mips, np.ones(len(mips)), "weighted")
        self._links: list[Link] = []
        stages = [Stage(*one) for one in zip(alone, mips, side.columns, rows, strict=False)]
        for before, after in pairwise(stages):
            link = joint.linked(self.mip, before, after)
            self._links.append(link)
            wider = extended(self.mip, link.extension)
            width = len(self.mip.cost)
            cost = np.concatenate([self.mip.cost, link.cost / len(mips)])
            assert len(cost) == width + link.extension.columns
            self.mip = replace(wider, cost=frozen(cost))

    def plans(self, x: FloatArray) -> list[Any]:
        """Plan of every period from the solution of the joint program."""
        return [one.decode(x[columns]) for one, columns in zip(self._formulations, self._columns, strict=True)]

    def encoded(self, plans: Sequence[Any]) -> FloatArray:
        """Column values of the joint program from plans of the periods."""
        width = len(self.mip.cost) - sum(link.extension.columns for link in self._links)
        x = np.zeros(width)
        for one, columns, plan in zip(self._formulations, self._columns, plans, strict=True):
            x[columns] = one.encode(plan)
        for link in self._links:
            x = np.concatenate([x, link.values(x)])
        return x


def _verified(
    kind: Kind[Any, Any],
    hooks: AnalysisHooks,
    rolling: Rolling,
    problem: Problem[Any],
    periods: Sequence[tuple[Scenario, Any, int]],
    plans: Sequence[Any],
    solver: str,
) -> tuple[Period[Any], ...]:
    """The periods with their plans, each with the plan before as its present state."""
    found: list[Period[Any]] = []
    now: Any = problem
    for (scenario, _, day), plan in zip(periods, plans, strict=True):
        instance = happened(kind, now, scenario)
        own = hooks.adapted(instance, plan)
        verdict = kind.verification.verify(instance, own)
        if not verdict.ok:
            raise VerificationError(
                f"{solver} calls plans feasible that break {verdict.violations[0]} in {scenario.name}"
            )
        solution = Solution(
            kind=kind.name,
            solver=solver,
            status=Status.FEASIBLE,
            plan=own,
            verdict=verdict,
            objective=verdict.objective,
            bound=None,
            limit=None,
            message="part of a program over all periods, which has the bound",
            seed=0,
            runtime_s={},
        )
        before = rolling.today(instance)
        moved = {} if before is None else hooks.moved(instance, instance, before, own)
        found.append(Period(scenario.name, instance, solution, moved, day))
        now = rolling.carried(instance, own)
    return tuple(found)


def _answer(periods: tuple[Period[Any], ...], result: SolveResult, count: int) -> JointPeriods[Any]:
    """Answer for all periods together, with objective and bound of their sum. Raises VerificationError."""
    value, bound = total_objective(periods) if periods else None, result.bound
    if value is not None and result.objective is not None:
        claimed = count * result.objective
        if value - claimed > 10 * AGREEMENT * max(1.0, abs(claimed)):
            raise VerificationError(f"the program of all periods says {claimed:.9g}; its plans cost {value:.9g}")
    bound = None if bound is None else max(0.0, count * bound)
    if value is not None and bound is not None:
        if bound - value > 10 * AGREEMENT * max(1.0, value):
            raise VerificationError(f"the program of all periods proves {bound:.9g}; its plans cost only {value:.9g}")
        bound = min(bound, value)
    return JointPeriods(result.status, periods, value, bound, result.message)
