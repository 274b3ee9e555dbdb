"""MIP transformations: further columns and rows, and programs without names from a sparse matrix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.problems.mip.program import Block, Mip, frozen


@dataclass(frozen=True, eq=False)
class Extension:
    """Columns and rows to be added. Bounds broadcast; entries may lie in old and new rows and columns, of which the
    new ones are counted on from the old."""

    name: str
    """Name of the new blocks, whose members are numbered."""
    columns: int = 0
    col_lower: ArrayLike = 0.0
    col_upper: ArrayLike = np.inf
    integral: ArrayLike = False
    rows: int = 0
    row_lower: ArrayLike = -np.inf
    row_upper: ArrayLike = np.inf
    entries: Sequence[tuple[IntArray, IntArray, ArrayLike]] = ()
    """(rows, columns, coefficients); entries in the same place add up."""


def extended(mip: Mip, more: Extension) -> Mip:
    """The program with the extension; its objective and terms stay as they were."""
    from scipy.sparse import coo_array, csr_array

    rows, columns = mip.shape
    shape = (rows + more.rows, columns + more.columns)
    at = [np.asarray(part[0], np.int64).ravel() for part in more.entries]
    ids = [np.asarray(part[1], np.int64).ravel() for part in more.entries]
    values = [np.broadcast_to(np.asarray(part[2], np.float64), np.shape(part[0])).ravel() for part in more.entries]
    before = csr_array((mip.value, mip.index, mip.row_start), shape=mip.shape).tocoo()
    matrix = coo_array(
        (
            np.concatenate([before.data, *values]),
            (np.concatenate([before.row, *at]), np.concatenate([before.col, *ids])),
        ),
        shape=shape,
    ).tocsr()
    matrix.sum_duplicates()
    fits = matrix.nnz < np.iinfo(np.int32).max
    return replace(
        mip,
        cost=_after(mip.cost, 0.0, more.columns),
        col_lower=_after(mip.col_lower, more.col_lower, more.columns),
        col_upper=_after(mip.col_upper, more.col_upper, more.columns),
        integral=frozen(np.append(mip.integral, np.broadcast_to(more.integral, more.columns)).astype(np.bool_)),
        row_lower=_after(mip.row_lower, more.row_lower, more.rows),
        row_upper=_after(mip.row_upper, more.row_upper, more.rows),
        row_start=frozen(matrix.indptr.astype(mip.row_start.dtype if fits else np.int64)),
        index=frozen(matrix.indices.astype(np.int32)),
        value=frozen(matrix.data),
        columns=(*mip.columns, *_block(more.name, columns, more.columns)),
        rows=(*mip.rows, *_block(more.name, rows, more.rows)),
    )


def _after(old: FloatArray, new: ArrayLike, count: int) -> FloatArray:
    """Values of a program's columns or rows, with those of an extension behind them."""
    return frozen(np.append(old, np.broadcast_to(np.asarray(new, np.float64), count)))


def _block(name: str, start: int, size: int) -> tuple[Block, ...]:
    """Block of an extension's columns or rows, named by number; none for no members."""
    labels = tuple(str(member) for member in range(size))
    return (Block(name, (labels,), None, start, size),) if size else ()


def unnamed(
    name: str,
    matrix: Any,
    cost: ArrayLike,
    *,
    col_lower: ArrayLike = 0.0,
    col_upper: ArrayLike = np.inf,
    integral: ArrayLike = False,
    row_lower: ArrayLike = -np.inf,
    row_upper: ArrayLike = np.inf,
) -> Mip:
    """Minimise ``cost · x`` with the rows of a matrix; it has no blocks, terms or offset.

    Args:
        name: of the program.
        matrix: a SciPy sparse array in compressed rows; its shape is that of the program.
        cost, col_lower, col_upper, integral: for each column; one value stands for all.
        row_lower, row_upper: likewise for each row.
    """
    rows, columns = matrix.shape

    def each(values: ArrayLike, count: int, dtype: type = np.float64) -> np.ndarray[Any, Any]:
        return frozen(np.broadcast_to(np.asarray(values, dtype), count).copy())

    return Mip(
        name=name,
        cost=each(cost, columns),
        offset=0.0,
        col_lower=each(col_lower, columns),
        col_upper=each(col_upper, columns),
        integral=each(integral, columns, np.bool_),
        row_lower=each(row_lower, rows),
        row_upper=each(row_upper, rows),
        row_start=frozen(matrix.indptr.astype(np.int32 if matrix.nnz < np.iinfo(np.int32).max else np.int64)),
        index=frozen(matrix.indices.astype(np.int32)),
        value=frozen(matrix.data.astype(np.float64)),
        columns=(),
        rows=(),
        terms={},
    )
