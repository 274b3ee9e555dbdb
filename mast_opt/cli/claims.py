"""What a plan folder says about itself, held against the verifier: objective, bound and the bound's certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from mast_opt.errors import Fault, PlanError
from mast_opt.kinds import kind_of
from mast_opt.verdict import Verdict, Violation

AGREEMENT = 1e-6
"""Relative difference allowed between a stated figure and the verifier's."""
PROVEN = 1e-9
"""Relative difference allowed between a stated bound and what its certificate proves."""


def objective_meant(problem: Any, verdict: Verdict, fields: Mapping[str, Any]) -> float:
    """The verifier's value of what ``plan.toml`` calls the objective.

    With a lexicographic objective that is the value of one of its terms: of all of them, the nearest to the stated.
    """
    values = [verdict.terms[term] for term in problem.objective.order] or [verdict.objective]
    stated = number_in(fields, "objective")
    return values[0] if stated is None else min(values, key=lambda value: abs(value - stated))


def wrong_claims(problem: Any, verdict: Verdict, fields: Mapping[str, Any]) -> list[Violation]:
    """The figures of ``plan.toml`` that contradict the verifier."""
    right = objective_meant(problem, verdict, fields)
    stated, bound = number_in(fields, "objective"), number_in(fields, "bound")
    if stated is not None and not _close(stated, right):
        return [Violation("objective", (), abs(stated - right), right, "as stated in plan.toml")]
    if bound is not None and bound > right and not _close(bound, right):
        return [Violation("bound", (), bound - right, right, "as stated in plan.toml")]
    return []


def _close(stated: float, right: float) -> bool:
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
    """What ``plan.toml`` says under a name, as text, whatever its type is; None where there is no such line."""
    value = fields.get(name)
    return None if value is None else str(value)


@dataclass(frozen=True)
class Proof:
    """What a certificate proves."""

    bound: float | None = None
    """On the objective, or on the first term of a lexicographic one; None where nothing is proven."""
    wrong: tuple[Violation, ...] = ()
    faults: tuple[str, ...] = ()
    """Why nothing is proven."""
    what: str = "objective"
    """What ``bound`` is a bound on."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a person."""
        if self.bound is None:
            return self.faults
        return (f"certificate.npz proves that every plan has {self.what} ≥ {self.bound:g}",)


def check_certificate(
    problem: Any, verdict: Verdict, fields: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None
) -> Proof:
    """Compute the bound from a certificate's arrays; it must reach the stated bound and not pass the objective.

    Raises PlanError where the kind of problem has no certificates.
    """
    if arrays is None:
        return Proof()
    kind = kind_of(problem)
    if kind.certified_bound is None:
        raise PlanError([Fault("certificate.npz", f"no such file in a plan for {kind.name}")])
    order = problem.objective.order
    stated = _stage_bound(fields, order[0]) if order else number_in(fields, "bound")
    objective = verdict.terms[order[0]] if order else verdict.objective
    try:
        bound = kind.certified_bound(problem, arrays)
    except PlanError as error:
        claimed = 0.0 if stated is None else stated
        return Proof(None, (Violation("certificate", (), claimed, 0.0, "proven"),), tuple(map(str, error.faults)))
    wrong = []
    if stated is not None and not bound >= stated - PROVEN * max(1.0, abs(stated)):
        wrong.append(Violation("bound", (), stated - bound, bound, "as certificate.npz proves"))
    if bound > objective and not _close(bound, objective):
        wrong.append(Violation("certificate", (), bound - objective, objective, "above the objective"))
    return Proof(bound, tuple(wrong), what=order[0] if order else "objective")


def _stage_bound(fields: Mapping[str, Any], term: str) -> float | None:
    """The bound that ``plan.toml`` states for a term of a lexicographic objective."""
    stages = fields.get("stages")
    for stage in stages if isinstance(stages, list) else []:
        if isinstance(stage, Mapping) and stage.get("term") == term:
            return number_in(stage, "bound")
    return None
