"""Violations that the data-placement verifier finds: positions become labels only for what is broken."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.verdict import Violation
from mast_opt.problems.data_placement.problem import SHARE, Bools, Ints

Labels = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Relation:
    """A table of a plan: its name, the axes of its positions, the positions and share of each row."""

    name: str
    axes: tuple[Labels, ...]
    at: tuple[Ints, ...]
    share: Ints

    def where(self, kept: Bools) -> "Relation":
        """The entries of a data-placement plan's relation under a mask."""
        return Relation(self.name, self.axes, tuple(position[kept] for position in self.at), self.share[kept])


class Violations:
    """Violations, in the order in which they were found."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def report(
        self, name: str, axes: Sequence[Labels], at: Sequence[Ints], excess: Ints, limit: ArrayLike, unit: str
    ) -> None:
        """A violation of data placement for each entry with a positive excess.

        Args:
            at: positions on the axes, one array per axis.
            excess, limit: amounts; those of unit ``share`` come in thousandths.
        """
        broken = np.flatnonzero(excess > 0)
        per = SHARE if unit == "share" else 1
        limits = np.broadcast_to(limit, excess.shape)[broken].tolist()
        positions = [position[broken].tolist() for position in at]
        for over, most, *where in zip(excess[broken].tolist(), limits, *positions):
            self.violations.append(Violation(name, _index(axes, where), over / per, most / per, unit))

    def compare(
        self,
        name: str,
        axes: Sequence[Labels],
        at: Sequence[Ints],
        used: Sequence[int | Fraction],
        limits: Sequence[int | Fraction],
        unit: str,
    ) -> None:
        """A violation of data placement for each row with used > limit; both exact, in thousandths of the unit."""
        for row, (load, limit) in enumerate(zip(used, limits)):
            if load > limit:
                index = _index(axes, [int(position[row]) for position in at])
                self.violations.append(Violation(name, index, float(load - limit) / SHARE, float(limit) / SHARE, unit))

    def sound(self, listed: Relation) -> Relation:
        """The rows of a data-placement plan whose positions and shares are in range. Reports the others, and
        duplicates.

        Raises:
            ValueError: the arrays have different lengths.
        """
        name, axes, at, share = listed.name, listed.axes, listed.at, listed.share
        if any(len(position) != len(share) for position in at):
            raise ValueError(f"the arrays of the plan's relation {name} have different lengths")
        inside = np.ones(len(share), np.bool_)
        for axis, position in zip(axes, at):
            beyond = np.maximum(position - (len(axis) - 1), -position)
            self.report(name, axes, at, beyond, len(axis) - 1, "position")
            inside &= beyond <= 0
        self.report(name, axes, at, share - SHARE, SHARE, "share")
        self.report(name, axes, at, 1 - share, 1, "share")
        kept = listed.where(inside & (share >= 1) & (share <= SHARE))
        if len(kept.share):
            key = np.ravel_multi_index(kept.at, tuple(len(axis) for axis in axes))
            _, first, count = np.unique(key, return_index=True, return_counts=True)
            self.report(name, axes, tuple(position[first] for position in kept.at), count - 1, 1, "rows")
        return kept


def _index(axes: Sequence[Labels], positions: Sequence[int]) -> tuple[str, ...]:
    """Labels at these positions, for a violation of a data-placement plan; numbers where there are none."""
    return tuple(
        axis[position] if 0 <= position < len(axis) else f"#{position}" for axis, position in zip(axes, positions)
    )
