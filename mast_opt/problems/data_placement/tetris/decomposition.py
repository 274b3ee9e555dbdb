"""Decomposition of a data-placement plan for parallel search (tetris): each thread has regions and work of its own.

A change touches the columns of two regions, so threads with disjoint regions do not conflict, except in the number of
copies of a dataset (of which each may add and drop its share) and in the peaks over all regions (which each part prices
with the others' regions held; ``merge`` recomputes them).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.by_reference import by_reference
from mast_opt.problems.data_placement.problem import Bools, Ints
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.state import TetrisState, peaks_of


@by_reference
class Subproblem(NamedTuple):
    """Part of the problem that one thread changes."""

    arrays: TetrisArrays
    """The problem, with the limits on copies as they hold for this part."""
    state: TetrisState
    """Entries for the part's workloads, datasets and regions are views of the whole plan; sums are copies."""
    regions: Ints
    """Ids of the part's regions."""
    mine: Bools
    """[R+1] True for the part's regions; the last entry, unserved, is True only in the undivided problem."""
    workloads: Ints
    """Ids of the workloads in these regions, and of some unserved ones."""


def undivided(a: TetrisArrays, s: TetrisState) -> Subproblem:
    """The whole plan as one part."""
    regions = s.place.shape[1]
    return Subproblem(a, s, np.arange(regions), np.ones(regions + 1, np.bool_), np.arange(len(s.region)))


def decompose(
    a: TetrisArrays, s: TetrisState, rng: np.random.Generator, random: list[NDArray[np.uint64]]
) -> list[Subproblem]:
    """Split the problem into parts with about the same number of workloads, one for each state of a random generator.

    ``random``: the state [·] of each part's generator.
    """
    if len(random) == 1:
        return [undivided(a, s._replace(random=random[0]))]
    regions = s.place.shape[1]
    work = np.bincount(s.region, minlength=regions + 1)
    owner = np.empty(regions + 1, np.int64)
    owner[regions] = -1
    load = np.zeros(len(random), np.int64)
    held = np.zeros(len(random), np.int64)
    for r in rng.permutation(regions).tolist():
        part = int(np.lexsort((held, load, held >= -(-regions // len(random))))[0])
        owner[r] = part
        load[part] += work[r]
        held[part] += 1
    first = rng.integers(len(random), size=len(s.copies), dtype=np.int8)
    out = rng.integers(len(random), size=len(s.region), dtype=np.int8)
    out[s.region < regions] = -1
    parts = []
    for number, state in enumerate(random):
        mine = owner == number
        turn = (number - first.astype(np.int64)) % len(random)
        fewest, most = _copies_of(a, s.copies, turn, len(random))
        arrays = a._replace(copies_min=_locked(fewest), copies_max=_locked(most))
        own = s._replace(
            demand=s.demand.copy(),
            peak=s.peak.copy(),
            cpu=s.cpu.copy(),
            quota=s.quota.copy(),
            storage=s.storage.copy(),
            ingress=s.ingress.copy(),
            copies=s.copies.copy(),
            random=state,
        )
        parts.append(
            Subproblem(arrays, own, np.flatnonzero(mine), mine, np.flatnonzero(mine[s.region] | (out == number)))
        )
    return parts


def _copies_of(a: TetrisArrays, copies: Ints, turn: Ints, parts: int) -> tuple[Ints, Ints]:
    """[I] the fewest and the most copies for one part. Remaining slack is split evenly; the remainder goes to the first
    parts in turn. The first part repairs numbers of copies outside the limits."""
    up, down = np.maximum(a.copies_max - copies, 0), np.maximum(copies - a.copies_min, 0)
    most = copies + up // parts + (turn < up % parts)
    fewest = copies - down // parts - (turn < down % parts)
    first = turn == 0
    most = np.where(first & (copies > a.copies_max), a.copies_max, most)
    fewest = np.where(first & (copies < a.copies_min), a.copies_min, fewest)
    return fewest, most


def merge(a: TetrisArrays, s: TetrisState, parts: list[Subproblem]) -> float:
    """Write the parts' sums into the state; return the cost of the peaks, in units of the objective, beyond the sum of
    the parts' changes."""
    if len(parts) == 1:
        return 0.0
    before = s.peak.copy()
    priced = np.zeros_like(before)
    copies = -(len(parts) - 1) * s.copies
    for part in parts:
        at, own = part.regions, part.state
        for mine, total in (
            (own.demand, s.demand),
            (own.cpu, s.cpu),
            (own.storage, s.storage),
            (own.ingress, s.ingress),
        ):
            total[at] = mine[at]
        rows = a.quota_row[:, at]
        rows = rows[rows >= 0]
        s.quota[rows] = own.quota[rows]
        copies += own.copies
        priced += own.peak - before
    s.copies[:] = copies
    s.peak[:] = peaks_of(a, s.demand)
    return float(((s.peak - before - priced) * a.peak_price).sum())


def _locked(array: Ints) -> Ints:
    """Make an array read-only like the others, since another combination of flags recompiles kernels."""
    array.flags.writeable = False
    return array
