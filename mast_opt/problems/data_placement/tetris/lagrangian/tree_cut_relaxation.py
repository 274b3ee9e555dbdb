"""Lagrangian relaxation of tetris with tree cuts: cutting planes are separated and priced once the basic bound stalls.

The same first-order method, with remote reads as columns of their own: a tree charges a read for parting its ends, so
the price of the row ``local`` and what trees charge share the read's box. New trees are looked for where the averages
of an epoch violate them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian import tree_cut_separation
from mast_opt.problems.data_placement.tetris.lagrangian.dual_step import Multipliers
from mast_opt.problems.data_placement.tetris.lagrangian.params import RelaxationParams, TreeCutParams
from mast_opt.problems.data_placement.tetris.lagrangian.projections import SINGLE
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import DEFAULTS, Relaxation
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KeptTrees


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
        self.pool = tree_cut_separation.CutBuffers.empty(params.most_trees, params.most_reads)
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
        self._need = np.zeros((tree_cut_separation.LIMITS, datasets + workloads))
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
        """Prices of tetris' tree cuts, [T]; writable."""
        return self.pool.price[: self.pool.count]

    def spread(self, price: FloatArray) -> None:
        """Charge reads and credit roots at some prices of tetris' tree cuts."""
        p, trees, arcs = self.pool, self.pool.count, int(self.pool.start[self.pool.count])
        rows = (p.start[: trees + 1], p.read[:arcs], p.down[:arcs], p.share[:arcs])
        roots = (p.root[:trees], p.region[:trees], p.spare[:trees])
        tree_cut_separation.distribute_cut_prices(*rows, *roots, price, self.charge_down, self.charge_up, self.lift)

    def step(self, omega: float, runs: Singles, places: Singles) -> None:
        """Primal step of remote reads, dual step of the rows ``local`` and of the trees."""
        p, trees, arcs = self.pool, self.pool.count, int(self.pool.start[self.pool.count])
        charges = (self.charge_down, self.charge_up, omega * self._remote_pace)
        parted = (self.down, self.up)
        tree_cut_separation.remote_step(
            *(self._a, self.owner, self.cap, *charges), self.remote, self.own, 1 / (3 * omega), runs, places, *parted
        )
        rows = (p.start[: trees + 1], p.read[:arcs], p.down[:arcs], p.share[:arcs])
        roots = (p.root[:trees], p.region[:trees], p.spare[:trees])
        tree_cut_separation.tree_step(*rows, *roots, self.price, self._tree_pace / omega, *parted, places, runs)

    def fitted(self, own: FloatArray, price: FloatArray) -> tuple[FloatArray, float]:
        """Prices of reads in tetris [N, R] that make room for what trees charge at ``price``, and what
        finds no room.
        """
        self.spread(price)
        down, room = self.charge_down.T, self.cap[:, None] - self.charge_up.T
        read = np.minimum(np.maximum(own + down, down), np.maximum(down, room))
        return read, float(np.maximum(down - room, 0.0).sum())

    def search(self, runs: FloatArray, places: FloatArray, up: FloatArray) -> Iterator[int]:
        """Forget tree cuts of tetris without use and look for violated ones, region by region; then ``weigh``.

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
            pool.count = tree_cut_separation.separate(
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
        self.trees = tree_cut_separation.CutBuffers.empty(0, 0)

    def step(self, iterations: int) -> None:
        """Run a number of iterations of tetris' relaxation with tree cuts."""
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
        """Whether tetris' relaxation has tree cuts by now."""
        return self._cuts is not None

    def go_on(self) -> None:
        """Let tetris' relaxation wait no longer for tree cuts."""
        self._waits = False
        if self._cuts is None:
            self.converged = False
            if self._stalled:
                self._add_cuts()

    def _add_cuts(self) -> None:
        """Begin with tree cuts in tetris' relaxation, from the best prices without."""
        self.converged = False
        for price, best in zip(self.prices, self.best):
            price[...] = best
        self._bound_before = self.bound
        self._cuts = TreeCutPool(self._a, self._read_cap, self._splittable, self.best.read, self._rng, self._cut_params)
        self._begin_epoch(self._cuts)

    def _begin_epoch(self, cuts: TreeCutPool) -> None:
        """Begin an epoch of tetris' relaxation with tree cuts, whose averages start again."""
        work, data = self._plain_weights
        self._work_weight, self._data_weight = work + cuts.work_sums, data + cuts.data_sums
        self._turns = 0
        self._sums = [np.zeros_like(values, np.float64) for values in self._averaged(cuts)]

    def _averaged(self, cuts: TreeCutPool) -> tuple[NDArray[Any], ...]:
        """Values that an epoch averages: the extrapolated point, then prices."""
        return self._point.runs, self._point.places, cuts.up, cuts.own, cuts.price, *self.prices.of_regions

    def _iterate(self, cuts: TreeCutPool) -> None:
        """Run one iteration of the relaxation with trees."""
        cuts.spread(cuts.price)
        loads = self._primal(self._lifted(cuts, cuts.own + cuts.charge_down.T, self.prices))
        cuts.step(self._omega, self._point.runs, self._point.places)
        self._dual(*loads)
        for total, values in zip(self._sums, self._averaged(cuts)):
            total += values
        self._turns += 1

    def _lifted(self, cuts: TreeCutPool, read: FloatArray, of_regions: Multipliers) -> Multipliers:
        """Prices with the charges and credits of the trees."""
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


def saved_cuts(pool: tree_cut_separation.CutBuffers) -> KeptTrees:
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
