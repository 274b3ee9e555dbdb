"""Base of data placement's lists of elastic limits: the instance, and where its program has what."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.mip import Block, Mip


class View:
    """An instance next to the program in which no limit closes a column."""

    def __init__(self, problem: DataPlacement, mip: Mip) -> None:
        self.p = problem
        self.rows = {block.name: block for block in mip.rows}
        blocks = {block.name: block for block in mip.columns}
        self.place = blocks["place"].ids
        """[I, R]"""
        runs = [_members(blocks[name]) for name in ("run", "part")]
        self.run = [np.concatenate(parts) for parts in zip(*runs)]
        """workload, region, type and column of every run cell."""
        self.remote = np.concatenate([blocks[name].ids for name in ("remote", "remote_from") if name in blocks])


def _members(block: Block) -> tuple[Any, ...]:
    """(cells of each axis …, column ids) of a sparse block of the data-placement program."""
    assert block.cells is not None
    return (*block.cells, block.ids)


def names_at(axis: Sequence[str], positions: Iterable[int]) -> list[str]:
    """The labels of regions or datasets at these positions of an axis."""
    return [axis[int(at)] for at in positions]


def by_place(
    phrase: Callable[[str, IntArray], str], places: Sequence[str], place_of: IntArray
) -> Callable[[Sequence[int]], str]:
    """Elastic limits of data placement described place by place."""

    def describe(members: Sequence[int]) -> str:
        chosen = np.array(members, np.int64)
        at = place_of[chosen]
        return ", ".join(phrase(places[int(r)], chosen[at == r]) for r in np.unique(at))

    return describe
