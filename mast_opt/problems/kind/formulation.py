"""Formulation of a problem as a MIP: the way between columns and plans, and how parts of a plan are fixed in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.kind.problem import PlanT
from mast_opt.problems.mip import Mip

ProblemT = TypeVar("ProblemT")


@dataclass(frozen=True)
class Formulation(Generic[PlanT]):
    """A MIP and the two ways between its columns and a plan."""

    mip: Mip
    decode: Callable[[FloatArray], PlanT]
    """Rounds the integer decisions and recomputes everything that depends on them, exactly."""
    encode: Callable[[PlanT], FloatArray]
    """A value for every column; ``decode(encode(plan))`` is the plan."""
    exact: "Callable[[], Formulation[PlanT]] | None" = None
    """Program with every share an integer number of thousandths; where ``decode`` rounds shares, this is what a plan
    that rounding made infeasible is repaired with. None where nothing is rounded."""


@dataclass(frozen=True)
class FixedParts(Generic[ProblemT, PlanT]):
    """How a named part of a plan is frozen: every row of the decision tables that mentions it, and no other."""

    tables: tuple[str, ...]
    """The tables of the plan that hold decisions; the others follow from them."""
    blocks: Mapping[str, tuple[str | None, ...]]
    """Column block of the formulations → the axis of each of its indices, as the plan's tables name it; None for one
    that cannot be frozen by."""
    groups: Mapping[str, Callable[[ProblemT], tuple[str, tuple[str, ...], NDArray[np.int64]]]] = field(
        default_factory=dict
    )
    """Further names for parts (``region`` of servers) → (axis, labels of the groups, group of each position)."""
    rules: Callable[[ProblemT, PlanT, Mapping[str, NDArray[np.int64]]], ProblemT] | None = None
    """(problem, plan, axis → positions) → the problem with rules that hold those parts, for heuristics. Raises
    UnsupportedOption where no rule can say so. None: heuristics of this kind cannot keep parts."""
    settles: bool = False
    """True if every decision is a yes or no, or a share, so that a last pass counts the rows in which two plans
    differ."""
