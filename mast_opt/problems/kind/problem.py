"""Base of every problem's instances: what all have, and the type of their plans.

Imports no numpy, so that commands can name it without loading anything heavy; ``problem_data`` has the arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeVar

from mast_opt.core.errors import UsageError
from mast_opt.core.sense import Sense
from mast_opt.core.wording import did_you_mean
from mast_opt.problems.kind.header import Objective

PlanT = TypeVar("PlanT")
ProblemT = TypeVar("ProblemT", bound="Problem[Any]")


class Problem(Generic[PlanT]):
    """An instance of some kind of problem whose plans are of type ``PlanT``.

    A type checker follows that type from the instance to its solution: ``solve`` of a ``DataPlacement`` returns a
    ``Solution`` whose plan is a ``data_placement.Plan``.
    """

    kind: ClassVar[str]
    """Hyphenated name of the kind, as in files."""
    name: str
    objective: Objective
    provenance: str
    """Source of the data."""

    @property
    def sense(self) -> Sense:
        """Whether the objective is minimised or maximised."""
        return Sense.MIN

    @property
    def gap_scale(self) -> float:
        """Denominator of the gap where the objective is closer to 0; 0 for objectives that only nothing makes 0."""
        return 0.0

    def with_objective(self, weights: Mapping[str, float] | None = None, order: Sequence[str] | None = None) -> Self:
        """The instance with other weights, or with another order, of the terms of its objective.

            problem.with_objective({"remote": 500.0})
            problem.with_objective(order=("overload", "peak", "storage"))

        Args:
            weights: term → weight; the other terms keep theirs.
            order: the terms that are minimised one after another; empty for a weighted sum. None keeps what it is.

        Raises:
            UsageError: a name that is no term, a weight that is not a number from 0 to ``MOST_WEIGHT``, or an
                objective that is a policy.
        """
        objective, weights = self.objective, dict(weights or {})
        if objective.policy:
            raise UsageError(f"{self.name} is a {self.kind} instance: it has a policy ({objective.policy}), no weights")
        for name in (*weights, *(order or ())):
            if name not in objective.weights:
                known, near = ", ".join(objective.weights), did_you_mean(name, tuple(objective.weights))
                raise UsageError(f"{self.kind} has no term called {name!r}; expected some of: {known}{near}")
        changed = replace(
            objective,
            weights={**objective.weights, **weights},
            order=objective.order if order is None else tuple(order),
        )
        return replace(self, objective=changed)  # type: ignore[type-var]

    def with_limits(self, limits: Mapping[str, float | str | Fraction | None]) -> Self:
        """The instance with other limits on the whole plan; the others stay. Data placement has them.

            problem.with_limits({"copied_tb": 12, "moved_work": 0.1})

        Args:
            limits: name → the most that there may be of it, None for no limit.

        Raises:
            UsageError: a name that this kind of problem does not have, or a value that is no number of at least 0.
        """
        if limits:
            raise UsageError(f"{self.name} is a {self.kind} instance; limits on a whole plan are for data-placement")
        return self

    def with_copies_min(self, copies: Mapping[str, int]) -> Self:
        """The instance with another number of replicas at least of these datasets. Data placement has them.

        Raises:
            UsageError: a dataset that there is not, or a number that it cannot have.
        """
        if copies:
            raise UsageError(f"{self.name} is a {self.kind} instance; numbers of copies are for data-placement")
        return self

    def with_replicas(self, replicas: Mapping[str, Sequence[str]]) -> Self:
        """The instance in which regions must hold these datasets. Data placement has them.

        Raises:
            UsageError: a dataset or a region that there is not, or a region where the dataset may not be.
        """
        if replicas:
            raise UsageError(f"{self.name} is a {self.kind} instance; replicas are for data-placement")
        return self
