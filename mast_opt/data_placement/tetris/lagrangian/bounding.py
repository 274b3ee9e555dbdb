"""Lower bound of tetris: when the Lagrangian relaxation is stepped, and the certificate of what it proves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from mast_opt.data_placement.problem import DataPlacement
from mast_opt.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.data_placement.tetris.lagrangian.tree_cut_relaxation import TreeCutRelaxation, saved_cuts
from mast_opt.data_placement.tetris.stage_objective import StageObjective
from mast_opt.data_placement.tetris.sub_mip.fix_and_optimise import sub_mip_applicable
from mast_opt.data_placement.verification.certificate import Certificate
from mast_opt.data_placement.verification.peak_bound import bin_packing_peak_bound
from mast_opt.search.budget import SLICE_S
from mast_opt.search.interface import SearchContext

ITERATIONS = 5
"""Of the relaxation in a round, where rounds are counted."""
SECONDS_FOR_TREES = 5e-4
"""Seconds for each read and region from which on trees beside the annealing prove more than they cost the plan. Where
neighbourhoods follow, trees are found beside those instead, which keep one thread busy."""
MOST_FOR_TREES = 500_000
"""Reads times regions up to which there are trees at all: more would take gigabytes, and get nowhere."""
ROUNDS_TO_TREES = 4
"""With a single thread, trees have a slice in one of so many rounds."""


class Bounding:
    """The relaxation of a search, with trees where those are worth their time.

    Args:
        a: the problem priced by ``aim``.
        counted: are rounds counted instead of seconds?
        budget_s: of the annealing.
    """

    def __init__(
        self,
        problem: DataPlacement,
        tools: SearchContext,
        aim: StageObjective,
        a: TetrisArrays,
        counted: bool,
        budget_s: float,
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._aim = problem, aim
        self._alone, self._counted = tools.threads == 1, counted
        floor, cells = bin_packing_peak_bound(problem), len(problem.read_workload) * len(problem.regions)
        free = problem.remote_reads and aim.weights["remote"] == 0
        free |= not (a.keep_price.any() or a.new_price.any())
        patient = not counted and cells <= MOST_FOR_TREES and budget_s >= SECONDS_FOR_TREES * cells
        self._treed: TreeCutRelaxation | None = None
        if (sub_mip_applicable(problem) or patient) and not free:
            waits = sub_mip_applicable(problem) and not counted and not self._alone
            self._treed = TreeCutRelaxation(a, floor, problem.splittable, rng, waits)
        self._relaxation = self._treed or Relaxation(a, floor, problem.splittable)

    @property
    def bound(self) -> float:
        return self._relaxation.bound

    @property
    def settled(self) -> bool:
        """Has the bound stopped improving?"""
        return self._relaxation.settled

    def in_round(self, number: int) -> Callable[[], None] | None:
        """What to do in a round where the relaxation has no thread of its own: iterations or a slice of time."""
        planted = self._treed is not None and self._treed.planted
        if self.settled or (planted and not self._counted and number % ROUNDS_TO_TREES):
            return None
        return self._some if self._counted else self._slice

    def _some(self) -> None:
        self._relaxation.step(ITERATIONS)

    def _slice(self) -> None:
        began = time.perf_counter()
        while time.perf_counter() - began < SLICE_S:
            self._relaxation.step(1)

    def until(self, over: threading.Event) -> None:
        """Step on until the bound stands still."""
        while not over.is_set() and not self.settled:
            self._relaxation.step(1)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """While the MIP solver finishes the plan on one thread, go on with trees on another."""
        if self._alone or self._counted or self._treed is None:
            yield
            return
        self._treed.go_on()
        over = threading.Event()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="mast-opt-tetris") as pool:
            running = pool.submit(self.until, over)
            try:
                yield
            finally:
                over.set()
            running.result()

    def certificate(self) -> Certificate:
        """Of the best bound."""
        trees = None if self._treed is None else saved_cuts(self._treed.trees)
        best, gang = self._relaxation.best, self._relaxation.gangs.size
        return Certificate.of(self._problem, self._aim.weights, best, gang, trees)
