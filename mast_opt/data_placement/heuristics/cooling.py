"""The temperature of the annealing: geometric, once or several times, and 0 at the end."""

from __future__ import annotations

import numpy as np

HOT, COLD = 1.0, 0.0024
"""First and last temperature, in units of the mean cost of a workload."""
BOUND, GPUS_ALONE = 4.0, 16.0
"""First temperature, relative to ``HOT``, where work moves only with its data, or where only GPU terms count: most
changes are dear then beside the mean."""
WARM = 0.05
"""First temperature when a plan is given to start from: it should be improved, not dissolved."""
REHEAT = 0.5
"""First temperature of a later cooling, relative to the first one's."""
LONGEST = 100_000
"""Changes per workload beyond which slower cooling is no better than cooling again from the best plan."""
UNHURRIED = 1_000
"""Changes per workload with which it pays to begin at the hottest; with fewer, proportionally colder."""
AFRESH, LUCKY, MOST = 120, 2_000, 50
"""Workloads up to which every thread has a plan of its own and each cooling begins afresh: gangs are so large there
beside what a region has that how a cooling ends is luck. Changes per workload of each, and most coolings."""
TIMES = (1.0, 4.0, 1.0, 16.0)
"""First temperatures of coolings that begin afresh, in turn: where one dataset fills most of a region, only a hot one
moves it."""
FINISH = 0.06
"""Share of a cooling that is spent at temperature 0."""


class Cooling:
    """Temperatures over the course of a search.

    Args:
        unit: mean cost of a workload.
        warm: is there a plan to start from?
        dearer: how much dearer than usual changes are beside the mean cost of a workload.
        afresh: do later coolings begin from the first plan, not from the best?
    """

    def __init__(self, unit: float, warm: bool, dearer: float = 1.0, afresh: bool = False) -> None:
        self._unit, self._afresh = unit, afresh
        self._hot = (WARM if warm else HOT) * dearer
        self.coolings = 1

    def plan(self, changes_per_workload: float) -> None:
        """Settle how many coolings there is time for and how hot they begin."""
        self.coolings = int(np.clip(changes_per_workload / (LUCKY if self._afresh else LONGEST), 1, MOST))
        self._hot *= float(np.clip(changes_per_workload / UNHURRIED, 0.05, 1.0))

    def number(self, done: float) -> int:
        """Which cooling it is when that share of the search is done."""
        return min(int(done * self.coolings), self.coolings - 1)

    def temperature(self, done: float) -> float:
        """The temperature when that share of the search is done."""
        within = (done * self.coolings - self.number(done)) / (1 - FINISH)
        if within >= 1:
            return 0.0
        number = self.number(done)
        times = TIMES[number % len(TIMES)] if self._afresh else (REHEAT if number else 1.0)
        hot = max(self._hot * times, COLD)
        return self._unit * hot * float((COLD / hot) ** within)
