"""MIP builder in the words of its mathematics: column blocks, row blocks, named terms.

m = MipBuilder("knapsack")
take = m.columns("take", [items], upper=1, integral=True)
m.rows("weight", [], upper=capacity).add(0, take, weights)
m.term("worth", take, -value)
mip = m.build({"worth": 1.0})
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.problems.mip.program import Axis, Block, Mip, Term, frozen


@dataclass
class RowBlock:
    """A family of rows under construction."""

    block: Block
    lower: np.ndarray[Any, Any]
    upper: np.ndarray[Any, Any]
    entries: list[tuple[IntArray, IntArray, FloatArray]] = field(default_factory=list)
    """(rows, column ids, coefficients) as added; a single coefficient stands for all of its rows."""

    def add(self, rows: ArrayLike, columns: ArrayLike, coefficients: ArrayLike = 1.0) -> "RowBlock":
        """Add ``coefficient · column`` to each row; the three broadcast against one another.

        Args:
            rows: positions within this block (0 is its first row).
            columns: column ids, as returned by ``MipBuilder.columns``.
            coefficients: any broadcastable numbers. Entries for the same row and column add up.
        """
        at, ids = np.asarray(rows, np.int32), np.asarray(columns, np.int32)
        values = np.asarray(coefficients, np.float64)
        same = at.shape == ids.shape == values.shape
        shape = at.shape if same else np.broadcast_shapes(at.shape, ids.shape, values.shape)
        spread = values if values.size == 1 else _spread(values, shape)
        self.entries.append((_spread(at, shape).ravel(), _spread(ids, shape).ravel(), spread.ravel()))
        return self


class MipBuilder:
    """Collects columns, rows and terms, then builds a Mip."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._columns: list[tuple[Block, np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
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
        self._columns.append((block, _fill(lower, block), _fill(upper, block), _fill(integral, block)))
        self._width += block.size
        return block.ids

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
        rows = RowBlock(block, _fill(lower, block), _fill(upper, block))
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

    def entries_of(self, name: str) -> list[tuple[IntArray, FloatArray]]:
        """The (columns, coefficients) that the named objective term has so far; its constant is left out."""
        return [(ids, values) for ids, values, _ in self._terms.get(name, ())]

    def build(self, weights: Mapping[str, float]) -> Mip:
        """The finished program, minimising Σ weight · term."""
        for name, pieces in self._terms.items():
            for ids, _, _ in pieces:
                _check_positions(f"columns of the term {name}", ids, self._width)
        row_start, index, value = self._matrix()
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
            col_lower=_gather([(block, lower) for block, lower, _, _ in self._columns], np.float64),
            col_upper=_gather([(block, upper) for block, _, upper, _ in self._columns], np.float64),
            integral=_gather([(block, integral) for block, _, _, integral in self._columns], np.bool_),
            row_lower=_gather([(rows.block, rows.lower) for rows in self._rows], np.float64),
            row_upper=_gather([(rows.block, rows.upper) for rows in self._rows], np.float64),
            row_start=frozen(row_start),
            index=frozen(index),
            value=frozen(value),
            columns=tuple(block for block, *_ in self._columns),
            rows=tuple(rows.block for rows in self._rows),
            terms=terms,
        )
        return mip.minimise(weights)

    def _matrix(self) -> tuple[IntArray, IntArray, FloatArray]:
        """All rows compressed: starts, column ids in ascending order, coefficients; zeros are left out."""
        from scipy.sparse import coo_array

        for rows in self._rows:
            for at, ids, _ in rows.entries:
                _check_positions(f"rows of {rows.block.name}", at, rows.block.size)
                _check_positions(f"columns in {rows.block.name}", ids, self._width)
        entries = [(rows.block.start + at, ids, values) for rows in self._rows for at, ids, values in rows.entries]
        row = np.concatenate([np.zeros(0, np.int32), *(at for at, _, _ in entries)])
        column = np.concatenate([np.zeros(0, np.int32), *(ids for _, ids, _ in entries)])
        value = np.concatenate([np.zeros(0), *(_spread(values, at.shape) for at, _, values in entries)])
        matrix = coo_array((value, (row, column)), shape=(self._height, self._width)).tocsr()
        matrix.eliminate_zeros()
        return matrix.indptr, matrix.indices.astype(np.int32, copy=False), matrix.data


def _check_positions(what: str, positions: IntArray, size: int) -> None:
    """Raises UsageError where a position lies outside of its axis."""
    if len(positions) and (int(positions.min()) < 0 or int(positions.max()) >= size):
        found = f"from {positions.min():,} to {positions.max():,}"
        raise UsageError(
            f"{what}: positions {found}; expected 0 to {size - 1:,}. Positions in the instance may be out of range: "
            "read it with mast_opt.read, which checks them"
        )


def _block(name: str, axes: Sequence[Axis], cells: Sequence[IntArray] | None, start: int) -> Block:
    """Block of columns or rows of the program over axes, a full grid or only these cells."""
    if cells is None:
        size = int(np.prod([len(axis) for axis in axes], dtype=np.int64))
        return Block(name, tuple(axes), None, start, size)
    if len(cells) != len(axes):
        raise ValueError(f"block {name} has {len(axes)} axes but cells for {len(cells)}")
    return Block(name, tuple(axes), tuple(frozen(np.asarray(cell)) for cell in cells), start, len(cells[0]))


def _fill(value: ArrayLike, block: Block) -> np.ndarray[Any, Any]:
    """The value for every member of a program's block, without a copy."""
    return _spread(np.asarray(value), block.shape)


def _spread(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The array of a program's block in that shape, without a copy."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _gather(parts: list[tuple[Block, np.ndarray[Any, Any]]], dtype: type) -> np.ndarray[Any, Any]:
    """Values of all blocks of a program in one array."""
    values: np.ndarray[Any, Any] = np.empty(sum(block.size for block, _ in parts), dtype)
    for block, value in parts:
        values[block.start : block.start + block.size].reshape(block.shape)[...] = value
    return frozen(values)


def _join(parts: list[np.ndarray[Any, Any]], dtype: type) -> np.ndarray[Any, Any]:
    """Parts of a program's entries in one array, which is not copied where there is one part."""
    return frozen(np.concatenate(parts).astype(dtype, copy=False) if len(parts) > 1 else parts[0].view())
