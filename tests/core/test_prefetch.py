"""Asking for memory ahead changes nothing."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from mast_opt.core.arrays import IntArray
from mast_opt.core.jit import compiled
from mast_opt.core.prefetch import fetch_row


@compiled
def gathered(table: NDArray[Any], rows: IntArray) -> float:
    total = 0.0
    for at in range(len(rows)):
        fetch_row(table, rows[min(at + 2, len(rows) - 1)])
        for column in range(table.shape[1]):
            total += table[rows[at], column]
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("columns", [1, 15, 16, 17, 64, 200])
def test_a_row_that_is_asked_for_reads_as_before(dtype: type, columns: int) -> None:
    rng = np.random.default_rng(columns)
    table: NDArray[Any] = rng.integers(0, 2, size=(50, columns)).astype(dtype)
    rows = rng.integers(50, size=200)
    before = table.copy()
    assert gathered(table, rows) == before[rows].sum()
    assert (table == before).all()


def test_the_processor_is_asked() -> None:
    function: Any = gathered
    fresh: Any = numba.njit(function.py_func)  # cached code cannot be looked at
    fresh(np.zeros((2, 20)), np.zeros(3, np.int64))
    assert "llvm.prefetch" in next(iter(fresh.inspect_llvm().values()))
