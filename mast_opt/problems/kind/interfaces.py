"""Interfaces of a problem's subpackages: what each of them offers to the layers above, as ``Kind`` names it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import PluginError
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.verdict import Conflict, Verdict
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks
from mast_opt.problems.kind.carried_axes import Continuation, Digests, digests_of
from mast_opt.problems.kind.current_state import CurrentState
from mast_opt.problems.kind.family import Family
from mast_opt.problems.kind.formulation import FixedParts, Formulation
from mast_opt.problems.kind.header import Header, Rule
from mast_opt.problems.kind.migration_plan import Move, Order, Waiting
from mast_opt.problems.kind.presentation import Answer, Chart, Section
from mast_opt.problems.kind.problem import PlanT
from mast_opt.problems.kind.schema import Schema, Tables
from mast_opt.problems.mip import Size
from mast_opt.problems.search.interface import Heuristic, HeuristicSolver, Rehearsal
from mast_opt.problems.search.params import Params

ProblemT = TypeVar("ProblemT")


@dataclass(frozen=True)
class TableInterface(Generic[ProblemT, PlanT]):
    """Tables of instances and plans, and the way between them and the problem's own classes."""

    schema: Schema
    plan_schema: Schema
    rules: tuple[Rule, ...]
    """Keys of ``[rules]`` in the instance's header."""
    problem_from_tables: Callable[[Header, Tables], ProblemT]
    """Raises InstanceError for what only the problem can see."""
    problem_to_tables: Callable[[ProblemT], tuple[Header, Tables]]
    plan_from_tables: Callable[[ProblemT, Tables], PlanT]
    """Raises PlanError for what only the plan can see."""
    plan_to_tables: Callable[[ProblemT, PlanT], Tables]
    plan_from_matched: Callable[[ProblemT, Tables], PlanT] | None = None
    """Maker of a plan from another plan's tables, matched by label, where a plan holds figures that follow from the
    instance; ``plan_from_tables`` unless given."""
    warnings: Callable[[Tables], tuple[InputWarning, ...]] = lambda tables: ()
    """Values in validated tables that are allowed and were probably not meant. Files are called by the names of their
    tables, rows are counted from 1."""
    exporters: Mapping[str, Callable[[ProblemT, Path], None]] = field(default_factory=dict)
    """File suffix (``.dat``) → what writes an instance in that format of another tool."""
    plan_exporters: Mapping[str, Callable[[ProblemT, PlanT, Path], None]] = field(default_factory=dict)
    """File suffix (``.txt``) → what writes a plan in that format of another tool."""
    classes: Callable[[ProblemT], Mapping[str, Mapping[str, NDArray[np.int64]]]] = lambda problem: {}
    """Classes of rows by which a certificate counts, where a class is known by labels: name → axis → positions."""
    example: Mapping[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)
    """Table → rows, as a planner would type them (None for an empty cell): a small instance that can be solved."""

    def digests(self, problem: Any) -> Digests:  # noqa: ANN401 - of the kind
        """Digests of the labels, rows and classes of an instance."""
        return digests_of(problem, self.schema, self.problem_to_tables, self.classes(problem))


@dataclass(frozen=True)
class VerificationInterface(Generic[ProblemT, PlanT]):
    """Checks of plans and bounds, which share nothing with the solvers."""

    verify: Callable[[ProblemT, PlanT], Verdict]
    check_plan: Callable[[ProblemT, PlanT], None] = lambda problem, plan: None
    """Raises PlanError for a plan whose arrays do not fit the problem, as one of another instance."""
    certified_bound: Callable[[ProblemT, Mapping[str, NDArray[Any]]], float] | None = None
    """The lower bound on the objective (the first term, where it is lexicographic) that the arrays of a heuristic's
    certificate prove, computed without the search. Raises PlanError where they prove none."""
    use_of_limits: Callable[[ProblemT, PlanT], Mapping[str, Fraction]] = lambda problem, plan: {}
    """Name of each of the instance's limits on a whole plan → how much the plan has of it, in the limit's unit."""
    instance_bound: Callable[[ProblemT], float] | None = None
    """The lower bound on the objective (the first term, where it is lexicographic) that follows from the instance
    alone, computed without the search. Heuristics of the kind that give no certificate report it, and no other."""
    improvement: Callable[[ProblemT, PlanT], str] = lambda problem, plan: ""
    """A small change that makes the plan better where the objective's value does not show it, in words; "" where none
    was found. A plan that has one is not optimal."""


@dataclass(frozen=True)
class FormulationInterface(Generic[ProblemT, PlanT]):
    """Programs that state a problem, and how parts of a plan are fixed in them."""

    formulations: Mapping[str, Callable[[ProblemT], Formulation[PlanT]]]
    """``base`` reads like the .mod; further ones are stronger. ``Kind.formulate`` builds them."""
    size: Callable[[ProblemT], Size] | None = None
    """How large the base formulation is, in a small part of the time and memory that it takes to build; further ones
    are hardly smaller. None: they are built whatever their size."""
    fixed_parts: FixedParts[ProblemT, PlanT] | None = None
    """How parts of a plan are frozen in a solve; None: they cannot be."""
    has_kernels: bool = False
    """Whether stating a program runs compiled kernels."""


@dataclass(frozen=True)
class SolverInterface:
    """Solvers of the problem's own."""

    heuristics: Mapping[str, HeuristicSolver]
    """Heuristics by name."""
    again: Mapping[str, Continuation] = field(default_factory=dict)
    """Ways of those that can to go on from an earlier solve, by name."""
    live: Callable[[], tuple[Rehearsal, ...]] = tuple
    """Rehearsals that compile the kernels of live objects, such as ``Fleet``, that no heuristic needs."""
    method: Heuristic | None = None
    """How a MIP backend, the ``mip_solver`` of the context, solves a problem of a kind whose objective is no single
    program; the formulations are then for export. None: the backend gets the formulation."""
    method_again: Continuation | None = None
    """Way of the method to go on from an earlier solve."""
    method_params: type[Params] | None = None
    """The class of the method's parameters, which every backend takes then."""
    grid_limits: str = ""
    """Description of the method's programs that a backend with a grid for fractions, such as CP-SAT, can solve."""

    def continuation(self, solver: str) -> Continuation | None:
        """Way of a solver to go on from an earlier solve; None where it has none."""
        return self.again.get(solver, self.method_again)

    def usable(self) -> Iterator[tuple[str, HeuristicSolver]]:
        """Name and heuristic of all but those of other packages that cannot be loaded."""
        for name in self.heuristics:
            with suppress(PluginError):
                yield name, self.heuristics[name]

    def is_constructive(self, name: str) -> bool:
        """Whether a solver is a heuristic that builds one plan and ends."""
        return name in self.heuristics and self.heuristics[name].constructive

    @property
    def params(self) -> dict[str, type[Params]]:
        """Heuristic → the class of its parameters, for those that have some."""
        return {name: solver.params for name, solver in self.usable() if solver.params is not None}


@dataclass(frozen=True)
class GenerateInterface(Generic[ProblemT]):
    """Generated instances."""

    families: Mapping[str, Family[ProblemT]]
    """Families of generated instances by name; the first one is the default."""
    sizes_help: str = ""
    """Explanation of what the sizes of the families count, where their names do not say it."""


@dataclass(frozen=True)
class AnalysisInterface(Generic[ProblemT, PlanT]):
    """Analyses of an instance and of changes of it."""

    conflicts: Callable[[ProblemT], tuple[Conflict, ...]] = lambda problem: ()
    """Limits that contradict one another, as far as can be seen without solving. A kind whose every instance has a
    plan has none."""
    current_state: Callable[[ProblemT], CurrentState | None] = lambda problem: None
    """Function that finds how much of the present state the instance states, and which limits that breaks; None where
    there is none."""
    current_plan: Callable[[ProblemT], PlanT | None] = lambda problem: None
    """The present state as a plan, or None where the instance does not give it. It may break rules; where it breaks
    none, an exact solve begins there, so that no plan is ever worse than changing nothing."""
    hooks: Callable[[], AnalysisHooks] = AnalysisHooks
    """Hooks for ``mast_opt.planner.analysis``; loaded when something is asked."""


@dataclass(frozen=True)
class MigrationInterface(Generic[ProblemT, PlanT]):
    """The way from the present state to a plan."""

    steps: Callable[[ProblemT, PlanT], Order] | None = None
    """An order of what has to be done to get from today to a plan without violations. None: there is nothing to it."""
    partial: Callable[[ProblemT, PlanT, Sequence[Move], int], PlanT] | None = None
    """(problem, plan, its steps, number) → the state after so many of the steps, as a plan. None: it is not known."""
    after: Callable[[ProblemT, PlanT, Sequence[Waiting]], Order] | None = None
    """(problem, plan, work without GPUs) → as ``steps``, with the starts of that work. None: as ``steps``."""
    whole: Callable[[ProblemT, PlanT], PlanT] = lambda problem, plan: plan
    """(problem, plan) → the plan without parts that are too small to be moved; it may be worse or break a limit."""


@dataclass(frozen=True)
class PresentationInterface(Generic[ProblemT, PlanT]):
    """A plan for people."""

    sections: Callable[[ProblemT, PlanT], tuple[Section, ...]]
    """Tables of the plan, in the order of reading."""
    charts: Callable[[ProblemT, PlanT], tuple[Chart, ...]] = lambda problem, plan: ()
    """Pictures of the plan, in the order of reading."""
    answers: Callable[[ProblemT, PlanT], tuple[Answer, ...]] = lambda problem, plan: ()
    """Answers to the first questions of a reader, for the top of a report."""
    details: Callable[[ProblemT, PlanT], tuple[Section, ...]] = lambda problem, plan: ()
    """Long tables for reports and workbooks only: what moves, what binds."""
    compared: Mapping[str, str] = field(default_factory=dict)
    """Metric or term → its name where plans stand side by side; empty for all metrics."""
    facts: Callable[[ProblemT, PlanT], Mapping[str, Any]] = lambda problem, plan: {}
    """Keys of ``--json`` that say more of a plan than terms and metrics do."""
    change_notes: Callable[[Verdict, Verdict], tuple[str, ...]] = lambda before, after: ()
    """Sentences on figures that could be confused where two plans are compared."""
    moves: Callable[[ProblemT, PlanT, Verdict], Mapping[str, float]] = lambda problem, plan, verdict: {}
    """Term on moves → its value where plans stand side by side, without work that stands still."""
    lacking: Callable[[ProblemT, PlanT], str] = lambda problem, plan: ""
    """Words on the GPUs that a plan's work lacks and where, the most first; empty for none."""
