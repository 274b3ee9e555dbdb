"""Pareto frontier (``pareto``): what one term of the objective costs in another."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Unpack

import numpy as np

from mast_opt.core.arguments import a_finite, a_whole, checked, mapping_of, optional, texts
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_limits import SolveLimits, keywords_of, params_of
from mast_opt.core.solve_result import Status
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import plain
from mast_opt.planner.analysis.common import asked
from mast_opt.planner.analysis.solves import Workers, solving
from mast_opt.planner.solving import feasible_current_plan
from mast_opt.planner.solving.auto_strategy import AUTO, DEFAULT_SOLVER, EXACT
from mast_opt.planner.solving.clock import Clock
from mast_opt.planner.solving.kernel_compilation import needed, rehearse
from mast_opt.planner.solving.mip_route import Answer, ExactSolve
from mast_opt.planner.solving.request import check_request
from mast_opt.planner.solving.solver_params import solver_params
from mast_opt.problems import backends
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, TermName, kind_of
from mast_opt.problems.search.lexicographic import with_slack
from mast_opt.problems.search.params import Params

SPREAD = 100.0
"""Weights of a heuristic's points go from the instance's own times 1/SPREAD to times SPREAD."""
SAME = 1e-9


@dataclass(frozen=True)
class Point(Generic[PlanT]):
    """A plan, measured by the verifier, and what is proven about it."""

    terms: Mapping[str, float]
    metrics: Mapping[str, float]
    plan: PlanT
    cap: float | None
    """The limit on the first term under which the second was minimised; None where there was none."""
    bound: float | None
    """Proven: no plan within the cap has less of the second term. By weights: of the weighted sum."""
    proven: bool
    """True if the second term (or the weighted sum) is within the requested gap of that bound."""


@dataclass(frozen=True, repr=False)
class Frontier(Summarised, Generic[PlanT]):
    """The answer of ``pareto``, ascending in the first term."""

    kind: str
    solver: str
    terms: tuple[str, str]
    method: str
    """``epsilon`` with a MIP solver, ``weights`` with a heuristic."""
    points: tuple[Point[PlanT], ...]
    dominated: int
    """Points that were found and left out, since another has no more of either term."""
    missing: int
    """Points for which no plan was found in time."""
    status: Status = Status.FEASIBLE
    """INFEASIBLE if it is proven that there is no plan; NO_SOLUTION if no point was found; FEASIBLE otherwise."""

    def _summary(self) -> Summary:
        """Summary of a frontier: a row for each point, with its terms and whether it is proven."""
        rows = tuple(
            (*(plain(point.terms[term]) for term in self.terms), "yes" if point.proven else "no")
            for point in self.points
        )
        facts = (
            ("kind", self.kind),
            ("solver", self.solver),
            ("status", self.status.value),
            ("terms", " and ".join(self.terms)),
            ("points", f"{len(self.points)}"),
        )
        return Summary("Frontier", facts, (*self.terms, "proven"), rows)


@checked(
    keywords_of(SolveLimits, gap=1e-3),
    terms=texts,
    points=a_whole(2),
    keep=optional(mapping_of(a_finite)),
)
def pareto(
    problem: Problem[PlanT],
    terms: Sequence[TermName],
    *,
    points: int = 7,
    keep: Mapping[str, float] | None = None,
    solver: SolverName = DEFAULT_SOLVER,
    jobs: int = 1,
    formulation: str = "base",
    params: Params | Mapping[str, Any] | None = None,
    **limits: Unpack[SolveLimits],
) -> Frontier[PlanT]:
    """The frontier between two terms of the objective.

    By ε-constraint with a MIP solver (Haimes, Lasdon & Wismer 1971): the least of the first term, the least of the
    second, and between them evenly spaced caps on the first under which the second is minimised. Each point is then
    improved in the first term while the second stays, and in all other terms, by their own weights, while both stay.
    Terms that may not be sacrificed (``unserved``, ``rejected``, …) are minimised before everything else and kept.

    With a heuristic: the instance's own objective with the weights of the two terms in other ratios. That finds only
    points on the convex hull, and its bound is one of the weighted sum.

    Args:
        problem: an instance.
        terms: two names, such as ``("storage", "peak")``.
        points: how many to look for, at least 2.
        keep: terms with the most that they may be, such as ``{"remote": 0.001}``; MIP solvers only.
        solver: a MIP backend or a heuristic of the kind.
        jobs: points that are solved at the same time. The two ends of a frontier by a MIP solver come first, one after
            the other; the points between them begin with a plan of an end, where several are solved at a time.
        formulation: one of the kind's, for MIP backends.
        params: of the heuristic, as in ``solve``.
        limits: see ``SolveLimits``: ``time_limit_s`` of all points together, ``gap`` of each solve. ``cancel`` keeps
            the points so far.

    Raises:
        UsageError: an argument that cannot be honoured, or no plan is within the caps of ``keep``.
        Interrupted: cancelled before the kernels were compiled.
    """
    kind, _ = asked(problem)
    if solver == AUTO:
        solver = EXACT
    first, second = _checked(kind, terms, points, keep or {}, solver, formulation)
    chosen = solver_params(kind, solver, params)
    cancel = limits.pop("cancel") or threading.Event()
    method = "weights" if solver in kind.solvers.heuristics else "epsilon"
    nothing: Frontier[PlanT] = Frontier(kind.name, solver, (first, second), method, (), 0, 0, Status.INFEASIBLE)
    if kind.analysis.conflicts(problem):
        return nothing
    with solving(jobs, cancel) as pool:
        rehearse(kind, needed(kind, solver, problem), cancel)
        if method == "weights":
            found = _by_weights(problem, first, second, points, solver, chosen, limits, pool)
        else:
            asked_for = _Asked(problem, formulation, (first, second), dict(keep or {}), solver)
            search: _Epsilon[PlanT] = _Epsilon(asked_for, limits, cancel)
            found = search.points(points, pool)
            if search.infeasible:
                return nothing
    known = [point for point in found if point is not None]
    kept = _efficient(known, first, second)
    missing = points - len(found) + sum(point is None for point in found)
    status = Status.FEASIBLE if kept else Status.NO_SOLUTION
    return replace(nothing, points=tuple(kept), dominated=len(known) - len(kept), missing=missing, status=status)


def _checked(
    kind: Kind[Any, Any], terms: Sequence[str], points: int, keep: Mapping[str, float], solver: str, formulation: str
) -> tuple[str, str]:
    """The two terms of a frontier. Raises UsageError for what cannot be traded or solved so."""
    known = ", ".join(kind.terms)
    for name in (*terms, *keep):
        if name not in kind.terms:
            raise UsageError(f"{kind.name} has no term called {name!r}; expected some of: {known}")
    if len(terms) != 2 or terms[0] == terms[1]:
        raise UsageError(f"a frontier is between two terms; expected two different ones of: {known}")
    for name, before in kind.analysis.hooks().ahead.items():
        if {name, before} == set(terms):
            raise UsageError(f"{name} cannot be traded for {before}, which always comes first; choose another term")
    check_request(kind, solver, None, formulation)
    if solver in kind.solvers.heuristics and keep:
        raise UsageError(f"{solver} cannot keep {next(iter(keep))} below a value; choose a MIP backend")
    return terms[0], terms[1]


@dataclass(frozen=True, eq=False)
class _Asked:
    """Parts of a question about a frontier that a MIP solver answers."""

    problem: Problem[Any]
    formulation: str
    terms: tuple[str, str]
    caps: Mapping[str, float]
    """Upper limits of terms at all points."""
    solver: str


class _Epsilon(Generic[PlanT]):
    """The ε-constraint method on one formulation."""

    def __init__(self, asked: _Asked, limits: SolveLimits, cancel: threading.Event) -> None:
        self._asked, self._limits, self._clock = asked, limits, Clock(limits["time_limit_s"])
        self._params = params_of({**limits, "cancel": cancel, "time_limit_s": None})
        self._kind: Kind[Any, PlanT] = kind_of(asked.problem)
        self._problem: Problem[PlanT] = asked.problem
        self._stated: Formulation[PlanT] = self._kind.formulate(asked.problem, asked.formulation)
        self._first, self._second = asked.terms
        self._keep = dict(asked.caps)
        self._caps = dict(asked.caps)
        self.infeasible = False
        """True if it is proven that there is no plan, whatever is kept."""
        self._backend = backends.get(asked.solver)
        self.last = feasible_current_plan(self._kind, asked.problem)
        """The plan that the next solve begins with."""

    def points(self, count: int, workers: Workers) -> list[Point[PlanT] | None]:
        """The two ends, then what lies between them."""
        questions = self._kind.analysis.hooks()
        ahead = [questions.ahead[name] for name in (self._first, self._second) if name in questions.ahead]
        guards = [name for name in (*questions.guards(self._problem), *ahead) if name not in self._caps]
        for name in guards:
            if name in (self._first, self._second):
                continue
            least = self._least({name: 1.0}, {}, 0.1)
            if least.verdict is None:
                self._judge(least)
                return []
            self._caps[name] = with_slack(least.verdict.terms[name])
        left = self._point(None, self._first, self._second, 1 / count)
        if self.infeasible or self._params.cancel.is_set():
            return [left]
        right = self._point(None, self._second, self._first, 1 / max(count - 1, 1))
        if left is None or right is None:
            return [left, right]
        low, high = sorted(point.terms[self._first] for point in (left, right))
        caps = np.linspace(low, high, count)[1:-1].tolist()
        shares = workers.shares(len(caps))
        asked = replace(self._asked, caps=self._caps)

        def between(cap: float) -> Point[PlanT] | None:
            if self._params.cancel.is_set():
                return None
            limits: SolveLimits = {**self._limits, "time_limit_s": self._clock.budget_s(next(shares))}
            search: _Epsilon[PlanT] = _Epsilon(asked, limits, self._params.cancel)
            search.last = self.last
            found = search.point_below(cap)
            if found is not None and workers.jobs == 1:
                self.last = found.plan
            return found

        return [left, *workers.each(between, caps), right]

    def point_below(self, cap: float) -> Point[PlanT] | None:
        """The frontier's point with the least of the second term under a cap on the first."""
        return self._point(cap, self._second, self._first, 1.0)

    def _point(self, cap: float | None, aim: str, other: str, share: float) -> Point[PlanT] | None:
        """A frontier's point: minimise one term (under a cap on the other), then the other, then all else."""
        caps = {} if cap is None else {other: cap}
        answer = self._least({aim: 1.0}, caps, 0.6 * share)
        if answer.verdict is None:
            if cap is None:
                self._judge(answer)
            return None
        verdict, plan = answer.verdict, answer.plan
        rest = {n: w for n, w in self._problem.objective.weights.items() if w and n not in (aim, other)}
        least_is_proven = answer.status is Status.OPTIMAL
        bound, proven = (answer.bound, least_is_proven) if aim == self._second else (None, False)
        caps[aim] = with_slack(verdict.terms[aim])
        for weights in ({other: 1.0}, rest):
            if not weights or self._params.cancel.is_set():
                continue
            better = self._least(weights, caps, 0.5 * share)
            if better.verdict is not None and better.plan is not None:
                verdict, plan = better.verdict, better.plan
            if other in weights:
                caps[other] = with_slack(verdict.terms[other])
            if self._second in weights:  # the end with the least of the first term
                cap, bound = caps[aim], better.bound
                proven = least_is_proven and better.status is Status.OPTIMAL
        assert plan is not None
        return Point(verdict.terms, verdict.metrics, plan, cap, bound, proven)

    def _judge(self, answer: Answer) -> None:
        """Remember a proof that there is no plan. Raises UsageError where that is for the caps of ``keep``."""
        if not answer.status.is_infeasible:
            return
        if self._keep:
            self._caps = {}
            anything = self._least({}, {}, 1.0)
            if not anything.status.is_infeasible:
                caps = " and ".join(f"{name} ≤ {value:g}" for name, value in self._keep.items())
                unknown = "" if anything.status.has_solution else ", or ask 'mast-opt explain' whether any plan exists"
                raise UsageError(f"no plan has {caps}; keep less{unknown}")
        self.infeasible = True

    def _least(self, weights: Mapping[str, float], caps: Mapping[str, float], share: float) -> Answer:
        """Answer, for a frontier, of the least weighted sum of terms under caps, within a share of the time; begins
        with the last plan.
        """
        clock = Clock(self._clock.budget_s(min(share, 1.0)))
        run = ExactSolve(self._kind, self._problem, self._backend, self._params, clock)
        answer = run.within(self._stated, weights, {**self._caps, **caps}, self.last)
        if answer.plan is not None:
            self.last = answer.plan
        return answer


def _by_weights(
    problem: Problem[PlanT],
    first: str,
    second: str,
    points: int,
    solver: str,
    params: Params | None,
    limits: SolveLimits,
    workers: Workers,
) -> list[Point[PlanT] | None]:
    """Points of the frontier by a heuristic, which weighs the two terms differently for each."""
    own = problem.objective.weights
    base = {name: own[name] if own[name] else 1.0 for name in (first, second)}
    clock, shares = Clock(limits["time_limit_s"]), workers.shares(points)
    asked = {**limits, "params": params}

    def point(tilt: float) -> Point[PlanT] | None:
        if workers.cancel.is_set():
            return None
        weights = {first: base[first] * tilt**0.5, second: base[second] / tilt**0.5}
        tilted = problem.with_objective(weights, ())
        solution = workers.solve(solver, tilted, None, {**asked, "time_limit_s": clock.budget_s(next(shares))})
        verdict: Verdict | None = solution.verdict
        if verdict is None or solution.plan is None:
            return None
        proven = solution.status is Status.OPTIMAL
        return Point(verdict.terms, verdict.metrics, solution.plan, None, solution.bound, proven)

    return workers.each(point, np.geomspace(SPREAD, 1 / SPREAD, points).tolist())


def _efficient(points: Sequence[Point[PlanT]], first: str, second: str) -> list[Point[PlanT]]:
    """Points of the frontier, ascending in the first term, without points that another one is at least as good as in
    both.
    """
    kept: list[Point[PlanT]] = []
    for point in sorted(points, key=lambda one: (one.terms[first], one.terms[second])):
        if not kept or point.terms[second] < kept[-1].terms[second] - SAME * max(1.0, abs(kept[-1].terms[second])):
            kept.append(point)
    return kept
