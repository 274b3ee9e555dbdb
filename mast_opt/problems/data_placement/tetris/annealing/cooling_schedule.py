"""Cooling schedule of simulated annealing in tetris: geometric, once or several times, and 0 at the end."""

import numpy as np

from mast_opt.problems.data_placement.tetris.annealing.params import CoolingParams


class Cooling:
    """Temperatures over the course of a search.

    Args:
        unit: mean cost of a workload.
        hot: the first temperature, in such units.
    """

    def __init__(self, unit: float, hot: float, params: CoolingParams) -> None:
        self._unit, self._hot, self.params = unit, hot, params
        self.coolings = 1

    def plan(self, changes_per_workload: float) -> None:
        """Decide how many coolings there is time for and how hot they begin."""
        self.coolings = int(np.clip(changes_per_workload / self.params.longest, 1, self.params.most))
        self._hot *= float(np.clip(changes_per_workload / self.params.unhurried, 0.05, 1.0))

    @property
    def coldest(self) -> float:
        """Last temperature of tetris' cooling above 0."""
        return self._unit * self.params.cold

    def number(self, done: float) -> int:
        """Number of tetris' cooling that runs when that share of the search is done."""
        return min(int(done * self.coolings), self.coolings - 1)

    def temperature(self, done: float) -> float:
        """The temperature of tetris' annealing when that share of the search is done."""
        number = self.number(done)
        return self.within(done * self.coolings - number, self.params.reheat if number else 1.0)

    def within(self, done: float, times: float) -> float:
        """The temperature of tetris' annealing when that share of one cooling is done, which begins so many times as
        hot as the first.
        """
        cold = self.params.cold
        done /= 1 - self.params.finish
        if done >= 1:
            return 0.0
        hot = max(self._hot * times, cold)
        return self._unit * hot * float((cold / hot) ** done)
