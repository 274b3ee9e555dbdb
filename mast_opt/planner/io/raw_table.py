"""A table as it stands in a file: text in cells, nothing understood yet."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.planner.io.faults import Faults


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns of text under unique names; null where a cell is empty."""

    file: str
    """How faults call it: ``reads.csv``, ``fleet.xlsx: reads``."""
    frame: pl.DataFrame
    row_numbers: NDArray[np.int64] | None = None
    """Numbers of the rows as a person finds them in the file; None where they are 1, 2, 3, …"""
    partial: bool = False
    """Rows are missing or garbled here because they could not be read (a fault has been listed)."""
    unreadable: frozenset[str] = frozenset()
    """Columns that are in the file but not in the frame (a fault has been listed)."""
    headless: bool = False
    """A table without rows in a format that then has no place for the names of columns."""

    def numbers(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row numbers in the input file, as people count them, of rows of the frame."""
        return indices + 1 if self.row_numbers is None else self.row_numbers[indices]


def is_note(name: str) -> bool:
    """Whether a table or a column of this name is a note for people, which is not read."""
    return name.strip()[:1] in ("#", "_")


def raw_table(
    file: str,
    heads: list[str],
    columns: list[pl.Series],
    faults: Faults,
    row_numbers: NDArray[np.int64] | None = None,
    partial: bool = False,
) -> RawTable:
    """The table with these heads over these columns; a column of a type that no cell can have is a fault.

    Blanks around a head are dropped, an empty cell becomes null. Notes are left out.
    """
    kept: dict[str, pl.Series] = {}
    unreadable = set()
    for position, (head, column) in enumerate(zip(heads, columns), start=1):
        name = head.strip()
        if is_note(name):
            continue
        if not name:
            if (as_text(column) is None) or _has_content(column):
                faults.add(file, f"a name at the head of column {position}", value=head)
        elif name in kept or name in unreadable:
            faults.add(file, "a column only once", column=name)
        else:
            text = as_text(column)
            if text is None:
                faults.add(file, "a column of text, numbers or true and false", column=name, value=str(column.dtype))
                unreadable.add(name)
            else:
                kept[name] = text.set(text == "", None)
    return RawTable(file, pl.DataFrame(kept), row_numbers, partial, frozenset(unreadable))


def as_text(column: pl.Series) -> pl.Series | None:
    """The input's column as it would be written by hand: floats by the shortest decimal that means the same.

    None where no cell can have its type.
    """
    if column.dtype == pl.String:
        return column
    return column.cast(pl.String) if is_cell_type(column.dtype) else None


def is_cell_type(dtype: pl.DataType) -> bool:
    """Whether a cell of an input table can have a value of this type: text, a number, or true and false."""
    return dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null)


def _has_content(column: pl.Series) -> bool:
    """Whether any cell of an input's column has text other than blanks."""
    text = as_text(column)
    return text is not None and bool((text.is_not_null() & (text.str.strip_chars() != "")).any())
