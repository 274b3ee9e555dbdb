"""Solution object that ``solve`` returns, and its plan in files."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from types import MappingProxyType
from typing import Any, Generic

from mast_opt.core.arguments import refuse
from mast_opt.core.arrays import OTHER_INSTANCE
from mast_opt.core.errors import Fault, PlanError, UsageError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import AGREEMENT, Event, Limit, Status, relative_gap
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Conflict, Verdict
from mast_opt.core.wording import counted, of_term, percent, plain, seconds
from mast_opt.planner.solving.last_pass import LastPass
from mast_opt.problems.kind.overrides import Overrides
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan, kind_of
from mast_opt.problems.search.interface import Certificate
from mast_opt.problems.search.params import Value


@dataclass(frozen=True)
class Stage:
    """One term of a lexicographic objective, minimised under the values of the terms before it."""

    term: str
    objective: float | None
    bound: float | None

    @property
    def gap(self) -> float | None:
        """Relative gap of a stage's objective and bound; None if either is missing."""
        return relative_gap(self.objective, self.bound)


UNIMPROVED = "no better than the plan that the search began with"


@dataclass(frozen=True)
class CrossCheck:
    """Result of a second exact solver, compared with a solution."""

    solver: str
    outcome: str
    """``confirmed``: it proves the same; ``open``: it contradicts nothing, and proves less; ``failed``: it came to no
    answer; ``contradicted``."""
    status: Status | None
    """Status of the second solver; None where it came to no answer, as are the two figures that it does not know."""
    objective: float | None
    bound: float | None
    message: str
    """Message of the second solver, or how the two contradict one another."""

    def __str__(self) -> str:
        said = [] if self.status is None else [self.status.value, plain(self.objective)]
        said += [f"bound {plain(self.bound)}"] if self.bound is not None else []
        said += [self.message] if self.outcome in ("contradicted", "failed") else []
        return f"{self.outcome} by {self.solver}: {', '.join(word for word in said if word)}"

    def fields(self) -> dict[str, Any]:
        """Fields of a cross-check for ``plan.toml`` and ``--json``."""
        return {**asdict(self), "status": None if self.status is None else self.status.value}


@dataclass(frozen=True)
class Reuse:
    """Parts of an earlier solve that a re-solve took over."""

    start: bool
    """Whether the search began with the earlier plan."""
    prices: bool
    """Whether the bound went on from the earlier certificate."""
    changed: Mapping[str, int]
    """Table → number of rows that are new, gone or have other values; only tables that differ."""
    cold: str
    """Reason why nothing was taken over in the end; "" otherwise."""
    reference_gap: float | None
    """Gap of the last solve that took over nothing, against which those after it are judged."""

    def __str__(self) -> str:
        changed = ", ".join(f"{counted(rows, 'row')} of {table}" for table, rows in self.changed.items())
        changed = f"changed: {changed}" if changed else "nothing changed that a digest shows"
        if self.cold:
            return f"nothing, since {self.cold}; {changed}"
        parts = [name for name, there in (("start", self.start), ("prices", self.prices)) if there]
        return f"{' and '.join(parts) or 'nothing'}; {changed}"

    def fields(self) -> dict[str, Any]:
        """Fields of a re-solve for ``plan.toml`` and ``--json``."""
        return {**asdict(self), "changed": dict(self.changed)}


@dataclass(frozen=True, repr=False)
class Solution(Summarised, Generic[PlanT]):
    """A verified plan, or the reason why there is none.

    ``plan``, ``verdict`` and ``objective`` are present exactly when ``status.has_solution``. The objective
    is the verifier's; with a lexicographic objective it is the value of the first term not proven optimal.
    """

    kind: str
    solver: str
    status: Status
    plan: PlanT | None
    verdict: Verdict | None
    objective: float | None
    bound: float | None
    """A proven bound on the objective (a lower one where it is minimised), or None."""
    limit: Limit | None
    """The limit that stopped the search, if one did."""
    message: str
    """The solver's own words, or why there was nothing to solve."""
    seed: int
    runtime_s: Mapping[str, float]
    """Seconds spent in formulate, solve and verify."""
    versions: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    term: str | None = None
    """The term of a lexicographic objective that ``objective`` and ``bound`` are of."""
    conflicts: tuple[Conflict, ...] = ()
    """Limits seen to contradict one another before any solver ran."""
    events: tuple[Event, ...] = ()
    """Incumbent and bound over time."""
    certificate: Certificate | None = None
    """Certificate that makes a heuristic's bound checkable; a plan folder keeps it, and ``mast-opt verify`` checks
    it."""
    frozen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The part of the start that was frozen; bound and status are those of the rest."""
    overrides: Overrides = field(default_factory=Overrides)
    """Weights and order that were asked for instead of the instance's; verdict, objective and bound follow them."""
    params: Mapping[str, Value] = field(default_factory=dict)
    """Name → value, of the solver's parameters that were not at their defaults; ``solve`` takes it back."""
    strategy: Mapping[str, Value] = field(default_factory=dict)
    """Decisions of the solver about this instance, where it states them."""
    unimproved: bool = False
    """True if the plan is neither proven nor better than the one that the search began with."""
    sense: Sense = Sense.MIN
    """Whether the objective is minimised or maximised; ``bound`` lies on the other side of it."""
    cross_check: CrossCheck | None = None
    """Result of a second solver, where one was asked for."""
    unmatched: tuple[str, ...] = ()
    """Labels of a start or of a plan to stay near that the instance does not have, by axis."""
    last_pass: LastPass | None = None
    """Rows that differ from today, or from the plan to stay near, before and after the last pass; None without one."""
    least_missing_gpus: float | None = None
    """Proven: GPUs missing after the worst loss of a region, at least, wherever the replicas are. None where no goal
    chose them by that."""
    reuse: Reuse | None = None
    """Parts that ``resolve`` took over from an earlier solve; None for a solve of its own."""

    @property
    def outcome(self) -> str:
        """The status as tables show it, with what a search did not do."""
        return f"{self.status.value}, not improved" if self.unimproved else self.status.value

    @property
    def is_second_stage(self) -> bool:
        """Whether replicas were chosen before, by the loss of a region; status, bound and gap are those of the rest."""
        return self.least_missing_gpus is not None or bool(self.overrides.copies_min)

    @property
    def gap(self) -> float | None:
        """``|objective − bound| / max(|objective|, 1e-9)``, or None if either is unknown."""
        return relative_gap(self.objective, self.bound, self.sense)

    def _summary(self) -> Summary:
        """Summary of a solution: status, objective, bound, gap, runtime and terms."""
        facts = (
            ("kind", self.kind),
            ("solver", self.solver),
            ("status", self.status.value),
            ("objective", of_term(self.objective, self.term)),
            ("bound", plain(self.bound)),
            ("gap", percent(self.gap)),
            ("runtime", seconds(sum(spent for phase, spent in self.runtime_s.items() if phase != "compile"))),
        )
        terms = {} if self.verdict is None else self.verdict.terms
        return Summary("Solution", facts, ("term", "value"), tuple((name, plain(terms[name])) for name in terms))


def write_plan_folder(
    problem: Problem[PlanT],
    solution: Solution[PlanT],
    path: str | PathLike[str],
    judged: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write a solution's plan as a folder of tables with a ``plan.toml``; an earlier plan there is replaced.

    Where the solver gave a certificate of its bound, the folder holds that too, and so it does the events of the solve.

    Args:
        problem: the instance.
        solution: of it.
        path: of the folder.
        judged: further fields for ``plan.toml``.

    Raises:
        UsageError, PlanError: see ``solved_plan``.
        InputError: the folder cannot be written; nothing is then left half-written.
    """
    plan = solved_plan(problem, solution)
    certificate = None if solution.certificate is None else solution.certificate.arrays()
    from mast_opt.planner import io  # only where something is written

    io.write_plan(problem, plan, {**plan_fields(solution), **judged}, path, certificate, solution.events)


def solved_plan(problem: Problem[PlanT], solution: Solution[PlanT]) -> PlanT:
    """The plan of a solution, checked to be one of this instance.

    Raises:
        UsageError: the solution has no plan.
        PlanError: the solution is for another instance: its plan does not fit, labels differ, or it is worth
            something else here.
    """
    if not isinstance(solution, Solution):
        raise refuse("solution", solution, "the Solution of mast_opt.solve")
    kind = kind_of(problem)
    if solution.kind != kind.name:
        raise UsageError(f"the solution is for {solution.kind}, the problem is a {kind.name} instance")
    if solution.plan is None:
        raise UsageError(f"there is no plan to write: the solve ended {solution.status.value}")
    check_plan(kind, problem, solution.plan)
    _check_worth(kind.verification.verify(solution.overrides.applied_to(problem), solution.plan), solution)
    return solution.plan


def _check_worth(here: Verdict, solution: Solution[Any]) -> None:
    """Raises PlanError where a solution's plan is not worth in this instance what the solution says."""
    said = solution.verdict
    if said is None:
        return
    same = len(here.violations) == len(said.violations) and all(
        math.isclose(here.terms.get(name, math.nan), value, rel_tol=AGREEMENT, abs_tol=AGREEMENT)
        for name, value in said.terms.items()
    )
    if not same or not math.isclose(here.objective, said.objective, rel_tol=AGREEMENT, abs_tol=AGREEMENT):
        worth = f"an objective of {said.objective:.9g} with {counted(len(said.violations), 'violation')}"
        found = f"{here.objective:.9g} with {len(here.violations)}"
        raise PlanError([Fault("plan", f"{worth}, as in the solution", value=found)], OTHER_INSTANCE)


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a solution that TOML can state: it has no null."""
    return {name: value for name, value in fields.items() if value is not None}


def plan_fields(solution: Solution[Any]) -> dict[str, Any]:
    """Fields of a solution for ``plan.toml``, in addition to those on the instance that the plan is for."""
    stages = [
        {"term": stage.term, "objective": stage.objective, "bound": stage.bound}
        for stage in solution.stages
        if stage.objective is not None
    ]
    return {
        "status": solution.status.value,
        "objective": solution.objective,
        "bound": solution.bound,
        "solver": solution.solver,
        "seed": solution.seed,
        "params": dict(solution.params) or None,
        "strategy": dict(solution.strategy) or None,
        "frozen": {what: list(names) for what, names in solution.frozen.items()} or None,
        "overrides": solution.overrides.fields() or None,
        "stages": stages or None,
        "least_missing_gpus": solution.least_missing_gpus,
        "cross_check": None if solution.cross_check is None else _known(solution.cross_check.fields()),
        "last_pass": None if solution.last_pass is None else asdict(solution.last_pass),
        "reuse": None if solution.reuse is None else _known(solution.reuse.fields()),
        "versions": dict(solution.versions),
    }
