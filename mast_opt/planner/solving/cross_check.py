"""Cross-check of a solve: a second exact solver solves again, and what the two prove must be able to be true."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

from mast_opt.core.errors import Contradiction, MastOptError, UsageError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import Limit, Status, within_gap
from mast_opt.planner.solving.auto_strategy import AutoParams
from mast_opt.planner.solving.request import Request
from mast_opt.planner.solving.solution import CrossCheck, Solution
from mast_opt.problems import backends

RELATIVE, ABSOLUTE = 1e-5, 1e-7
"""Tolerances by which a bound may lie beyond the value of a plan: solvers allow as much, and a wrong proof is off by
more."""
SHARE = 0.5
"""Part of a time limit that the first solver has; the second has the rest."""


def check_second(request: Request[Any], second: str) -> None:
    """Raises UsageError for a second solver that is no exact one or has solved already, BackendUnavailable for one that
    is not installed."""
    first = request.params.exact if isinstance(request.params, AutoParams) else request.solver
    others = [name for name in backends.names() if name != first]
    if second not in others:
        raise UsageError(
            f"cross_check is {second!r}; expected an exact solver other than {first}: {', '.join(others)}",
            argument="cross_check",
            expected=", ".join(others),
        )
    backends.get(second).version()


def cross_checked(
    first: Solution[Any], second: str, again: Callable[[], Solution[Any]], cancel: threading.Event, gap: float
) -> Solution[Any]:
    """The first solution with what the second solver says of it.

    Args:
        again: solves with the second solver.
        cancel: set by the caller to stop; then there is no second solve.
        gap: that was asked for.

    Raises:
        Contradiction: one proves what the other's plan or proof rules out; the error has the better verified plan.
    """
    if cancel.is_set():
        return replace(first, cross_check=CrossCheck(second, "open", None, None, None, "interrupted before it began"))
    try:
        other = again()
    except (MastOptError, MemoryError) as error:
        words = str(error) or type(error).__name__
        return replace(first, cross_check=CrossCheck(second, "failed", None, None, None, words))
    runtime_s = {phase: spent_s + other.runtime_s.get(phase, 0.0) for phase, spent_s in first.runtime_s.items()}
    first = replace(first, runtime_s=runtime_s, versions={**other.versions, **first.versions})
    check = CrossCheck(second, "open", other.status, other.objective, other.bound, other.message)
    fault = contradiction([(first.solver, first), (second, other)], first.sense)
    if fault is not None:
        best = _better(first, replace(other, runtime_s=runtime_s, versions=first.versions))
        status = Status.FEASIBLE if best.plan is not None else Status.NO_SOLUTION
        kept = replace(best, status=status, bound=None, stages=(), term=None, limit=Limit.OTHER, certificate=None)
        objective = None if best.verdict is None else best.verdict.objective
        check = replace(check, outcome="contradicted", message=fault)
        raise Contradiction(fault, replace(kept, objective=objective, message=fault, cross_check=check))
    confirmed = other.status.is_infeasible and first.status.is_infeasible
    confirmed |= first.plan is not None and within_gap(
        first.objective, other.bound, gap, claimed=True, sense=first.sense
    )
    return replace(first, cross_check=replace(check, outcome="confirmed" if confirmed else "open"))


def contradiction(found: Sequence[tuple[str, Solution[Any]]], sense: Sense) -> str | None:
    """How what one solver proves rules out a plan of another, in words; None where nothing does."""
    for (planner, known), (prover, other) in permutations(found, 2):
        if known.plan is not None and other.status.is_infeasible:
            return f"{prover} says that there is no plan, and {planner} has one that breaks no rule: {prover} is wrong"
        what, value, bound = _compared(known, other)
        if value is None or bound is None:
            continue
        beyond = (Sense.MIN if other.stages else sense).minimised(bound - value)
        if beyond > RELATIVE * abs(value) + ABSOLUTE:
            return (
                f"{prover} says that {what} cannot be better than {bound:.9g}, and {planner} has a plan of "
                f"{value:.9g} that breaks no rule: {prover} is wrong"
            )
    return None


def _compared(known: Solution[Any], other: Solution[Any]) -> tuple[str, float | None, float | None]:
    """First objective of both solves: its name, the value of the one's plan, and the bound that the other proves."""
    if known.verdict is None or bool(known.stages) != bool(other.stages):
        return "", None, None
    if not other.stages:
        return "the objective", known.objective, other.bound
    first = other.stages[0]
    return first.term, known.verdict.terms[first.term], first.bound


def _better(one: Solution[Any], other: Solution[Any]) -> Solution[Any]:
    """The solution of a cross-check whose plan is better by its verdict; the first where neither has one."""
    if one.verdict is None or other.verdict is None:
        return one if other.verdict is None else other
    sense = one.sense
    better = sense.minimised(other.verdict.objective) < sense.minimised(one.verdict.objective)
    return other if better else one
