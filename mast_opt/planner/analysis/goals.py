"""Plans for every goal (``solve --goals``), to be compared side by side with doing nothing."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Generic, Unpack

from mast_opt.core.arguments import a_text, anything, checked, mapping_of, optional
from mast_opt.core.errors import UsageError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_limits import SolveControl, SolveLimits, keywords_of, params_of
from mast_opt.core.solve_result import Event, Limit, Status
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import plain
from mast_opt.planner.analysis.migration_plan import NO_WAY, Way, way_to
from mast_opt.planner.analysis.region_loss import RegionLoss, RegionLosses, can_lose_regions
from mast_opt.planner.solving import Solution, solve
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER, EXACT
from mast_opt.planner.solving.clock import COMPILE, Clock
from mast_opt.planner.solving.dispatch import secured_for, stated_goal
from mast_opt.planner.solving.kernel_compilation import compilation_heard
from mast_opt.planner.solving.last_pass import LARGEST, SLACK
from mast_opt.problems.kind.current_state import CurrentState
from mast_opt.problems.kind.origin import made_for
from mast_opt.problems.kind.overrides import Overrides, Secured, stated_limit
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import SolverName, check_plan, kind_of

NOTHING, PLAN = "do nothing", "this plan"
JUDGING, LOSS_GAP, COPIES_GAP = 0.3, 1e-3, 1e-2
"""Share of the time that is kept for judging the plans (five columns of the company of decision 0045 take 17 s of a
core), gap at which the loss of a region is judged, and that at which another goal's plan gets more copies."""
NOISE = 1e-9
"""Difference of two objectives that is no difference."""
LOSS_S = 20.0
"""Most time for the losses of regions, for each column of plans that are compared after their solves."""
COPYING, WORK = 0.25, "workload"
"""Share of a goal's time in which another goal's plan gets more copies, and the part of that plan which stays."""
SECOND_ROUND = 0.2
"""Share of the time that has to be left for goals that are not proven to be solved again."""
PARTS = {"least-change": 2, "safest": 3}
"""Parts of the time of solving, and of judging, for the plan that leads, with which the others begin, and for the one
that chooses its replicas by the loss of a region; other goals have one part."""


@dataclass(frozen=True)
class Figures:
    """Figures of one state: the present one, or a plan."""

    verdict: Verdict
    way: Way = NO_WAY
    loss: RegionLoss | None = None
    """The GPUs missing after the worst loss of a region; None where that is not known."""
    judged: bool = False
    """Whether the worst loss of a region was looked for; a ``loss`` of None is then one that is not proven."""
    moves: Mapping[str, float] = field(default_factory=dict)
    """Terms on moves without work that stands still, as the kind's ``presentation.moves`` gives them."""
    broken: int = 0
    """Limits that are broken, one for each row; of today those that the instance states, whose flows it does not."""

    @property
    def terms(self) -> dict[str, float]:
        """Terms of the verdict; money once is what the steps cost, where they are known and lead to the plan."""
        known = self.way.usd is not None and not self.way.stuck
        return {**self.verdict.terms, **({"migration_cost": self.way.usd or 0.0} if known else {})}


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

    @property
    def lead(self) -> str | None:
        """The goal whose plan is recommended, and which a report is on: the first with a plan, for the least change
        where there is one. None without any plan."""
        return next((name for name, found in self.solutions.items() if found.plan is not None), None)

    @property
    def borrowed(self) -> Mapping[str, str]:
        """Goal → the earlier goal whose plan it has, where that is not proven to be the best by its own objective."""
        found = {name: one.plan for name, one in self.solutions.items() if one.plan is not None}
        return {
            name: other for name, other in repeated(found).items() if self.solutions[name].status is not Status.OPTIMAL
        }

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

    Each goal begins with the best plan of the others, and ends with the best plan of all by its own objective. Time
    that is left is for goals that are not proven.

    Args:
        problem: an instance.
        solver: any solver of the kind.
        limits, near: as in ``solve``.
        control: see ``SolveControl``; ``time_limit_s`` is for all goals together.

    Raises:
        UsageError: the kind has no goals, or an argument that cannot be honoured.
    """
    kind, clock = kind_of(problem), Clock(control["time_limit_s"])
    if not kind.goals:
        raise UsageError(f"{problem.kind} has no goals: its objective is a policy")
    most = {name: stated_limit(name, value) for name, value in (limits or {}).items()}
    stated: dict[str, Overrides] = {}
    refused: dict[str, str] = {}
    for name in kind.goals:
        try:
            stated[name] = stated_goal(problem, name, most)
        except UsageError as error:
            refused[name] = str(error)
    search = _Search(problem, stated, solver, near, control, clock)
    search.solve_all()
    solutions = {name: search.shared(name) for name in stated}
    plans = {name: found.plan for name, found in solutions.items() if found.plan is not None}
    judging: SolveLimits = {
        "threads": control["threads"],
        "cancel": control["cancel"],
        "time_limit_s": search.judging_s,
    }
    return Goals(problem.kind, solutions, figures_of(problem, plans, judging=judging), refused)


@dataclass(frozen=True)
class _Search(Generic[PlanT]):
    """Solves for several goals, each of which begins with the best plan of the others."""

    problem: Problem[PlanT]
    stated: Mapping[str, Overrides]
    solver: SolverName
    near: PlanT | None
    control: SolveControl
    clock: Clock
    """Clock of the whole call."""
    solutions: dict[str, Solution[PlanT]] = field(default_factory=dict)
    plans: list[PlanT] = field(default_factory=list)
    """Every plan that was found, for any goal."""
    secured: dict[str, Secured] = field(default_factory=dict)
    """Goal → the instance with its replicas, where it chooses them by the loss of a region."""
    overruns_s: list[float] = field(default_factory=lambda: [0.0])
    """Seconds by which solves took longer than they were given, as they do on a busy machine."""

    @property
    def kept_s(self) -> float:
        """Seconds that are kept for judging the plans."""
        return JUDGING * (self.control["time_limit_s"] or 0.0)

    @property
    def judging_s(self) -> float | None:
        """Seconds for judging the plans: what the solves left, and never less than what was kept for it."""
        left_s = self.clock.budget_s()
        return None if left_s is None else max(left_s, self.kept_s)

    def solve_all(self) -> None:
        """Solve for each goal, then again for those that are not proven while there is time."""
        parts = {name: PARTS.get(name, 1) for name in self.stated}

        def compiled(_: str, seconds: float | None) -> None:
            self.clock.spent_s[COMPILE] += seconds or 0.0

        with compilation_heard(compiled):
            for name in self.stated:
                self._solve_timed(name, parts[name] / sum(parts.values()))
                del parts[name]
            open_goals = [name for name, found in self.solutions.items() if found.limit is Limit.TIME]
            for left, name in zip(range(len(open_goals), 0, -1), open_goals, strict=True):
                left_s = self.clock.remaining_s - self.kept_s
                if left_s >= SECOND_ROUND * (self.control["time_limit_s"] or 0.0):
                    self._solve_timed(name, 1 / left)

    def _solve_timed(self, name: str, share: float) -> None:
        """Solve for a goal in a share of the time, less what an earlier solve took beyond its own."""
        given_s, began_s = self.clock.budget_s(share, self.kept_s), self.clock.elapsed_s
        limit_s = None if given_s is None else max(given_s - max(self.overruns_s), given_s / 2)
        if self.control["on_event"] is not None:
            self.control["on_event"](Event(began_s, None, None, name))
        self.solve(name, limit_s)
        self.overruns_s.append(self.clock.elapsed_s - began_s - (limit_s or math.inf))

    def solve(self, name: str, time_limit_s: float | None) -> None:
        """Solve for a goal, again where it has a solution, and keep the better plan and bound."""
        own, clock, begin = self.solutions.get(name), Clock(time_limit_s), None
        if name not in self.secured:
            params = replace(params_of(self.control), time_limit_s=clock.budget_s())
            self.secured[name] = secured_for(name, self._instance(name), self.solver, params)[0]
        if not kind_of(self.problem).solvers.is_constructive(self.solver):
            best = self._best(name)
            begin = self._copied(name, clock.budget_s(COPYING)) if best is None else best[1]
            begin = self.secured[name].plan if begin is None else begin
        timed: SolveControl = {**self.control, "time_limit_s": clock.budget_s(), "on_event": self._on_event_of(name)}
        found = solve(self._instance(name), self.solver, start=begin, near=self.near, **timed)
        if own is not None and found.plan is None:
            return
        if own is not None and own.bound is not None and own.term == found.term and own.sense is Sense.MIN:
            known = found if found.bound is not None and found.bound >= own.bound else own
            found = replace(found, bound=known.bound, certificate=known.certificate)
        marked = self.solutions[name] = self._marked(name, found)
        self.plans.extend([] if marked.plan is None else [marked.plan])

    def shared(self, name: str) -> Solution[PlanT]:
        """The solution of a goal, with the plan of another one where that is better by this goal."""
        found, best = self.solutions[name], self._best(name)
        settled = self.near is not None or found.status is Status.OPTIMAL
        if best is None or found.verdict is None:
            return found
        if not _better(best[0], self._worth(name, found.verdict), SLACK if settled else 0.0):
            return found
        plan, verdict = best[1], best[2]
        value = verdict.terms[found.term] if found.term else verdict.objective
        return self._marked(name, replace(found, plan=plan, verdict=verdict, objective=value, last_pass=None))

    def _on_event_of(self, name: str) -> Callable[[Event], None] | None:
        """The callback of a solve, whose events have the goal as their stage; None without one."""
        callback = self.control["on_event"]
        return None if callback is None else lambda event: callback(replace(event, stage=name))

    def _instance(self, name: str) -> Problem[PlanT]:
        """The instance as a goal states it, with the replicas that it has chosen."""
        found = self.secured.get(name)
        stated: Problem[PlanT] = self.stated[name].applied_to(self.problem) if found is None else found.problem
        return stated

    def _copied(self, name: str, time_limit_s: float | None) -> PlanT | None:
        """The plan of another goal with more copies of its data, where this goal asks for those; None without any."""
        instance = self._instance(name)
        size, begin = kind_of(instance).formulation.size, next(iter(self.plans), None)
        copies = self.secured[name].overrides.copies_min
        if begin is None or not copies or size is None or size(instance).columns > LARGEST:
            return None
        stated: Any = instance
        work = {WORK: stated.labels_of("workloads")}
        asked: SolveControl = {**self.control, "time_limit_s": time_limit_s, "gap": COPIES_GAP}
        try:
            return solve(instance, EXACT, start=begin, freeze=work, **asked).plan
        except UsageError:
            return None

    def _best(self, name: str) -> tuple[tuple[float, ...], PlanT, Verdict] | None:
        """The best plan of any goal that is valid under this one: its worth, itself and its verdict."""
        kind, instance = kind_of(self.problem), self._instance(name)
        found = []
        for plan in self.plans:
            verdict = kind.verification.verify(instance, plan)
            if verdict.ok:
                found.append((self._worth(name, verdict), plan, verdict))
        return min(found, key=lambda one: one[0], default=None)

    def _worth(self, name: str, verdict: Verdict) -> tuple[float, ...]:
        """The objective of a goal, or its terms in their order; less is better."""
        order = self.stated[name].applied_to(self.problem).objective.order
        return tuple(verdict.terms[term] for term in order) or (verdict.objective,)

    def _marked(self, name: str, found: Solution[PlanT]) -> Solution[PlanT]:
        """A solution by the overrides of its goal, its plan one of the instance."""
        safe = self.secured[name]
        overrides = self.stated[name].followed_by(safe.overrides)
        plan = None if found.plan is None else made_for(self.problem, found.plan, overrides)
        return replace(found, plan=plan, overrides=overrides, least_missing_gpus=safe.least_gpus)


def repeated(plans: Mapping[str, object]) -> dict[str, str]:
    """Name of a plan that equals an earlier one → the name of that; the first of equal plans is not in it."""
    first: dict[str, str] = {}
    for name, plan in plans.items():
        equal = next((other for other, one in plans.items() if other not in first and one == plan), name)
        if equal != name:
            first[name] = equal
    return first


def _better(one: tuple[float, ...], other: tuple[float, ...], slack: float) -> bool:
    """Whether terms are less in their order, by more than a share of the other's."""
    for mine, theirs in zip(one, other, strict=True):
        if abs(mine - theirs) > max(slack * abs(theirs), NOISE):
            return mine < theirs
    return False


def figures_of(
    problem: Problem[PlanT],
    plans: Mapping[str, PlanT],
    *,
    with_steps: bool = True,
    judging: SolveLimits | None = None,
    first: PlanT | None = None,
    known: Mapping[str, RegionLoss] = MappingProxyType({}),
) -> dict[str, Figures]:
    """Figures of doing nothing, where the present state is known, and of each plan.

    Args:
        problem: an instance.
        plans: name → plan.
        with_steps: also the way to each plan?
        judging: limits of what finds the worst loss of a region, with the time for all together; None to leave it out.
        first: a plan that is carried out before each of these.
        known: the worst loss of a region of some, which is then not looked for.
    """
    kind = kind_of(problem)
    state, now = kind.analysis.current_state(problem), kind.analysis.current_plan(problem)
    stated = now is not None and (state is None or state.complete)
    figures = {
        **({NOTHING: _of_today(problem, now, state)} if stated else {}),
        **{name: _figures(problem, plan, with_steps, first) for name, plan in plans.items()},
    }
    if judging is None or not can_lose_regions(problem):
        return figures
    clock, all_plans = Clock(judging.get("time_limit_s")), {name: plans.get(name, now) for name in figures}
    same = repeated(all_plans)
    first_ones = {name: plan for name, plan in all_plans.items() if name not in same and name not in known}
    own: dict[str, Any] = {name: RegionLosses(problem, plan) for name, plan in first_ones.items()}
    for step in (RegionLosses.prove_worst, RegionLosses.prove_others):
        parts = {name: PARTS.get(name, 1) for name in own}
        for name, losses in own.items():
            share = parts[name] / sum(parts.values())
            step(losses, {**judging, "gap": LOSS_GAP, "time_limit_s": clock.budget_s(share)})
            del parts[name]
    found = {name: one.worst for name, one in own.items()} | dict(known)
    return {
        name: replace(one, judged=True, loss=found.get(name, found.get(same.get(name, name))))
        for name, one in figures.items()
    }


def _of_today(problem: Problem[Any], now: object, state: CurrentState | None) -> Figures:
    """Figures of the present state: its verdict, and the limits that it breaks."""
    kind = kind_of(problem)
    verdict = kind.verification.verify(problem, now)
    broken = len(verdict.violations if state is None else state.broken)
    return Figures(verdict, moves=kind.presentation.moves(problem, now, verdict), broken=broken)


def _figures(problem: Problem[Any], plan: object, with_steps: bool, first: object) -> Figures:
    """Figures of a plan for a goal: its verdict, and the number and days of the steps to it."""
    kind = kind_of(problem)
    check_plan(kind, problem, plan)
    verdict = kind.verification.verify(problem, plan)
    way = way_to(problem, plan, first) if with_steps and verdict.ok else NO_WAY
    moves = kind.presentation.moves(problem, plan, verdict)
    return Figures(verdict, way, moves=moves, broken=len(verdict.violations))


def other_objective(problem: Problem[Any], was: Mapping[str, Any], own: Overrides, goal: str | None) -> str:
    """Words on the objective by which an earlier plan was solved, and what asks for it; empty where it is this one.

    Args:
        was: the overrides that its ``plan.toml`` states.
        own: overrides of this solve, those of its goal included.
    """
    kind = kind_of(problem)

    def objective(fields: Mapping[str, Any], secured: bool) -> tuple[Any, ...]:
        tables = (fields.get(name) or {} for name in ("weights", "peak_levels"))
        numbers = ({str(key): float(number) for key, number in table.items()} for table in tables)
        return (secured, fields.get("order") or None, *numbers)

    before = objective(was, bool(was.get("copies_min") or was.get("replicas")))
    if before == objective(own.fields(), goal in kind.secured):
        return ""
    if not any(before):
        return "by the objective of its instance; leave out weights, order and goal"
    for name in kind.goals:
        with suppress(UsageError):
            if before == objective(stated_goal(problem, name, {}).fields(), name in kind.secured):
                return f"with --goal {name}; ask for that goal"
    return "with other weights, levels or another order; ask for these"
