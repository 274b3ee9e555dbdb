"""Claims of a plan folder about itself, compared with the verifier: its objective and bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mast_opt.core.errors import Fault, PlanError
from mast_opt.core.solve_result import AGREEMENT, Status
from mast_opt.core.verdict import Verdict, Violation
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.registry import kind_of


def objective_meant(problem: Problem[Any], verdict: Verdict, fields: Mapping[str, Any]) -> float:
    """The verifier's value of what ``plan.toml`` calls the objective.

    With a lexicographic objective that is the value of one of its terms: of all of them, the nearest to the stated.
    """
    values = [verdict.terms[term] for term in problem.objective.order] or [verdict.objective]
    stated = number_in(fields, "objective")
    return values[0] if stated is None else min(values, key=lambda value: abs(value - stated))


def wrong_claims(problem: Problem[Any], plan: object, verdict: Verdict, fields: Mapping[str, Any]) -> list[Violation]:
    """The figures and the status of ``plan.toml`` that contradict the verifier."""
    right = objective_meant(problem, verdict, fields)
    stated, bound = number_in(fields, "objective"), number_in(fields, "bound")
    if stated is not None and not close(stated, right):
        return [Violation("objective", (), abs(stated - right), right, "as stated in plan.toml")]
    if bound is not None and problem.sense.within(bound, right) != bound and not close(bound, right):
        return [Violation("bound", (), abs(bound - right), right, "as stated in plan.toml")]
    if text_in(fields, "status") == Status.OPTIMAL.value:
        better = kind_of(problem).verification.improvement(problem, plan)
        if better:
            return [Violation("status", (), 1.0, 0.0, f"later level: {better}")]
    return _wrong_stages(verdict, fields)


def _wrong_stages(verdict: Verdict, fields: Mapping[str, Any]) -> list[Violation]:
    """Stages of a lexicographic objective with another value, or a larger bound, than the term has."""
    wrong = []
    for stage in stages_in(fields):
        term = stage.get("term")
        if not isinstance(term, str) or term not in verdict.terms:
            known = ", ".join(verdict.terms)
            raise PlanError([Fault("plan.toml", f"one of the terms {known}", column="stages.term", value=str(term))])
        right = verdict.terms[term]
        stated, bound = number_in(stage, "objective"), number_in(stage, "bound")
        if stated is not None and not close(stated, right):
            wrong.append(Violation("objective", (term,), abs(stated - right), right, "as stated in plan.toml"))
        elif bound is not None and bound > right and not close(bound, right):
            wrong.append(Violation("bound", (term,), bound - right, right, "as stated in plan.toml"))
    return wrong


def stages_in(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The stages of a lexicographic objective that ``plan.toml`` states, one for each term that was minimised."""
    stages = fields.get("stages")
    return [stage for stage in stages if isinstance(stage, Mapping)] if isinstance(stages, list) else []


def close(stated: float, right: float) -> bool:
    """Whether a stated figure and the verifier's agree."""
    return abs(stated - right) <= AGREEMENT * max(1.0, abs(right))


def number_in(fields: Mapping[str, Any], name: str) -> float | None:
    """A figure of ``plan.toml``; readers hand numbers over as decimals or as the text they were written in."""
    value = fields.get(name)
    if value is None:
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise PlanError([Fault("plan.toml", "a finite number, or no such line", column=name, value=str(value))])
    return number


def text_in(fields: Mapping[str, Any], name: str) -> str | None:
    """Text of a field of ``plan.toml``, whatever its type; None where there is no such line."""
    value = fields.get(name)
    return None if value is None else str(value)
