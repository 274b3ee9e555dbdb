"""Pool of tree cuts in tetris's relaxation: what they charge reads, credit roots and add to column sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.params import TreeCutParams
from mast_opt.problems.data_placement.tetris.lagrangian.tree_cut_separation import (
    LIMITS,
    CutBuffers,
    distribute_cut_prices,
    remote_step,
    separate,
    tree_step,
)


class TreeCutPool:
    """Trees, the remote reads as columns of their own, and a price of each row ``local`` apart from what trees charge.

    Args:
        cap: [N] price of each remote read, infinite where there are none.
        read: [N, R] prices of reads to begin with.
    """

    def __init__(
        self,
        a: TetrisArrays,
        cap: Singles,
        splittable: Bools,
        read: Singles,
        rng: np.random.Generator,
        params: TreeCutParams,
    ) -> None:
        datasets, regions = a.stored.shape
        reads, workloads = read.shape[0], len(a.tier)
        self._a, self._rng, self._params = a, rng, params
        self.pool = CutBuffers.empty(params.most_trees, params.most_reads)
        self.cap = cap.astype(np.float64)
        self.own = read.astype(np.float64)
        self.remote = np.zeros((reads, regions))
        self.owner: Ints = np.repeat(np.arange(workloads), np.diff(a.read_start))
        self.charge_down, self.charge_up = np.zeros((regions, reads)), np.zeros((regions, reads))
        """[R, N] what trees charge each read at the prices of the last ``spread``."""
        self.lift = np.zeros((datasets + workloads, regions))
        """[I + W, R] what they credit roots."""
        self.down, self.up = np.zeros((regions, reads)), np.zeros((regions, reads))
        """[R, N] by how much the last step parts the ends of each read."""
        self._whole = ~splittable
        self._need = np.zeros((LIMITS, datasets + workloads))
        self._need[0, datasets:] = a.cpu_need
        self._need[1, :datasets], self._need[1, datasets:] = a.size, a.output
        mean = max(float(a.size.mean()), 1.0)
        self._detour = params.detour * np.minimum(4.0, np.sqrt(mean / np.maximum(a.size, 1)))
        self._searches = 0
        self.work_sums, self.data_sums = np.zeros(workloads), np.zeros(datasets)
        """Contributions of the rows of trees to the column sums of runs and replicas."""
        self.weigh()

    @property
    def price(self) -> FloatArray:
        """Prices of the trees, [T]; writable."""
        return self.pool.price[: self.pool.count]

    def spread(self, price: FloatArray) -> None:
        """Charge reads and credit roots at some prices of the trees."""
        p, trees, arcs = self.pool, self.pool.count, int(self.pool.start[self.pool.count])
        rows = (p.start[: trees + 1], p.read[:arcs], p.down[:arcs], p.share[:arcs])
        roots = (p.root[:trees], p.region[:trees], p.spare[:trees])
        distribute_cut_prices(*rows, *roots, price, self.charge_down, self.charge_up, self.lift)

    def step(self, omega: float, runs: Singles, places: Singles) -> None:
        """Primal step of remote reads, dual step of the rows ``local`` and of the trees."""
        p, trees, arcs = self.pool, self.pool.count, int(self.pool.start[self.pool.count])
        charges = (self.charge_down, self.charge_up, omega * self._remote_pace)
        parted = (self.down, self.up)
        remote_step(
            *(self._a, self.owner, self.cap, *charges), self.remote, self.own, 1 / (3 * omega), runs, places, *parted
        )
        rows = (p.start[: trees + 1], p.read[:arcs], p.down[:arcs], p.share[:arcs])
        roots = (p.root[:trees], p.region[:trees], p.spare[:trees])
        tree_step(*rows, *roots, self.price, self._tree_pace / omega, *parted, places, runs)

    def fitted(self, own: FloatArray, price: FloatArray) -> tuple[FloatArray, float]:
        """Prices of reads [N, R] that make room for what trees charge at ``price``, and what finds no room."""
        self.spread(price)
        down, room = self.charge_down.T, self.cap[:, None] - self.charge_up.T
        read = np.minimum(np.maximum(own + down, down), np.maximum(down, room))
        return read, float(np.maximum(down - room, 0.0).sum())

    def search(self, runs: FloatArray, places: FloatArray, up: FloatArray) -> Iterator[int]:
        """Forget trees without use and look for violated ones, region by region; then ``weigh``.

        Args:
            runs, places, up: [W, R], [I, R], [R, N] averages that they should cut off.
        """
        a, pool, nodes = self._a, self.pool, len(self._need[0])
        pool.age[: pool.count] += 1
        pool.prune()
        detour = max(0.0, 1 - self._searches / self._params.detours) * self._detour
        self._searches += 1
        by_arc = (pool.read, pool.parent, pool.down, pool.share)
        by_tree = (pool.root, pool.region, pool.limit, pool.needs, pool.spare, pool.price, pool.age)
        for r in range(len(a.cpu)):
            inside = np.concatenate([places[:, r], runs[:, r]]).astype(np.float64)
            down = np.maximum(places[a.read_dataset, r] - runs[self.owner, r] + up[r], 0.0)
            limit = np.array([a.cpu[r], a.storage[r]], np.float64)
            roots: Ints = self._rng.choice(nodes, min(self._params.roots, nodes), replace=False)
            held = ((pool.start, *by_arc, *by_tree), pool.count)
            lengths = (down, np.ascontiguousarray(up[r]))
            pool.count = separate(
                a, held, r, roots, inside, self._whole, *lengths, self._need, limit, detour, self._params.violation
            )
            yield r
        self.weigh()

    def weigh(self) -> None:
        """Set the steps of the trees' rows and of remote reads, and the column sums."""
        a, trees = self._a, self.pool.taken(np.arange(self.pool.count))
        datasets, regions = a.stored.shape
        of = np.repeat(np.arange(trees.count), np.diff(trees.start))
        at = trees.read.astype(np.int64) * regions + trees.region[of]
        cells, shape = self.remote.size, self.remote.shape
        charged = np.bincount(at, weights=trees.share, minlength=cells).reshape(shape)
        downwards = np.bincount(at, weights=trees.share * trees.down, minlength=cells).reshape(shape)
        self._remote_pace = 1 / (1 + charged)
        nodes = np.zeros_like(self.lift)
        np.add.at(nodes, a.read_dataset, downwards)
        np.add.at(nodes, datasets + self.owner, downwards)
        np.add.at(nodes, (trees.root, trees.region), trees.spare)
        self.data_sums, self.work_sums = nodes[:datasets].max(axis=1), nodes[datasets:].max(axis=1)
        row = np.bincount(of, weights=trees.share * np.where(trees.down, 3.0, 1.0), minlength=trees.count)
        self._tree_pace = self._params.step / (row + trees.spare)
