"""Rows of tables that grow by one entity at a time, each checked against the schema before it is taken."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Generic, Self

import numpy as np
import polars as pl

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.io import from_tables
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.raw_table import RawTable
from mast_opt.planner.io.readers.memory import EXPECTED_CELL, cell_text
from mast_opt.planner.io.validation.cells import convert
from mast_opt.planner.io.validation.quantities import LARGEST
from mast_opt.problems.kind.problem import ProblemT
from mast_opt.problems.kind.schema import Column, ColumnType, Table
from mast_opt.problems.registry import kind_named

Number = int | float | Decimal
"""A quantity in the unit that the argument's name states."""

Cell = Number | str | None
"""The types of a further column's value; the table says which columns there are."""

_DECIMAL = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?", re.ASCII)
_FLOAT = re.compile(r"[0-9]{1,18}(\.[0-9]{1,25})?(e[+-]?[0-9]{1,2})?", re.ASCII)

Row = tuple[str, Mapping[str, Any]]
"""A table's name and the cells of one row; None is an empty cell."""


class ProblemBuilder(Generic[ProblemT]):
    """The rows added so far, and the header of the instance that they become.

    What one call adds is taken whole or, where it has a fault, not at all. Labels must have been added before they are
    mentioned: regions before datasets, datasets before the workloads that read them.

    Args:
        kind: hyphenated, as in ``data-placement``.
        name, rules, objective, provenance: see ``mast_opt.from_tables``.

    Raises:
        InstanceError: a rule or the objective has a fault.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        rules: Mapping[str, Any],
        objective: Mapping[str, Any] | None,
        provenance: str,
    ) -> None:
        self._kind = kind_named(kind)
        self._header: dict[str, Any] = {
            "name": name,
            "rules": rules,
            "objective": objective,
            "provenance": provenance,
        }
        self._check_header()
        self._rows: dict[str, list[Mapping[str, Any]]] = {table.name: [] for table in self._kind.tables.schema.tables}
        self._keys: dict[str, set[tuple[str | None, ...]]] = {name: set() for name in self._rows}
        self._listed: dict[str, set[str]] = {axis.name: set() for axis in self._kind.tables.schema.axes if axis.table}

    def _check_header(self) -> None:
        """Raises InstanceError for faults of a builder's header: those of an instance without tables that name no
        table.
        """
        try:
            from_tables(self._kind.name, {}, **self._header)
        except InstanceError as error:
            faults = [fault for fault in error.faults if fault.file.startswith("from_tables")]
            if faults:
                raise InstanceError(faults) from None

    def _add(self, rows: Iterable[Row]) -> Self:
        """Take rows of a builder's tables if all of them are right.

        Raises InstanceError, which lists what is wrong by table, row (counted from 1) and column.
        """
        faults = Faults()
        checked = _Pending(self, faults)
        for table, cells in rows:
            checked.add(self._kind.tables.schema.table(table), cells)
        if faults:
            raise InstanceError(faults.found)
        checked.keep()
        return self

    def build(self) -> ProblemT:
        """The problem that the builder has collected. Further entities may be added afterwards; the problem does not
        change.

        Raises:
            InstanceError: an entity that every instance needs is missing, such as a region or a
                job, or entities contradict one another.
        """
        required = {table.name for table in self._kind.tables.schema.tables if table.required}
        rows = {name: rows for name, rows in self._rows.items() if rows or name in required}
        problem: ProblemT = from_tables(self._kind.name, rows, **self._header)
        return problem


class _Pending:
    """Rows of one call, checked one after another and not yet taken."""

    def __init__(self, builder: ProblemBuilder[Any], faults: Faults) -> None:
        self._builder, self._faults = builder, faults
        self._axes = {axis.name: axis.table for axis in builder._kind.tables.schema.axes}
        self._rows: list[tuple[str, Mapping[str, Any], tuple[str | None, ...], dict[str, str]]] = []

    def add(self, table: Table, cells: Mapping[str, Any]) -> None:
        """Check a row that is added to a builder's table, and note it for ``keep``."""
        known = [column.name for column in table.columns]
        given = {name: cell for name, cell in cells.items() if cell is not None}
        row = len(self._builder._rows[table.name]) + sum(name == table.name for name, *_ in self._rows) + 1
        for name in [name for name in given if name not in known]:
            self._faults.add(table.name, f"no column of this name{did_you_mean(name, known)}", row, name)
        texts = {column.name: self._text(table, column, row, given.get(column.name)) for column in table.columns}
        key = tuple(texts[name] for name in table.key)
        if key in self._builder._keys[table.name] or any(
            (table.name, key) == (name, k) for name, _, k, _ in self._rows
        ):
            expected = f"each {' and '.join(table.key)} once"
            shown = ", ".join(text or "" for text in key)
            self._faults.add(table.name, expected, row, ", ".join(table.key), shown)
        new = {
            column.axis: text
            for column in table.columns
            if column.axis and self._axes[column.axis] == table.name and column.name in table.key
            if (text := texts[column.name]) is not None
        }
        self._rows.append((table.name, given, key, new))

    def _text(self, table: Table, column: Column, row: int, cell: object) -> str | None:
        """The cell of a builder's row as text, after its checks; faults are listed."""
        text = cell_text(cell)
        if text is False:
            self._faults.add(table.name, EXPECTED_CELL, row, column.name, repr(cell))
            return None
        if not _surely_right(column, text):
            frame = pl.DataFrame({column.name: pl.Series([text], dtype=pl.String)})
            convert(RawTable(table.name, frame, np.array([row])), column, self._faults)
        if column.type is ColumnType.LABEL and isinstance(text, str):
            self._check_label(table, column, row, text)
        return text if isinstance(text, str) else None

    def _check_label(self, table: Table, column: Column, row: int, text: str) -> None:
        """Fault where a row of a builder names a label that its table does not have."""
        home = self._axes[column.axis or ""]
        if home is None or (home == table.name and column.name in table.key):
            return
        known = self._builder._listed[column.axis or ""]
        new = {labels[column.axis or ""] for *_, labels in self._rows if column.axis in labels}
        if text not in known and text not in new:
            hint = did_you_mean(text, sorted(known | new)) if len(known) < 10_000 else ""
            self._faults.add(table.name, f"a label that {home} has by now{hint}", row, column.name, text)

    def keep(self) -> None:
        """Add the noted rows to the builder, now that all of them are sound."""
        builder = self._builder
        for table, cells, key, new in self._rows:
            builder._rows[table].append(cells)
            builder._keys[table].add(key)
            for axis, text in new.items():
                builder._listed[axis].add(text)


def _surely_right(column: Column, text: str | bool | None) -> bool:
    """Whether a cell of a builder's row needs no closer look; one that does may still be right. A full check of one
    cell takes 1 ms.
    """
    if text is None:
        return not column.required or column.default is not None
    if not isinstance(text, str):
        return False
    if column.type is ColumnType.LABEL:
        return text.isprintable() and text != "" and text.strip() == text
    if column.type is ColumnType.BOOLEAN:
        return text in ("true", "false")
    if column.type is ColumnType.CHOICE:
        return text in column.choices
    if column.type is ColumnType.REAL:
        number = float(text) if _FLOAT.fullmatch(text) else -1.0
        least = column.minimum < number if column.above else column.minimum <= number
        return least and (column.maximum is None or number <= column.maximum)
    if not _DECIMAL.fullmatch(text):
        return False
    value = Decimal(text) * column.scale
    most = LARGEST if column.maximum is None else column.maximum
    return value == value.to_integral_value() and column.minimum <= value <= most


def pairs(argument: str, value: object) -> Iterable[tuple[Any, Any]]:
    """The items of a builder's mapping argument; none for None. Raises UsageError for anything else."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise UsageError(f'{argument} is a {type(value).__name__}; expected a mapping, as in {{"h100": 8}}')
    return value.items()


def names(argument: str, value: object) -> Iterable[str]:
    """The labels of a builder's collection argument. Raises UsageError for one text, which is a collection
    of letters.
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise UsageError(f"{argument} is a {type(value).__name__}; expected a list of labels")
    return value
