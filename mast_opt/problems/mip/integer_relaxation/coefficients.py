"""Coefficients of a MIP as triplets, for arithmetic over all non-zero entries at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.problems.mip.program import Mip


@dataclass(frozen=True)
class Coefficients:
    """Entry e is ``value[e]`` in ``row[e]``, ``column[e]``; sorted by row, zeros and rows without limits left out."""

    row: IntArray
    column: IntArray
    value: FloatArray
    lower: FloatArray
    """[entries] lower limit of each entry's row."""
    upper: FloatArray
    """[entries] upper limit of each entry's row."""
    height: int
    width: int

    @classmethod
    def of(cls, mip: Mip) -> "Coefficients":
        """Nonzero coefficients of a mixed-integer program's rows that have a limit."""
        row = np.repeat(np.arange(mip.shape[0]), np.diff(mip.row_start))
        limited = np.isfinite(mip.row_lower) | np.isfinite(mip.row_upper)
        kept = np.flatnonzero((mip.value != 0) & limited[row])
        row = row[kept]
        return cls(row, mip.index[kept], mip.value[kept], mip.row_lower[row], mip.row_upper[row], *mip.shape)

    def part(self, kept: BoolArray) -> "Coefficients":
        """Coefficients of the program for which ``kept`` [entries] is True."""
        return Coefficients(
            self.row[kept],
            self.column[kept],
            self.value[kept],
            self.lower[kept],
            self.upper[kept],
            self.height,
            self.width,
        )

    @property
    def raising_hurts(self) -> BoolArray:
        """[entries] whether raising the entry's column brings its row nearer to a limit."""
        return np.asarray(np.where(self.value > 0, self.upper < np.inf, self.lower > -np.inf))

    @property
    def lowering_hurts(self) -> BoolArray:
        """[entries] whether lowering the entry's column brings its row nearer to a limit."""
        return np.asarray(np.where(self.value > 0, self.lower > -np.inf, self.upper < np.inf))

    def columns_with(self, marked: BoolArray) -> BoolArray:
        """[columns] True for columns of the program with a marked entry; ``marked``: [entries]."""
        return np.asarray(np.bincount(self.column[marked], minlength=self.width) > 0)

    def rows_with(self, marked: BoolArray) -> BoolArray:
        """[rows] True for rows of the program with a marked entry; ``marked``: [entries]."""
        return np.asarray(np.bincount(self.row[marked], minlength=self.height) > 0)

    def row_sum(self, amount: FloatArray) -> FloatArray:
        """[rows] sum of ``amount`` [entries] over each row of the program."""
        return np.asarray(np.bincount(self.row, weights=amount, minlength=self.height), np.float64)

    def row_best(self, pick: np.ufunc, amount: NDArray[Any], empty: float) -> NDArray[Any]:
        """[rows] ``pick`` (np.maximum, np.minimum, np.gcd) over the amounts [entries] of each row of the program;
        ``empty`` for rows without entries.
        """
        best = np.full(self.height, empty, amount.dtype)
        if len(self.row):
            first = np.flatnonzero(np.diff(self.row, prepend=-1))
            best[self.row[first]] = pick.reduceat(amount, first)
        return best

    def column_best(self, pick: np.ufunc, amount: FloatArray, empty: float) -> FloatArray:
        """[columns] like ``row_best``, for each column of the program; NaN is ignored."""
        best = np.full(self.width, empty)
        pick.at(best, self.column, np.where(np.isnan(amount), empty, amount))
        return best

    def rest(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """[entries] smallest and largest sum of the other entries of each entry's row, under these column bounds."""
        positive = self.value > 0
        least = self.value * np.where(positive, lower[self.column], upper[self.column])
        greatest = self.value * np.where(positive, upper[self.column], lower[self.column])
        return self._others(least, -np.inf), self._others(greatest, np.inf)

    def _others(self, part: FloatArray, infinity: float) -> FloatArray:
        """[entries] sum of the other entries of each entry's row in the program."""
        endless = np.isinf(part)
        finite = np.where(endless, 0.0, part)
        total = self.row_sum(finite)[self.row]
        endless_others = self.row_sum(endless.astype(np.float64))[self.row] - endless
        return np.where(endless_others > 0, infinity, total - finite)
