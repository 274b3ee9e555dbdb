"""Elastic link capacities in tetris's sub-MIPs: by how much each is exceeded, at a penalty, and what flows over it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.transforms import Extension, extended

NONE_LEFT = 1e-9
"""Excess, in units of a link's capacity, that counts as none."""


class ElasticLinks:
    """The program with a priced column on every link by which it may be exceeded, in units of its capacity.

    Args:
        excess_price: of exceeding a link by its own capacity.
    """

    def __init__(self, problem: DataPlacement, mip: Mip, excess_price: float) -> None:
        self._problem = problem
        wider = _with_excess(mip)
        self.excess = slice(len(mip.cost), len(wider.cost))
        """The new columns."""
        self.mip = _priced(wider, self.excess, excess_price)
        flows = [block for block in mip.columns if block.name in ("remote_from", "copy") and block.cells is not None]
        nothing = np.zeros(0, np.int64)
        self._flow = np.concatenate([nothing, *(block.ids.ravel() for block in flows)])
        self._carried = np.concatenate([nothing, *(block.cells[-3] for block in flows if block.cells is not None)])
        """[flow columns] the dataset that is read or copied."""
        pairs = [block.cells[-2] * len(problem.regions) + block.cells[-1] for block in flows if block.cells is not None]
        self._along = np.concatenate([nothing, *pairs])
        """[flow columns] source and target."""

    def within(self, x: FloatArray) -> bool:
        """Whether a solution exceeds no link."""
        return self.exceeded(x) < NONE_LEFT

    def exceeded(self, x: FloatArray) -> float:
        """Amount by which links are exceeded, in units of their capacities."""
        return float(x[self.excess].sum())

    def priced(self, price: float) -> Mip:
        """The program with another price of exceeding a link by its own capacity."""
        return _priced(self.mip, self.excess, price)

    def only_excess(self) -> Mip:
        """The program that minimises the excess and nothing else."""
        cost = np.zeros(len(self.mip.cost))
        cost[self.excess] = 1.0
        return replace(self.mip, cost=cost, offset=0.0)

    def crossing_dataset(self, x: FloatArray, rng: np.random.Generator) -> int | None:
        """A dataset that crosses an exceeded link; None if there is none."""
        p = self._problem
        over = np.flatnonzero(x[self.excess] > NONE_LEFT)
        if p.links is None or not len(over):
            return None
        link = int(rng.choice(over))
        pair = p.links.source[link] * len(p.regions) + p.links.target[link]
        crossing = self._carried[(self._along == pair) & (x[self._flow] > 1e-6)]
        return int(rng.choice(crossing)) if len(crossing) else None


def _with_excess(mip: Mip) -> Mip:
    link = next((block for block in mip.rows if block.name == "link"), None)
    if link is None or not link.size:
        return mip
    rows, new = link.ids.ravel(), np.arange(link.size) + len(mip.cost)
    capacity = np.maximum(mip.row_upper[rows], 1.0)
    return extended(mip, Extension("excess", columns=link.size, entries=[(rows, new, -capacity)]))


def _priced(mip: Mip, excess: slice, price: float) -> Mip:
    cost = mip.cost.copy()
    cost[excess] = price
    return replace(mip, cost=cost)
