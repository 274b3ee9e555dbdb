"""Tree cuts in a data-placement certificate: the part that rests on trees of reads which do not fit into one region.

A tree hangs from a root, a dataset or an indivisible workload. If the root is in region r, then so is everything in
the tree, except below reads whose ends are parted. What it needs of a limit of r beyond that limit, ``spare``, must be
below such reads, so for whole decisions

    Σ over reads of min(need below, spare)·parted ≥ spare·root

with parted = place − run + remote from a dataset down to its reader and remote from a workload up to what it reads. A
price on this row charges the reads and credits the root. Everything but the shape of the trees and their prices is
computed here from the instance.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.data_placement.problem import DataPlacement, Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KeptTrees:
    """T trees with A reads in all; those of a tree stand together, each after the read that leads to it."""

    root: NDArray[np.int64]
    """[T] a dataset, or the number of datasets + a workload."""
    region: NDArray[np.int64]
    limit: NDArray[np.int64]
    """[T] 0 for cores, 1 for storage."""
    price: Floats
    """[T] per millicore or MB."""
    start: NDArray[np.int64]
    """[T+1] first read of each tree."""
    read: NDArray[np.int32]
    """Reads of all trees, [A]."""
    parent: NDArray[np.int32]
    """[A] the read that leads here, counted from the tree's first; −1 at the root."""

    @classmethod
    def none(cls) -> "KeptTrees":
        """Certificate part without any trees."""
        whole, short = np.zeros(0, np.int64), np.zeros(0, np.int32)
        return cls(whole, whole, whole, np.zeros(0), np.zeros(1, np.int64), short, short)

    def outside(self, p: DataPlacement) -> list[tuple[str, str]]:
        """Arrays that do not fit the problem: (array, what was expected)."""
        trees, reads = len(self.price), len(self.read)
        lengths = {"root": trees, "region": trees, "limit": trees, "price": trees, "start": trees + 1, "parent": reads}
        faults = [
            (name, f"{length} entries in one row")
            for name, length in lengths.items()
            if getattr(self, name).shape != (length,)
        ]
        if self.read.ndim != 1:
            faults.append(("read", "one row"))
        if faults:
            return faults
        if self.start[0] != 0 or self.start[-1] != reads or (np.diff(self.start) < 0).any():
            return [("start", f"positions that rise from 0 to {reads}")]
        position = np.arange(reads) - np.repeat(self.start[:-1], np.diff(self.start))
        ranges = (
            ("root", self.root, 0, len(p.datasets) + len(p.workloads)),
            ("region", self.region, 0, len(p.regions)),
            ("limit", self.limit, 0, 2),
            ("read", self.read, 0, len(p.reads)),
            ("parent", self.parent, -1, position),
        )
        faults = [
            (name, "positions in the instance, parents first")
            for name, values, first, end in ranges
            if not ((values >= first) & (values < end)).all()
        ]
        return faults or self._torn(p)

    def _torn(self, p: DataPlacement) -> list[tuple[str, str]]:
        """Faults of the trees: reads that join nothing, nodes met twice, divisible work or data."""
        walk = _walk(self, p)
        if not walk.joined:
            return [("read", "reads that join what the read before leads to")]
        nodes = len(p.datasets) + len(p.workloads)
        every = np.concatenate([walk.tree * nodes + walk.node, np.arange(len(self.root)) * nodes + self.root])
        every.sort()
        if (every[1:] == every[:-1]).any():
            return [("read", "trees, which come to everything once")]
        divisible = np.concatenate([np.zeros(len(p.datasets), np.bool_), p.workloads.splittable])
        if divisible[walk.node].any() or divisible[self.root].any():
            return [("read", "indivisible work only")]
        return []


KEPT = {f"tree_{field.name}": field.name for field in fields(KeptTrees)}
"""Name of each array in a file."""


@dataclass(frozen=True, eq=False)
class Charges:
    """Changes that the trees make to the sums."""

    read: Ints
    """[c] where the price of a read rises so that the trees' charges fit under it."""
    region: Ints
    rise: Floats
    """Rise of each read's cell, [c]."""
    lift: Floats
    """[I + W, R] credit of every root."""
    excess: float
    """Amount by which charges exceed the prices of remote reads, in all."""


def charges(trees: KeptTrees, p: DataPlacement, levels: NDArray[Any], step: Floats, cap: Floats | None) -> Charges:
    """The charges of trees that are within the problem.

    Args:
        levels: [N, R] price of each read in steps; step: [N] what a step is worth.
        cap: [N] price of a remote read; None where there are none.
    """
    datasets, regions = p.datasets.stored.shape
    walk = _walk(trees, p)
    need = np.zeros((2, datasets + len(p.workloads)))
    need[0, datasets:] = p.workloads.cpu_mcores
    need[1, :datasets], need[1, datasets:] = p.datasets.size_mb, p.workloads.output_mb
    limits = np.stack([p.regions.cpu_mcores, p.usable_storage_mb]).astype(np.float64)
    below = need[trees.limit[walk.tree], walk.node]
    total = need[trees.limit, trees.root] + np.bincount(walk.tree, weights=below, minlength=len(trees.root))
    for rank in walk.ranks[:0:-1]:
        np.add.at(below, walk.parent[rank], below[rank])
    spare = np.maximum(total - limits[trees.limit, trees.region], 0.0)
    charge = trees.price[walk.tree] * np.minimum(below, spare[walk.tree])
    lift = np.zeros((datasets + len(p.workloads), regions))
    np.add.at(lift, (trees.root, trees.region), trees.price * spare)

    cell, at = np.unique(trees.read.astype(np.int64) * regions + trees.region[walk.tree], return_inverse=True)
    read, region = cell // regions, cell % regions
    down = np.bincount(at, weights=charge * walk.down, minlength=len(cell))
    up = np.bincount(at, weights=charge * ~walk.down, minlength=len(cell))
    price = levels[read, region] * step[read]
    rise = np.maximum(down - price, 0.0)
    excess = 0.0 if cap is None else float(np.maximum(price + rise + up - cap[read], 0.0).sum())
    return Charges(read, region, rise, lift, excess)


@dataclass(frozen=True, eq=False)
class _Walk:
    """Walk along the trees: the node to which each read leads."""

    tree: Ints
    """Tree of each read, [A]."""
    node: Ints
    """[A] what the read leads to."""
    down: NDArray[np.bool_]
    """[A] from a dataset to a reader?"""
    parent: Ints
    """[A] position of the read before, −1 at the root."""
    ranks: list[Ints]
    """Positions by how many reads they are from the root."""
    joined: bool
    """Whether every read begins where the one before ends."""


def _walk(trees: KeptTrees, p: DataPlacement) -> _Walk:
    """Reads of a certificate's tree cuts: the node that each leads to, by distance from the root."""
    datasets = len(p.datasets)
    length = np.diff(trees.start)
    tree = np.repeat(np.arange(len(length)), length)
    parent = np.where(trees.parent < 0, -1, trees.parent + np.repeat(trees.start[:-1], length))
    node, down = np.full(len(tree), -1), np.zeros(len(tree), np.bool_)
    ranks, joined = [np.flatnonzero(parent < 0)], True
    open_ = np.flatnonzero(parent >= 0)
    while len(ranks[-1]):
        now = ranks[-1]
        before = np.where(parent[now] < 0, trees.root[tree[now]], node[parent[now]])
        work, data = p.reads.workload[trees.read[now]], p.reads.dataset[trees.read[now]]
        down[now] = before < datasets
        joined &= bool((np.where(down[now], data, datasets + work) == before).all())
        node[now] = np.where(down[now], datasets + work, data)
        known = node[parent[open_]] >= 0
        ranks.append(open_[known])
        open_ = open_[~known]
    return _Walk(tree, node, down, parent, ranks, joined)
