"""A mixed-integer program in standard form.

    minimise    offset + cost · x
    subject to  row_lower ≤ A x ≤ row_upper,   col_lower ≤ x ≤ col_upper,   x_j integer where integral

Columns and rows come in named blocks over labelled axes, so that ``place[logs,eu-west]`` can be named
without a Python object per variable. Every array is read-only.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.problems.mip.checks import check, check_limits, check_objective

Axis = Sequence[str]
ArrayT = TypeVar("ArrayT", bound="np.ndarray[Any, Any]")


@dataclass(frozen=True)
class Block:
    """A named family of columns or rows: the full grid over its axes, or the listed cells of it."""

    name: str
    axes: tuple[Axis, ...]
    cells: tuple[IntArray, ...] | None
    """One index array per axis; None for the full grid in row-major order."""
    start: int
    """Position of the first member among all columns (or rows)."""
    size: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a program's block: the grid's, or (size,) of listed cells."""
        return tuple(len(axis) for axis in self.axes) if self.cells is None else (self.size,)

    @property
    def ids(self) -> IntArray:
        """Positions of the block's members in the program, in that shape."""
        return np.arange(self.start, self.start + self.size, dtype=np.int32).reshape(self.shape)

    def index(self, member: int) -> tuple[str, ...]:
        """Labels of a member of a program's block."""
        if self.cells is not None:
            return tuple(axis[int(cell[member])] for axis, cell in zip(self.axes, self.cells, strict=True))
        shape = [len(axis) for axis in self.axes]
        at = np.unravel_index(member, shape) if shape else ()
        return tuple(axis[int(i)] for axis, i in zip(self.axes, at, strict=True))

    def name_of(self, member: int) -> str:
        """The full name of the member-th member, as GLPK would print it."""
        return f"{self.name}[{','.join(self.index(member))}]" if self.axes else self.name

    def names(self) -> Iterator[str]:
        """The full names of a block's members, in order."""
        return (self.name_of(member) for member in range(self.size))


@dataclass(frozen=True)
class Term:
    """A linear expression with a name: Σ coefficient · column + constant."""

    columns: IntArray
    coefficients: FloatArray
    constant: float = 0.0

    def value(self, x: FloatArray) -> float:
        """The value of an objective term of the program at x."""
        return float(self.coefficients @ x[self.columns]) + self.constant


@dataclass(frozen=True)
class Mip:
    """A mixed-integer program; ``A`` is stored row by row (CSR: row_start, index, value).

    Raises:
        UsageError: arrays of another type or shape, positions that do not exist, coefficients that are not finite, a
            limit that is NaN. Limits that cross are allowed: no solution meets them.
    """

    name: str
    cost: FloatArray
    offset: float
    col_lower: FloatArray
    col_upper: FloatArray
    integral: BoolArray
    row_lower: FloatArray
    row_upper: FloatArray
    row_start: IntArray
    index: IntArray
    value: FloatArray
    columns: tuple[Block, ...]
    rows: tuple[Block, ...]
    terms: Mapping[str, Term]

    def __post_init__(self) -> None:
        check(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of the program's rows and columns."""
        return len(self.row_lower), len(self.cost)

    def column_names(self) -> Iterator[str]:
        """The names of all columns of the program, in their order."""
        for block in self.columns:
            yield from block.names()

    def row_names(self) -> Iterator[str]:
        """The names of all rows of the program, in their order."""
        for block in self.rows:
            yield from block.names()

    def column_name(self, at: int) -> str:
        """The full name of a column of the program, or its position where columns have no names."""
        return _name(self.columns, at)

    def row_name(self, at: int) -> str:
        """The full name of a row of the program, or its position where rows have no names."""
        return _name(self.rows, at)

    def objective(self, x: FloatArray) -> float:
        """The program's objective at x, offset included."""
        return float(self.cost @ x) + self.offset

    def activity(self, x: FloatArray) -> FloatArray:
        """The activity A x of the program's rows, one value per row."""
        from scipy.sparse import csr_array

        matrix = csr_array((self.value, self.index, self.row_start), shape=self.shape)
        return np.asarray(matrix @ x)

    def minimise(self, weights: Mapping[str, float]) -> "Mip":
        """The program with the objective Σ weight · term.

        Raises:
            UsageError: there is no such term, or the objective is not finite.
        """
        self._known(weights)
        cost = np.zeros(len(self.cost))
        offset = 0.0
        for name, weight in weights.items():
            term = self.terms[name]
            np.add.at(cost, term.columns, weight * term.coefficients)
            offset += weight * term.constant
        derived = self._derived(cost=frozen(cost), offset=offset)
        check_objective(derived, len(self.cost))
        return derived

    def limit_term(self, name: str, upper: float) -> "Mip":
        """The program with one more row, ``term ≤ upper`` (lexicographic stages, ε-constraints)."""
        self._known([name])
        term = self.terms[name]
        columns, at = np.unique(term.columns, return_inverse=True)
        coefficients = np.bincount(at, weights=term.coefficients, minlength=len(columns))
        block = Block(f"limit_{name}", (), None, len(self.row_lower), 1)
        return replace(
            self,
            row_lower=frozen(np.append(self.row_lower, -np.inf)),
            row_upper=frozen(np.append(self.row_upper, upper - term.constant)),
            row_start=frozen(np.append(self.row_start, len(self.index) + len(columns)).astype(self.row_start.dtype)),
            index=frozen(np.append(self.index, columns).astype(self.index.dtype)),
            value=frozen(np.append(self.value, coefficients)),
            rows=(*self.rows, block),
        )

    def _known(self, names: Iterable[str]) -> None:
        """Refuse names of terms that the program does not have. Raises UsageError."""
        for name in names:
            if name not in self.terms:
                known = ", ".join(self.terms) or "none"
                raise UsageError(f"program {self.name!r} has no term called {name!r}; expected one of: {known}")

    def tighten(self, slack: Mapping[str, float]) -> "Mip":
        """The program with the named rows' limits pulled in by the given amounts, on every side that has one.

        Raises:
            KeyError: there is no row of that name.
            ValueError: a row that would have no room left.
        """
        lower, upper = self.row_lower.copy(), self.row_upper.copy()
        wanted = dict(slack)
        for position, name in enumerate(self.row_names()):
            amount = wanted.pop(name, None)
            if amount is not None:
                lower[position] += amount
                upper[position] -= amount
                if lower[position] > upper[position]:
                    raise ValueError(f"row {name} cannot be tightened by {amount}")
        if wanted:
            raise KeyError(f"no such rows: {sorted(wanted)}")
        return self._with_limits(row_lower=frozen(lower), row_upper=frozen(upper))

    def fix(self, columns: IntArray, values: FloatArray) -> "Mip":
        """The program with the given columns held at the given values."""
        lower, upper = self.col_lower.copy(), self.col_upper.copy()
        lower[columns] = upper[columns] = values
        return self._with_limits(col_lower=frozen(lower), col_upper=frozen(upper))

    def _with_limits(self, **limits: FloatArray) -> "Mip":
        """The program with other limits, which are checked."""
        derived = self._derived(**limits)
        check_limits(derived, len(self.cost), len(self.row_lower))
        return derived

    def _derived(self, **changes: FloatArray | float) -> "Mip":
        """The program with other values of some fields, which the caller checks; the others are checked already.

        ``dataclasses.replace`` would check the matrix again (30 ms where it has 4 million entries).
        """
        derived = copy(self)
        for name, value in changes.items():
            object.__setattr__(derived, name, value)
        return derived


def _name(blocks: Sequence[Block], at: int) -> str:
    """Full name of a column or row at a position in a program's blocks; its number where it has none."""
    for block in blocks:
        if block.start <= at < block.start + block.size:
            return block.name_of(at - block.start)
    return f"#{at}"


def frozen(array: ArrayT) -> ArrayT:
    """The array of a program itself, made read-only."""
    array.setflags(write=False)
    return array
