"""Claims of a plan folder about itself, compared with the verifier, and checks of its bound."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from mast_opt.core.errors import Fault, PlanError
from mast_opt.core.sense import Sense
from mast_opt.core.solve_result import AGREEMENT, Status
from mast_opt.core.verdict import Verdict, Violation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.registry import kind_of

PROVEN = 1e-9
"""Relative difference allowed between a stated bound and what is proven."""
UNCHECKED = "the stated bound, and so the gap, is not checked: nothing in the plan's folder proves it"


@dataclass(frozen=True)
class Proof:
    """Proven bound on the objective, and whether it covers the stated one."""

    bound: float | None = None
    """Proven bound on the objective, or on the first term of a lexicographic one; None where nothing is proven."""
    checked: bool | None = None
    """Whether the stated bound is proven; None where none is stated."""
    wrong: tuple[Violation, ...] = ()
    faults: tuple[str, ...] = ()
    """Reasons why the certificate proves nothing."""
    source: str = ""
    """Source of the proof of ``bound``."""
    what: str = "objective"
    """Name of the quantity that ``bound`` bounds."""
    sense: Sense = Sense.MIN

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on a checked bound for a person."""
        sign = "≥" if self.sense is Sense.MIN else "≤"
        words = f"{self.source} proves that every plan has {self.what} {sign} {self.bound or 0.0:g}"
        proven = () if self.bound is None else (words,)
        return (*proven, *self.faults, *((UNCHECKED,) if self.checked is False else ()))


def check_bound(
    problem: Problem[Any], verdict: Verdict, fields: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None
) -> Proof:
    """Compute the bound from a certificate's arrays, or from the instance alone where the kind can.

    A certificate must reach the stated bound and not pass the objective. A bound of one of our heuristics that comes
    without a certificate must not pass what the instance alone proves. A bound of an exact solver that nothing here
    proves is not wrong; it is not checked.

    Args:
        problem: the instance.
        verdict: the verifier's, of the plan.
        fields: what ``plan.toml`` says.
        arrays: the certificate; None where there is none.

    Raises:
        PlanError: there is a certificate and the kind of problem has none.
    """
    kind = kind_of(problem)
    if arrays is not None and kind.verification.certified_bound is None:
        raise PlanError([Fault("certificate.npz", f"no such file in a plan for {kind.name}")])
    order = problem.objective.order
    stated = first_bound(fields, order)
    what = order[0] if order else "objective"
    wrong: list[Violation] = []
    faults: tuple[str, ...] = ()
    bound, source = None, ""
    if arrays is not None and kind.verification.certified_bound is not None:
        try:
            bound, source = kind.verification.certified_bound(problem, arrays), "certificate.npz"
        except PlanError as error:
            wrong.append(Violation("certificate", (), 0.0 if stated is None else stated, 0.0, "proven"))
            faults = tuple(map(str, error.faults))
    elif kind.verification.instance_bound is not None:
        bound, source = kind.verification.instance_bound(problem), "the instance alone"
    sense = problem.sense
    if stated is not None and bound is not None and not _reaches(bound, stated, sense):
        if arrays is not None:
            wrong.append(Violation("bound", (), abs(stated - bound), bound, "as certificate.npz proves"))
        elif _is_heuristic(kind, fields):
            wrong.append(Violation("bound", (), stated - bound, bound, "as the instance alone proves"))
    reached = verdict.terms[order[0]] if order else verdict.objective
    if bound is not None and sense.within(bound, reached) != bound and not close(bound, reached):
        side = "above the objective" if sense is Sense.MIN else "below the objective"
        wrong.append(Violation("certificate", (), abs(bound - reached), reached, side))
    return Proof(bound, _checked(fields, order, bound, sense), tuple(wrong), faults, source, what, sense)


def _reaches(bound: float, stated: float, sense: Sense = Sense.MIN) -> bool:
    """Whether a recomputed bound reaches the one that ``plan.toml`` states."""
    return sense.minimised(bound - stated) >= -PROVEN * max(1.0, abs(stated))


def _is_heuristic(kind: Kind[Any, Any], fields: Mapping[str, Any]) -> bool:
    """Whether the stated bound is one of our heuristic's for the whole instance. With a frozen part it is that of the
    rest."""
    return text_in(fields, "solver") in kind.solvers.heuristics and not fields.get("frozen")


def first_bound(fields: Mapping[str, Any], order: tuple[str, ...]) -> float | None:
    """The stated bound on the objective, or on the first term of a lexicographic one."""
    if not order:
        return number_in(fields, "bound")
    return next((number_in(stage, "bound") for stage in stages_in(fields) if stage.get("term") == order[0]), None)


def _checked(fields: Mapping[str, Any], order: tuple[str, ...], bound: float | None, sense: Sense) -> bool | None:
    """Whether every bound that is stated is proven. No term is below 0, so that no objective made of them is either."""
    terms: list[tuple[str, float | None]] = [(order[0] if order else "", number_in(fields, "bound"))]
    if order:
        stages = [(str(stage.get("term")), number_in(stage, "bound")) for stage in stages_in(fields)]
        terms = stages or terms
    stated = [(term, value) for term, value in terms if value is not None]
    if not stated:
        return None
    if sense is Sense.MAX:
        return bound is not None and all(_reaches(bound, value, sense) for _, value in stated)
    first = order[0] if order else ""
    proven = {first: max(0.0, bound) if bound is not None else 0.0}
    return all(_reaches(proven.get(term, 0.0), value) for term, value in stated)


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
    """Whether a figure that ``plan.toml`` states and the verifier's agree."""
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
