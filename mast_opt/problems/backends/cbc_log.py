"""Parser of CBC's log: incumbents, bounds, and the options that it did not understand."""

from __future__ import annotations

import re
from collections import deque

NUMBER = r"(-?[0-9.]+(?:e[+-]?[0-9]+)?)"
INCUMBENT = re.compile(rf"Cbc00(?:04|12|16)I Integer solution of {NUMBER}")
TREE = re.compile(rf"Cbc0010I .* tree, {NUMBER} best solution, best possible {NUMBER}")
PARTIAL = re.compile(rf"Cbc0005I Partial search - best objective {NUMBER} \(best possible {NUMBER}\)")
SIGHTED = re.compile(r"Cbc0038I Solution found of")
RELAXATION = re.compile(rf"Continuous objective value is {NUMBER}")
INFEASIBLE = re.compile(r"Problem is infeasible - tightenPrimalBounds!")
"""CBC's last words before it crashes where preprocessing is off: bounds of columns leave a row no room."""
LOWER = re.compile(rf"Lower bound: +{NUMBER}")
MISUNDERSTOOD = re.compile(
    r"No match for|is illegal for|Possible options for|was provided for .* valid range|ambiguous"
)
NONE = 1e49
"""Value from which on CBC means that there is none."""
KEPT_LINES = 15


class CbcLog:
    """Reads CBC's output line by line; objectives are those of the program that it was given."""

    def __init__(self) -> None:
        self.incumbent: float | None = None
        self.bound: float | None = None
        self.sighted = False
        """Whether a heuristic speaks of a solution, though it has not handed it over yet."""
        self.infeasible = False
        self.misunderstood: list[str] = []
        self.tail: deque[str] = deque(maxlen=KEPT_LINES)

    def feed(self, line: str) -> None:
        """Take in one line of CBC's log."""
        self.tail.append(line)
        if MISUNDERSTOOD.search(line):
            self.misunderstood.append(line.strip())
        if found := INCUMBENT.search(line):
            self._solution(found[1])
        elif found := TREE.search(line) or PARTIAL.search(line):
            self._solution(found[1])
            self._bound(found[2], 1e-7, 0.0)
        elif SIGHTED.search(line):
            self.sighted = True
        elif INFEASIBLE.search(line):
            self.infeasible = True
        elif found := RELAXATION.search(line):
            self._bound(found[1], 1e-5, 0.0)
        elif found := LOWER.search(line):
            self._bound(found[1], 0.0, 1e-3)

    def _solution(self, text: str) -> None:
        """Note the value of a solution that the log states."""
        value = float(text)
        if abs(value) < NONE and (self.incumbent is None or value < self.incumbent):
            self.incumbent = value

    def _bound(self, text: str, relative: float, absolute: float) -> None:
        """A bound as printed, less what the printed digits may hide."""
        value = float(text)
        if abs(value) < NONE:
            safe = value - relative * abs(value) - absolute
            self.bound = safe if self.bound is None else max(self.bound, safe)
