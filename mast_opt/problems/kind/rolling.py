"""How one period of a kind of problem leads to the next: one after another, or all in one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.transforms import Extension


@dataclass(frozen=True, eq=False)
class Stage:
    """One period in a program of several."""

    problem: Any
    mip: Mip
    """Program of the period alone."""
    columns: IntArray
    """Positions of its columns in the joint program."""
    first_row: int
    """Position of its first row in the joint program."""


@dataclass(frozen=True, eq=False)
class Link:
    """Columns and rows that two periods in a row have in common."""

    extension: Extension
    cost: FloatArray
    """Costs of the new columns."""
    values: Callable[[FloatArray], FloatArray]
    """Values of the columns so far → those of the new columns, as cheap as they can be."""


@dataclass(frozen=True)
class JointProgram:
    """How the periods of a kind of problem are stated as one program."""

    fresh: Callable[[Any], Any]
    """The instance of a period without a plan before it."""
    refusal: Callable[[Sequence[Any], Sequence[str]], str]
    """(instances, keys of all changes) → what they have that cannot be stated together; empty for nothing."""
    linked: Callable[[Mip, Stage, Stage], Link]
    """(program so far, a period, the next one) → what joins them."""


@dataclass(frozen=True)
class Rolling:
    """How one period of a kind of problem leads to the next."""

    carried: Callable[[Any, Any], Any]
    """(problem, plan) → the problem in which the plan is the present state."""
    unhurried: Callable[[Any], Any]
    """The problem without limits on how fast the plan is reached."""
    prepared: Callable[[Any, Any], Any]
    """(problem, plan of the next period) → the problem that has to have ready what takes time to make."""
    today: Callable[[Any], Any | None]
    """The present state as a plan; None where it is not known."""
    joint: JointProgram | None = None
    """None where periods are only planned one after another."""
