"""A program from a sparse matrix, without names: for pieces of another program and for its dual."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.mip.program import Mip, frozen


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
