"""The relaxation with trees: when its own rows have said all they can, rows of trees are found and priced beside them.

The same first-order method, with remote reads as columns of their own: a tree charges a read for parting its ends, so
the price of the row ``local`` and what trees charge share the read's box. New trees are looked for where the averages
of an epoch violate them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.data_placement.certificate_trees import KeptTrees
from mast_opt.data_placement.heuristics.arrays import Arrays
from mast_opt.data_placement.heuristics.relaxation import SINGLE, Prices, Relaxation
from mast_opt.data_placement.heuristics.relaxed_steps import dataset_step, workload_step
from mast_opt.data_placement.heuristics.trees import LIMITS, Pool, remote_step, separate, spread, tree_step
from mast_opt.data_placement.problem import Bools, Ints
from mast_opt.mip import FloatArray

EPOCH = 30
"""Iterations between separations."""
ROOTS = 60
"""Roots of a region that are tried in a separation."""
DETOUR, DETOURS = 0.3, 100
"""Length of a dataset of mean size on the way of a tree, as a part of the root's share, at first; and separations until
it is 0."""
PATIENCE, STILL = 25, 1e-4
"""The bound stands still when so many epochs improve it by no more than this share."""
PACE = 4.0
"""Times the safe step of the rows of trees: it is far below what they bear."""
KEEP = 1e-5
"""Share by which the bound must improve for its trees to be copied."""


class TreedRelaxation(Relaxation):
    """A relaxation that goes on with trees; ``trees`` are those of ``best``.

    Args:
        rng: draws the roots.
        waits: when its own rows have said all they can, is it settled until ``go_on`` is called?
    """

    def __init__(
        self, a: Arrays, floor: FloatArray, splittable: Bools, rng: np.random.Generator, waits: bool = False
    ) -> None:
        super().__init__(a, floor, splittable)
        self._rng, self._waits = rng, waits
        self._pool: Pool | None = None
        self._search: Iterator[int] | None = None
        """The rest of an epoch's end, region by region, so that no step takes long."""
        self.trees = Pool.empty().taken(np.zeros(0, np.int64))

    def step(self, iterations: int) -> None:
        for _ in range(iterations):
            if self._pool is None:
                super().step(1)
                if self.settled and not self._waits:
                    self._plant()
            elif self._search is None:
                self._tree_iteration(self._pool)
                if self._turns == EPOCH:
                    self._search = self._end_epoch(self._pool)
            elif next(self._search, None) is None:
                self._search = None

    @property
    def planted(self) -> bool:
        """Are there trees by now?"""
        return self._pool is not None

    def go_on(self) -> None:
        """Wait no longer."""
        self._waits = False
        if self.settled and self._pool is None:
            self._plant()

    def _plant(self) -> None:
        """Begin with trees, from the best prices without."""
        self.settled = False
        a = self._a
        datasets, regions = a.stored.shape
        workloads, reads = len(a.tier), len(a.read_dataset)
        self._pool = Pool.empty()
        for price, best in zip(self.prices, self.best):
            price[...] = best
        self._own = self.best.read.astype(np.float64)
        self._cap = self._read_cap.astype(np.float64)
        self._remote = np.zeros((reads, regions))
        self._owner = np.repeat(np.arange(workloads), np.diff(a.read_start))
        self._whole = ~self._splittable
        self._charge_down, self._charge_up = np.zeros((regions, reads)), np.zeros((regions, reads))
        self._down, self._up = np.zeros((regions, reads)), np.zeros((regions, reads))
        self._lift = np.zeros((datasets + workloads, regions))
        self._need = np.zeros((LIMITS, datasets + workloads))
        self._need[0, datasets:] = a.cpu_need
        self._need[1, :datasets], self._need[1, datasets:] = a.size, a.output
        mean = max(float(a.size.mean()), 1.0)
        self._detour = np.minimum(4.0, np.sqrt(mean / np.maximum(a.size, 1)))
        self._plain_weights = self._work_weight.copy(), self._data_weight.copy()
        self._epochs, self._stood_at = 0, self.bound
        self._weigh_trees(self._pool)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._turns = 0
        self._sums = [np.zeros_like(values, np.float64) for values in self._averaged()]

    def _averaged(self) -> tuple[NDArray[Any], ...]:
        """What an epoch is averaged over: prices, then where the extrapolated point is."""
        assert self._pool is not None
        prices = (self._own, self._pool.price[: self._pool.count], *self.prices[1:8])
        return (*prices, self._runs, self._places, self._up)

    def _tree_iteration(self, pool: Pool) -> None:
        a, pace = self._a, 1 / self._omega
        self._spread(pool, pool.price[: pool.count])
        read = self._own + self._charge_down.T
        loads = self._primal(self._with_lift(read, self.prices))
        remote_step(
            a,
            self._owner,
            self._cap,
            self._charge_down,
            self._charge_up,
            self._omega * self._remote_pace,
            self._remote,
            self._own,
            pace / 3,
            self._runs,
            self._places,
            self._down,
            self._up,
        )
        arcs = int(pool.start[pool.count])
        tree_step(
            pool.start[: pool.count + 1],
            pool.read[:arcs],
            pool.down[:arcs],
            pool.share[:arcs],
            pool.root[: pool.count],
            pool.region[: pool.count],
            pool.spare[: pool.count],
            pool.price[: pool.count],
            pace * self._tree_pace,
            self._down,
            self._up,
            self._places,
            self._runs,
        )
        self._dual_of_regions(*loads)
        for total, values in zip(self._sums, self._averaged()):
            total += values
        self._turns += 1

    def _spread(self, pool: Pool, price: FloatArray) -> None:
        arcs = int(pool.start[pool.count])
        spread(
            pool.start[: pool.count + 1],
            pool.read[:arcs],
            pool.down[:arcs],
            pool.share[:arcs],
            pool.root[: pool.count],
            pool.region[: pool.count],
            pool.spare[: pool.count],
            price,
            self._charge_down,
            self._charge_up,
            self._lift,
        )

    def _with_lift(self, read: FloatArray, regional: Prices) -> Prices:
        datasets = len(self._a.size)
        return regional._replace(
            read=read.astype(SINGLE), data_lift=self._lift[:datasets], work_lift=self._lift[datasets:]
        )

    def _end_epoch(self, pool: Pool) -> Iterator[int]:
        """Go on from the averages, note what they prove, and look for trees that they violate in every region."""
        mean = [total / self._turns for total in self._sums]
        own, price, regional = mean[0], mean[1], mean[2:9]
        for current, average in zip((self._own, pool.price[: pool.count], *self.prices[1:8]), mean):
            current[...] = average
        for part in (1.0, 0.95):
            self._prove(pool, own, price * part, self.prices._replace(**dict(zip(Prices._fields[1:8], regional))))
        runs, places, up = (np.maximum(values, 0.0) for values in mean[9:])
        self._epochs += 1
        pool.age[: pool.count] += 1
        pool.prune()
        yield from self._separate(pool, runs, places, up)
        self._weigh_trees(pool)
        self._begin_epoch()
        if self._epochs % PATIENCE == 0:
            self.settled = self._epochs > DETOURS and self.bound - self._stood_at <= STILL * abs(self.bound)
            self._stood_at = self.bound

    def _prove(self, pool: Pool, own: FloatArray, price: FloatArray, regional: Prices) -> None:
        """Note the bound of some prices, each read's kept within its box as far as trees leave room."""
        a = self._a
        self._spread(pool, price)
        down, room = self._charge_down.T, self._cap[:, None] - self._charge_up.T
        read = np.minimum(np.maximum(own + down, down), np.maximum(down, room))
        excess = float(np.maximum(down - room, 0.0).sum())
        prices = self._with_lift(read, regional)
        runs, places = self._runs.copy(), self._places.copy()
        gpu, run, place = self.gpu_price(prices), self._run.copy(), self._place.copy()
        work = workload_step(a, self.gangs, prices, gpu, self._splittable, 0.0, self._work_weight, run, runs)[0]
        data = dataset_step(a, prices, 0.0, self._data_weight, place, places)[0]
        bound = work + data + self.constant(prices) - excess
        if bound > self.bound:
            self.bound = bound
            if bound > self._kept + KEEP * abs(bound):
                self._kept = bound
                for kept, value in zip(self.best[:8], prices[:8]):
                    kept[...] = value
                priced = np.flatnonzero(price > 0)
                self.trees = pool.taken(priced)
                self.trees.price[:] = price[priced]

    def _separate(self, pool: Pool, runs: FloatArray, places: FloatArray, up: FloatArray) -> Iterator[int]:
        a = self._a
        nodes = len(self._need[0])
        passing = DETOUR * max(0.0, 1 - self._epochs / DETOURS) * self._detour
        held = (
            *(pool.start, pool.read, pool.parent, pool.down, pool.share, pool.root, pool.region),
            *(pool.limit, pool.needs, pool.spare, pool.price, pool.age),
        )
        for r in range(len(a.cpu)):
            inside = np.concatenate([places[:, r], runs[:, r]]).astype(np.float64)
            down = np.maximum(places[a.read_dataset, r] - runs[self._owner, r] + up[r], 0.0)
            limit = np.array([a.cpu[r], a.storage[r]], np.float64)
            roots: Ints = self._rng.choice(nodes, min(ROOTS, nodes), replace=False)
            pool.count = separate(
                *(a, (held, pool.count), r, roots, inside, self._whole),
                *(down, np.ascontiguousarray(up[r]), self._need, limit, passing),
            )
            yield r

    def _weigh_trees(self, pool: Pool) -> None:
        """Steps of the trees' rows and of the remote reads; what trees add to the column sums of runs and replicas."""
        a, trees = self._a, pool.taken(np.arange(pool.count))
        datasets, regions = a.stored.shape
        of = np.repeat(np.arange(trees.count), np.diff(trees.start))
        at = trees.read.astype(np.int64) * regions + trees.region[of]
        reads = self._remote.shape
        charged = np.bincount(at, weights=trees.share, minlength=self._remote.size).reshape(reads)
        downwards = np.bincount(at, weights=trees.share * trees.down, minlength=self._remote.size).reshape(reads)
        self._remote_pace = 1 / (1 + charged)
        nodes = np.zeros_like(self._lift)
        np.add.at(nodes, a.read_dataset, downwards)
        np.add.at(nodes, datasets + self._owner, downwards)
        np.add.at(nodes, (trees.root, trees.region), trees.spare)
        work, data = self._plain_weights
        self._data_weight = data + nodes[:datasets].max(axis=1)
        self._work_weight = work + nodes[datasets:].max(axis=1)
        row = np.bincount(of, weights=trees.share * np.where(trees.down, 3.0, 1.0), minlength=trees.count)
        self._tree_pace = PACE / (row + trees.spare)


def kept_trees(pool: Pool) -> KeptTrees:
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
