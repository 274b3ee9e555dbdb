"""Checks of what is asked of a solver: names, options and terms that it does not take are refused before anything
runs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic

from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.core.solve_result import SolveParams
from mast_opt.planner.solving.auto_strategy import AUTO
from mast_opt.planner.solving.exchange import PlanExchange
from mast_opt.problems import backends
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import check_plan
from mast_opt.problems.search.interface import Carried
from mast_opt.problems.search.params import Params


@dataclass(frozen=True)
class Request(Generic[PlanT]):
    """Request to one solver."""

    problem: Problem[PlanT]
    """The problem with the objective and limits that are to be solved for."""
    solver: str
    params: Params | None
    """Parameters of the solver; None where it has none."""
    asked: SolveParams
    iterations: int | None
    start: PlanT | None
    formulation: str
    freeze: Mapping[str, Collection[str]] | None
    carried: Carried | None = None
    """Parts of an earlier solve. With them, a search begins with the start even where that breaks limits."""
    offers: PlanExchange | None = None
    """Exchange where the solver leaves the plans that it finds while it works; None where they are not needed."""
    others: PlanExchange | None = None
    """Exchange from which it takes those of a solver that works on the instance at the same time; None for no other."""


def solver_names(kind: Kind[Any, Any]) -> tuple[str, ...]:
    """Every solver that takes this kind of problem: the portfolio, the backends, then our heuristics."""
    return (AUTO, *backends.names(), *kind.solvers.heuristics)


def check_request(kind: Kind[Any, Any], solver: str, iterations: int | None, formulation: str) -> None:
    """Raises UsageError for a solver that there is not, and for iterations or a formulation that it does not take."""
    if solver not in solver_names(kind):
        known = ", ".join(solver_names(kind))
        raise UsageError(f"no solver for {kind.name} is called {solver!r}; expected one of: {known}")
    if iterations is not None and solver not in kind.solvers.heuristics:
        raise UsageError(
            f"iterations is for {', '.join(kind.solvers.heuristics)}; {solver} has its own limits among its options"
        )
    check_formulation(kind, formulation)
    if formulation != "base" and solver == AUTO:
        raise UsageError(f"{AUTO} uses the base formulation; leave it out, or choose a MIP backend")
    if formulation != "base" and solver in kind.solvers.heuristics:
        raise UsageError(f"{solver} uses no formulation; leave it out, or choose a MIP backend")
    if iterations is not None and kind.solvers.is_constructive(solver):
        raise UsageError(f"{solver} has no iterations: it {_one_plan(kind)}")


def check_formulation(kind: Kind[Any, Any], name: str) -> None:
    """Raises UsageError for a solve with a formulation that the kind does not have."""
    known = kind.formulation.formulations
    if name not in known:
        raise UsageError(f"{kind.name} has no formulation called {name!r}; expected one of: {', '.join(known)}")


def check_terms(kind: Kind[Any, Any], problem: Problem[Any], solver: str, params: Params | None) -> None:
    """Raises UnsupportedOption for a term with a weight that the heuristic does not take into account."""
    if solver not in kind.solvers.heuristics:
        return
    _check_limits(kind, problem, solver)
    ours = kind.solvers.heuristics[solver]
    if problem.objective.lexicographic and ours.package is not None and not ours.orders:
        raise UnsupportedOption(
            f"{solver} minimises a weighted sum; this objective is an order of terms. Choose a "
            "MIP backend such as highs"
        )
    weights, order = problem.objective.weights, problem.objective.order
    weighted = order or tuple(term for term, weight in weights.items() if weight)
    missing = ours.pricing.missing(problem, weighted, params)
    if not missing:
        return
    reasons = "; ".join(f"{solver} does not price {term}{f': {why}' if why else ''}" for term, why in missing.items())
    able = [name for name, ours in kind.solvers.usable() if not ours.pricing.missing(problem, weighted)]
    change = "leave it out of the order" if order else "set its weight to 0"
    raise UnsupportedOption(f"{reasons}. Choose {', '.join([*able, 'a MIP backend such as highs'])}, or {change}")


def _check_limits(kind: Kind[Any, Any], problem: Problem[Any], solver: str) -> None:
    """Raises UnsupportedOption for a limit on the whole plan that the heuristic does not keep."""
    limits: Mapping[str, Fraction] = getattr(problem, "limits", {})
    ours = kind.solvers.heuristics[solver].limits
    missing = [name for name in limits if name not in ours]
    if missing:
        kept = f"; it keeps limits on {', '.join(ours)}" if ours else ""
        raise UnsupportedOption(
            f"{solver} does not keep a limit on {', '.join(missing)}{kept}. Choose a MIP backend such as highs, or "
            "leave the limit out"
        )


def check_start(
    kind: Kind[Any, PlanT], problem: Problem[PlanT], solver: str, start: PlanT | None, freeze: object
) -> None:
    """Raises UsageError for a start that the solver does not take, PlanError for one of another instance."""
    if start is None:
        return
    check_plan(kind, problem, start)
    if kind.solvers.is_constructive(solver) and not freeze:
        raise UsageError(f"{solver} takes no start: it {_one_plan(kind)}")


def _one_plan(kind: Kind[Any, Any]) -> str:
    """Words on a solver that builds one plan, and which others take a start."""
    others = ", ".join(name for name, ours in kind.solvers.usable() if not ours.constructive)
    return f"builds one plan and ends; leave it out, or choose {others} or a MIP backend"
