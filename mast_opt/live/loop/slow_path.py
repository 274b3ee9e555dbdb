"""Slow paths: what asks for a plan now and then, and says which steps lead to it once it is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mast_opt.live.loop.events import PlanStep
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.problems.kind.problem import Problem


@dataclass(frozen=True)
class Question:
    """An instance to be solved."""

    problem: Problem[Any]
    checksum: str


@dataclass(frozen=True)
class Planned:
    """A plan, and the instance as it was when it was asked for: hours ago, as solving takes time."""

    problem: Problem[Any]
    plan: Any


@dataclass(frozen=True)
class CarriedOut:
    """Steps to be taken for a plan."""

    steps: tuple[PlanStep, ...]
    dropped: tuple[str, ...] = ()
    """Parts of the plan that no longer fit, in words."""
    ratios: Mapping[int, float] | None = None
    """Ratios of the event ``PlanAdopted``."""


class SlowPath(Protocol):
    """Asks for plans.

    Everything it needs is in the snapshot, so that it goes on after a restart.
    """

    name: str
    every_ms: int
    """It asks at the multiples of this time, unless it waits for an answer still."""

    def ask(self, snapshot: Snapshot) -> Question | None:
        """The question that a slow path asks of a solver: the instance of now; None if there is nothing to plan."""
        ...

    def carry_out(self, snapshot: Snapshot, planned: Planned) -> CarriedOut:
        """The steps from now to a plan, without those that no longer fit."""
        ...
