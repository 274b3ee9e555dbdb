"""Sense of an objective; imports no numpy, so that commands load nothing heavy for their help."""

import enum
from typing import overload


class Sense(enum.Enum):
    """Whether an objective is minimised or maximised; a bound lies on the other side of it."""

    MIN = "min"
    MAX = "max"

    @overload
    def minimised(self, value: float) -> float: ...
    @overload
    def minimised(self, value: None) -> None: ...
    @overload
    def minimised(self, value: float | None) -> float | None: ...
    def minimised(self, value: float | None) -> float | None:
        """The value of an objective or bound as one that is minimised; applied twice, the value itself."""
        return value if value is None or self is Sense.MIN else -value

    @property
    def opposite(self) -> "Sense":
        """The other sense, which is the one in which bounds are tighter."""
        return Sense.MAX if self is Sense.MIN else Sense.MIN

    def best(self, *values: float) -> float:
        """Best of some objective values."""
        return min(values) if self is Sense.MIN else max(values)

    def within(self, bound: float, objective: float) -> float:
        """The bound of a solve, or the objective where rounding has put the bound on its wrong side."""
        return self.best(bound, objective)
