"""Racing of annealing runs in twine: those that lag behind others at the same temperature are given up.

Which of them go on is asynchronous successive halving (Li et al., MLSys 2020). Parameters are those of ``RaceParams``.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Iterable

import numpy as np

from mast_opt.problems.task_reassignment.twine.params import RaceParams


class Runner:
    """One cooling in a race: its energies at the rungs."""

    def __init__(self, params: RaceParams) -> None:
        self._params = params
        self.behind = False
        """Whether enough others had less at a rung."""
        self.energies: list[float] = []
        """Energies at the rungs that it has passed, and at the one where it has just arrived."""
        self.judged = 0
        """Rungs at which it has been compared."""
        self._window: list[float] = []

    def pace(self, part: float) -> float:
        """Part of the cooling that is done after this part of the time."""
        return float(np.interp(part, self._params.pace_parts, self._params.pace_at))

    def observe(self, part: float, energy: float) -> None:
        """Record the energy after that part of the cooling's time."""
        rungs, rung = self._params.rungs, len(self.energies)
        if rung == len(rungs) or part < rungs[rung] - self._params.window:
            return
        self._window.append(energy)
        if part >= rungs[rung]:
            self.energies.append(math.fsum(self._window) / len(self._window))
            self._window.clear()


class Racing:
    """Race of coolings: the energies that all of them had at each rung."""

    def __init__(self, params: RaceParams) -> None:
        self._params = params
        self._seen: list[list[float]] = [[] for _ in params.rungs]

    def judge(self, runners: Iterable[Runner]) -> None:
        """Compare those that have arrived at a rung since the last time with all that have been there."""
        arrived = [runner for runner in runners if len(runner.energies) > runner.judged]
        for runner in arrived:
            insort(self._seen[runner.judged], runner.energies[-1])
        for runner in arrived:
            seen = self._seen[runner.judged]
            ahead = bisect_left(seen, runner.energies[-1])
            runner.behind = ahead >= max(1.0, self._params.survivors[runner.judged] * len(seen))
            runner.judged += 1

    def remove(self, runner: Runner) -> None:
        """Drop the energies of a cooling that was lost: others are not compared with them."""
        for seen, energy in zip(self._seen, runner.energies[: runner.judged], strict=False):
            seen.remove(energy)
