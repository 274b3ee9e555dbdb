"""How far a search has come: by the clock, by rounds, or whichever of the two is further."""

from __future__ import annotations

from mast_opt.search import Watch

SLICE_S = 0.04
"""Longest time in compiled code, so that limits and interrupts are noticed."""
ROUNDS = 400
"""Rounds when neither a time limit nor a number of rounds is given."""


class Pace:
    """The course of one search, from its first moment on.

    Args:
        budget_s: seconds that it may take; without a meaning where there is no time limit.
    """

    def __init__(self, watch: Watch, budget_s: float) -> None:
        self._watch, self._begin_s, self._budget_s = watch, watch.elapsed_s, max(budget_s, 1e-9)

    @property
    def counted(self) -> bool:
        """Are rounds counted, so that the clock must have no say in what is found?"""
        return self._watch.stop.iterations is not None

    @property
    def rounds(self) -> int:
        """Rounds in all, where the clock does not end them."""
        iterations = self._watch.stop.iterations
        return ROUNDS if iterations is None else max(iterations, 1)

    @property
    def done(self) -> float:
        """How much of the search is over, 0 to 1."""
        timed = self._watch.stop.time_limit_s is not None
        shares = [(self._watch.elapsed_s - self._begin_s) / self._budget_s if timed else 0.0]
        if self.counted or not timed:
            shares.append(self._watch.round / self.rounds)
        return max(shares)

    def ahead(self, round_s: float) -> float:
        """How much of the search a round of that many seconds is."""
        return round_s / self._budget_s if self._by_clock else 1 / self.rounds

    def in_all(self, round_s: float) -> float:
        """Rounds of that many seconds that there is time for."""
        return self._budget_s / round_s if self._by_clock else float(self.rounds)

    @property
    def _by_clock(self) -> bool:
        return self._watch.stop.time_limit_s is not None and not self.counted
