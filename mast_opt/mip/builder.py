"""Writes a Mip in the words of its mathematics: column blocks, row blocks, named terms.

m = MipBuilder("knapsack")
take = m.columns("take", [items], upper=1, integral=True)
m.rows("weight", [], upper=capacity).add(0, take, weights)
m.term("worth", take, -value)
mip = m.build({"worth": 1.0})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from mast_opt.mip import kernels
from mast_opt.mip.program import Axis, Block, BoolArray, FloatArray, IntArray, Mip, Term, frozen


@dataclass
class RowBlock:
    """A family of rows under construction."""

    block: Block
    lower: FloatArray
    upper: FloatArray
    _entries: list[tuple[IntArray, IntArray, FloatArray]] = field(default_factory=list)

    def add(self, rows: ArrayLike, columns: ArrayLike, coefficients: ArrayLike = 1.0) -> RowBlock:
        """Add ``coefficient · column`` to each row; the three broadcast against one another.

        Args:
            rows: positions within this block (0 is its first row).
            columns: column ids, as returned by ``MipBuilder.columns``.
            coefficients: any broadcastable numbers. Entries for the same row and column add up.
        """
        at, ids = np.asarray(rows, np.int32), np.asarray(columns, np.int32)
        values = np.asarray(coefficients, np.float64)
        shape = np.broadcast_shapes(at.shape, ids.shape, values.shape)
        spread = values if values.size == 1 else np.broadcast_to(values, shape)
        self._entries.append((np.broadcast_to(at, shape).ravel(), np.broadcast_to(ids, shape).ravel(), spread.ravel()))
        return self

    @property
    def entries(self) -> int:
        """How many have been added, zeros and repetitions included."""
        return sum(len(at) for at, _, _ in self._entries)

    def compress(self, index: IntArray, value: FloatArray) -> IntArray:
        """Write column ids and coefficients in row order, duplicates summed, zeros left out; return entries per row.

        Args:
            index, value: room for ``entries`` of them, filled from the start.
        """
        counts = np.zeros(self.block.size, np.int64)
        for at, _, values in self._entries:
            kernels.count_entries(at, values, counts)
        end = np.cumsum(counts) - counts
        for at, ids, values in self._entries:
            kernels.lay_entries(at, ids, values, end, index, value)
        if kernels.ascending(end, index):
            return counts
        start = np.append(0, end)
        csr = csr_array((value[: start[-1]], index[: start[-1]], start), shape=(len(counts), np.iinfo(np.int32).max))
        csr.sum_duplicates()
        csr.eliminate_zeros()
        index[: csr.nnz], value[: csr.nnz] = csr.indices, csr.data
        return np.diff(csr.indptr)


class MipBuilder:
    """Collects columns, rows and terms, then builds a Mip."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._columns: list[tuple[Block, FloatArray, FloatArray, BoolArray]] = []
        self._rows: list[RowBlock] = []
        self._terms: dict[str, list[tuple[IntArray, FloatArray, float]]] = {}
        self._width = 0
        self._height = 0

    def columns(
        self,
        name: str,
        axes: Sequence[Axis],
        cells: Sequence[IntArray] | None = None,
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integral: ArrayLike = False,
    ) -> IntArray:
        """Add a block of columns and return their ids (grid-shaped where ``cells`` is None).

        Args:
            axes: the labels of each index.
            cells: one index array per axis for a sparse block; None for the full grid.
            lower, upper, integral: broadcast over the block.
        """
        block = _block(name, axes, cells, self._width)
        ids = block.ids
        self._columns.append(
            (block, _fill(lower, ids, np.float64), _fill(upper, ids, np.float64), _fill(integral, ids, np.bool_))
        )
        self._width += block.size
        return ids

    def rows(
        self,
        name: str,
        axes: Sequence[Axis],
        cells: Sequence[IntArray] | None = None,
        *,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
    ) -> RowBlock:
        """Add a block of rows ``lower ≤ … ≤ upper``; fill it with ``RowBlock.add``."""
        block = _block(name, axes, cells, self._height)
        ids = block.ids
        rows = RowBlock(block, _fill(lower, ids, np.float64), _fill(upper, ids, np.float64))
        self._rows.append(rows)
        self._height += block.size
        return rows

    def equals(
        self, name: str, axes: Sequence[Axis], cells: Sequence[IntArray] | None = None, *, value: ArrayLike = 0.0
    ) -> RowBlock:
        """Add a block of rows ``… = value``."""
        return self.rows(name, axes, cells, lower=value, upper=value)

    def term(self, name: str, columns: ArrayLike = (), coefficients: ArrayLike = 1.0, constant: float = 0.0) -> None:
        """Add ``Σ coefficient · column + constant`` to the named objective term (created at first mention)."""
        ids, values = np.broadcast_arrays(np.asarray(columns, np.int32), np.asarray(coefficients, np.float64))
        self._terms.setdefault(name, []).append((ids.ravel(), values.ravel(), constant))

    def build(self, weights: Mapping[str, float]) -> Mip:
        """The finished program, minimising Σ weight · term."""
        room = sum(rows.entries for rows in self._rows)
        index, value = np.empty(room, np.int32), np.empty(room)
        row_start = np.zeros(self._height + 1, np.int64)
        filled = 0
        for rows in self._rows:
            counts = rows.compress(index[filled:], value[filled:])
            first = rows.block.start
            np.cumsum(counts, out=row_start[first + 1 : first + 1 + len(counts)])
            row_start[first + 1 : first + 1 + len(counts)] += filled
            filled = int(row_start[first + len(counts)])
        if filled < np.iinfo(np.int32).max:
            row_start = row_start.astype(np.int32)
        terms = {
            name: Term(
                _join([ids for ids, _, _ in pieces], np.int32),
                _join([values for _, values, _ in pieces], np.float64),
                sum(constant for _, _, constant in pieces),
            )
            for name, pieces in self._terms.items()
        }
        mip = Mip(
            name=self._name,
            cost=frozen(np.zeros(self._width)),
            offset=0.0,
            col_lower=_join([lower for _, lower, _, _ in self._columns], np.float64),
            col_upper=_join([upper for _, _, upper, _ in self._columns], np.float64),
            integral=_join([integral for *_, integral in self._columns], np.bool_),
            row_lower=_join([rows.lower for rows in self._rows], np.float64),
            row_upper=_join([rows.upper for rows in self._rows], np.float64),
            row_start=frozen(row_start),
            index=frozen(index[:filled]),
            value=frozen(value[:filled]),
            columns=tuple(block for block, *_ in self._columns),
            rows=tuple(rows.block for rows in self._rows),
            terms=terms,
        )
        return mip.minimise(weights)


def _block(name: str, axes: Sequence[Axis], cells: Sequence[IntArray] | None, start: int) -> Block:
    if cells is None:
        size = int(np.prod([len(axis) for axis in axes], dtype=np.int64))
        return Block(name, tuple(axes), None, start, size)
    if len(cells) != len(axes):
        raise ValueError(f"block {name} has {len(axes)} axes but cells for {len(cells)}")
    return Block(name, tuple(axes), tuple(frozen(np.asarray(cell)) for cell in cells), start, len(cells[0]))


def _fill(value: ArrayLike, ids: IntArray, dtype: type) -> np.ndarray[Any, Any]:
    return np.broadcast_to(np.asarray(value, dtype=dtype), ids.shape).ravel()


def _join(parts: list[np.ndarray[Any, Any]], dtype: type) -> np.ndarray[Any, Any]:
    if len(parts) == 1:
        return frozen(np.ascontiguousarray(parts[0], dtype).view())
    return frozen(np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype))
