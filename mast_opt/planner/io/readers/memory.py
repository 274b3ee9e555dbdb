"""Tables in memory as a source: data frames, Arrow tables, and columns or rows of Python values."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl

from mast_opt.planner.io.faults import Faults, whole_letters
from mast_opt.planner.io.raw_table import RawTable, is_note, raw_table
from mast_opt.planner.io.readers.base import Number

EXPECTED_CELL = "text, a number, true, false or None"


class MemorySource:
    """Named tables of a caller; ``fields`` is what ``instance.toml`` or ``plan.toml`` would say.

    A fault names the table, the row counted from 1, and the column. Nothing that the caller owns is changed or kept.
    """

    format = "memory"
    expected = "a data frame (polars, pandas, Arrow), a mapping of columns, or a list of row mappings"
    """A table, as faults call it."""
    expected_cell = EXPECTED_CELL

    def __init__(self, tables: Mapping[str, Any], fields: Mapping[str, Any], header_file: str, faults: Faults) -> None:
        self._tables, self._fields, self._faults = tables, fields, faults
        self.header_file = header_file

    def header(self) -> Mapping[str, Any] | None:
        """The header's fields that the caller stated for tables in memory."""
        return self._fields

    def tables(self) -> Mapping[str, str]:
        """Each table, and how faults name it."""
        return {name: self.file(name) for name in self._tables}

    def file(self, table: str) -> str:
        """The name of a table in memory: there is no file."""
        return table

    def table(self, name: str) -> RawTable | None:
        """The table as text in cells; None (and a fault) for what is no table."""
        file = self.file(name)
        columns = self._columns(file, self._tables[name])
        if columns is None:
            return None
        if not columns:
            return RawTable(file, pl.DataFrame(), headless=True)
        heights = {head: len(column) for head, column in columns.items()}
        height = next(iter(heights.values()))
        for head, own in heights.items():
            if own != height:
                self._faults.add(file, f"{height} cells, as in the first column", column=head, value=f"{own} cells")
                return None
        return raw_table(file, list(columns), list(columns.values()), self._faults)

    def _columns(self, file: str, table: Any) -> dict[str, pl.Series] | None:
        """The columns of a table in memory by their heads; None (and a fault) for what is no table."""
        if isinstance(table, pl.LazyFrame):
            table = table.collect()
        if isinstance(table, pl.DataFrame):
            return {column.name: column for column in table}
        given: Iterable[tuple[Any, Any]]
        if isinstance(table, Mapping):
            given = table.items()
        elif _is_pandas(table):
            given = ((head, table.iloc[:, place]) for place, head in enumerate(table.columns))
        elif hasattr(table, "__arrow_c_stream__"):
            return {column.name: column for column in pl.DataFrame(table)}
        elif isinstance(table, (list, tuple)) and all(isinstance(row, Mapping) for row in table):
            heads = dict.fromkeys(head for row in table for head in row)
            given = ((head, [row.get(head) for row in table]) for head in heads)
        else:
            self._faults.add(file, self.expected, value=type(table).__name__)
            return None
        return self._named(file, given)

    def _named(self, name: str, given: Iterable[tuple[Any, Any]]) -> dict[str, pl.Series]:
        """The columns whose heads are text and come once; the others are faults."""
        columns: dict[str, pl.Series] = {}
        for head, values in given:
            if not isinstance(head, str) or head != whole_letters(head):
                self._faults.add(name, "a column with text as its name", value=repr(head))
            elif is_note(head):
                continue
            elif head in columns:
                self._faults.add(name, "a column only once", column=head)
            elif (column := self._column(name, head, values)) is not None:
                columns[head] = column
        return columns

    def _column(self, name: str, head: str, values: Any) -> pl.Series | None:
        """Series of a column from whatever sort of array it is; None with a fault."""
        if isinstance(values, pl.Series):
            return values
        if isinstance(values, np.ma.MaskedArray) and values.ndim == 1:
            values = values.tolist()  # None where it is masked
        if hasattr(values, "isna") and hasattr(values, "to_numpy"):  # pandas, where a missing number is a NaN
            missing = np.asarray(values.isna(), np.bool_)
            array = values.to_numpy()
            if array.dtype.kind in "biuf":
                return pl.Series(head, array).set(pl.Series(missing), None)
            values = [None if gone else value for value, gone in zip(values.tolist(), missing.tolist())]
        if isinstance(values, np.ndarray):
            if values.ndim != 1:
                self._faults.add(name, "one value for each row", column=head, value=f"an array of {values.ndim} axes")
                return None
            if values.dtype.kind in "biuf":
                return pl.Series(head, values)
            values = values.tolist()
        if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
            return pl.Series(head, values)
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            self._faults.add(name, "a list of cells", column=head, value=repr(values))
            return None
        return self._listed(name, head, list(values))

    def _listed(self, name: str, head: str, cells: list[Any]) -> pl.Series:
        """Python values as text; a value of a type that no cell can have is a fault and becomes an empty cell."""
        if set(map(type, cells)) <= {str, Number, type(None)}:
            with suppress(UnicodeEncodeError):
                return pl.Series(head, cells, pl.String)
        texts = [cell_text(cell) for cell in cells]
        bad = np.array([row for row, text in enumerate(texts) if text is False], np.int64)
        self._faults.cells(name, head, bad + 1, _value_at(cells, bad), self.expected_cell)
        return pl.Series(head, [None if text is False else text for text in texts], pl.String)


def _is_pandas(table: Any) -> bool:
    """Whether a table in memory is a data frame of pandas."""
    return hasattr(table, "iloc") and hasattr(table, "columns")


def _value_at(cells: list[Any], where: Any) -> Callable[[int], object]:
    """Function that gives the n-th faulty cell of a column in memory as Python writes it."""
    return lambda n: whole_letters(repr(cells[where[n]]))


def cell_text(cell: Any) -> str | bool | None:
    """The cell of a table in memory as it would be written in a file, None where it is empty, False where no cell can
    hold it.
    """
    if cell is None:
        return None
    if isinstance(cell, str):
        return str(cell) if cell == whole_letters(cell) else False
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell)).lower()
    if isinstance(cell, Integral):
        return str(int(cell))
    if isinstance(cell, (float, np.floating, Decimal)):
        return str(cell)
    return False
