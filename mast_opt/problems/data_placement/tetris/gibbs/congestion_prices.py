"""Congestion prices of GPUs by region (tetris, Gibbs sampling): they balance demand and supply over the regions.

A peak is the most of many ratios, so one change alone gains nothing by it, and work could move only in exchange for
other work. In its place stands an augmented Lagrangian (Hestenes 1969, Powell 1969) of

    min Σ_kp price[p] · peak[k,p]   with   demand[r,k,p] / supply[r,k] ≤ peak[k,p]:

a region whose ratio is above the others' costs more at once, by ``stiffness``, and from sweep to sweep for good, by
its multiplier. Prices add up to the peak's, so the value of peak[k,p] follows from them, or to less where it is at the
level below which it costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.projections import SINGLE

TRIES = 40


@by_reference
class CongestionPrices(NamedTuple):
    """The GPUs of a plan whose work moves at these prices."""

    demand: Ints
    """[R, K, P] cumulative over tiers."""
    multiplier: FloatArray
    """[R, K, P] per unit of demand over supply."""
    peak: FloatArray
    """[K, P]"""
    entry: Singles
    """[K, P, R] price of a milli-GPU for work of a tier."""
    growth: Singles
    """[K, P, R] half of what the price rises for each milli-GPU that comes at once."""
    ramp: float
    """Demand over supply within which overload comes and idleness goes."""


def congestion_prices_of(a: TetrisArrays, demand: Ints, ramp: float) -> CongestionPrices:
    """Congestion prices with multipliers in proportion to supply; none where demand together is within the level."""
    regions, kinds, tiers = demand.shape
    total = np.maximum(a.supply.sum(axis=0), 1)
    share = a.supply / total
    priced = a.peak_price * ((demand.sum(axis=0) > a.peak_level * total[:, None]) | (a.peak_level == 0))
    return CongestionPrices(
        demand=demand.copy(),
        multiplier=np.ascontiguousarray(share[:, :, None] * priced),
        peak=np.zeros((kinds, tiers)),
        entry=np.zeros((kinds, tiers, regions), SINGLE),
        growth=np.zeros((kinds, tiers, regions), SINGLE),
        ramp=ramp,
    )


@kernel
def _raised(a: TetrisArrays, g: CongestionPrices, r: int, k: int, p: int, stiffness: float) -> float:
    """Price of a unit of demand over supply in r, if any."""
    ratio = g.demand[r, k, p] / a.supply[r, k]
    price: float = max(g.multiplier[r, k, p] + stiffness * a.peak_price[p] * (ratio - g.peak[k, p]), 0.0)
    return price


@kernel
def price_region(a: TetrisArrays, g: CongestionPrices, r: int, k: int, stiffness: float) -> None:
    """Prices of type k in r, where demand has changed."""
    supply, last = a.supply[r, k], len(a.peak_price) - 1
    if supply <= 0:
        return
    entry, growth = 0.0, 0.0
    for back in range(last + 1):
        p = last - back
        over = min(max((g.demand[r, k, p] / supply - 1.0) / g.ramp + 0.5, 0.0), 1.0)
        entry += _raised(a, g, r, k, p, stiffness) / supply + a.overload_price[k, p] * over
        if p == last:
            entry -= a.idle_price[k] * (1.0 - over)
        growth += 0.5 * stiffness * a.peak_price[p] / supply / supply
        g.entry[k, p, r], g.growth[k, p, r] = SINGLE(entry), SINGLE(growth)


@kernel
def price_regions(a: TetrisArrays, g: CongestionPrices, stiffness: float) -> None:
    """All prices, with peaks at which the regions' prices add up to the peak's: Newton's method from below."""
    regions, kinds, tiers = g.demand.shape
    for k in range(kinds):
        for p in range(tiers):
            step = stiffness * a.peak_price[p]
            if step > 0.0:
                g.peak[k, p] = a.peak_level[p] if a.peak_level[p] > 0.0 else -np.inf
                for r in range(regions):
                    if a.supply[r, k] > 0:
                        full = g.demand[r, k, p] / a.supply[r, k] + (g.multiplier[r, k, p] - a.peak_price[p]) / step
                        g.peak[k, p] = max(g.peak[k, p], full)
                for _ in range(TRIES):
                    total, priced = -a.peak_price[p], 0
                    for r in range(regions):
                        raised = _raised(a, g, r, k, p, stiffness) if a.supply[r, k] > 0 else 0.0
                        total += raised
                        priced += 1 if raised > 0.0 else 0
                    if priced == 0 or total <= 1e-9 * a.peak_price[p]:
                        break
                    g.peak[k, p] += total / (step * priced)
        for r in range(regions):
            price_region(a, g, r, k, stiffness)


@compiled
def update_prices(a: TetrisArrays, g: CongestionPrices, stiffness: float, share: float) -> None:
    """Multipliers take a share of the step to what the regions cost now."""
    regions, kinds, tiers = g.demand.shape
    for r in range(regions):
        for k in range(kinds):
            for p in range(tiers):
                if a.supply[r, k] > 0:
                    g.multiplier[r, k, p] += share * (_raised(a, g, r, k, p, stiffness) - g.multiplier[r, k, p])
