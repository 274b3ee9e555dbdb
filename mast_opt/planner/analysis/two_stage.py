"""Two-stage stochastic program in extensive form: one plan for several scenarios.

What is decided beforehand has one column for all scenarios, everything else a copy in each (Birge & Louveaux,
Introduction to Stochastic Programming, 2011, chapter 2). The copies together are one MIP that any backend solves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.solve_result import SolveParams, Status
from mast_opt.planner.analysis.solves import Workers
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.clock import Clock
from mast_opt.problems import backends
from mast_opt.problems.kind.analysis_hooks import Loss, TwoStage
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.origin import made_for
from mast_opt.problems.kind.problem import PlanT
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.extensive import Extensive, extensive
from mast_opt.problems.mip.transforms import Extension, extended
from mast_opt.problems.search.lexicographic import with_slack


@dataclass(frozen=True)
class Robust(Generic[PlanT]):
    """A plan for all scenarios, and what it and the base plan are worth in each.

    The solutions hold what was decided beforehand and decide the rest again; each is verified.
    """

    objective_kind: str
    """``worst`` or ``weighted``."""
    decided: str
    """Words for the decisions that are the same in all scenarios."""
    status: Status
    plan: PlanT | None
    """Plan of the instance as it is; None if none was found in time."""
    objective: float | None
    """Largest or mean objective of the plan over the scenarios, from the verified solutions."""
    bound: float | None
    """Proven: no plan has less."""
    base_objective: float | None
    """Objective of the base plan in the same sense."""
    robust: Mapping[str, Solution[PlanT]]
    """Scenario → the rest decided again with what this plan decides."""
    base: Mapping[str, Solution[PlanT]]
    """Scenario → the same with what the base plan decides."""
    robust_lost: Mapping[str, Loss | None] = field(default_factory=dict)
    """Scenario → what it destroys where this plan is carried out before; None where a kind has no data to lose."""
    base_lost: Mapping[str, Loss | None] = field(default_factory=dict)
    """Scenario → what it destroys where the base plan is carried out before."""


def stated(joint: Extensive, mips: Sequence[Mip], weights: FloatArray, aim: str) -> Mip:
    """The scenarios' joint program with its objective: the mean by weight, or a column that is at least every
    objective.
    """
    width = len(joint.mip.cost)
    if aim == "weighted":
        cost = np.zeros(width)
        share = weights / weights.sum()
        for mip, place, weight in zip(mips, joint.columns, share.tolist(), strict=True):
            np.add.at(cost, place, weight * mip.cost)
        return replace(joint.mip, cost=frozen(cost), offset=float(sum(s * mip.offset for s, mip in zip(share, mips))))
    row = len(joint.mip.row_lower)
    entries: list[tuple[IntArray, IntArray, Any]] = [
        (np.full(len(place), row + position), place, mip.cost)
        for position, (mip, place) in enumerate(zip(mips, joint.columns, strict=True))
    ]
    entries.append((row + np.arange(len(mips)), np.full(len(mips), width), -1.0))
    limits = np.array([-mip.offset for mip in mips])
    more = Extension("worst", columns=1, col_lower=-np.inf, rows=len(mips), row_upper=limits, entries=entries)
    program = extended(joint.mip, more)
    cost = np.zeros(width + 1)
    cost[width] = 1.0
    return replace(program, cost=frozen(cost), offset=0.0)


@dataclass(frozen=True)
class RobustSearch(Generic[PlanT]):
    """One plan for a base instance and its scenarios, by one MIP solver under one clock."""

    kind: Kind[Any, PlanT]
    stages: TwoStage
    instances: Mapping[str, Any]
    """The base first: its formulation decides for all."""
    weights: FloatArray
    """One for each instance."""
    aim: str
    """``worst`` or ``weighted``."""
    solver: str
    params: SolveParams
    clock: Clock
    workers: Workers
    """Workers that decide the rest again; the joint program is solved here."""

    def plan(self, before: PlanT) -> Robust[PlanT]:
        """The robust plan next to the base plan; a start for the search is the base plan with the best recourse."""
        names = list(self.instances)
        formulations = [self._formulation(name) for name in names]
        mips = [formulation.mip for formulation in formulations]
        shared = [self.stages.shared(mip) for mip in mips]
        joint = extensive(mips, shared, [self.stages.alive(instance) for instance in self.instances.values()])
        program = stated(joint, mips, self.weights, self.aim)
        beside_base = self._recourse(before, {names[0]: before}, 0.25)
        start = _start(program, joint, formulations, list(beside_base.values()), mips)
        params = replace(self.params, time_limit_s=self.clock.budget_s(0.6), start=start)
        result = backends.get(self.solver).solve(program, params)
        plan, solutions = None, {}
        if result.x is not None:
            x = result.x if self.aim == "weighted" else self._better_elsewhere(joint, mips, result.x)
            pieces = zip(names, formulations, joint.columns, strict=True)
            starts = {name: one.decode(x[columns]) for name, one, columns in pieces}
            solutions = self._recourse(starts[names[0]], starts, 1.0)
            plan = solutions[names[0]].plan
        value = self._value(list(solutions.values()))
        return Robust(
            objective_kind=self.aim,
            decided=self.stages.decided,
            status=result.status,
            plan=plan,
            objective=value,
            bound=result.bound if value is None or result.bound is None else min(result.bound, value),
            base_objective=self._value(list(beside_base.values())),
            robust=solutions,
            base=beside_base,
        )

    def _better_elsewhere(self, joint: Extensive, mips: Sequence[Mip], x: FloatArray) -> FloatArray:
        """The best mean that leaves the worst scenario as it is, so that the others are not as bad as it allows."""
        worst = max(mip.objective(x[columns]) for mip, columns in zip(mips, joint.columns, strict=True))
        limit = with_slack(worst)
        row = len(joint.mip.row_lower)
        caps = Extension(
            "worst",
            rows=len(mips),
            row_upper=np.array([limit - mip.offset for mip in mips]),
            entries=[
                (np.full(len(columns), row + position), columns, mip.cost)
                for position, (mip, columns) in enumerate(zip(mips, joint.columns, strict=True))
            ],
        )
        program = extended(stated(joint, mips, self.weights, "weighted"), caps)
        start = x[: len(program.cost)]
        params = replace(self.params, time_limit_s=self.clock.budget_s(0.5), start=start)
        better = backends.get(self.solver).solve(program, params)
        return start if better.x is None else better.x

    def _formulation(self, name: str) -> Formulation[Any]:
        """Formulation of one scenario's instance."""
        instance, is_base = self.instances[name], name == next(iter(self.instances))
        if is_base:
            self.kind.check_memory(instance, together=len(self.instances), heuristics_too=False)
        formulate = self.kind.formulation.formulations["base"] if is_base else self.stages.formulate
        formulation: Formulation[Any] = formulate(instance)
        return formulation

    def _recourse(self, plan: PlanT, starts: Mapping[str, PlanT], share: float) -> dict[str, Solution[PlanT]]:
        """The best rest in every instance, with what the plan decides beforehand held."""
        names, shares = list(self.instances), self.workers.shares(len(self.instances), share)
        limits = {"gap": self.params.gap, "seed": self.params.seed, "threads": self.params.threads}

        def solved(name: str) -> Solution[PlanT]:
            rest = self.stages.recourse(self.instances[name], plan, name == names[0])
            limit_s = self.clock.budget_s(next(shares))
            found = self.workers.solve(self.solver, rest, starts.get(name), {**limits, "time_limit_s": limit_s})
            return found if found.plan is None else replace(found, plan=made_for(self.instances[name], found.plan))

        return dict(zip(names, self.workers.each(solved, names), strict=True))

    def _value(self, solutions: Sequence[Solution[Any]]) -> float | None:
        """The largest or mean objective of all scenarios; None if one is not known."""
        objectives = [solution.objective for solution in solutions]
        known = [objective for objective in objectives if objective is not None]
        if not known or len(known) < len(objectives):
            return None
        return max(known) if self.aim == "worst" else float(np.average(known, weights=self.weights))


def _start(
    program: Mip,
    joint: Extensive,
    formulations: Sequence[Formulation[Any]],
    solutions: Sequence[Solution[Any]],
    mips: Sequence[Mip],
) -> FloatArray | None:
    """The base plan with its recourse, as a value for every column."""
    if any(solution.plan is None for solution in solutions):
        return None
    x = np.zeros(len(program.cost))
    values = [one.encode(solution.plan) for one, solution in zip(formulations, solutions, strict=True)]
    for place, columns in zip(reversed(joint.columns), reversed(values)):
        x[place] = columns
    if len(x) > len(joint.mip.cost):
        x[-1] = max(mip.objective(columns) for mip, columns in zip(mips, values, strict=True))
    return x
