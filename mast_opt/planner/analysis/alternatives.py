"""Alternatives analysis: why a workload runs, or a dataset is stored, where it is, and what keeps it from elsewhere."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mast_opt.core.sense import Sense
from mast_opt.core.verdict import Verdict, Violation
from mast_opt.problems.kind.analysis_hooks import Alternative, Decisions
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.search.lexicographic import STAGE_SLACK_ABSOLUTE, STAGE_SLACK_RELATIVE

SAME = 1e-12
"""Relative difference below which a term did not change."""


@dataclass(frozen=True)
class Option:
    """Something else that could be done with one thing, everything else left as it is."""

    words: str
    """The change, in words: "in west on A100, with copies of its data"."""
    place: str
    change: float | None
    """Change of the weighted objective, or of the term that ``decides``; above 0 is worse where less is better. None
    where no such plan can be stated."""
    terms: Mapping[str, float]
    """Change of each term that changes, unweighted."""
    forbidden: tuple[str, ...]
    """The limits that forbid it, in words; empty where it is possible."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Contribution of each term with a weight to ``change``; they add up to it. Empty where the objective is
    lexicographic or has a policy."""
    decides: str | None = None
    """The first term of a lexicographic objective that changes by more than a later one may cost it; None where none
    does, and with a weighted objective."""


@dataclass(frozen=True)
class Reasons:
    """One thing, where it runs, and its alternatives: the possible ones first, cheapest first."""

    name: str
    now: str
    """The present choice in words, verb included: "runs in east on A100"."""
    options: tuple[Option, ...]
    sense: Sense = Sense.MIN
    """Direction of the objective."""

    @property
    def sentence(self) -> str:
        """One sentence that says why a workload or dataset is where it is."""
        possible = [option for option in self.options if not option.forbidden]
        if not possible:
            return f"{self.name} {self.now}: limits forbid every alternative while all else stays."
        best, worse = possible[0], self.sense.minimised(possible[0].change or 0.0)
        of = "" if best.decides is None else f" in {best.decides}"
        verb, more, less = ("cost", "more", "less") if self.sense is Sense.MIN else ("give", "less", "more")
        if worse > 0:
            return f"{self.name} {self.now}: the next best, {best.words}, {verb}s {worse:.4g} {more}{of}."
        if worse < 0:
            return f"{self.name} {self.now}, but {best.words} would {verb} {-worse:.4g} {less}{of}."
        return f"{self.name} {self.now}: {best.words} would {verb} the same."


def grouped(options: Sequence[Option]) -> list[tuple[Option, int]]:
    """Options that differ in nothing but where: the first of each, and how many others are like it."""
    found: dict[object, tuple[Option, int]] = {}
    for option in options:
        parts = tuple((name, f"{value:.4g}") for name, value in (option.parts or option.terms).items())
        where = option.words.replace(option.place, "")
        alike = (where, None if option.change is None else f"{option.change:.4g}", parts, bool(option.forbidden))
        key = (*alike, tuple(words.replace(option.place, "") for words in option.forbidden))
        first, count = found.get(key, (option, -1))
        found[key] = (first, count + 1)
    return list(found.values())


def reasons(kind: Kind[Any, PlanT], choices: Decisions, problem: Problem[PlanT], plan: PlanT, position: int) -> Reasons:
    """Every alternative, measured by the verifier on the changed plan."""
    before = kind.verification.verify(problem, plan)
    ranked = [
        _ranked(kind, choices, problem, before, alternative)
        for alternative in choices.alternatives(problem, plan, position)
    ]
    ranked.sort(key=lambda one: (bool(one[1].forbidden), one[0]))
    name = choices.names(problem)[position]
    options = tuple(option for _, option in ranked)
    return Reasons(name, f"{choices.verb} {choices.now(problem, plan, position)}", options, problem.sense)


def _ranked(
    kind: Kind[Any, Any], choices: Decisions, problem: Problem[Any], before: Verdict, alternative: Alternative
) -> tuple[tuple[float, ...], Option]:
    """The option with its rank: how much worse it is, in the objective or in each of its terms in order."""
    if alternative.plan is None:
        return (math.inf,), Option(alternative.words, alternative.place, None, {}, (alternative.why_not,))
    after = ruled = kind.verification.verify(problem, alternative.plan)
    if alternative.freed is not None:
        after = kind.verification.verify(alternative.freed, alternative.plan)
    known = {_key(violation): violation.amount for violation in before.violations}
    everything = (*(one for one in ruled.violations if choices.lasting(one)), *after.violations)
    broken = [violation for violation in everything if violation.amount > known.get(_key(violation), 0.0)]
    terms = {
        name: after.terms[name] - value
        for name, value in before.terms.items()
        if abs(after.terms[name] - value) > SAME * max(1.0, abs(value))
    }
    rank = _rank(problem.objective, before, terms)
    if problem.objective.policy:
        worse = problem.sense.minimised(after.objective - before.objective)
        rank = (worse if abs(worse) > SAME * max(1.0, abs(before.objective)) else 0.0,)
    at = next((at for at, value in enumerate(rank) if value), 0)
    decides = problem.objective.order[at] if problem.objective.lexicographic and rank[at] else None
    broken.sort(key=lambda violation: not choices.lasting(violation))
    forbidden = tuple(dict.fromkeys(choices.phrase(problem, violation) for violation in broken))
    change = problem.sense.minimised(rank[at]) + 0.0  # never −0
    weights = {} if problem.objective.lexicographic or problem.objective.policy else problem.objective.weights
    parts = {name: weights[name] * value for name, value in terms.items() if weights.get(name)}
    return rank, Option(alternative.words, alternative.place, change, terms, forbidden, parts, decides)


def _rank(objective: Objective, before: Verdict, terms: Mapping[str, float]) -> tuple[float, ...]:
    """Rank of an alternative: the change of the weighted sum, or of each term in order, where it is more than a later
    one may cost it.
    """
    if not objective.lexicographic:
        return (sum(objective.weights[name] * value for name, value in terms.items()),)
    changes = ((terms.get(name, 0.0), before.terms[name]) for name in objective.order)
    return tuple(
        change if abs(change) > value * STAGE_SLACK_RELATIVE + STAGE_SLACK_ABSOLUTE else 0.0
        for change, value in changes
    )


def _key(violation: Violation) -> tuple[str, tuple[str, ...]]:
    """Limit and index of a violation, by which two verdicts are compared."""
    return violation.constraint, violation.index
