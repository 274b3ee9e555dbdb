"""Bound check of a data-placement certificate: cheapest cell per workload, cheapest replicas per dataset, a constant.

Computed with numpy alone; shares no code with the search. The roundings of GPU rows are those of
``docs/heuristics/tetris.md``: valid because gangs are whole, whatever their prices.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import HOURS_A_MONTH, MB_PER_TB, MICRO, MILLI
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement, Ints
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import Charges, KeptTrees, charges
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound

Floats = NDArray[np.float64]

LEVELS = 65535
"""Steps in which a read price is kept, as a part of its box: two bytes each."""
CHUNK = 200_000
"""Rows handled at a time."""


@dataclass(frozen=True, eq=False)
class KeptPrices:
    """Prices on the rows of the formulation, as a file keeps them."""

    weights: Mapping[str, float]
    """The objective that is bounded: a weight for every term."""
    read_level: NDArray[np.uint16]
    """[N, R] price of row ``local`` in steps of ``read_cap / LEVELS``."""
    read_cap: Floats
    """[N] the largest price of each read; at most the price of its remote volume where that is allowed."""
    worst: Floats
    """[R, K, P, J] prices of the rows ``worst``: as they are, then rounded by each size of ``gang``."""
    over: Floats
    """[R, K, P, J] prices of the rows ``gpu`` and their roundings, per milli-GPU."""
    under: Floats
    """[R, K] prices of the rows ``under``, per milli-GPU."""
    cpu: Floats
    storage: Floats
    ingress: Floats
    quota: Floats
    gang: NDArray[np.int64]
    """[K, J−1] milli-GPUs ≥ 1 by which the rows of each type are rounded."""
    trees: KeptTrees

    def read_price(self, reads: slice | Ints, region: int) -> Floats:
        """Prices in a data placement's certificate of some reads in a region, without what trees add."""
        return self.read_level[reads, region] * (self.read_cap[reads] / LEVELS)


def remote_cap(p: DataPlacement, weights: Mapping[str, float]) -> Floats | None:
    """[N] price of reading everything remotely; None where that is forbidden."""
    if not p.remote_reads:
        return None
    return weights["remote"] * p.reads.mb_per_day / max(int(p.reads.mb_per_day.sum()), 1)


def item_price(c: KeptPrices, p: DataPlacement) -> float:
    """Price of a new replica, and of a workload that leaves its region, by the term ``moved_items``."""
    return c.weights["moved_items"] / (len(p.datasets) + len(p.workloads))


def tree_charges(c: KeptPrices, p: DataPlacement) -> Charges | None:
    """Charges of the trees, if there are any."""
    if not len(c.trees.root):
        return None
    return charges(c.trees, p, c.read_level, c.read_cap / LEVELS, remote_cap(p, c.weights))


def cheapest_cells(c: KeptPrices, p: DataPlacement, trees: Charges | None) -> list[float]:
    """Σ over workloads of the cheapest option and region (or of leaving it out)."""
    workloads, regions = len(p.workloads), len(p.regions)
    floor = bin_packing_peak_bound(p)
    quota = np.zeros((len(p.apps), regions))
    quota[p.cpu_quotas.app, p.cpu_quotas.region] = c.quota
    move = c.weights["moved_work"] * p.demand_mgpu / p.demand_mgpu.sum() + item_price(c, p)
    refuse = p.tier_weight[p.workloads.tier] * p.demand_mgpu
    refuse = c.weights["unserved"] * refuse / (refuse.sum() or 1.0)
    dollars = _dollars(c, p)
    share = p.current_runs.share / SHARE
    retype = c.weights["retyped_work"] * p.demand_mgpu / p.demand_mgpu.sum()
    kept = np.zeros((workloads, len(p.gpu_types) + 1))
    typed = p.current_runs.gpu_type < len(p.gpu_types)
    np.add.at(kept, (p.current_runs.workload[typed], p.current_runs.gpu_type[typed]), share[typed])
    read_at = np.searchsorted(p.reads.workload, np.arange(workloads + 1))
    option_at = np.searchsorted(p.options.workload, np.arange(workloads + 1))
    sums = []
    for first in range(0, workloads, CHUNK):
        last = min(first + CHUNK, workloads)
        rows = slice(read_at[first], read_at[last])
        base = np.zeros((last - first, regions))
        for r in range(regions):
            work = p.reads.workload[rows] - first
            base[:, r] = np.bincount(work, weights=c.read_price(rows, r), minlength=last - first)
        own = np.arange(first, last)
        if trees is not None:
            base += trees.lift[len(p.datasets) + own]
            mine = np.flatnonzero((trees.read >= rows.start) & (trees.read < rows.stop))
            np.add.at(base, (p.reads.workload[trees.read[mine]] - first, trees.region[mine]), trees.rise[mine])
        base += p.workloads.cpu_mcores[own, None] * (c.cpu + quota[p.workloads.app[own]]) + p.workloads.output_mb[
            own, None
        ] * (c.storage + dollars.stored)
        today = np.flatnonzero((p.current_runs.workload >= first) & (p.current_runs.workload < last))
        w, home = p.current_runs.workload[today], p.current_runs.region[today]
        leave = np.bincount(w - first, weights=share[today] * move[w], minlength=last - first)
        pair, at = np.unique((w - first) * regions + home, return_inverse=True)
        there = np.bincount(at, weights=share[today], minlength=len(pair))
        saved = np.where(p.workloads.splittable[pair // regions + first], 1.0, there) * move[pair // regions + first]
        base[pair // regions, pair % regions] -= saved
        options = slice(option_at[first], option_at[last])
        work, kind = p.options.workload[options], p.options.gpu_type[options]
        key = np.stack([kind, p.workloads.tier[work], p.options.mgpu[options], ~p.workloads.splittable[work]])
        alike, member = np.unique(key, axis=1, return_inverse=True)
        stays = np.where(p.workloads.splittable[work] & (kept[work, kind] > 0), 1.0, kept[work, kind]) * retype[work]
        cell = base[work - first] - stays[:, None] + _gpu_prices(c, p, floor, dollars.gpu, *alike)[member.reshape(-1)]
        cell = np.where(p.option_regions[options], cell, np.inf).min(axis=1)
        best = np.full(last - first, np.inf)
        np.minimum.at(best, work - first, cell)
        if p.may_refuse:
            best = np.minimum(best, refuse[own])
        best += leave + kept[own].sum(axis=1) * retype[own]
        sums.append(float(best[np.isfinite(best)].sum()))
    return sums


def cheapest_sets(c: KeptPrices, p: DataPlacement, trees: Charges | None) -> list[float]:
    """Σ over datasets of the cheapest set of replicas within its limits."""
    datasets, regions = p.datasets.stored.shape
    share = p.datasets.size_mb / max(int(p.datasets.size_mb.sum()), 1)
    order = np.argsort(p.reads.dataset, kind="stable")
    start = np.searchsorted(p.reads.dataset[order], np.arange(datasets + 1))
    dollars, sums = _dollars(c, p), []
    for first in range(0, datasets, CHUNK):
        last = min(first + CHUNK, datasets)
        rows = order[start[first] : start[last]]
        own = slice(first, last)
        price = c.weights["storage"] * share[own, None] + p.datasets.size_mb[own, None] * (c.storage + dollars.stored)
        new = c.weights["copy"] * share[own, None] + p.datasets.size_mb[own, None] * (c.ingress + dollars.arriving)
        new += item_price(c, p)
        cost = price + np.where(p.datasets.stored[own], 0.0, new)
        for r in range(regions):
            data = p.reads.dataset[rows] - first
            cost[:, r] -= np.bincount(data, weights=c.read_price(rows, r), minlength=last - first)
        if trees is not None:
            cost += trees.lift[own]
            data = p.reads.dataset[trees.read]
            mine = np.flatnonzero((data >= first) & (data < last))
            np.add.at(cost, (data[mine] - first, trees.region[mine]), -trees.rise[mine])
        pinned = p.datasets.pinned[own]
        total = np.where(pinned, cost, 0.0).sum(axis=1)
        count = pinned.sum(axis=1)
        free = np.sort(np.where(pinned | p.closed[own], np.inf, cost), axis=1)
        rank = np.arange(1, regions + 1)[None, :] + count[:, None]
        must = rank <= p.datasets.copies_min[own, None]
        may = (rank <= p.datasets.copies_max[own, None]) & (free < 0)
        total += np.where((must | may) & np.isfinite(free), free, 0.0).sum(axis=1)
        sums.append(float(total.sum()))
    return sums


@dataclass(frozen=True)
class _Dollars:
    """Prices of regions, by the weights of the terms in dollars; links have none in this bound."""

    gpu: Floats
    """[R, K] of a milli-GPU in use."""
    stored: Floats
    """[R] of an MB stored."""
    arriving: Floats
    """[R] of an MB of new replicas."""


def _dollars(c: KeptPrices, p: DataPlacement) -> _Dollars:
    """Prices in dollars of a data placement, in units of its weighted objective."""
    running, migration = c.weights["running_cost"] / MICRO, c.weights["migration_cost"] / MICRO
    return _Dollars(
        np.multiply(p.regions.gpu_price_micro, running * HOURS_A_MONTH / MILLI, dtype=np.float64),
        np.multiply(p.regions.storage_price_micro, running / MB_PER_TB, dtype=np.float64),
        np.multiply(p.regions.copy_price_micro, migration / MB_PER_TB, dtype=np.float64),
    )


def _gpu_prices(
    c: KeptPrices, p: DataPlacement, floor: Floats, dollars: Floats, kinds: Ints, tiers: Ints, sizes: Ints, whole: Ints
) -> Floats:
    """[n, R] price of work of a type, tier and size; the roundings count only what is whole."""
    total = np.zeros((len(kinds), len(p.regions)))
    for k in range(len(p.gpu_types)):
        for t in range(len(p.tiers)):
            mine = np.flatnonzero((kinds == k) & (tiers <= t) & (sizes > 0))
            size = sizes[mine, None].astype(np.float64)
            supply = p.regions.supply_mgpu[:, k].astype(np.float64)
            rows = ((c.over[:, k, t], supply, 1.0), (c.worst[:, k, t], supply * floor[k, t], np.maximum(supply, 1.0)))
            for price, limit, unit in rows:
                total[mine] += size * price[:, 0] / unit
                for j, d in enumerate(c.gang[k].tolist(), start=1):
                    total[mine] += whole[mine, None] * _rounded(size, d, limit % d) * price[:, j] / unit
            if t == len(p.tiers) - 1:
                total[mine] -= size * (c.under[:, k] - dollars[:, k])
    return total


def _rounded(amount: Floats, d: Floats | float, rest: Floats) -> Floats:
    """Mixed-integer rounding by d of an amount in a row of data placement's bound whose limit leaves ``rest`` when
    divided by d.
    """
    return np.floor(amount / d) * (d - rest) + np.maximum(amount % d - rest, 0.0)


def constant(c: KeptPrices, p: DataPlacement) -> list[float]:
    """Parts of the bound that no decision touches: the limits at their prices, and the peaks that gangs force."""
    floor = bin_packing_peak_bound(p)
    price = c.weights["peak"] * p.tier_weight
    left = np.maximum(price - c.worst.sum(axis=(0, 3)), 0.0)
    supply = p.regions.supply_mgpu[:, :, None].astype(np.float64)
    at_floor = supply * floor
    over, worst = c.over[..., 0] * supply, np.zeros_like(at_floor)
    for j in range(c.gang.shape[1]):
        d = c.gang[:, j][:, None].astype(np.float64)
        over = over + c.over[..., j + 1] * _rounded(supply, d, supply % d)
        kept = _rounded(at_floor, d, at_floor % d) / np.maximum(supply, 1.0)
        worst += c.worst[..., j + 1] * (floor - kept)
    limits = (
        (c.cpu, p.regions.cpu_mcores),
        (c.storage, p.usable_storage_mb),
        (c.ingress, np.where(p.regions.ingress_limited, p.ingress_mb, 0)),
        (c.quota, p.cpu_quotas.cpu_mcores),
    )
    return [
        -float(over.sum()),
        float(worst.sum()),
        float((c.under * p.regions.supply_mgpu).sum()),
        float((left * floor).sum() - len(floor) * (price * p.peak_level).sum()),
        *(-float(price @ limit) for price, limit in limits),
    ]
