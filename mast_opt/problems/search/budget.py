"""Search budget shared by the solvers: progress by the clock or by rounds, whichever is further; and rate limits."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mast_opt.problems.search.interface import SearchMonitor

SLICE_S = 0.04
"""Longest time in compiled code, so that limits and interrupts are noticed."""
ROUNDS = 400
"""Rounds when neither a time limit nor a number of rounds is given."""


PARTS = 20.0
"""It takes at most one part in this many of the time."""


class TimeBudget:
    """The course of one search, from its first moment on.

    Args:
        budget_s: seconds that it may take; without a meaning where there is no time limit.
        rounds: how many there are where neither a time limit nor a number of rounds is given.
    """

    def __init__(self, watch: SearchMonitor, budget_s: float, rounds: int = ROUNDS) -> None:
        self._watch, self._begin_s, self._budget_s = watch, watch.elapsed_s, max(budget_s, 1e-9)
        self._rounds = rounds

    @property
    def counted(self) -> bool:
        """Whether a search's rounds are counted, so that the clock must have no say in what is found."""
        return self._watch.stop.iterations is not None

    @property
    def rounds(self) -> int:
        """Rounds of a search in all, where the clock does not end them."""
        iterations = self._watch.stop.iterations
        return self._rounds if iterations is None else max(iterations, 1)

    @property
    def done(self) -> float:
        """Share of the search that is over, 0 to 1."""
        timed = self._watch.stop.time_limit_s is not None
        shares = [(self._watch.elapsed_s - self._begin_s) / self._budget_s if timed else 0.0]
        if self.counted or not timed:
            shares.append(self._watch.round / self.rounds)
        return max(shares)

    def in_all(self, round_s: float) -> float:
        """Rounds of a search, of that many seconds, that there is time for."""
        return self._budget_s / round_s if self.by_clock else float(self.rounds)

    @property
    def rounds_left(self) -> float:
        """Rounds of a search that there is time for, as long as those so far; infinite before the first."""
        if not self.by_clock:
            return float(self.rounds - self._watch.round)
        return (1 - self.done) * self._watch.round / self.done if self._watch.round else math.inf

    def cancelled(self) -> bool:
        """Whether somebody has asked the search to end."""
        return self._watch.stop.cancel.is_set()

    def after(self, share: float) -> "TimeBudget":
        """The rest of the search, once that share of it is done."""
        return _Remainder(self, share)

    def over(self) -> bool:
        """Whether the search is cancelled, or its time over, within a round."""
        return self.cancelled() or (self.by_clock and self.done >= 1.0)

    @property
    def by_clock(self) -> bool:
        """Whether the clock ends the search."""
        return self._watch.stop.time_limit_s is not None and not self.counted


class _Remainder(TimeBudget):
    """The course of a search from some share of it on."""

    def __init__(self, whole: TimeBudget, begin: float) -> None:
        self.__dict__.update(whole.__dict__)
        self._begin = begin

    @property
    def done(self) -> float:
        """Share of the rest of a search that is over, 0 to 1."""
        return max(0.0, (super().done - self._begin) / (1 - self._begin))

    def in_all(self, round_s: float) -> float:
        """Rounds of that many seconds that the rest of a search has time for."""
        return super().in_all(round_s) * (1 - self._begin)


class Throttle:
    """Says when something is due again, by how long it took the last time."""

    def __init__(self) -> None:
        self._again_s = 0.0

    @property
    def due(self) -> bool:
        """Whether a search may do now what is done only now and then."""
        return time.perf_counter() >= self._again_s

    @contextmanager
    def doing(self) -> Iterator[None]:
        """Measure the block, and let a multiple of its time pass before the next."""
        began = time.perf_counter()
        yield
        ended = time.perf_counter()
        self._again_s = ended + PARTS * (ended - began)
