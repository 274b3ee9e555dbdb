"""Verdict of the verifier about a plan."""

from collections.abc import Mapping
from dataclasses import dataclass

from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.wording import plain


@dataclass(frozen=True, slots=True)
class Violation:
    """A hard constraint that a plan breaks."""

    constraint: str
    """Name of the constraint, as in the ``.mod`` and the formulation (``storage``, ``served``, …)."""
    index: tuple[str, ...]
    """Labels of the row, as in ``storage[eu-west]``."""
    amount: float
    """Amount by which the limit is missed, in the constraint's base unit, > 0."""
    limit: float
    """The limit itself, in the same unit."""
    unit: str = ""

    @property
    def name(self) -> str:
        """The constraint with its index: ``storage[R2]``."""
        return f"{self.constraint}[{','.join(self.index)}]" if self.index else self.constraint

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.name}: off by {self.amount:g}{unit} (limit {self.limit:g}{unit})"


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Summarised):
    """Every violation of a plan, and its objective recomputed from the plan alone."""

    violations: tuple[Violation, ...]
    objective: float
    """Σ weight · term."""
    terms: Mapping[str, float]
    """Value of each objective term, unweighted."""
    metrics: Mapping[str, float]
    """Figures for people; not part of the objective."""

    @property
    def ok(self) -> bool:
        """Whether the plan violates nothing."""
        return not self.violations

    def _summary(self) -> Summary:
        """Summary of the verdict: terms, metrics and violations."""
        facts = (
            ("ok", str(self.ok)),
            ("violations", f"{len(self.violations):,}"),
            ("objective", plain(self.objective)),
        )
        terms = tuple((name, plain(value)) for name, value in self.terms.items())
        broken = tuple((violation.name, f"{violation.amount:g} {violation.unit}") for violation in self.violations)
        return Summary("Verdict", facts, ("violation", "off by") if broken else ("term", "value"), broken or terms)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A limit that no plan can meet, seen without solving."""

    constraint: str
    index: tuple[str, ...]
    message: str
    """Description in the words of the domain, with the numbers: what is asked, what there is."""

    def __str__(self) -> str:
        return self.message
