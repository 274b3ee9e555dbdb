"""Collecting everything wrong with an input, so that it is repaired in one go."""

from collections.abc import Callable, Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.core.errors import Fault

LISTED = 20
"""Cells of one column with the same fault that are listed one by one; the rest are counted."""

_LONGEST_VALUE = 80


class Faults:
    """A growing list of faults."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(
        self, file: str, expected: str, row: int | None = None, column: str | None = None, value: object = None
    ) -> None:
        """Add a fault of the input to the list.

        Args:
            file: the file, or the file and the table in it.
            expected: what should be there.
            row: row or line, from 1.
            column: name of the column.
            value: what is there; long values are shortened.
        """
        self.found.append(Fault(file, expected, row, column, None if value is None else shortened(str(value))))

    def cells(
        self,
        file: str,
        column: str | None,
        rows: NDArray[np.int64],
        values: Callable[[int], object],
        expected: str,
        detail: Callable[[int], str] | None = None,
    ) -> None:
        """Add faults of an input's column: list the first cells and count the others.

        ``rows``: 1-based row numbers of the cells. ``values(n)`` and ``detail(n)`` give the value of the n-th of
        them and what to add to ``expected`` for it.
        """
        listed = len(rows) if len(rows) <= LISTED + 1 else LISTED
        for n, row in enumerate(rows[:listed].tolist()):
            self.add(file, expected + (detail(n) if detail else ""), row, column, values(n))
        if listed < len(rows):
            self.found.append(Fault(file, expected, column=column, count=len(rows) - listed))


def shortened(value: str, longest: int = _LONGEST_VALUE) -> str:
    """The value of an input's cell, cut where it is too long for a message."""
    return value if len(value) <= longest else value[: longest - 1] + "…"


def whole_letters(text: str) -> str:
    """The text with ? for halves of surrogate pairs, which no file in UTF-8 can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def one_of(names: Iterable[str]) -> str:
    """Names in a fault of an input, separated by commas."""
    return ", ".join(names)


def at(series: pl.Series, indices: NDArray[np.int64]) -> Callable[[int], object]:
    """The n-th of some cells of a column, for ``Faults.cells``."""
    return lambda n: "" if series[int(indices[n])] is None else series[int(indices[n])]
