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
from mast_opt.data_placement.problem import Bools
from mast_opt.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.data_placement.tetris.lagrangian.dual_step import Multipliers
from mast_opt.data_placement.tetris.lagrangian.projections import SINGLE
from mast_opt.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.data_placement.tetris.lagrangian.tree_cut_pool import DETOURS, TreeCutPool
from mast_opt.data_placement.tetris.lagrangian.tree_cut_separation import CutBuffers
from mast_opt.data_placement.verification.certificate_tree_cuts import KeptTrees

EPOCH = 30
"""Iterations between searches for trees."""
PATIENCE, STILL = 25, 1e-4
"""The bound stands still when so many epochs improve it by no more than this share."""
ENOUGH = 600
"""Iterations without trees after which a relaxation that waits has said nearly all."""
KEEP = 1e-5
"""Share by which the bound must improve for its trees to be copied."""
PARTS = (1.0, 0.95)
"""Of the trees' average prices: as they are, and a little lower, where fewer charges exceed their room."""


class TreeCutRelaxation(Relaxation):
    """A relaxation that goes on with trees; ``trees`` are those of ``best``.

    Args:
        rng: draws the roots.
        waits: when its own rows have said nearly all they can, is it settled until ``go_on`` is called?
    """

    def __init__(
        self, a: TetrisArrays, floor: FloatArray, splittable: Bools, rng: np.random.Generator, waits: bool = False
    ) -> None:
        super().__init__(a, floor, splittable)
        self._rng, self._waits = rng, waits
        self._stands_still = False
        self._grove: TreeCutPool | None = None
        self._plain_weights = self._work_weight, self._data_weight
        self._search: Iterator[int] | None = None
        """The rest of an epoch's end, region by region, so that no step takes long."""
        self._turns, self._epochs, self._stood_at = 0, 0, -np.inf
        self._sums: list[FloatArray] = []
        self.trees = CutBuffers.empty().taken(np.zeros(0, np.int64))

    def step(self, iterations: int) -> None:
        for _ in range(iterations):
            if self._grove is None:
                if self._waits and self.settled:
                    return
                super().step(1)
                self._stands_still |= self.settled
                if self._waits:
                    self.settled = self._stands_still or self._iterations >= ENOUGH
                elif self._stands_still:
                    self._plant()
            elif self._search is None:
                self._iterate(self._grove)
                if self._turns == EPOCH:
                    self._search = self._end_epoch(self._grove)
            elif next(self._search, None) is None:
                self._search = None

    @property
    def planted(self) -> bool:
        """Are there trees by now?"""
        return self._grove is not None

    def go_on(self) -> None:
        """Wait no longer."""
        self._waits = False
        if self._grove is None:
            self.settled = False
            if self._stands_still:
                self._plant()

    def _plant(self) -> None:
        """Begin with trees, from the best prices without."""
        self.settled = False
        for price, best in zip(self.prices, self.best):
            price[...] = best
        self._stood_at = self.bound
        self._grove = TreeCutPool(self._a, self._read_cap, self._splittable, self.best.read, self._rng)
        self._begin_epoch(self._grove)

    def _begin_epoch(self, grove: TreeCutPool) -> None:
        work, data = self._plain_weights
        self._work_weight, self._data_weight = work + grove.work_sums, data + grove.data_sums
        self._turns = 0
        self._sums = [np.zeros_like(values, np.float64) for values in self._averaged(grove)]

    def _averaged(self, grove: TreeCutPool) -> tuple[NDArray[Any], ...]:
        """What an epoch is averaged over: where the extrapolated point is, then prices."""
        return self._point.runs, self._point.places, grove.up, grove.own, grove.price, *self.prices.of_regions

    def _iterate(self, grove: TreeCutPool) -> None:
        grove.spread(grove.price)
        loads = self._primal(self._lifted(grove, grove.own + grove.charge_down.T, self.prices))
        grove.step(self._omega, self._point.runs, self._point.places)
        self._dual(*loads)
        for total, values in zip(self._sums, self._averaged(grove)):
            total += values
        self._turns += 1

    def _lifted(self, grove: TreeCutPool, read: FloatArray, of_regions: Multipliers) -> Multipliers:
        datasets = len(self._a.size)
        lifts = {"data_lift": grove.lift[:datasets], "work_lift": grove.lift[datasets:]}
        return of_regions._replace(read=read.astype(SINGLE), **lifts)

    def _end_epoch(self, grove: TreeCutPool) -> Iterator[int]:
        """Go on from the averages, note what they prove, and look for trees that they violate in every region."""
        runs, places, up, own, price, *of_regions = (total / self._turns for total in self._sums)
        for current, average in zip((grove.own, grove.price, *self.prices.of_regions), (own, price, *of_regions)):
            current[...] = average
        for part in PARTS:
            self._prove(grove, own, price * part)
        yield from grove.search(np.maximum(runs, 0.0), np.maximum(places, 0.0), np.maximum(up, 0.0))
        self._begin_epoch(grove)
        self._epochs += 1
        if self._epochs % PATIENCE == 0:
            self.settled = self._epochs > DETOURS and self.bound - self._stood_at <= STILL * abs(self.bound)
            self._stood_at = self.bound

    def _prove(self, grove: TreeCutPool, own: FloatArray, price: FloatArray) -> None:
        """Note the bound of some prices of reads and trees, with those that the regions have now."""
        read, excess = grove.fitted(own, price)
        prices = self._lifted(grove, read, self.prices)
        bound = self._value(prices) - excess
        if bound > self.bound:
            self.bound = bound
            if bound > self._kept + KEEP * abs(bound):
                self._keep(bound, prices)
                priced = np.flatnonzero(price > 0)
                self.trees = grove.pool.taken(priced)
                self.trees.price[:] = price[priced]


def saved_cuts(pool: CutBuffers) -> KeptTrees:
    """The trees as a certificate keeps them: their shape, and a price for each unit of need."""
    return KeptTrees(
        root=pool.root,
        region=pool.region,
        limit=pool.limit,
        price=pool.price / pool.needs,
        start=pool.start,
        read=pool.read,
        parent=pool.parent,
    )
