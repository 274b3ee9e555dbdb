"""Joins of long index arrays, compiled: they take no 64-bit copies of their indices, as NumPy would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mast_opt.core.kernel_cache import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mast_opt.core.arrays import IntArray


@cached_njit(nogil=True)
def joined(group: IntArray, start: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Compiled join: every position j of ``group`` with each member of its group: start[g], start[g] + 1, … start[g] +
    count[g] − 1.

    Returns:
        (positions, members), int32, sorted by position, then member.
    """
    total = 0
    for j in range(len(group)):
        total += count[group[j]]
    position, member = np.empty(total, np.int32), np.empty(total, np.int32)
    e = 0
    for j in range(len(group)):
        first = start[group[j]]
        for step in range(count[group[j]]):
            position[e], member[e] = j, first + step
            e += 1
    return position, member


@cached_njit(nogil=True)
def taken(values: NDArray[Any], at: IntArray) -> NDArray[Any]:
    """``values[at]``, compiled, without a 64-bit copy of the indices."""
    out = np.empty(len(at), values.dtype)
    for e in range(len(at)):
        out[e] = values[at[e]]
    return out


@cached_njit(nogil=True)
def taken_pairs(values: NDArray[Any], row: IntArray, column: IntArray) -> NDArray[Any]:
    """``values[row, column]``, compiled, without 64-bit copies of the indices."""
    out = np.empty(len(row), values.dtype)
    for e in range(len(row)):
        out[e] = values[row[e], column[e]]
    return out
