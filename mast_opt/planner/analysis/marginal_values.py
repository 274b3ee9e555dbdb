"""Marginal values (``marginal``): what one more unit of a resource is worth, place by place."""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from mast_opt.core.arguments import a_text, a_whole, checked, texts
from mast_opt.core.errors import BackendError, Interrupted, UsageError
from mast_opt.core.parallel import in_parallel
from mast_opt.core.sense import Sense
from mast_opt.core.solve_limits import SolveLimits, keywords_of, params_of
from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.wording import plain
from mast_opt.planner.analysis.common import asked, exact_solver, solve_from
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.problems import backends
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks, Resource
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.mip import frozen
from mast_opt.problems.registry import SolverName, check_plan

DEFAULT_GAP = 1e-4
NOTHING = 1e-9
"""Relative change of the objective that is a solver's rounding."""


@dataclass(frozen=True)
class Marginal:
    """Value of more of one resource in one place."""

    resource: str
    unit: str
    place: str
    value: float | None
    """Improvement of the objective per further unit, on average over ``units``; None if not found in time."""
    low: float | None
    high: float | None
    """Proven upper limit of the value; equal to ``value`` where the integers are fixed."""
    usd: float | None = None
    """``value`` in dollars; None where no term in dollars has a weight."""


@dataclass(frozen=True, repr=False)
class Marginals(Summarised):
    """The answer of ``marginal_values``, the most valuable first."""

    kind: str
    integers: str
    units: int
    objective: float | None
    """Objective of the plan (integers fixed) or of the best plan known (integers free); None where none was found."""
    values: tuple[Marginal, ...]
    """Empty without an objective."""
    status: Status = Status.FEASIBLE
    """INFEASIBLE if it is proven that there is no plan to begin from; NO_SOLUTION if none was found or measured in
    time; FEASIBLE otherwise."""
    usd_unit: str = ""
    """Unit of ``Marginal.usd``, such as "USD a month"; empty where no term in dollars has a weight."""

    def _summary(self) -> Summary:
        """Summary of the marginal values: status, objective, and the value of each resource and place."""
        facts = (
            ("kind", self.kind),
            ("status", self.status.value),
            ("objective", plain(self.objective)),
            ("integers", self.integers),
            ("values", f"{len(self.values):,}"),
        )
        rows = tuple((one.resource, one.place, one.unit, plain(one.value)) for one in self.values)
        return Summary("Marginals", facts, ("resource", "place", "unit", "value of one more unit"), rows)


@checked(keywords_of(SolveLimits, gap=DEFAULT_GAP, threads=1), integers=a_text, units=a_whole(1), resources=texts)
def marginal_values(
    problem: Problem[PlanT],
    plan: PlanT | None = None,
    *,
    integers: str = "fixed",
    units: int = 1,
    resources: Sequence[str] = (),
    solver: SolverName = DEFAULT_SOLVER,
    jobs: int = 1,
    **limits: Unpack[SolveLimits],
) -> Marginals:
    """Compute what one more TB, core, GPU, … is worth in each place, in units of the weighted objective.

    Where a term in dollars has a weight, each value is also stated in dollars: divided by that weight.

    Each value is a difference of two solves, never a dual of a mixed-integer program: the instance as it is, and with
    ``units`` more of one resource in one place, divided by ``units``.

    With ``integers = "fixed"`` both keep every whole decision of the plan (replicas, where unsplittable work runs) and
    solve the linear program that is left. That is quick and exact, and answers what the unit is worth to *this* plan;
    storage or cores that would only pay with other replicas or other places count as nothing. With ``"free"`` both are
    solved again, beginning with the plan: what the unit is really worth, within the bounds that were proven.

    Args:
        problem: an instance.
        plan: the plan whose whole decisions are kept; found by ``solver`` unless given.
        integers: ``fixed`` or ``free``.
        units: how many to add at once; more than one shows what a real purchase brings.
        resources: which ones, by name; all unless given.
        solver: a MIP backend; with free integers any solver.
        jobs: solves at the same time.
        limits: of each solve, see ``SolveLimits``; ``gap`` is of the solve that finds the plan and of those with free
            integers.

    Raises:
        Interrupted: ``cancel`` was set before there was a value.
        PlanError: the plan was made for another instance.
        UsageError: this kind has nothing to buy, the plan breaks limits, or an argument cannot be honoured.
    """
    kind, questions = asked(problem)
    _check(kind, questions, problem, plan, integers, limits["gap"])
    problem = problem if plan is None else check_plan(kind, problem, plan)
    chosen = _chosen(questions.resources, resources)
    cancel = limits["cancel"] = limits["cancel"] or threading.Event()
    if integers == "fixed" or kind.solvers.method is not None:
        solver = exact_solver(kind, solver)
    solved = partial(solve_from, kind, solver, limits)
    nothing = Marginals(kind.name, integers, units, None, (), Status.NO_SOLUTION)

    rehearse(kind, needed(kind, solver, problem), cancel)
    if plan is None:
        first = solved(problem, None)
        if first.plan is None and cancel.is_set():
            raise Interrupted("interrupted before there was a plan to begin from; give one, and it begins at once")
        if first.plan is None:
            return replace(nothing, status=Status.INFEASIBLE) if first.status.is_infeasible else nothing
        plan = first.plan
    elif not kind.verification.verify(problem, plan).ok:
        raise UsageError("the plan breaks limits; 'mast-opt verify' lists them, and worth is asked of plans without")
    params = params_of({**limits, "gap": DEFAULT_GAP})
    held = partial(_fixed, kind, plan, backends.get(solver), params) if integers == "fixed" else None
    ask: Callable[..., tuple[float, float, float] | None] = held or (lambda instance: _free(solved(instance, plan)))

    before = ask(problem)
    if before is None and cancel.is_set():
        raise Interrupted("interrupted before the plan itself was measured")
    if before is None:
        return nothing
    places = [(one, at, place) for one in chosen for at, place in enumerate(one.places(problem))]

    def worth(entry: tuple[Resource, int, str]) -> Marginal:
        resource, at, place = entry
        after = None if cancel.is_set() else ask(resource.add(problem, at, units))
        if after is None:
            return Marginal(resource.name, resource.unit, place, None, None, None)
        differences = (before[0] - after[0], before[1] - after[2], before[2] - after[1])
        value, low, high = (_tidy(number, before[0]) / units for number in differences)
        return Marginal(resource.name, resource.unit, place, value, low, high)

    values = in_parallel(worth, places, jobs, cancel)
    values.sort(key=lambda one: math.inf if one.value is None else -one.value)
    found = replace(nothing, objective=problem.sense.minimised(before[0]), values=tuple(values), status=Status.FEASIBLE)
    return _in_dollars(kind, problem, found)


def _in_dollars(kind: Kind[Any, Any], problem: Problem[Any], answer: Marginals) -> Marginals:
    """Marginal values with each value in dollars: divided by the weight of the first term in dollars that has one."""
    weights = {} if problem.objective.lexicographic else problem.objective.weights
    dollars = [name for name, term in kind.terms.items() if term.unit.startswith("USD") and weights.get(name)]
    term = min(dollars, key=lambda term: kind.terms[term].unit == "USD a day", default=None)
    if term is None:
        return answer
    values = tuple(replace(one, usd=None if one.value is None else one.value / weights[term]) for one in answer.values)
    return replace(answer, values=values, usd_unit=kind.terms[term].unit)


def _check(
    kind: Kind[Any, PlanT],
    questions: AnalysisHooks,
    problem: Problem[PlanT],
    plan: PlanT | None,
    integers: str,
    gap: float,
) -> None:
    """Raises UsageError for what cannot be asked of this kind, objective and plan."""
    if not questions.resources:
        raise UsageError(f"{kind.name} has no resources that are bought by the unit; ask 'mast-opt whatif' instead")
    if integers not in ("fixed", "free"):
        raise UsageError(f"integers is {integers!r}; expected 'fixed' or 'free'")
    if integers == "fixed" and kind.solvers.method is not None:
        raise UsageError(
            f"{kind.name} has policies, and what more is worth to one is found by solving again; ask with "
            "integers = 'free' (--free)"
        )
    if integers == "free" and problem.objective.lexicographic:
        raise UsageError(
            "worth is stated in units of the weighted objective, and this instance has a lexicographic one; ask with "
            'fixed integers, or set mode = "weighted"'
        )
    if plan is not None and integers == "fixed" and gap != DEFAULT_GAP:
        raise UsageError("where a plan's whole decisions are kept, what is left is solved without a gap; leave out gap")


def _chosen(known: Sequence[Resource], names: Sequence[str]) -> list[Resource]:
    """The resources that are asked for by name, or all. Raises UsageError for an unknown one."""
    by_name = {one.name: one for one in known}
    for name in names:
        if name not in by_name:
            raise UsageError(f"there is no resource called {name!r}; expected some of: {', '.join(by_name)}")
    return [by_name[name] for name in names] or list(known)


def _fixed(
    kind: Kind[Any, PlanT], plan: PlanT, backend: Backend, params: SolveParams, problem: Problem[PlanT]
) -> tuple[float, float, float] | None:
    """(objective, bound, objective) of the linear program that is left when every integer column is held."""
    formulation = kind.formulate(problem, heuristics_too=False)
    mip = formulation.mip
    whole = np.flatnonzero(mip.integral)
    held = mip.fix(whole, np.rint(formulation.encode(plan)[whole]))
    result = backend.solve(replace(held, integral=frozen(np.zeros(len(held.cost), np.bool_))), params)
    if result.status is Status.INFEASIBLE:
        raise BackendError(f"{backend.name} finds no solution with the plan's whole decisions: {result.message}")
    if result.status is not Status.OPTIMAL or result.objective is None:
        return None
    return result.objective, result.objective, result.objective


def _free(solution: Solution[Any]) -> tuple[float, float, float] | None:
    """(objective, bound, objective) of a solution, as values that are minimised; None without a plan."""
    if solution.objective is None:
        return None
    sense = solution.sense
    unknown = 0.0 if sense is Sense.MIN else -math.inf
    bound = unknown if solution.bound is None else sense.minimised(solution.bound)
    objective = sense.minimised(solution.objective)
    return objective, bound, objective


def _tidy(difference: float, objective: float) -> float:
    """Difference of two objectives; 0 where it is rounding."""
    return 0.0 if abs(difference) <= NOTHING * max(1.0, abs(objective)) else difference
