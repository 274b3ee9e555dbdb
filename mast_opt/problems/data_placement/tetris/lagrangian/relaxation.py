"""Lagrangian relaxation of data placement (tetris): its lower bound, found by a first-order primal-dual method.

Relaxed are the rows ``local`` (a price ``read[n,r]`` for reading dataset i of read n in region r) and the limits
of the regions. What is left separates: each workload takes its cheapest cell, each dataset its cheapest set of
replicas. For any prices inside their boxes the sum is a lower bound (Lagrangian duality); the search for good
prices is the primal-dual hybrid gradient method with diagonal preconditioning (Pock & Chambolle, ICCV 2011, α = 1),
restarted from its averages. ``mast_opt.problems.data_placement.verification.certificate``
computes the bound of given prices.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import UNLIMITED, TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian import workload_step
from mast_opt.problems.data_placement.tetris.lagrangian.dataset_step import dataset_pass, dataset_value
from mast_opt.problems.data_placement.tetris.lagrangian.dual_step import Multipliers, over_step, worst_step
from mast_opt.problems.data_placement.tetris.lagrangian.mir_rows import mir_rows_of
from mast_opt.problems.data_placement.tetris.lagrangian.params import RelaxationParams
from mast_opt.problems.data_placement.tetris.lagrangian.projections import SINGLE
from mast_opt.problems.data_placement.verification.certificate_bound import LEVELS, KeptPrices

DEFAULTS = RelaxationParams()


class Relaxation:
    """Improves prices step by step; ``bound`` and ``best`` are the best so far."""

    def __init__(
        self, a: TetrisArrays, floor: FloatArray, splittable: Bools, params: RelaxationParams = DEFAULTS
    ) -> None:
        self._a, self._params = a, params
        self._floor = floor
        self.gangs = mir_rows_of(a, floor, splittable, params)
        datasets, regions = a.stored.shape
        kinds, tiers = a.supply.shape[1], len(a.peak_price)
        cells = a.option_region.sum(axis=1, dtype=np.int64)
        per_workload = np.add.reduceat(cells, a.option_start[:-1]) if len(a.tier) else cells
        owner = np.repeat(np.arange(len(a.tier)), np.diff(a.option_start))
        self._point = workload_step.PrimalIterate(
            run=(a.option_region / np.maximum(per_workload, 1)[owner][:, None]).astype(SINGLE),
            runs=np.zeros((len(a.tier), regions), SINGLE),
            place=(a.stored & ~a.forbidden | a.pinned).astype(SINGLE),
            places=np.zeros((datasets, regions), SINGLE),
            asked=np.zeros((datasets, regions), SINGLE),
        )
        self._follows = False
        """True if the point follows from the prices, so that these may take their step."""
        self._splittable = splittable
        self._supplied = a.supply > 0
        self._limited = a.quota_row >= 0
        """[A, R] is there a quota?"""
        self._read_cap = (
            a.read_volume * a.remote_price if a.remote_reads else np.full(len(a.read_volume), np.inf)
        ).astype(SINGLE)
        # what could be asked of each type at most, the size of its rows, and what must be
        tier = a.tier[owner]
        single = (np.diff(a.option_start) == 1)[owner] & ~a.option_region[:, regions]
        self._asked = np.maximum(_by_tier(a.option_type, tier, a.option_mgpu, (kinds, tiers)), 1.0)
        forced = _by_tier(a.option_type, tier, np.where(single, a.option_mgpu, 0), (kinds, tiers))
        self._total = np.maximum(a.supply.sum(axis=0), 1).astype(np.float64)
        fewest = np.full(len(a.tier), np.iinfo(np.int64).max)
        np.minimum.at(fewest, owner, np.where(a.option_region[:, regions], 0, a.option_mgpu))
        least = np.cumsum(np.bincount(a.tier, weights=fewest, minlength=tiers))
        self.prices = self._first_prices(forced, least)
        self._sum: Multipliers | None = None
        self._count = 0
        self.best = self.prices.copy()
        self.bound = -np.inf
        self._saved_bound = -np.inf
        self._mean: Multipliers | None = None
        """The last average of the regions' prices."""
        self._iterations = 0
        self._last = -np.inf
        self.converged = False
        """Whether the bound has stopped improving."""
        finite = self._read_cap[np.isfinite(self._read_cap)]
        typical = float(finite.mean()) if finite.any() else float(a.replica_price.max(axis=1).mean())
        self._omega = 0.5 / typical if typical > 0 else 1.0
        self._stress = 2 * self._omega
        self._weigh()

    def _first_prices(self, forced: FloatArray, least: NDArray[Any]) -> Multipliers:
        """Supply-weighted peaks where demand must exceed their level, and overload where it must exceed supply."""
        a = self._a
        regions, kinds = a.supply.shape
        worst, over = np.zeros_like(self.gangs.worst_limit), np.zeros_like(self.gangs.over_limit)
        above = (forced > a.peak_level * self._total[:, None]) | (least > a.peak_level * self._total.sum())
        priced = np.where(above | (a.peak_level == 0), a.peak_price, 0.0)
        worst[..., 0] = a.supply[:, :, None] / self._total[None, :, None] * priced
        short = (forced > 0.999 * self._total[:, None]) | (least > 0.999 * self._total.sum())
        over[..., 0] = np.where(short, a.overload_price, 0.0) * self._supplied[:, :, None]
        return Multipliers(
            read=np.zeros((len(a.read_dataset), regions), SINGLE),
            worst=worst,
            over=over,
            under=np.zeros((regions, kinds)),
            cpu=np.zeros(regions),
            storage=np.zeros(regions),
            ingress=np.zeros(regions),
            quota=np.zeros(len(a.quota)),
            data_lift=np.zeros((0, regions)),
            work_lift=np.zeros((0, regions)),
        )

    def go_on_from(self, kept: KeptPrices) -> None:
        """Go on from the prices of a certificate of this instance, with steps for prices that are nearly right."""
        first = self.prices.copy()
        first.read[...] = kept.read_level * (kept.read_cap / LEVELS)[:, None]
        for name in ("under", "cpu", "storage", "ingress", "quota"):
            getattr(first, name)[...] = getattr(kept, name)
        for mine, theirs in ((first.worst, kept.worst), (first.over, kept.over)):
            mine[...] = 0.0
            mine[..., 0] = theirs[..., 0]
            for k, sizes in enumerate(self.gangs.size.tolist()):
                for j, size in enumerate(sizes, start=1):
                    same = np.flatnonzero(kept.gang[k] == size) + 1
                    if size > 1 and len(same):
                        mine[:, k, :, j] = theirs[:, k, :, same[0]]
        self._go_to(first)
        self._omega *= self._params.warm_omega
        self._evaluate(self.prices)

    def _weigh(self) -> None:
        """Column sums in tetris' relaxation of the scaled rows, which the primal steps are divided by."""
        a, stress = self._a, self._stress
        self._cpu_total = max(float(a.cpu_need.sum()), 1.0)
        self._size_total = max(float(a.size.sum()) + float(a.output.sum()), 1.0)
        owner = np.repeat(np.arange(len(a.tier)), np.diff(a.option_start))
        gpu = np.zeros(len(a.tier))
        taken = self.gangs.option_amount * self._row_sums()[self.gangs.option_class]
        np.maximum.at(gpu, owner, stress * taken)
        limits = 0.1 * stress
        self._work_weight = gpu + limits * (2 * a.cpu_need / self._cpu_total + a.output / self._size_total) + 0.01
        self._work_weight += np.diff(a.read_start)
        self._data_weight = np.diff(a.reader_start) + 2 * limits * a.size / self._size_total + 0.5

    def _row_sums(self) -> FloatArray:
        """[C + 1] what one workload of a class takes of the scaled rows of one region, at most."""
        a, g = self._a, self.gangs
        share = 1 / self._asked
        over = np.repeat((1 / np.sqrt(self._asked * self._total[:, None]))[:, :, None], g.over_limit.shape[3], axis=2)
        over[:, -1, 0] += 1 / self._total  # the rows ``under`` too
        supply = np.maximum(a.supply, 1)[:, :, None, None]
        worst = np.broadcast_to(supply * share[None, :, :, None], g.worst_limit.shape)
        most: FloatArray = g.price(np.broadcast_to(over, g.over_limit.shape), worst).max(axis=1)
        return most

    def gpu_price(self, prices: Multipliers) -> FloatArray:
        """[C + 1, R] price of one of each class of work."""
        over = prices.over.copy()
        over[:, :, -1, 0] -= prices.under
        return self.gangs.price(over, prices.worst)

    def constant(self, prices: Multipliers) -> float:
        """The part of the bound that no decision touches."""
        a, g = self._a, self.gangs
        value = -float((prices.over * g.over_limit).sum()) + float((prices.under * a.supply).sum())
        value += float((np.maximum(a.peak_price - prices.worst.sum(axis=(0, 3)), 0.0) * self._floor).sum())
        value -= float((a.peak_price * a.peak_level).sum()) * len(self._floor)
        value += float((prices.worst * (self._floor[:, :, None] - g.worst_limit)).sum())
        for price, limit in (
            (prices.cpu, a.cpu),
            (prices.storage, a.storage),
            (prices.ingress, np.where(a.ingress < UNLIMITED, a.ingress, 0)),
            (prices.quota, a.quota),
        ):
            value -= float(price @ limit)
        return value

    def step(self, iterations: int) -> None:
        """Take some iterations of tetris' relaxation; a fraction of a second on small instances, so call it often."""
        for _ in range(iterations):
            read_pace = self._params.read_step / self._omega if self._follows else 0.0
            self._dual(*self._primal(self.prices, read_pace, self._iterations % self._params.evaluate_every == 0))
            self._follows = True
            self._average()
            self._iterations += 1
            if self._iterations % self._params.patience == 0:
                gained, enough = self.bound - self._last, self._iterations >= self._params.least_iterations
                self.converged = enough and gained <= self._params.progress * abs(self.bound)
                self._last = self.bound

    def _primal(self, prices: Multipliers, read_pace: float = 0.0, look: bool = False) -> tuple[FloatArray, ...]:
        """Step the prices of reads, then the point: (demand by class, cores, MB held, MB new, quotas) by region.

        Should it also ``look`` at what the prices prove?
        """
        a, charges = self._a, self._charges(prices)
        work, loads = self._over_workloads(prices, charges, read_pace, True)
        if look:
            self._note(work + dataset_value(a, prices, charges, self._point) + self.constant(prices), prices)
        held, new = dataset_pass(a, prices, charges, self._point, self._pace(self._data_weight))
        quota = np.zeros(len(a.quota))
        quota[a.quota_row[self._limited]] = loads.cpu[self._limited]
        return np.ascontiguousarray(loads.demand.T), loads.cpu.sum(axis=0), loads.output + held, new, quota

    def _over_workloads(
        self, prices: Multipliers, charges: workload_step.RowPrices, read_pace: float, moves: bool
    ) -> tuple[float, workload_step.Loads]:
        """Pass over the workloads of tetris' Lagrangian relaxation: bound and loads at these prices."""
        priced = (self._a, self.gangs, prices, charges, self._splittable, self._point)
        passed: tuple[float, workload_step.Loads] = workload_step.workload_pass(
            *priced, self._pace(self._work_weight), self._read_cap, SINGLE(read_pace), moves
        )
        return passed

    def _pace(self, weight: FloatArray) -> NDArray[np.float32]:
        """Primal steps of tetris' relaxation of columns whose scaled rows add up to so much."""
        return (self._params.primal_step * self._omega / weight).astype(SINGLE)

    def _charges(self, prices: Multipliers) -> workload_step.RowPrices:
        """Charges of the regions' rows at these prices."""
        cpu = np.tile(prices.cpu, (len(self._limited), 1))
        cpu[self._limited] += prices.quota[self._a.quota_row[self._limited]]
        held, new = prices.storage, prices.storage + prices.ingress
        return workload_step.RowPrices(*(price.astype(SINGLE) for price in (self.gpu_price(prices), cpu, held, new)))

    def _note(self, bound: float, prices: Multipliers) -> None:
        """Note a bound, and save its prices if it is clearly better."""
        if bound > self.bound:
            self.bound = bound
            if bound > self._saved_bound + 1e-5 * abs(bound):
                self._save(bound, prices)

    def _save(self, bound: float, prices: Multipliers) -> None:
        """Save the prices of the best bound."""
        self._saved_bound = bound
        self.best.read[...] = prices.read
        for saved, price in zip(self.best.of_regions, prices.of_regions):
            saved[...] = price

    def _dual(
        self, demand: FloatArray, cpu: FloatArray, storage: FloatArray, ingress: FloatArray, quota: FloatArray
    ) -> None:
        """Step of the prices in tetris' relaxation by the excess of the rows."""
        a, p, pace = self._a, self.prices, 1 / self._omega
        stress, limits = pace * self._stress, 0.1 * pace * self._stress
        g = self.gangs
        supply = np.maximum(a.supply, 1)[:, :, None]
        row = np.where(self._supplied[:, :, None], self._asked[None] / supply, 0.0)
        worst_step(p.worst, g.load(g.worst, demand) - g.worst_limit, row, stress, a.peak_price)
        excess = g.load(g.over, demand) - g.over_limit
        over_step(p.over, excess, self._supplied, stress / (self._asked * self._total[:, None]), a.overload_price)
        spare = -excess[:, :, -1, 0] / self._total**2
        p.under[...] = np.clip(p.under + stress * spare, 0, a.idle_price) * self._supplied
        p.cpu[...] = np.maximum(p.cpu + limits * (cpu - a.cpu) / self._cpu_total**2, 0)
        p.storage[...] = np.maximum(p.storage + limits * (storage - a.storage) / self._size_total**2, 0)
        ingress_over = np.where(a.ingress < UNLIMITED, ingress - a.ingress, -1.0)
        p.ingress[...] = np.maximum(p.ingress + limits * ingress_over / self._size_total**2, 0)
        p.quota[...] = np.maximum(p.quota + limits * (quota - a.quota) / self._cpu_total**2, 0)

    def _average(self) -> None:
        """Average in tetris' relaxation: every so often evaluate the average prices, and go on from them where they are
        better.
        """
        if self._sum is None:
            self._sum = Multipliers(*(np.zeros_like(price) for price in self.prices))
        for total, price in zip(self._sum, self.prices):
            total += price
        self._count += 1
        if self._count < self._params.average_every:
            return
        mean = Multipliers(*(np.divide(total, self._count, dtype=total.dtype) for total in self._sum))
        for total in self._sum:
            total[...] = 0
        self._count = 0
        if self._improves(mean):
            self._go_to(mean)
        if self._mean is not None:
            self._follow_drift(mean, self._mean)
        self._mean = Multipliers(mean.read[:0], *mean[1:])

    def _follow_drift(self, mean: Multipliers, before: Multipliers) -> None:
        """Prices that move steadily have far to go: jump along with the regions' prices while the bound improves."""
        a, reach = self._a, 2.0
        while True:
            moved = [price + reach * (price - old) for price, old in zip(mean[1:], before[1:])]
            ahead = Multipliers(mean.read, *(np.maximum(price, 0.0) for price in moved))
            peak, over = ahead.worst.sum(axis=(0, 3)), ahead.over.sum(axis=3)
            ahead.worst[...] *= np.minimum(1.0, a.peak_price / np.maximum(peak, 1e-300))[:, :, None]
            ahead.over[...] *= np.minimum(1.0, a.overload_price / np.maximum(over, 1e-300))[..., None]
            np.minimum(ahead.under, a.idle_price, out=ahead.under)
            if not self._improves(ahead):
                return
            self._go_to(ahead)
            reach *= 2.0

    def _improves(self, prices: Multipliers) -> bool:
        """Whether the bound at these prices is better."""
        before = self.bound
        self._evaluate(prices)
        return self.bound > before

    def _go_to(self, prices: Multipliers) -> None:
        """Go to other prices in tetris' Lagrangian relaxation."""
        for price, value in zip(self.prices, prices):
            price[...] = value
        self._follows = False

    def _evaluate(self, prices: Multipliers) -> None:
        """Note the bound of some prices without moving."""
        self._note(self._value(prices), prices)

    def _value(self, prices: Multipliers) -> float:
        """The bound of some prices."""
        a, charges = self._a, self._charges(prices)
        work, _ = self._over_workloads(prices, charges, 0.0, False)
        return float(work + dataset_value(a, prices, charges, self._point) + self.constant(prices))


def _by_tier(kind: Ints, tier: Ints, amount: Ints, shape: tuple[int, int]) -> FloatArray:
    """[K, P] GPUs of workloads by type, cumulative over tiers; work without GPUs is left out."""
    total = np.zeros((shape[0] + 1, shape[1]))
    np.add.at(total, (kind, tier), amount)
    return np.cumsum(total, axis=1)[: shape[0]]
