"""Problem interface: what the layers above know of a problem, one ``Kind`` each.

``io``, ``solve``, the command line, the report and the benchmarks iterate over kinds and name no
problem, so a further problem is one more package with a ``kind.py`` and one more line in ``registry``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mast_opt.core.errors import FormulationTooLarge
from mast_opt.core.memory import GB, available_bytes
from mast_opt.problems.kind import interfaces
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.header import Policy, Term
from mast_opt.problems.kind.limits import LimitName
from mast_opt.problems.kind.overrides import Goal, Securing
from mast_opt.problems.kind.problem import PlanT

ProblemT = TypeVar("ProblemT")


@dataclass(frozen=True)
class Kind(Generic[ProblemT, PlanT]):
    """A kind of problem: its name, its classes and what each of its subpackages offers."""

    name: str
    """Hyphenated, as in files and JSON."""
    title: str
    problem_type: type[ProblemT]
    plan_type: type[PlanT]
    tables: interfaces.TableInterface[ProblemT, PlanT]
    formulation: interfaces.FormulationInterface[ProblemT, PlanT]
    verification: interfaces.VerificationInterface[ProblemT, PlanT]
    solvers: interfaces.SolverInterface
    generate: interfaces.GenerateInterface[ProblemT]
    presentation: interfaces.PresentationInterface[ProblemT, PlanT]
    analysis: interfaces.AnalysisInterface[ProblemT, PlanT] = field(default_factory=interfaces.AnalysisInterface)
    migration: interfaces.MigrationInterface[ProblemT, PlanT] = field(default_factory=interfaces.MigrationInterface)
    limits: Mapping[str, LimitName] = field(default_factory=dict)
    """Limits that ``[limits]`` of an instance may name; empty for a kind whose plans are limited by their tables
    alone."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """The policies of which ``[objective]`` names one; empty for a kind whose objective has weighted terms."""

    terms: Mapping[str, Term] = field(default_factory=dict)
    """Every term of the objective; empty for a kind that has ``policies``."""

    goals: Mapping[str, Goal] = field(default_factory=dict)
    """Goals that a planner names instead of weights."""
    tidied: Callable[[ProblemT, PlanT], PlanT] = lambda problem, plan: plan
    """(problem, plan) → the plan with what its objective leaves open decided by price."""
    secured: Mapping[str, Securing] = field(default_factory=dict)
    """Goal whose replicas are chosen by the loss of a region → how."""

    def formulate(
        self, problem: ProblemT, name: str = "base", *, to_solve: bool = True, heuristics_too: bool = True
    ) -> Formulation[PlanT]:
        """One of the formulations of a problem, unless ``check_memory`` refuses it; the arguments are explained there.

        Raises:
            FormulationTooLarge: it takes more memory than there is.
        """
        self.check_memory(problem, name, to_solve=to_solve, heuristics_too=heuristics_too)
        return self.formulation.formulations[name](problem)

    def check_memory(
        self,
        problem: ProblemT,
        name: str = "base",
        *,
        to_solve: bool = True,
        together: int = 1,
        heuristics_too: bool = True,
    ) -> None:
        """Check that there is memory for a formulation before it is built.

        Args:
            to_solve: whether a solver will load it; False if it is only written to a file.
            together: number of programs of this size that are in memory at once.
            heuristics_too: whether a heuristic would do as well, so that the message names those of the kind.

        Raises:
            FormulationTooLarge: it needs more memory than is available.
        """
        free = available_bytes()
        if self.formulation.size is None or free is None:
            return
        size = self.formulation.size(problem)
        needed = together * (size.solve_bytes if to_solve else size.build_bytes)
        if needed <= free:
            return
        done = "loading" if to_solve else "writing"
        takes = "it needs" if together == 1 else f"{together} of them needs"
        names = ", ".join(self.solvers.heuristics) if to_solve and heuristics_too else ""
        others = f"use a solver without a formulation ({names}), " if names else "use "
        raise FormulationTooLarge(
            f"the {name} formulation of this {self.name} instance has about {size.columns:,} columns, "
            f"{size.rows:,} rows and {size.entries:,} coefficients; {done} {takes} at least {needed / GB:,.1f} GB of "
            f"memory, and {free / GB:,.1f} GB are available: {others}a smaller instance or a machine with more memory"
        )
