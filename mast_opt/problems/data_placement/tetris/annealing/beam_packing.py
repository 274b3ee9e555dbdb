"""Beam search that packs GPU gangs into regions (tetris): as if only GPUs counted, the largest gangs first.

How gangs share the regions decides how good a plan of a small instance can become, and no short chain of changes leads
from one way of packing them to the next. Many ways are almost equally good; each is a beginning.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.jit import compiled, kernel
from mast_opt.problems.data_placement.problem import Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.state import TetrisState
from mast_opt.problems.search.random_scalar import uniform


class Packings(NamedTuple):
    """Ways of packing G gangs, no two with the same demand: B of them."""

    option: Ints
    """[B, G]"""
    region: Ints
    """[B, G] −1: not packed, for it would have had room in none of the packings."""
    cost: FloatArray
    """[B] what the GPU terms cost more than before."""


class _Beam(NamedTuple):
    """Running figures of the packings kept so far."""

    demand: Ints
    """[B, R, K, P] cumulative over tiers."""
    peak: FloatArray
    """[B, K, P]"""
    cpu: Ints
    """[B, R] cores in use."""
    quota: Ints
    """[B, Q] in use."""
    cost: FloatArray
    """[B] what the GPU terms cost more than in the beginning."""
    uneven: FloatArray
    """[B] sum of the squares of demand over supply, more than in the beginning."""
    mark: NDArray[np.uint64]
    """[B] equal where demand is, and almost never elsewhere."""


class _Ways(NamedTuple):
    """Ways to go on from a beam, no two with the same demand."""

    score: FloatArray
    cost: FloatArray
    uneven: FloatArray
    mark: NDArray[np.uint64]
    parent: Ints
    option: Ints
    region: Ints
    table: Ints
    """Position of each mark, found by its last bits; −1: nowhere."""
    spare: FloatArray
    """Scratch space for finding a score by its rank."""


def largest_first(a: TetrisArrays) -> Ints:
    """[G] the workloads that ask for GPUs, the largest first."""
    size = _sizes(a)
    return np.argsort(-size, kind="stable")[: np.count_nonzero(size)]


def _sizes(a: TetrisArrays) -> Ints:
    """[W] the GPUs of each workload, on the option with the most."""
    return np.maximum.reduceat(a.option_mgpu, a.option_start[:-1]) if len(a.tier) else np.zeros(0, np.int64)


def pack(
    a: TetrisArrays, s: TetrisState, gangs: Ints, width: int, even: float, noise: float, random: NDArray[np.uint64]
) -> Packings:
    """Ways of adding these gangs to the work in s, within cores and quotas where that can be.

    Args:
        gangs: in the order in which they are packed, all of them left out in s.
        width: the most ways at a time.
        even: worth of evenness, which breaks ties in cost: price of the sum of squares of demand
            over supply.
        noise: scale of what is drawn against each way (Gumbel's distribution), for the largest gang; for others in
            proportion to their size.
        random: [1] state of a generator.
    """
    beams = [_beam_of(s, width) for _ in range(2)]
    ways = _ways_of(width * len(a.cpu) * int(np.diff(a.option_start).max(initial=1)))
    marks = np.random.default_rng(len(gangs)).integers(2**64, size=s.demand.shape, dtype=np.uint64)
    steps = np.full((3, len(gangs), width), -1)
    size = _sizes(a)[gangs]
    noises = noise * size / size.max(initial=1)
    count, last = _search(a, gangs, beams[0], beams[1], ways, marks, even, noises, random, steps)
    option, region = _traced(steps, count)
    return Packings(option, region, beams[last].cost[:count])


def _beam_of(s: TetrisState, width: int) -> _Beam:
    """A beam of nothing but s."""
    return _Beam(
        np.repeat(s.demand[None], width, axis=0),
        np.repeat(s.peak[None], width, axis=0),
        np.repeat(s.cpu[None], width, axis=0),
        np.repeat(s.quota[None], width, axis=0),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width, np.uint64),
    )


def _ways_of(most: int) -> _Ways:
    """Room for so many."""
    return _Ways(
        score=np.zeros(most),
        cost=np.zeros(most),
        uneven=np.zeros(most),
        mark=np.zeros(most, np.uint64),
        parent=np.zeros(most, np.int64),
        option=np.zeros(most, np.int64),
        region=np.zeros(most, np.int64),
        table=np.full(1 << (2 * most).bit_length(), -1),
        spare=np.zeros(most),
    )


@compiled
def _search(
    a: TetrisArrays,
    gangs: Ints,
    beam: _Beam,
    other: _Beam,
    ways: _Ways,
    marks: NDArray[np.uint64],
    even: float,
    noises: FloatArray,
    random: NDArray[np.uint64],
    steps: Ints,
) -> tuple[int, int]:
    """Pack one gang after the other; returns how many packings there are, and whether ``other`` has them."""
    width, count, last = len(beam.cost), 1, 0
    for step in range(len(gangs)):
        found = _ways_on(a, gangs[step], beam, count, ways, marks, even, noises[step], random)
        if found == 0:  # it has room nowhere: it is packed in none
            for at in range(count):
                steps[0, step, at] = at
            continue
        limit = _lowest(ways, found, width) if found > width else np.inf
        count, ties = 0, width - _below(ways, found, limit)
        for at in range(found):
            tie = ways.score[at] == limit
            if ways.score[at] < limit or (tie and ties > 0):
                ties -= tie
                _take(a, gangs[step], beam, other, ways, at, count)
                steps[0, step, count] = ways.parent[at]
                steps[1, step, count] = ways.option[at]
                steps[2, step, count] = ways.region[at]
                count += 1
        beam, other, last = other, beam, 1 - last
    return count, last


@kernel
def _lowest(ways: _Ways, found: int, number: int) -> float:
    """The score that so many of them have, or a lower one (Hoare's "find")."""
    x, wanted = ways.spare, number - 1
    for at in range(found):
        x[at] = ways.score[at]
    low, high = 0, found - 1
    while low < high:
        pivot, i, j = x[(low + high) // 2], low, high
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i, j = i + 1, j - 1
        low, high = i if j < wanted else low, j if wanted < i else high
    score: float = x[wanted]
    return score


@kernel
def _below(ways: _Ways, found: int, limit: float) -> int:
    """Number of packings that have a lower score."""
    number = 0
    for at in range(found):
        number += ways.score[at] < limit
    return number


@kernel
def _ways_on(
    a: TetrisArrays,
    w: int,
    beam: _Beam,
    count: int,
    ways: _Ways,
    marks: NDArray[np.uint64],
    even: float,
    noise: float,
    random: NDArray[np.uint64],
) -> int:
    """Every way to add w to the packings, the best of those with the same demand; returns how many there are."""
    ways.table[:] = -1
    regions, found = a.supply.shape[0], 0
    for b in range(count):
        for o in range(a.option_start[w], a.option_start[w + 1]):
            for r in range(regions):
                if not a.option_region[o, r] or not _has_room(a, w, r, beam, b):
                    continue
                added, uneven, mark = _added(a, w, o, r, beam, b, marks)
                cost = beam.cost[b] + added
                score = cost + even * uneven
                if noise > 0.0:
                    score -= noise * math.log(-math.log(1.0 - uniform(random)))
                slot = _slot(ways, mark)
                at = ways.table[slot]
                if at < 0:
                    at, found = found, found + 1
                    ways.mark[at], ways.table[slot] = mark, at
                elif ways.score[at] <= score:
                    continue
                ways.score[at], ways.cost[at], ways.uneven[at] = score, cost, uneven
                ways.parent[at], ways.option[at], ways.region[at] = b, o, r
    return found


@kernel
def _has_room(a: TetrisArrays, w: int, r: int, beam: _Beam, b: int) -> bool:
    """Whether there are cores and quota for w in r."""
    if beam.cpu[b, r] + a.cpu_need[w] > a.cpu[r]:
        return False
    row = a.quota_row[a.app[w], r]
    return bool(row < 0 or beam.quota[b, row] + a.cpu_need[w] <= a.quota[row])


@kernel
def _added(
    a: TetrisArrays, w: int, o: int, r: int, beam: _Beam, b: int, marks: NDArray[np.uint64]
) -> tuple[float, float, np.uint64]:
    """(cost, unevenness in all, mark) of one option of w in r."""
    k, g = a.option_type[o], a.option_mgpu[o]
    cost, uneven, mark = 0.0, beam.uneven[b], beam.mark[b]
    if k < a.supply.shape[1] and g > 0:
        tier, tiers, supply = a.tier[w], beam.demand.shape[3], a.supply[r, k]
        for p in range(tier, tiers):
            before = beam.demand[b, r, k, p]
            after = before + g
            cost += a.peak_price[p] * max(after / supply - beam.peak[b, k, p], 0.0)
            cost += a.overload_price[k, p] * (max(after - supply, 0) - max(before - supply, 0))
            uneven += (after / supply) ** 2 - (before / supply) ** 2
        cost += a.idle_price[k] * (max(supply - after, 0) - max(supply - before, 0))
        mark += marks[r, k, tier] * np.uint64(g)
    return cost, uneven, mark


@kernel
def _slot(ways: _Ways, mark: np.uint64) -> np.uint64:
    """Slot of the table that has the mark, or room for it."""
    last = np.uint64(len(ways.table) - 1)
    slot = mark & last
    while ways.table[slot] >= 0 and ways.mark[ways.table[slot]] != mark:
        slot = (slot + np.uint64(1)) & last
    return slot


@kernel
def _take(a: TetrisArrays, w: int, beam: _Beam, other: _Beam, ways: _Ways, at: int, new: int) -> None:
    """Write the packing that one of the ways leads to into the other beam."""
    b, o, r = ways.parent[at], ways.option[at], ways.region[at]
    for row in range(a.supply.shape[0]):
        other.cpu[new, row] = beam.cpu[b, row]
        for kind in range(a.supply.shape[1]):
            for p in range(len(a.peak_price)):
                other.demand[new, row, kind, p] = beam.demand[b, row, kind, p]
    for kind in range(a.supply.shape[1]):
        for p in range(len(a.peak_price)):
            other.peak[new, kind, p] = beam.peak[b, kind, p]
    for row in range(len(a.quota)):
        other.quota[new, row] = beam.quota[b, row]
    other.cost[new], other.uneven[new], other.mark[new] = ways.cost[at], ways.uneven[at], ways.mark[at]
    k, g = a.option_type[o], a.option_mgpu[o]
    if k < a.supply.shape[1] and g > 0:
        for p in range(a.tier[w], beam.demand.shape[3]):
            other.demand[new, r, k, p] += g
            other.peak[new, k, p] = max(other.peak[new, k, p], other.demand[new, r, k, p] / a.supply[r, k])
    other.cpu[new, r] += a.cpu_need[w]
    row = a.quota_row[a.app[w], r]
    if row >= 0:
        other.quota[new, row] += a.cpu_need[w]


def _traced(steps: Ints, count: int) -> tuple[Ints, Ints]:
    """[B, G] options and regions of each packing, by going back from the last gang to the first; −1: not packed."""
    gangs = steps.shape[1]
    option, region = np.empty((count, gangs), np.int64), np.empty((count, gangs), np.int64)
    at = np.arange(count)
    for step in range(gangs - 1, -1, -1):
        parent, option[:, step], region[:, step] = steps[:, step, at]
        at = parent
    return option, region
