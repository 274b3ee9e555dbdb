"""Parallel annealing of one data-placement plan (tetris): each thread a part of it, in one long cooling or a few."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.data_placement.tetris.annealing.cooling_schedule import Cooling
from mast_opt.problems.data_placement.tetris.annealing.kernel import KernelRuns
from mast_opt.problems.data_placement.tetris.decomposition import Subproblem, decompose, merge, undivided
from mast_opt.problems.data_placement.tetris.incumbent import Assignment, SearchPlan
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.search.budget import SLICE_S, TimeBudget

WORKLOADS_PER_SLICE = 50_000
"""A round has one slice for every so many workloads: splitting a plan into parts takes time that grows with them."""


class ParallelAnnealing:
    """Rounds in which every thread has a part of the plan, drawn every round; the temperature follows the clock."""

    name = "parts"
    frequent = False
    """True if every better plan is copied, which takes time where plans are large."""

    def __init__(
        self,
        a: TetrisArrays,
        plan: SearchPlan,
        slices: KernelRuns,
        cooling: Cooling,
        pace: TimeBudget,
        rng: np.random.Generator,
        random: list[NDArray[np.uint64]],
    ) -> None:
        self._a, self.slices, self.pace, self._rng, self._random = a, slices, pace, rng, random
        self.plans, self.cooling = [plan], cooling
        self._workloads = len(plan.state.region)
        self._times = 1 + self._workloads // WORKLOADS_PER_SLICE
        self._steps = slices.params.slice_changes
        self.slice_s = SLICE_S
        """Seconds that a slice took in the last round."""
        self._number, self._planned = 0, False

    def round(self, pool: ThreadPoolExecutor, threads: int, best: Assignment | None) -> None:
        """Round of tetris: each part takes its share of the changes; a later cooling begins from the best plan."""
        plan, done = self.plans[0], self.pace.done
        if self.cooling.number(done) != self._number:
            self._number = self.cooling.number(done)
            if best is not None:
                plan.go_to(self._a, best)
        parts = decompose(self._a, plan.state, self._rng, self._random[:threads])
        level = self.cooling.temperature(done)
        work: list[Future[float]] = [
            pool.submit(self._change, thread, part, level) for thread, part in enumerate(parts)
        ]
        changes = [running.result() for running in work]
        plan.cost += sum(changes) + merge(self._a, plan.state, parts)
        if not self._planned:
            self._planned = True
            self._plan_cooling()
        if not self.pace.counted:
            self._steps = int(np.clip(self._steps * SLICE_S / self.slice_s, 500, 50 * self.slices.params.slice_changes))

    def _change(self, thread: int, part: Subproblem, level: float) -> float:
        """Run the slices of annealing in tetris of one part. They are timed here: they may have to wait for
        a thread.
        """
        began = time.perf_counter()
        change = self.slices.run(thread, part, self._steps, [(level, level)] * self._times, self.pace.cancelled)
        self.slice_s = max((time.perf_counter() - began) / self._times, 1e-6)
        return change

    def _plan_cooling(self) -> None:
        """Decide in tetris the course of the temperature, and whether changes are guided, by the changes that there is
        time for, as the first round shows.
        """
        rounds = self.pace.in_all(self.slice_s * self._times)
        changes = len(self._random) * self._times * self._steps * rounds / max(self._workloads, 1)
        self.cooling.plan(changes)
        params = self.slices.params
        if changes < params.guided_below and self._workloads >= params.guided_from:
            self.slices.guide()

    def finish(self, over: Callable[[], bool]) -> None:
        """A last pass of tetris that takes improvements only, until it is ``over``."""
        if not over():
            plan, steps = self.plans[0], 4 * min(self._workloads, self.slices.params.slice_changes)
            falls = [(0.0, 0.0)] * self._times
            plan.cost += self.slices.run(0, undivided(self._a, plan.state), steps, falls, over)
