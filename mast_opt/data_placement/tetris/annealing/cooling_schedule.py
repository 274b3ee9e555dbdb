"""Cooling schedule of simulated annealing in tetris: geometric, once or several times, and 0 at the end."""

from __future__ import annotations

import numpy as np

HOT, COLD = 1.0, 0.0024
"""First and last temperature, in units of the mean cost of a workload."""
BOUND, GPUS_ALONE = 4.0, 16.0
"""First temperature, relative to ``HOT``, where work moves only with its data, or where only GPU terms count: most
changes cost far more than the mean then."""
WARM, LATER = 0.05, 0.3
"""First temperature when a plan is given to start from: it should be improved, not dissolved. And when it is that of
the terms before, whose values are a price so steep that little of it can be dissolved."""
REHEAT = 0.5
"""First temperature of a later cooling, relative to the first one's."""
LONGEST = 100_000
"""Changes per workload beyond which slower cooling is no better than cooling again from the best plan."""
UNHURRIED = 1_000
"""Changes per workload with which it pays to begin at the hottest; with fewer, proportionally colder."""
MOST = 50
"""Coolings that there are at most."""
FINISH = 0.06
"""Share of a cooling that is spent at temperature 0."""


class Cooling:
    """Temperatures over the course of a search.

    Args:
        unit: mean cost of a workload.
        hot: the first temperature, in such units.
    """

    def __init__(self, unit: float, hot: float = HOT) -> None:
        self._unit = unit
        self._hot = hot
        self.coolings = 1

    def plan(self, changes_per_workload: float) -> None:
        """Decide how many coolings there is time for and how hot they begin."""
        self.coolings = int(np.clip(changes_per_workload / LONGEST, 1, MOST))
        self._hot *= float(np.clip(changes_per_workload / UNHURRIED, 0.05, 1.0))

    @property
    def coldest(self) -> float:
        """The last temperature but 0."""
        return self._unit * COLD

    def number(self, done: float) -> int:
        """Which cooling it is when that share of the search is done."""
        return min(int(done * self.coolings), self.coolings - 1)

    def temperature(self, done: float) -> float:
        """The temperature when that share of the search is done."""
        number = self.number(done)
        return self.within(done * self.coolings - number, REHEAT if number else 1.0)

    def within(self, done: float, times: float) -> float:
        """The temperature when that share of one cooling is done, which begins so many times as hot as the first."""
        done /= 1 - FINISH
        if done >= 1:
            return 0.0
        hot = max(self._hot * times, COLD)
        return self._unit * hot * float((COLD / hot) ** done)
