"""Shared parts of the analyses: the kind, what it can be asked, which solvers may answer."""

from collections.abc import Mapping
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.planner.solving import Solution, solve
from mast_opt.planner.solving.auto_strategy import AUTO, EXACT
from mast_opt.planner.solving.resolving import carried_from
from mast_opt.problems import backends
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of


def asked(problem: Problem[PlanT]) -> tuple[Kind[Any, PlanT], AnalysisHooks]:
    """The problem's kind and what an analysis can ask of it."""
    kind = kind_of(problem)
    return kind, kind.analysis.hooks()


def exact_solver(kind: Kind[Any, Any], solver: str) -> str:
    """The name of an analysis' MIP backend, which ``auto`` stands for too. Raises UsageError for anything else."""
    if solver == AUTO:
        return EXACT
    if solver in kind.solvers.heuristics:
        known = ", ".join(backends.names())
        raise UsageError(f"{solver} searches for plans and cannot prove that there is none; use one of: {known}")
    if solver not in backends.names():
        raise UsageError(f"there is no MIP solver called {solver!r}; expected one of: {', '.join(backends.names())}")
    return solver


def solve_from(
    kind: Kind[Any, PlanT],
    solver: str,
    limits: Mapping[str, Any],
    instance: Problem[PlanT],
    start: PlanT | None,
    before: Solution[PlanT] | None = None,
) -> Solution[PlanT]:
    """A solve that begins with a plan, unless the solver builds its own from nothing.

    Args:
        limits: further arguments of ``mast_opt.solve``.
        before: a solve of a similar instance, from whose certificate the bound goes on.
    """
    carried = None if before is None else carried_from(instance, before, solver)
    start = None if kind.solvers.is_constructive(solver) else start
    return solve(instance, solver, start=start, carried=carried, **limits)
