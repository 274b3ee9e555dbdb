"""Raw tables against a schema: every fault at once, or the arrays of ``Tables``.

Labels into positions: the axes of a schema, references to them, and keys that may occur once.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.core.arrays import numbered
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.io.faults import Faults, at, one_of
from mast_opt.planner.io.raw_table import RawTable, is_note
from mast_opt.planner.io.readers.base import Source
from mast_opt.planner.io.readers.folder import FolderSource
from mast_opt.planner.io.validation.cells import Cells, absent, convert
from mast_opt.problems.kind.problem_data import Bools, Ints
from mast_opt.problems.kind.schema import Axis, Column, ColumnType, Role, Schema, Table, Tables


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of an axis, in order."""

    text: pl.Series
    """Unique and without nulls."""
    complete: bool = True
    """False: some are missing because a file could not be read, so a reference to none of them may be right."""
    tolerated: pl.Series | None = None
    """Spellings that have their fault already, so that references to them are no second one."""

    def positions(self, text: pl.Series) -> Ints:
        """[·] position of each label, −1 where there is none."""
        if text.equals(self.text):
            return np.arange(len(text))
        known = pl.DataFrame({"label": self.text, "position": np.arange(len(self.text))})
        joined = pl.DataFrame({"label": text}).join(known, on="label", how="left", maintain_order="left")
        return joined["position"].fill_null(-1).to_numpy()


def axis_labels(axis: Axis, schema: Schema, cells: Mapping[str, Mapping[str, Cells]], whole: Iterable[str]) -> Labels:
    """The labels that an axis has in these tables. ``whole``: the tables that were read in full."""
    if axis.table is not None:
        table = schema.table(axis.table)
        key = next(column.name for column in table.columns if column.axis == axis.name and column.name in table.key)
        found = cells.get(table.name, {}).get(key)
        if found is None or found.text is None:
            return Labels(pl.Series([], dtype=pl.String), complete=False)
        usable = found.text.filter(pl.Series(found.good & found.filled))
        tolerated = None
        if not found.good.all():
            bad = found.text.filter(pl.Series(~found.good & found.filled))
            tolerated = pl.concat([bad, bad.str.strip_chars()])
        return Labels(usable.unique(maintain_order=True), table.name in whole, tolerated)
    mentions = [
        found.text.filter(pl.Series(found.good & found.filled))
        for table in schema.tables
        for column in table.columns
        if column.axis == axis.name and (found := cells.get(table.name, {}).get(column.name)) and found.text is not None
    ]
    text = pl.concat(mentions) if mentions else pl.Series([], dtype=pl.String)
    return Labels(text.unique(maintain_order=True))


def resolve(raw: RawTable, column: str, cells: Cells, labels: Labels, where: str, faults: Faults) -> tuple[Ints, Bools]:
    """Positions of the labels of a column (0 for an empty cell), and which cells are good; others are faults.

    ``where`` says in words where the labels are listed.
    """
    assert cells.text is not None
    position = labels.positions(cells.text)
    lost = cells.good & cells.filled & (position < 0)
    if not lost.any():
        return np.where(cells.filled & cells.good, position, 0), cells.good
    named = lost.copy()
    if labels.tolerated is not None:
        named &= ~cells.text.is_in(labels.tolerated.to_list()).fill_null(False).to_numpy()
    indices = np.flatnonzero(named)
    if labels.complete and len(indices):
        value = at(cells.text, indices)
        known = labels.text.to_list() if len(labels.text) < 10_000 else []
        faults.cells(
            raw.file,
            column,
            raw.numbers(indices),
            value,
            f"a label listed in {where}",
            lambda n: did_you_mean(str(value(n)), known),
        )
    return np.where(position < 0, 0, position), cells.good & ~lost


def check_key(raw: RawTable, table: Table, columns: Mapping[str, Ints], usable: Bools, faults: Faults) -> None:
    """A fault for each row whose key an earlier row has. ``columns``: the key's columns, −1 for an empty cell."""
    if not usable.any():
        return
    code = numbered([column[usable] for column in columns.values()])
    in_order = np.sort(code)
    if not (in_order[1:] == in_order[:-1]).any():
        return
    rows = np.flatnonzero(usable)
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse] != np.arange(len(code)))
    repeated, original = rows[again], rows[first[inverse[again]]]
    originals = raw.numbers(original)
    faults.cells(
        raw.file,
        ", ".join(table.key),
        raw.numbers(repeated),
        lambda n: ", ".join(str(raw.frame[name][int(repeated[n])] or "") for name in table.key if name in raw.frame),
        f"each {' and '.join(table.key)} once",
        lambda n: f"; row {originals[n]} has it already",
    )


@dataclass(frozen=True)
class Rounding:
    """Cells of a column that were finer than the base unit."""

    table: str
    column: str
    cells: int
    role: Role

    def __str__(self) -> str:
        were = "cell of {} was" if self.cells == 1 else "cells of {} were"
        return f"{self.cells:,} {were.format(f'{self.table}.{self.column}')} rounded {self.role.value}"


@dataclass(frozen=True)
class Checked:
    """Tables that passed, and what is worth knowing of them."""

    tables: Tables
    roundings: tuple[Rounding, ...]
    row_numbers: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Table → numbers of its rows as a person finds them in the file, for tables where they are not 1, 2, 3, …"""


def check_tables(
    source: Source,
    schema: Schema,
    faults: Faults,
    given: Mapping[str, tuple[str, ...]] | None = None,
    others: Collection[str] = (),
) -> Checked | None:
    """The validated tables, or None if the source has faults (all of them are then in ``faults``).

    ``given``: labels of the axes that are known beforehand, for a plan's tables. ``others``: tables that may be there
    too, and are not looked at.
    """
    before = len(faults.found)
    if isinstance(source, FolderSource):
        source.misnamed({table.name for table in schema.tables})
    checker = _Checker(source, schema, faults)
    checker.read(others)
    checked = checker.resolved(given)
    return checked if len(faults.found) == before else None


class _Checker:
    def __init__(self, source: Source, schema: Schema, faults: Faults) -> None:
        self.source, self.schema, self.faults = source, schema, faults
        self.raws: dict[str, RawTable] = {}
        self.cells: dict[str, dict[str, Cells]] = {}
        self.missing: set[str] = set()

    def read(self, others: Collection[str]) -> None:
        """Read the tables of the source, and note what is missing or unknown."""
        there = {name: file for name, file in self.source.tables().items() if not is_note(name) and name not in others}
        names = [table.name for table in self.schema.tables]
        for name, file in there.items():
            if name not in names:
                known = did_you_mean(name, names) or f"; expected one of: {one_of(names)}"
                self.faults.add(file, f"a known table{known}; rename or delete this one")
        for table in self.schema.tables:
            if table.name in there:
                raw = self.source.table(table.name)
                if raw is not None:
                    self.raws[table.name] = raw
                    self.cells[table.name] = dict(self._columns(table, raw))
            elif table.required:
                self.faults.add(self.source.file(table.name), _table_expected(table))
            else:
                self.missing.add(table.name)
                self.cells[table.name] = {column.name: absent(column, 0) for column in table.columns}

    def _columns(self, table: Table, raw: RawTable) -> list[tuple[str, Cells]]:
        """Checked cells of every column of a table."""
        names = [column.name for column in table.columns]
        for name in (*raw.frame.columns, *sorted(raw.unreadable)):
            if name not in names:
                known = did_you_mean(name, names) or f"; the columns are: {one_of(names)}"
                self.faults.add(raw.file, f"no column of this name{known}", column=name)
        if table.rows_required and raw.frame.height == 0 and not raw.partial:
            self.faults.add(raw.file, f"at least one row: {table.help or table.name}")
        if raw.headless:
            return [(column.name, absent(column, 0)) for column in table.columns]
        found = []
        for column in table.columns:
            if column.name in raw.frame.columns:
                found.append((column.name, convert(raw, column, self.faults)))
            elif column.required and column.name not in raw.unreadable:
                meaning = f" ({column.help})" if column.help else ""
                self.faults.add(raw.file, f"this column{meaning}", column=column.name)
            elif not column.required:
                found.append((column.name, absent(column, raw.frame.height)))
        return found

    def resolved(self, given: Mapping[str, tuple[str, ...]] | None) -> Checked:
        """Tables with labels resolved to positions on their axes."""
        whole = {name for name, raw in self.raws.items() if not raw.partial}
        labels = {
            axis.name: axis_labels(axis, self.schema, self.cells, whole)
            if given is None
            else Labels(pl.Series(given[axis.name], dtype=pl.String))
            for axis in self.schema.axes
        }
        listed = {
            axis.name: "the instance" if given is not None or axis.table is None else self.source.file(axis.table)
            for axis in self.schema.axes
        }
        values: dict[str, dict[str, NDArray[Any]]] = {}
        present: dict[str, dict[str, Bools]] = {}
        roundings = []
        for table in self.schema.tables:
            columns, good = {}, {}
            for column in table.columns:
                cells = self.cells.get(table.name, {}).get(column.name)
                if cells is None:
                    continue
                columns[column.name], good[column.name] = self._values(table, column, cells, labels, listed)
                if _may_be_absent(column) and not cells.filled.all():
                    present.setdefault(table.name, {})[column.name] = _frozen(cells.filled)
                if cells.rounded:
                    roundings.append(Rounding(table.name, column.name, cells.rounded, column.role))
            if table.name in self.raws and all(name in columns for name in table.key):
                self._check_key(table, columns, good)
            values[table.name] = {name: _frozen(array) for name, array in columns.items()}
        axes = {name: tuple(found.text.to_list()) for name, found in labels.items()}
        numbers = {name: raw.row_numbers for name, raw in self.raws.items() if raw.row_numbers is not None}
        return Checked(Tables(axes, values, present, frozenset(self.missing)), tuple(roundings), numbers)

    def _values(
        self, table: Table, column: Column, cells: Cells, labels: Mapping[str, Labels], listed: Mapping[str, str]
    ) -> tuple[NDArray[Any], Bools]:
        """Array of a column's values, labels resolved to positions, and a mask of the good ones."""
        if column.type is not ColumnType.LABEL:
            assert cells.values is not None
            return cells.values, cells.good
        axis = column.axis or ""
        if table.name not in self.raws:
            return np.zeros(0, np.int64), cells.good
        return resolve(self.raws[table.name], column.name, cells, labels[axis], listed[axis], self.faults)

    def _check_key(self, table: Table, columns: Mapping[str, NDArray[Any]], good: Mapping[str, Bools]) -> None:
        """Note faults of a checked table: rows whose key an earlier row has."""
        usable = np.logical_and.reduce([good[name] for name in table.key])
        keys: dict[str, Ints] = {}
        for name in table.key:
            filled = self.cells[table.name][name].filled
            keys[name] = np.where(filled, columns[name].astype(np.int64), -1)
        check_key(self.raws[table.name], table, keys, usable, self.faults)


def _may_be_absent(column: Column) -> bool:
    """Whether cells of a table's column may be empty without a default."""
    return column.default is None and not column.required


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Read-only array of a checked table's column."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


def _table_expected(table: Table) -> str:
    """Description of an expected table in words: its meaning and columns."""
    columns = one_of(column.name + ("" if column.required else "?") for column in table.columns)
    return f"this table ({table.help}; columns {columns})" if table.help else f"this table (columns {columns})"
