"""Small instances: every thread has a plan of its own and cools it again and again.

Gangs are so large there beside what a region has that how a cooling ends is luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from mast_opt.data_placement.tetris.annealing.cooling_schedule import FINISH, Cooling
from mast_opt.data_placement.tetris.annealing.kernel_runs import STEPS, Slices
from mast_opt.data_placement.tetris.annealing.restarts import Beginnings
from mast_opt.data_placement.tetris.decomposition import whole
from mast_opt.data_placement.tetris.instance_arrays import Arrays
from mast_opt.data_placement.tetris.plan_conversion import Snapshot
from mast_opt.data_placement.tetris.search_plan import Searched
from mast_opt.search.budget import ROUNDS, Pace

MOST_WORKLOADS = 500
"""Of an instance that is searched so."""
CHANGES, LEAST = 1_500, 750
"""Changes per workload of a cooling; and changes in all of the last cooling, at least."""
SMALL, MANY = 100, 100
"""Workloads, and coolings so far, beyond which coolings are longer in proportion."""


def changes_of(workloads: int, coolings: int = 0) -> int:
    """Changes of a cooling, after that many."""
    usual = max(CHANGES * workloads, STEPS)
    return int(usual * max(1.0, workloads / SMALL) * max(1.0, coolings / MANY))


def rounds_for(workloads: int) -> int:
    """Rounds where neither a time limit nor a number of rounds is given: as many changes as on larger instances."""
    return max(1, ROUNDS * STEPS // changes_of(workloads))


class Apart:
    """Rounds in which every thread cools a plan of its own, from beginning to end.

    Args:
        beginnings: what the coolings begin from.
    """

    name = "plans at a time"
    frequent = True
    """Is every better plan worth keeping?"""

    def __init__(
        self,
        a: Arrays,
        beginnings: Beginnings,
        plans: list[Searched],
        slices: Slices,
        cooling: Cooling,
        pace: Pace,
        rng: np.random.Generator,
    ) -> None:
        self._a, self._slices, self._cooling, self._pace, self._rng = a, slices, cooling, pace, rng
        self._workloads = len(a.tier)
        self._beginnings = beginnings
        self.plans = plans
        self.coolings = 0
        """How many have begun."""

    def round(self, pool: ThreadPoolExecutor, threads: int, best: Snapshot | None) -> None:
        """One cooling of every plan; a shorter one where that is all there is time for."""
        changes = changes_of(self._workloads, self.coolings)
        if self._pace.rounds_left < 2:
            changes = max(LEAST, int(changes * min(1.0, self._pace.rounds_left)))
        work: list[Future[None]] = []
        for thread in range(threads):
            rng = np.random.default_rng(self._rng.integers(2**63))
            work.append(pool.submit(self._cool, thread, self.coolings, best, rng, changes))
            self.coolings += 1
        for running in work:
            running.result()

    def _cool(self, thread: int, cooling: int, best: Snapshot | None, rng: np.random.Generator, changes: int) -> None:
        plan, over = self.plans[thread], self._pace.over
        beginning, times = self._beginnings.begin(cooling, best, rng)
        plan.go_to(self._a, beginning)
        number = math.ceil((1 - FINISH) * changes / STEPS)
        edges = [self._cooling.within((1 - FINISH) * edge / number, times) for edge in range(number)]
        part = whole(self._a, plan.state)
        steps = int((1 - FINISH) * changes / number)
        plan.cost += self._slices.run(thread, part, steps, zip(edges, [*edges[1:], self._cooling.coldest]), over)
        plan.cost += self._slices.run(thread, part, int(FINISH * changes), [(0.0, 0.0)], over)

    def finish(self, over: Callable[[], bool]) -> None:
        """Every cooling has been finished."""
