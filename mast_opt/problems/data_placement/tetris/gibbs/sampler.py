"""Gibbs sampler of tetris: each workload in turn is placed at random by its costs, with prices of what is scarce.

A region is drawn with its Boltzmann probability (Geman & Geman 1984), by noise from a Gumbel distribution. Workloads
come in the order in which they lie in memory, and the rows that they look up are fetched ahead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import compiled, kernel
from mast_opt.core.prefetch import fetch_row
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.gibbs.congestion_prices import (
    CongestionPrices,
    price_region,
    price_regions,
)
from mast_opt.problems.data_placement.tetris.gibbs.replica_reduced_costs import (
    add_read_costs,
    change_reduced_cost,
    level_without,
    read_cost,
)
from mast_opt.problems.data_placement.tetris.instance_arrays import Singles, TetrisArrays
from mast_opt.problems.data_placement.tetris.lagrangian.projections import BARRED, NONE, SINGLE, least
from mast_opt.problems.search.random_scalar import below

AHEAD = 12
"""Reads ahead of which the reduced costs of their datasets are fetched."""


@by_reference
class GibbsState(NamedTuple):
    """A plan under Gibbs sampling."""

    option: Ints
    region: Ints
    """[W] R where it is left out."""
    gpus: CongestionPrices
    cpu: Ints
    """[R] in use."""
    quota: Ints
    reduced_cost: Singles
    volume: Singles
    """[N] what each read costs when it is remote."""
    held: Singles
    """[R] congestion price of an MB stored, for what work puts out."""
    core: Singles
    """[R] price of a millicore."""
    core_before: FloatArray
    """[R] the same in the sweeps before."""
    core_level: float
    """Use of a region's cores at which they have the price of the sweeps before."""
    steep: float
    """Use above ``core_level`` at which the price has risen twice as far as evenly, and ever farther from there on:
    into a full region nothing comes, so whoever came first must be driven out."""
    refresh: int
    """Workloads after which the level of the peaks and the prices of cores are recomputed."""
    noise: Singles
    """Quantiles of a Gumbel distribution in random order; a choice takes R + 1 in a row."""
    random: Any
    """[1] uint64, state of the generator."""
    reads: Singles
    """[R] scratch: what each region costs whatever the option."""
    cost: Singles
    """[R + 1] scratch: on one option."""
    least: Singles
    """[R + 1] scratch."""


@kernel
def _has_room(a: TetrisArrays, b: GibbsState, w: int, r: int) -> bool:
    if b.cpu[r] + a.cpu_need[w] > a.cpu[r]:
        return False
    row = a.quota_row[a.app[w], r]
    return bool(row < 0 or b.quota[row] + a.cpu_need[w] <= a.quota[row])


@kernel
def _price_cores(a: TetrisArrays, b: GibbsState, stiffness: float) -> None:
    for r in range(len(b.core)):
        full = b.cpu[r] / max(a.cpu[r], 1) - b.core_level
        steeper = 1.0 + (max(full, 0.0) / b.steep) ** 2
        b.core[r] = SINGLE(max(b.core_before[r] + stiffness * full * steeper, 0.0))


@compiled
def learn_cores(a: TetrisArrays, b: GibbsState, stiffness: float, share: float) -> None:
    """Prices of cores take a share of the step to what they are now."""
    _price_cores(a, b, stiffness)
    for r in range(len(b.core)):
        b.core_before[r] += share * (b.core[r] - b.core_before[r])


@kernel
def _price_reads(a: TetrisArrays, b: GibbsState, w: int) -> None:
    """Price the reads of w in every region whatever its option, as if it ran nowhere now."""
    regions, here, last = len(b.reads), b.region[w], len(a.read_dataset) - 1
    cores, output = SINGLE(a.cpu_need[w]), SINGLE(a.output[w])
    for r in range(regions):
        b.reads[r] = cores * b.core[r] + output * b.held[r]
    back = NONE
    for n in range(a.read_start[w], a.read_start[w + 1]):
        fetch_row(b.reduced_cost, a.read_dataset[min(n + AHEAD, last)])
        i, volume = a.read_dataset[n], b.volume[n]
        if here < regions:
            level, reduced_cost = level_without(b.reduced_cost, i, here, volume, regions), b.reduced_cost[i, here]
            back += read_cost(reduced_cost + volume, level, volume) - read_cost(reduced_cost, level, volume)
        else:
            level = level_without(b.reduced_cost, i, 0, NONE, regions)
        add_read_costs(b.reduced_cost, i, level, volume, b.reads)
    if here < regions:
        b.reads[here] += back
    for c in range(a.today_start[w], a.today_start[w + 1]):
        b.reads[a.today_region[c]] -= SINGLE(a.today_share[c] * a.move_price[w])


@kernel
def _price_option(a: TetrisArrays, b: GibbsState, w: int, o: int, temperature: np.float32, noise: np.int64) -> None:
    """``b.cost``: what w costs on option o in every region, and when it is left out."""
    regions, k, p, gpus = len(b.reads), a.option_type[o], a.tier[w], SINGLE(a.option_mgpu[o])
    kept = SINGLE(a.kept_share[o] * a.retype_price[w])
    if k < b.gpus.entry.shape[0]:
        for r in range(regions):
            price = b.gpus.entry[k, p, r] + gpus * b.gpus.growth[k, p, r]
            b.cost[r] = b.reads[r] - kept + gpus * price - temperature * b.noise[noise + r]
        if o == b.option[w] and b.region[w] < regions:
            b.cost[b.region[w]] -= SINGLE(2) * gpus * gpus * b.gpus.growth[k, p, b.region[w]]
    else:
        for r in range(regions):
            b.cost[r] = b.reads[r] - temperature * b.noise[noise + r]
    for r in range(regions):
        b.cost[r] += SINGLE(a.run_price[o, r])
    b.cost[regions] = SINGLE(a.refuse_price[w]) - temperature * b.noise[noise + regions]
    for r in range(regions + 1):
        b.cost[r] = b.cost[r] if a.option_region[o, r] else BARRED


@kernel
def _choose(a: TetrisArrays, b: GibbsState, w: int, temperature: np.float32) -> tuple[int, int]:
    """(Option, region) where w costs least, among those with room; region −1: none."""
    regions, best, option, region = len(b.reads), BARRED, -1, -1
    for o in range(a.option_start[w], a.option_start[w + 1]):
        _price_option(a, b, w, o, temperature, below(b.random, len(b.noise) - regions))
        while True:
            lowest = least(b.cost, regions + 1)
            if lowest >= best:
                break
            r = 0
            while b.cost[r] > lowest:
                r += 1
            if r == regions or r == b.region[w] or _has_room(a, b, w, r):
                best, option, region = lowest, o, r
                break
            b.cost[r] = BARRED
    return option, region


@kernel
def _count(a: TetrisArrays, b: GibbsState, w: int, o: int, r: int, sign: int, stiffness: float) -> None:
    """Add what w takes on option o in r (sign 1), or take it out (sign −1)."""
    k, gpus = a.option_type[o], a.option_mgpu[o]
    if k < b.gpus.entry.shape[0] and gpus > 0:
        for p in range(a.tier[w], len(a.peak_price)):
            b.gpus.demand[r, k, p] += sign * gpus
        price_region(a, b.gpus, r, k, stiffness)
    b.cpu[r] += sign * a.cpu_need[w]
    row = a.quota_row[a.app[w], r]
    if row >= 0:
        b.quota[row] += sign * a.cpu_need[w]


@compiled
def gibbs_sweep(
    a: TetrisArrays, b: GibbsState, first: int, last: int, temperature: float, stiffness: float, core_stiffness: float
) -> int:
    """Workloads first … last − 1 in turn; returns how many moved.

    ``stiffness`` is that of GPU prices, ``core_stiffness`` what cores cost more in a region with all of them in use
    than in an empty one.
    """
    regions, moved = len(b.reads), 0
    for w in range(first, last):
        if (w - first) % b.refresh == 0:
            price_regions(a, b.gpus, stiffness)
            _price_cores(a, b, core_stiffness)
        _price_reads(a, b, w)
        o, r = _choose(a, b, w, SINGLE(temperature))
        before = b.region[w]
        if r < 0 or (r == before and o == b.option[w]):
            continue
        moved += 1
        if before < regions:
            _count(a, b, w, b.option[w], before, -1, stiffness)
        if r < regions:
            _count(a, b, w, o, r, 1, stiffness)
        b.option[w], b.region[w] = o, r
        if r != before:
            for n in range(a.read_start[w], a.read_start[w + 1]):
                i = a.read_dataset[n]
                if before < regions:
                    change_reduced_cost(a, b.reduced_cost, i, before, b.volume[n], b.least)
                if r < regions:
                    change_reduced_cost(a, b.reduced_cost, i, r, -b.volume[n], b.least)
    return moved
