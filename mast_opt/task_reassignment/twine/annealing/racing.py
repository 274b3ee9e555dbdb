"""Racing of annealing runs in twine: those that lag behind others at the same temperature are given up.

On the instances of the challenge with 1,000 processes what a cooling ends at is decided while large processes find
their places: among eight to fourteen coolings of an instance, cost at RUNGS[2] and at the end had a correlation of 0.93
to 0.99, at RUNGS[0] one of about 0.7. Which of them go on is asynchronous successive halving (Li et al., MLSys 2020).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable

RUNGS = ((0.45, 1 / 2), (0.6, 1 / 3), (0.75, 0.0))
"""Part of a cooling and the share of all that came so far which goes on, at least the best."""
WINDOW = 0.03
"""Part of a cooling, before a rung, over which its energy is averaged."""


class Runner:
    """One cooling in a race."""

    def __init__(self) -> None:
        self.behind = False
        """Have enough others had less at a rung?"""
        self.energies: list[float] = []
        """At the rungs that it has passed, and at the one where it has just arrived."""
        self.judged = 0
        """Rungs at which it has been compared."""
        self._window: list[float] = []

    def observe(self, part: float, energy: float) -> None:
        """Take note of the energy after that part of the cooling."""
        rung = len(self.energies)
        if rung == len(RUNGS) or part < RUNGS[rung][0] - WINDOW:
            return
        self._window.append(energy)
        if part >= RUNGS[rung][0]:
            self.energies.append(math.fsum(self._window) / len(self._window))
            self._window.clear()


class Racing:
    """What coolings had at each rung."""

    def __init__(self) -> None:
        self._seen: list[list[float]] = [[] for _ in RUNGS]

    def judge(self, runners: Iterable[Runner]) -> None:
        """Compare those that have arrived at a rung since the last time with all that have been there."""
        arrived = [runner for runner in runners if len(runner.energies) > runner.judged]
        for runner in arrived:
            insort(self._seen[runner.judged], runner.energies[-1])
        for runner in arrived:
            seen = self._seen[runner.judged]
            ahead = bisect_left(seen, runner.energies[-1])
            runner.behind = ahead >= max(1.0, RUNGS[runner.judged][1] * len(seen))
            runner.judged += 1

    def strike(self, runner: Runner) -> None:
        """Forget a cooling that came to nothing: others shall not be measured against it."""
        for seen, energy in zip(self._seen, runner.energies[: runner.judged], strict=False):
            seen.remove(energy)
