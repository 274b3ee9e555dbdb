"""Lagrangian relaxation of tetris with tree cuts: cutting planes are separated and priced once the basic bound stalls.

The same first-order method, with remote reads as columns of their own: a tree charges a read for parting its ends, so
the price of the row ``local`` and what trees charge share the read's box. New trees are looked for where the averages
of an epoch violate them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.problem import Bools
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.dual_step import Multipliers
from mast_opt.problems.data_placement.tetris.lagrangian.params import RelaxationParams, TreeCutParams
from mast_opt.problems.data_placement.tetris.lagrangian.projections import SINGLE
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import DEFAULTS, Relaxation
from mast_opt.problems.data_placement.tetris.lagrangian.tree_cut_pool import TreeCutPool
from mast_opt.problems.data_placement.tetris.lagrangian.tree_cut_separation import CutBuffers
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KeptTrees

CUT_DEFAULTS = TreeCutParams()
SAVED_STEP = 1e-5
"""Share by which the bound must improve for its trees to be copied."""


class TreeCutRelaxation(Relaxation):
    """A relaxation that goes on with trees; ``trees`` are those of ``best``.

    Args:
        rng: draws the roots.
        waits: when its own rows have said nearly all they can, is it converged until ``go_on`` is called?
    """

    def __init__(
        self,
        a: TetrisArrays,
        floor: FloatArray,
        splittable: Bools,
        rng: np.random.Generator,
        waits: bool = False,
        params: RelaxationParams = DEFAULTS,
        cut_params: TreeCutParams = CUT_DEFAULTS,
    ) -> None:
        super().__init__(a, floor, splittable, params)
        self._rng, self._waits, self._cut_params = rng, waits, cut_params
        self._stalled = False
        self._cuts: TreeCutPool | None = None
        self._plain_weights = self._work_weight, self._data_weight
        self._search: Iterator[int] | None = None
        """The rest of an epoch's end, region by region, so that no step takes long."""
        self._turns, self._epochs, self._bound_before = 0, 0, -np.inf
        self._sums: list[FloatArray] = []
        self.trees = CutBuffers.empty(0, 0)

    def step(self, iterations: int) -> None:
        """Run a number of iterations of the relaxation with trees."""
        for _ in range(iterations):
            if self._cuts is None:
                if self._waits and self.converged:
                    return
                super().step(1)
                self._stalled |= self.converged
                if self._waits:
                    self.converged = self._stalled or self._iterations >= self._cut_params.wait_after
                elif self._stalled:
                    self._add_cuts()
            elif self._search is None:
                self._iterate(self._cuts)
                if self._turns == self._cut_params.epoch:
                    self._search = self._end_epoch(self._cuts)
            elif next(self._search, None) is None:
                self._search = None

    @property
    def has_cuts(self) -> bool:
        """Whether there are trees by now."""
        return self._cuts is not None

    def go_on(self) -> None:
        """Wait no longer."""
        self._waits = False
        if self._cuts is None:
            self.converged = False
            if self._stalled:
                self._add_cuts()

    def _add_cuts(self) -> None:
        """Begin with trees, from the best prices without."""
        self.converged = False
        for price, best in zip(self.prices, self.best):
            price[...] = best
        self._bound_before = self.bound
        self._cuts = TreeCutPool(self._a, self._read_cap, self._splittable, self.best.read, self._rng, self._cut_params)
        self._begin_epoch(self._cuts)

    def _begin_epoch(self, cuts: TreeCutPool) -> None:
        work, data = self._plain_weights
        self._work_weight, self._data_weight = work + cuts.work_sums, data + cuts.data_sums
        self._turns = 0
        self._sums = [np.zeros_like(values, np.float64) for values in self._averaged(cuts)]

    def _averaged(self, cuts: TreeCutPool) -> tuple[NDArray[Any], ...]:
        """Values that an epoch averages: the extrapolated point, then prices."""
        return self._point.runs, self._point.places, cuts.up, cuts.own, cuts.price, *self.prices.of_regions

    def _iterate(self, cuts: TreeCutPool) -> None:
        cuts.spread(cuts.price)
        loads = self._primal(self._lifted(cuts, cuts.own + cuts.charge_down.T, self.prices))
        cuts.step(self._omega, self._point.runs, self._point.places)
        self._dual(*loads)
        for total, values in zip(self._sums, self._averaged(cuts)):
            total += values
        self._turns += 1

    def _lifted(self, cuts: TreeCutPool, read: FloatArray, of_regions: Multipliers) -> Multipliers:
        datasets = len(self._a.size)
        lifts = {"data_lift": cuts.lift[:datasets], "work_lift": cuts.lift[datasets:]}
        return of_regions._replace(read=read.astype(SINGLE), **lifts)

    def _end_epoch(self, cuts: TreeCutPool) -> Iterator[int]:
        """Go on from the averages, note what they prove, and look for trees that they violate in every region."""
        runs, places, up, own, price, *of_regions = (total / self._turns for total in self._sums)
        for current, average in zip((cuts.own, cuts.price, *self.prices.of_regions), (own, price, *of_regions)):
            current[...] = average
        for part in (1.0, self._cut_params.lower):
            self._prove(cuts, own, price * part)
        yield from cuts.search(np.maximum(runs, 0.0), np.maximum(places, 0.0), np.maximum(up, 0.0))
        self._begin_epoch(cuts)
        self._epochs += 1
        if self._epochs % self._cut_params.patience == 0:
            gained = self.bound - self._bound_before
            limits = self._cut_params
            self.converged = self._epochs > limits.detours and gained <= limits.progress * abs(self.bound)
            self._bound_before = self.bound

    def _prove(self, cuts: TreeCutPool, own: FloatArray, price: FloatArray) -> None:
        """Note the bound of some prices of reads and trees, with those that the regions have now."""
        read, excess = cuts.fitted(own, price)
        prices = self._lifted(cuts, read, self.prices)
        bound = self._value(prices) - excess
        if bound > self.bound:
            self.bound = bound
            if bound > self._saved_bound + SAVED_STEP * abs(bound):
                self._save(bound, prices)
                priced = np.flatnonzero(price > 0)
                self.trees = cuts.pool.taken(priced)
                self.trees.price[:] = price[priced]


def saved_cuts(pool: CutBuffers) -> KeptTrees:
    """The trees as a certificate has them: their shape, and a price for each unit of need."""
    return KeptTrees(
        root=pool.root,
        region=pool.region,
        limit=pool.limit,
        price=pool.price / pool.needs,
        start=pool.start,
        read=pool.read,
        parent=pool.parent,
    )
