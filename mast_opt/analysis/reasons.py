"""Why a workload, job or process runs where it runs: what else could be done with it, and what keeps it from that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mast_opt.kind import Kind
from mast_opt.questions import Alternative, Choices
from mast_opt.verdict import Verdict, Violation

SAME = 1e-12
"""Relative difference below which a term did not change."""


@dataclass(frozen=True)
class Option:
    """Something else that could be done with one thing, everything else left as it is."""

    words: str
    """What would be done: "in west on A100, with copies of its data"."""
    place: str
    change: float | None
    """Of the weighted objective; above 0 is worse than the plan. None where no such plan can be stated."""
    terms: Mapping[str, float]
    """Change of each term that changes, unweighted."""
    forbidden: tuple[str, ...]
    """The limits that forbid it, in words; empty where it is possible."""


@dataclass(frozen=True)
class Reasons:
    """One thing, where it runs, and its alternatives: the possible ones first, cheapest first."""

    name: str
    now: str
    """In words, verb included: "runs in east on A100"."""
    options: tuple[Option, ...]

    @property
    def sentence(self) -> str:
        """Why it is where it is."""
        possible = [option for option in self.options if not option.forbidden]
        if not possible:
            return f"{self.name} {self.now}: limits forbid every alternative while all else stays."
        best, change = possible[0], possible[0].change or 0.0
        if change > 0:
            return f"{self.name} {self.now}: the next best, {best.words}, costs {change:.4g} more."
        if change < 0:
            return f"{self.name} {self.now}, but {best.words} would cost {-change:.4g} less."
        return f"{self.name} {self.now}: {best.words} would cost the same."


def reasons(kind: Kind[Any, Any], choices: Choices, problem: Any, plan: Any, position: int) -> Reasons:
    """Every alternative, measured by the verifier on the changed plan."""
    before = kind.verify(problem, plan)
    weights = problem.objective.weights
    options = [
        _option(kind, choices, problem, before, weights, alternative)
        for alternative in choices.alternatives(problem, plan, position)
    ]
    options.sort(key=lambda option: (bool(option.forbidden), math.inf if option.change is None else option.change))
    name = choices.names(problem)[position]
    return Reasons(name, f"{choices.verb} {choices.now(problem, plan, position)}", tuple(options))


def _option(
    kind: Kind[Any, Any],
    choices: Choices,
    problem: Any,
    before: Verdict,
    weights: Mapping[str, float],
    alternative: Alternative,
) -> Option:
    if alternative.plan is None:
        return Option(alternative.words, alternative.place, None, {}, (alternative.why_not,))
    after = kind.verify(problem, alternative.plan)
    known = {_key(violation): violation.amount for violation in before.violations}
    broken = [violation for violation in after.violations if violation.amount > known.get(_key(violation), 0.0)]
    terms = {
        name: after.terms[name] - value
        for name, value in before.terms.items()
        if abs(after.terms[name] - value) > SAME * max(1.0, abs(value))
    }
    change = sum(weights[name] * value for name, value in terms.items())
    forbidden = tuple(dict.fromkeys(choices.phrase(problem, violation) for violation in broken))
    return Option(alternative.words, alternative.place, change, terms, forbidden)


def _key(violation: Violation) -> tuple[str, tuple[str, ...]]:
    return violation.constraint, violation.index
