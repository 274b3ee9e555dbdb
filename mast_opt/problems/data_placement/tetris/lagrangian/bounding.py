"""Lower bound of tetris: when the Lagrangian relaxation is stepped, and the certificate of what it proves."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.kept_certificate import kept_certificate
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.problems.data_placement.tetris.lagrangian.tree_cut_relaxation import TreeCutRelaxation, saved_cuts
from mast_opt.problems.data_placement.tetris.params import TetrisParams
from mast_opt.problems.data_placement.tetris.stage_objective import StageObjective
from mast_opt.problems.data_placement.tetris.strategy import TreeCuts
from mast_opt.problems.data_placement.verification.certificate import Certificate
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound
from mast_opt.problems.data_placement.verification.spectral_bound import Spectrum, spectral_bound
from mast_opt.problems.search.budget import SLICE_S
from mast_opt.problems.search.interface import SearchContext


class Bounding:
    """The relaxation of a search, with tree cuts where the strategy has them.

    Args:
        a: the problem priced by ``objective``.
        tree_cuts: when they are separated.
        spectrum: what proves a spectral bound as well, where the search has one.
    """

    def __init__(
        self,
        problem: DataPlacement,
        tools: SearchContext,
        objective: StageObjective,
        a: TetrisArrays,
        tree_cuts: TreeCuts,
        rng: np.random.Generator,
        params: TetrisParams,
        spectrum: Spectrum | None = None,
    ) -> None:
        self._problem, self._objective, self._params = problem, objective, params
        proven = -math.inf if spectrum is None else spectral_bound(problem, objective.weights, spectrum)
        self._spectrum, self._spectral = (spectrum, proven) if proven > 0 else (None, -math.inf)
        self._alone, self._counted = tools.threads == 1, tools.watch.stop.iterations is not None
        floor = bin_packing_peak_bound(problem)
        self._with_cuts: TreeCutRelaxation | None = None
        if tree_cuts is not TreeCuts.NEVER:
            waits = tree_cuts is TreeCuts.WITH_SUB_MIPS
            rows = params.relaxation, params.tree_cuts
            self._with_cuts = TreeCutRelaxation(a, floor, problem.workloads.splittable, rng, waits, *rows)
        self._relaxation = self._with_cuts or Relaxation(a, floor, problem.workloads.splittable, params.relaxation)
        kept = None if tools.certificate is None else Certificate.from_arrays(tools.certificate)
        if kept is not None and dict(kept.weights) == dict(objective.weights):
            self._relaxation.go_on_from(kept)

    @property
    def bound(self) -> float:
        """Tetris' best lower bound so far."""
        return max(self._relaxation.bound, self._spectral)

    @property
    def converged(self) -> bool:
        """Whether tetris' bound has stopped improving."""
        return self._relaxation.converged

    def in_round(self, number: int) -> Callable[[], None] | None:
        """Work on tetris' bound in a round where the relaxation has no thread of its own: iterations or a slice of
        time.
        """
        has_cuts = self._with_cuts is not None and self._with_cuts.has_cuts
        if self.converged or (has_cuts and not self._counted and number % self._params.tree_cuts.round_interval):
            return None
        return self._some if self._counted else self._slice

    def _some(self) -> None:
        """Run some iterations of tetris' Lagrangian relaxation."""
        self._relaxation.step(self._params.relaxation.iterations)

    def _slice(self) -> None:
        """Run tetris' Lagrangian relaxation for a slice of time."""
        began = time.perf_counter()
        while time.perf_counter() - began < SLICE_S:
            self._relaxation.step(1)

    def until(self, over: threading.Event) -> None:
        """Step on until tetris' bound stands still."""
        while not over.is_set() and not self.converged:
            self._relaxation.step(1)

    @contextmanager
    def during_sub_mips(self) -> Iterator[None]:
        """Go on with tetris' tree cuts on another thread while the MIP solver finishes the plan on one."""
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
        """Certificate of the best bound on the objective."""
        trees = None if self._with_cuts is None else saved_cuts(self._with_cuts.trees)
        best, gang = self._relaxation.best, self._relaxation.gangs.size
        return kept_certificate(self._problem, self._objective.weights, best, gang, trees, self._spectrum)

    def proven(self, certificate: Certificate | None) -> float | None:
        """The bound of the certificate; the spectral one is checked once, at the beginning."""
        assert certificate is not None
        return max(0.0, certificate.bound_by_prices(self._problem), self._spectral)
