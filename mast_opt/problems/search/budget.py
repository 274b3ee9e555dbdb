"""Search budget shared by the solvers: progress by the clock or by rounds, whichever is further; and rate limits."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mast_opt.problems.search.interface import SearchMonitor

SLICE_S = 0.04
"""Longest time in seconds that a kernel may run, so that limits and interrupts are noticed."""
ROUNDS = 400
"""Rounds when neither a time limit nor a number of rounds is given."""


PARTS = 20.0
"""Reciprocal of the largest share of time that a throttled action may take."""


class TimeBudget:
    """Progress of one search from its start.

    Args:
        budget_s: seconds that the search may take; ignored without a time limit.
        rounds: number of rounds if neither a time limit nor a number of rounds is given.
    """

    def __init__(self, watch: SearchMonitor, budget_s: float, rounds: int = ROUNDS) -> None:
        self._watch, self._begin_s, self._budget_s = watch, watch.elapsed_s, max(budget_s, 1e-9)
        self._rounds = rounds

    @property
    def counted(self) -> bool:
        """Whether a search is limited by rounds, so that its result must not depend on the clock."""
        return self._watch.stop.iterations is not None

    @property
    def rounds(self) -> int:
        """Total number of rounds of a search that the clock does not end."""
        iterations = self._watch.stop.iterations
        return self._rounds if iterations is None else max(iterations, 1)

    @property
    def done(self) -> float:
        """Completed share of the search, 0 to 1."""
        timed = self._watch.stop.time_limit_s is not None
        shares = [(self._watch.elapsed_s - self._begin_s) / self._budget_s if timed else 0.0]
        if self.counted or not timed:
            shares.append(self._watch.round / self.rounds)
        return max(shares)

    def in_all(self, round_s: float) -> float:
        """Number of rounds of ``round_s`` seconds for which a search has time."""
        return self._budget_s / round_s if self.by_clock else float(self.rounds)

    @property
    def rounds_left(self) -> float:
        """Number of further rounds for which a search has time, at the present pace; infinite before the first
        round."""
        if not self.by_clock:
            return float(self.rounds - self._watch.round)
        return (1 - self.done) * self._watch.round / self.done if self._watch.round else math.inf

    def cancelled(self) -> bool:
        """Whether the search has been asked to end."""
        return self._watch.stop.cancel.is_set()

    def after(self, share: float) -> "TimeBudget":
        """Budget of the rest of the search after ``share`` of it is done."""
        return _Remainder(self, share)

    def over(self) -> bool:
        """Whether a search must stop within a round: it is cancelled, or its time is over."""
        return self.cancelled() or (self.by_clock and self.done >= 1.0)

    @property
    def by_clock(self) -> bool:
        """Whether the clock ends the search."""
        return self._watch.stop.time_limit_s is not None and not self.counted


class _Remainder(TimeBudget):
    """Progress of the rest of a search, from a share of it on."""

    def __init__(self, whole: TimeBudget, begin: float) -> None:
        self.__dict__.update(whole.__dict__)
        self._begin = begin

    @property
    def done(self) -> float:
        """Completed share of the rest of a search, 0 to 1."""
        return max(0.0, (super().done - self._begin) / (1 - self._begin))

    def in_all(self, round_s: float) -> float:
        """Number of rounds of ``round_s`` seconds for which the rest of a search has time."""
        return super().in_all(round_s) * (1 - self._begin)


class Throttle:
    """Rate limit of an action, set by how long it took the last time."""

    def __init__(self) -> None:
        self._again_s = 0.0

    @property
    def due(self) -> bool:
        """Whether a search may perform the throttled action now."""
        return time.perf_counter() >= self._again_s

    @contextmanager
    def doing(self) -> Iterator[None]:
        """Time the block; the action is due again after ``PARTS`` times as long."""
        began = time.perf_counter()
        yield
        ended = time.perf_counter()
        self._again_s = ended + PARTS * (ended - began)
