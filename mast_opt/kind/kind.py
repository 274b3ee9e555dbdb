"""Problem interface: what the layers above know of a problem, one ``Kind`` each.

``mast_opt.io``, ``solve``, the command line, the report and the benchmarks iterate over kinds and name no
problem, so a further problem is one more package with a ``kind.py`` and one more line in ``mast_opt.registry``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import FormulationTooLarge, UsageError
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.memory import GB, available_bytes
from mast_opt.core.verdict import Conflict, Verdict
from mast_opt.kind.analysis_hooks import AnalysisHooks
from mast_opt.kind.current_state import CurrentState
from mast_opt.kind.header import Header, Rule
from mast_opt.kind.migration_plan import Order
from mast_opt.kind.presentation import Chart
from mast_opt.kind.problem import PlanT
from mast_opt.kind.schema import Schema, Tables
from mast_opt.mip import Mip, Size
from mast_opt.search.interface import Heuristic, Pricing, Rehearsal
from mast_opt.search.params import Params

ProblemT = TypeVar("ProblemT")


@dataclass(frozen=True)
class Formulation(Generic[PlanT]):
    """A MIP and the two ways between its columns and a plan."""

    mip: Mip
    decode: Callable[[FloatArray], PlanT]
    """Rounds the integer decisions and recomputes everything that depends on them, exactly."""
    encode: Callable[[PlanT], FloatArray]
    """A value for every column; ``decode(encode(plan))`` is the plan."""
    exact: Callable[[], Formulation[PlanT]] | None = None
    """The same program with every share an integer number of thousandths; where ``decode`` rounds shares,
    this is what a plan that rounding made infeasible is repaired with. None where nothing is rounded."""


class Form(enum.Enum):
    """What the cells of a section's column are, so that a report knows how to show them."""

    TEXT = "text"
    COUNT = "a number of things"
    AMOUNT = "a quantity, in the unit of the column's title"
    RATIO = "demand over supply; above 1 is too much"
    FILL = "the used share of something that cannot be exceeded"


@dataclass(frozen=True)
class Head:
    """The head of a section's column."""

    title: str
    form: Form = Form.TEXT


@dataclass(frozen=True)
class Section:
    """A table for people; what matters most comes first, so that a report may cut it."""

    title: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]
    note: str = ""
    """One sentence that says what to remember."""


@dataclass(frozen=True)
class Family(Generic[ProblemT]):
    """A family of generated instances."""

    make: Callable[..., ProblemT]
    """make(rng, **sizes) → problem; every size is given and in range."""
    sizes: Mapping[str, int]
    """The sizes it takes, with their defaults."""
    help: str
    most: Mapping[str, int] = field(default_factory=dict)
    """The largest value of a size, where there is one. The smallest is 1."""

    def generate(self, rng: np.random.Generator, **sizes: int) -> ProblemT:
        """An instance; the defaults stand for sizes that are not given. Raises UsageError for one out of range."""
        for name, size in sizes.items():
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise UsageError(f"{name} is {size!r}; expected a whole number")
            if size < 1:
                raise UsageError(f"{name} is {size}; expected at least 1")
            if size > self.most.get(name, size):
                raise UsageError(f"{name} is {size}; expected at most {self.most[name]}")
        return self.make(rng, **{**self.sizes, **sizes})


@dataclass(frozen=True)
class FixedParts(Generic[ProblemT, PlanT]):
    """How a named part of a plan is frozen: every row of the decision tables that mentions it, and no other."""

    tables: tuple[str, ...]
    """The tables of the plan that hold decisions; the others follow from them."""
    blocks: Mapping[str, tuple[str | None, ...]]
    """Column block of the formulations → the axis of each of its indices, as the plan's tables name it; None for one
    that cannot be frozen by."""
    groups: Mapping[str, Callable[[ProblemT], tuple[str, tuple[str, ...], NDArray[np.int64]]]] = field(
        default_factory=dict
    )
    """Further names for parts (``region`` of servers) → (axis, labels of the groups, group of each position)."""
    rules: Callable[[ProblemT, PlanT, Mapping[str, NDArray[np.int64]]], ProblemT] | None = None
    """(problem, plan, axis → positions) → the problem with rules that hold those parts, for heuristics. Raises
    UnsupportedOption where no rule can say so. None: heuristics of this kind cannot keep parts."""


def _unknown(problem: object) -> None:
    return None


def _any_plan(problem: object, plan: object) -> None:
    return None


def _no_conflicts(problem: object) -> tuple[()]:
    return ()


def _no_warnings(tables: Tables) -> tuple[()]:
    return ()


def _nothing(problem: object, plan: object) -> tuple[()]:
    return ()


def _no_rehearsals(solver: str, problem: object) -> tuple[()]:
    return ()


@dataclass(frozen=True)
class Kind(Generic[ProblemT, PlanT]):
    """A kind of problem."""

    name: str
    """Hyphenated, as in files and JSON."""
    title: str
    problem_type: type[ProblemT]
    plan_type: type[PlanT]
    schema: Schema
    plan_schema: Schema
    terms: Mapping[str, float]
    """Every objective term with its default weight."""
    rules: tuple[Rule, ...]
    build: Callable[[Header, Tables], ProblemT]
    """Raises InstanceError for what only the problem can see."""
    unbuild: Callable[[ProblemT], tuple[Header, Tables]]
    build_plan: Callable[[ProblemT, Tables], PlanT]
    unbuild_plan: Callable[[ProblemT, PlanT], Tables]
    verify: Callable[[ProblemT, PlanT], Verdict]
    formulations: Mapping[str, Callable[[ProblemT], Formulation[PlanT]]]
    """``base`` reads like the .mod; further ones are stronger. ``formulate`` builds them."""
    heuristics: Mapping[str, Heuristic]
    """Solvers of our own, by name."""
    pricing: Mapping[str, Pricing]
    """Heuristic → the terms that it takes into account. ``solve`` refuses a heuristic that lacks a weighted term."""
    families: Mapping[str, Family[ProblemT]]
    sections: Callable[[ProblemT, PlanT], tuple[Section, ...]]
    """Tables of the plan for a person, in the order of reading."""
    check_plan: Callable[[ProblemT, PlanT], None] = _any_plan
    """Raises PlanError for a plan whose arrays do not fit the problem, as one of another instance."""
    conflicts: Callable[[ProblemT], tuple[Conflict, ...]] = _no_conflicts
    """Limits that contradict one another, as far as can be seen without solving. A kind whose every instance has a
    plan has none."""
    warnings: Callable[[Tables], tuple[InputWarning, ...]] = _no_warnings
    """Values in validated tables that are allowed and were probably not meant. Files are called by the names of their
    tables, rows are counted from 1."""
    params: Mapping[str, type[Params]] = field(default_factory=dict)
    """Heuristic → the class of its parameters, of which it finds an object in ``SearchContext.params``; one that is
    not here has none."""
    constructive: frozenset[str] = frozenset()
    """Heuristics that build one plan and end: they take neither a start nor a number of iterations."""
    rehearsals: Callable[[str, ProblemT | None], tuple[Rehearsal, ...]] = _no_rehearsals
    """(heuristic, problem) → what compiles every kernel that the heuristic can call on this problem, the longest
    first; for None, on any problem."""
    live: Callable[[], tuple[Rehearsal, ...]] = tuple
    """What compiles the kernels of live objects, such as ``Fleet``, that no heuristic needs."""
    sizes_help: str = ""
    """What the sizes of the families count, where their names do not say it."""
    size: Callable[[ProblemT], Size] | None = None
    """How large the base formulation is, in a small part of the time and memory that it takes to build; further ones
    are hardly smaller. None: they are built whatever their size."""
    today: Callable[[ProblemT], PlanT | None] = _unknown
    """The present state as a plan, or None where the instance does not give it. It may break rules; where it breaks
    none, an exact solve begins there, so that no plan is ever worse than changing nothing."""
    present: Callable[[ProblemT], CurrentState | None] = _unknown
    """How much of the present state the instance states, and which limits that breaks; None where there is none."""
    certified_bound: Callable[[ProblemT, Mapping[str, NDArray[Any]]], float] | None = None
    """The lower bound on the objective (the first term, where it is lexicographic) that the arrays of a heuristic's
    certificate prove, computed without the search. Raises PlanError where they prove none."""
    instance_bound: Callable[[ProblemT], float] | None = None
    """The lower bound on the objective (the first term, where it is lexicographic) that follows from the instance
    alone, computed without the search. Heuristics of the kind that give no certificate report it, and no other."""
    exporters: Mapping[str, Callable[[ProblemT, Path], None]] = field(default_factory=dict)
    """File suffix (``.dat``) → what writes an instance in that format of another tool."""
    plan_exporters: Mapping[str, Callable[[ProblemT, PlanT, Path], None]] = field(default_factory=dict)
    """File suffix (``.txt``) → what writes a plan in that format of another tool."""
    steps: Callable[[ProblemT, PlanT], Order] | None = None
    """An order of what has to be done to get from today to a plan without violations. None: there is nothing to it."""
    charts: Callable[[ProblemT, PlanT], tuple[Chart, ...]] = _nothing
    """Pictures of the plan, in the order of reading."""
    freezing: FixedParts[ProblemT, PlanT] | None = None
    """How parts of a plan are frozen in a solve; None: they cannot be."""
    example: Mapping[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)
    """Table → rows, as a planner would type them (None for an empty cell): a small instance that can be solved."""
    questions: Callable[[], AnalysisHooks] = AnalysisHooks
    """What ``mast_opt.analysis`` may ask of it; loaded when something is asked."""

    def formulate(
        self,
        problem: ProblemT,
        name: str = "base",
        *,
        to_solve: bool = True,
        heuristics_too: bool = True,
    ) -> Formulation[PlanT]:
        """One of the formulations of a problem, unless ``check_memory`` refuses it; the arguments are explained there.

        Raises:
            FormulationTooLarge: it takes more memory than there is.
        """
        self.check_memory(problem, name, to_solve=to_solve, heuristics_too=heuristics_too)
        return self.formulations[name](problem)

    def check_memory(
        self,
        problem: ProblemT,
        name: str = "base",
        *,
        to_solve: bool = True,
        together: int = 1,
        heuristics_too: bool = True,
    ) -> None:
        """A test whether there is memory for a formulation that has not been built yet.

        Args:
            to_solve: False if no solver is to be handed it.
            together: how many programs of this size are held at once.
            heuristics_too: would a heuristic do, so that the message should name those there are?

        Raises:
            FormulationTooLarge: it takes more memory than there is.
        """
        free = available_bytes()
        if self.size is None or free is None:
            return
        size = self.size(problem)
        needed = together * (size.solve_bytes if to_solve else size.build_bytes)
        if needed <= free:
            return
        done = "handed to a solver" if to_solve else "written down"
        takes = "it takes" if together == 1 else f"{together} of them take"
        names = ", ".join(self.heuristics) if to_solve and heuristics_too else ""
        others = f"choose a solver that does without ({names}), " if names else "choose "
        raise FormulationTooLarge(
            f"the {name} formulation of this {self.name} instance has about {size.columns:,} columns, "
            f"{size.rows:,} rows and {size.entries:,} coefficients; {done} {takes} at least {needed / GB:,.1f} GB of "
            f"memory, and {free / GB:,.1f} GB are left: {others}a smaller instance or a machine with more memory"
        )
