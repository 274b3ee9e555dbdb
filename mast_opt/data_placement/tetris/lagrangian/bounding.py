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
"""Seconds for each read and region from which on tree cuts, in parallel with the annealing, prove more than they cost
the plan. Where sub-MIPs follow, tree cuts are found in parallel with those instead, which use one thread."""
FEW_FOR_TREES = 20_000
"""Reads times regions up to which tree cuts always prove more than they cost."""
MOST_FOR_TREES = 500_000
"""Reads times regions up to which there are trees at all: more would take gigabytes, and get nowhere."""
ROUNDS_TO_TREES = 4
"""With a single thread, trees have a slice in one of so many rounds."""


class Bounding:
    """The relaxation of a search, with trees where those are worth their time.

    Args:
        a: the problem priced by ``objective``.
        counted: are rounds counted instead of seconds?
        budget_s: of the annealing.
    """

    def __init__(
        self,
        problem: DataPlacement,
        tools: SearchContext,
        objective: StageObjective,
        a: TetrisArrays,
        counted: bool,
        budget_s: float,
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._objective = problem, objective
        self._alone, self._counted = tools.threads == 1, counted
        floor, cells = bin_packing_peak_bound(problem), len(problem.read_workload) * len(problem.regions)
        free = problem.remote_reads and objective.weights["remote"] == 0
        free |= not (a.keep_price.any() or a.new_price.any())
        patient = not counted and cells <= MOST_FOR_TREES and budget_s >= SECONDS_FOR_TREES * cells
        sub_mips = sub_mip_applicable(problem, objective)
        self._with_cuts: TreeCutRelaxation | None = None
        if (sub_mips or cells <= FEW_FOR_TREES or patient) and not free:
            waits = sub_mips and not counted and not self._alone
            self._with_cuts = TreeCutRelaxation(a, floor, problem.splittable, rng, waits)
        self._relaxation = self._with_cuts or Relaxation(a, floor, problem.splittable)

    @property
    def bound(self) -> float:
        return self._relaxation.bound

    @property
    def converged(self) -> bool:
        """Has the bound stopped improving?"""
        return self._relaxation.converged

    def in_round(self, number: int) -> Callable[[], None] | None:
        """What to do in a round where the relaxation has no thread of its own: iterations or a slice of time."""
        has_cuts = self._with_cuts is not None and self._with_cuts.has_cuts
        if self.converged or (has_cuts and not self._counted and number % ROUNDS_TO_TREES):
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
        while not over.is_set() and not self.converged:
            self._relaxation.step(1)

    @contextmanager
    def during_sub_mips(self) -> Iterator[None]:
        """While the MIP solver finishes the plan on one thread, go on with trees on another."""
        if self._alone or self._counted or self._with_cuts is None:
            yield
            return
        self._with_cuts.go_on()
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
        trees = None if self._with_cuts is None else saved_cuts(self._with_cuts.trees)
        best, gang = self._relaxation.best, self._relaxation.gangs.size
        return Certificate.of(self._problem, self._objective.weights, best, gang, trees)
