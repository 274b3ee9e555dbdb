"""Base of every problem's instances: what all have, and the type of their plans.

Imports no numpy, so that commands can name it without loading anything heavy; ``problem_data`` has the arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from mast_opt.core.sense import Sense
from mast_opt.kind.header import Objective

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
    """Where the data is from."""

    @property
    def sense(self) -> Sense:
        """Whether the objective is minimised or maximised."""
        return Sense.MIN


def with_weights(problem: ProblemT, weights: Mapping[str, float], order: tuple[str, ...]) -> ProblemT:
    """The instance with other weights and another order of the terms of its objective."""
    instance: Any = problem
    changed: ProblemT = replace(instance, objective=replace(instance.objective, weights=weights, order=order))
    return changed
