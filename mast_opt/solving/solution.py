"""What ``solve`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mast_opt.core.solve_result import Event, Limit, Status, relative_gap
from mast_opt.core.verdict import Conflict, Verdict
from mast_opt.search.interface import Certificate


@dataclass(frozen=True)
class Stage:
    """One term of a lexicographic objective, minimised under the values of the terms before it."""

    term: str
    objective: float | None
    bound: float | None

    @property
    def gap(self) -> float | None:
        return relative_gap(self.objective, self.bound)


@dataclass(frozen=True)
class Solution:
    """A verified plan, or the reason why there is none.

    ``plan``, ``verdict`` and ``objective`` are present exactly when ``status.has_solution``. The objective
    is the verifier's; with a lexicographic objective it is the value of the first term not proven optimal.
    """

    kind: str
    solver: str
    status: Status
    plan: Any | None
    verdict: Verdict | None
    objective: float | None
    bound: float | None
    """A proven lower bound on the objective, or None."""
    limit: Limit | None
    """The limit that stopped the search, if one did."""
    message: str
    """The solver's own words, or why there was nothing to solve."""
    seed: int
    runtime_s: Mapping[str, float]
    """Seconds spent in formulate, solve and verify."""
    versions: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    term: str | None = None
    """With a lexicographic objective, the term that ``objective`` and ``bound`` are of."""
    conflicts: tuple[Conflict, ...] = ()
    """Limits seen to contradict one another before any solver ran."""
    events: tuple[Event, ...] = ()
    """Incumbent and bound over time."""
    certificate: Certificate | None = None
    """What makes a heuristic's bound checkable; a plan folder keeps it, and ``mast-opt verify`` checks it."""
    frozen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The part of the start that was kept; bound and status are those of the rest."""

    @property
    def gap(self) -> float | None:
        """``(objective − bound) / max(|objective|, 1e-9)``, or None if either is unknown."""
        return relative_gap(self.objective, self.bound)
