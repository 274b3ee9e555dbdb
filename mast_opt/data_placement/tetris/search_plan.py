"""A plan under search, with its cost as the changes add up."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.data_placement.tetris.instance_arrays import Arrays
from mast_opt.data_placement.tetris.plan_conversion import Snapshot, restore
from mast_opt.data_placement.tetris.state import State, cost, excess, forbidden


@dataclass(eq=False)
class Searched:
    """Changes never exceed a hard limit that holds, so a feasible plan stays feasible but for forbidden reads, which
    come back where they save more than the price that stands for one."""

    state: State
    cost: float
    feasible: bool = False
    """Were all hard limits kept when that was last looked at?"""

    def settle(self, a: Arrays, refuse: bool) -> None:
        """Look again whether the limits hold; changes out of exceeded ones were rewarded beyond their cost."""
        if not self.feasible:
            self.feasible = excess(a, self.state, refuse) == 0
            self.cost = cost(a, self.state)

    def legal(self, a: Arrays) -> bool:
        """Is the plan within the hard limits, without a forbidden read?"""
        return self.feasible and forbidden(a, self.state) == 0

    def go_to(self, a: Arrays, snapshot: Snapshot) -> None:
        """Become another plan, keeping the random numbers."""
        restore(a, self.state, snapshot)
        self.cost, self.feasible = cost(a, self.state), False
