"""Small instances: every thread has a plan of its own and cools it again and again.

Gangs are so large there beside what a region has that how a cooling ends is luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from mast_opt.data_placement.heuristics.arrays import Arrays
from mast_opt.data_placement.heuristics.construct import scattered_state
from mast_opt.data_placement.heuristics.cooling import FINISH, Cooling
from mast_opt.data_placement.heuristics.pace import ROUNDS, Pace
from mast_opt.data_placement.heuristics.parts import whole
from mast_opt.data_placement.heuristics.plans import Snapshot, decisions
from mast_opt.data_placement.heuristics.searched import Searched
from mast_opt.data_placement.heuristics.slices import STEPS, Slices

MOST_WORKLOADS = 120
"""Of an instance that is searched so."""
CHANGES, LEAST = 2_000, 1_000
"""Changes per workload of a cooling, and of the last cooling at least."""
TIMES = (1.0, 4.0, 1.0, 16.0)
"""First temperatures, in turn: where one dataset fills most of a region, only a hot cooling moves it."""
SCATTERED = 1
"""The cooling of each turn that begins from data in regions drawn at random: no cooling moves what has no room
anywhere else."""


def changes_of(workloads: int) -> int:
    """Changes of a cooling."""
    return max(CHANGES * workloads, STEPS)


def rounds_for(workloads: int) -> int:
    """Rounds where neither a time limit nor a number of rounds is given: as many changes as on larger instances."""
    return max(1, ROUNDS * STEPS // changes_of(workloads))


class Apart:
    """Rounds in which every thread cools a plan of its own, from beginning to end.

    Args:
        first: what most coolings begin from.
    """

    name = "plans at a time"
    frequent = True
    """Is every better plan worth keeping?"""

    def __init__(
        self,
        a: Arrays,
        first: Snapshot,
        plans: list[Searched],
        slices: Slices,
        cooling: Cooling,
        pace: Pace,
        rng: np.random.Generator,
    ) -> None:
        self._a, self._first, self._slices, self._cooling, self._pace = a, first, slices, cooling, pace
        self._rng = rng
        self.plans = plans
        self.coolings = 0
        """How many have begun."""

    def round(self, pool: ThreadPoolExecutor, threads: int, best: Snapshot | None) -> None:
        """One cooling of every plan; a shorter one where that is all there is time for."""
        changes = changes_of(len(self._first.region))
        if self._pace.rounds_left < 2:
            changes = max(LEAST, int(changes * min(1.0, self._pace.rounds_left)))
        work: list[Future[None]] = []
        for thread in range(threads):
            turn = self.coolings % len(TIMES)
            work.append(pool.submit(self._cool, thread, self._beginning(turn), TIMES[turn], changes))
            self.coolings += 1
        for running in work:
            running.result()

    def _beginning(self, turn: int) -> Snapshot:
        if turn != SCATTERED:
            return self._first
        return decisions(scattered_state(self._a, self._slices.refuse, self._rng))

    def _cool(self, thread: int, beginning: Snapshot, times: float, changes: int) -> None:
        plan, over = self.plans[thread], self._pace.over
        plan.go_to(self._a, beginning)
        number = math.ceil((1 - FINISH) * changes / STEPS)
        edges = [self._cooling.within((1 - FINISH) * edge / number, times) for edge in range(number)]
        part = whole(self._a, plan.state)
        steps = int((1 - FINISH) * changes / number)
        plan.cost += self._slices.run(thread, part, steps, zip(edges, [*edges[1:], self._cooling.coldest]), over)
        plan.cost += self._slices.run(thread, part, int(FINISH * changes), [(0.0, 0.0)], over)

    def finish(self, over: Callable[[], bool]) -> None:
        """Every cooling has been finished."""
