"""Bases carried from one linear program to the next, which has other limits, more columns or more rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import Labels
from mast_opt.core.solve_result import AT_LOWER, BASIC, Basis
from mast_opt.problems.mip.program import Axis, Block, Mip


def carried(basis: Basis, old: Mip, new: Mip) -> Basis:
    """The basis of an old linear program as one of a new one, by the names of blocks and the labels of their members.

    Columns that are new stay at their lower limits and rows that are new are basic, so that the vertex is the same.
    Where basic columns, or rows that held, are gone, a solver has to complete the basis.
    """
    return Basis(
        _carried(basis.columns, old.columns, new.columns, np.full(len(new.cost), AT_LOWER, np.int8)),
        _carried(basis.rows, old.rows, new.rows, np.full(len(new.row_lower), BASIC, np.int8)),
    )


def _carried(
    status: NDArray[np.int8], old: Sequence[Block], new: Sequence[Block], found: NDArray[np.int8]
) -> NDArray[np.int8]:
    """``found`` with the statuses of members that there were before."""
    known = {block.name: block for block in old}
    for block in new:
        before = known.get(block.name)
        if before is None or len(before.axes) != len(block.axes):
            continue
        values, members = _of(status, before), _of(found, block)
        if _same(before, block):
            members[:] = values
            continue
        key, old_key = _keys(block, before.axes), _keys(before, before.axes)
        order = np.argsort(old_key, kind="stable")
        at = order[np.minimum(np.searchsorted(old_key[order], key), len(order) - 1)] if len(order) else order
        there = np.flatnonzero(old_key[at] == key) if len(order) else order
        members[there] = values[at[there]]
    return found


def _of(status: NDArray[np.int8], block: Block) -> NDArray[np.int8]:
    """Statuses in a basis of the members of a block."""
    return status[block.start : block.start + block.size]


def _same(one: Block, other: Block) -> bool:
    """Whether two blocks of linear programs have the same axes and cells."""
    if one.axes != other.axes or (one.cells is None) != (other.cells is None):
        return False
    return one.cells is None or other.cells is None or all(map(np.array_equal, one.cells, other.cells))


def _keys(block: Block, axes: Sequence[Axis]) -> NDArray[np.int64]:
    """[members] the cell of each member on the grid of these axes, row by row; −1 for one that is not on it."""
    cells = block.cells if block.cells is not None else np.unravel_index(np.arange(block.size), block.shape or (1,))
    key, off = np.zeros(block.size, np.int64), np.zeros(block.size, np.bool_)
    for axis, own, cell in zip(axes, block.axes, cells, strict=False):
        at = _positions(axis, own)[cell]
        key, off = key * len(axis) + at, off | (at < 0)
    key[off] = -1
    return key


def _positions(axis: Axis, labels: Axis) -> NDArray[np.int64]:
    """[labels] the position of each label on a block's axis; −1 for one that is not there."""
    if axis is labels or axis == labels:
        return np.arange(len(labels))
    first = axis.first if isinstance(axis, Labels) else {label: at for at, label in reversed(list(enumerate(axis)))}
    return np.array([first.get(label, -1) for label in labels], np.int64)
