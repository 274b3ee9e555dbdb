"""Columns of tables that are declared once, at the array that they become.

``stated`` declares a field of a group with the column that states it: name, unit, rounding, limits, default and
meaning. From it follow the schema, the check of the array, the array of a group that leaves it out, reading and writing
tables, and the parameter of the ``.mod``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core import arrays
from mast_opt.problems.kind.schema import Column, ColumnType, Schema, Tables

_STATED, _ARRAY = "stated", "array"


@dataclass(frozen=True, slots=True)
class Stated:
    """A field of a group, and the column that states it."""

    column: Column
    array: arrays.Column
    dat: str = ""
    """Parameter of the .mod that has its values where they are not the default; empty where another section does."""

    @property
    def may_be_left_out(self) -> bool:
        """Whether a group has its default if it is not given."""
        return not (self.column.required or self.array.into)

    @property
    def is_price(self) -> bool:
        """Whether it is a price in dollars of what a plan may use: a column ``usd_…`` that may be left out."""
        return self.column.name.startswith("usd_") and not self.column.required

    def default(self, rows: int) -> NDArray[Any]:
        """Array where nothing is stated."""
        return np.full(rows, self.column.default or 0, np.bool_ if self.array.content == arrays.BOOLEANS else np.int64)

    def is_default(self, group: Any) -> bool:  # noqa: ANN401 - a group
        """Whether a group has the default in every row."""
        return np.array_equal(getattr(group, self.array.name), self.default(len(group)))


def stated(column: Column, array: arrays.Column | None = None, *, total: bool = True, dat: str = "") -> Any:  # noqa: ANN401 - a field
    """A field with the values of a column.

    Args:
        column: of the table of the group.
        array: what the field has to be; unless given, whole numbers in base units within the limits of the column,
            flags, or positions of labels, the length of the axis where a cell may be empty.
        total: see ``amounts``.
        dat: see ``Stated``.
    """
    if column.required or array is not None or column.type in (ColumnType.REAL, ColumnType.LABEL):
        return field(metadata={_STATED: (column, array, total, dat)})
    return field(default=None, kw_only=True, metadata={_STATED: (column, array, total, dat)})


def array(make: Callable[..., arrays.Column], *more: str | int, **options: Any) -> Any:  # noqa: ANN401 - a field
    """A field that no column states; ``make(name, axis, *more, **options)`` says what its array has to be."""
    return field(metadata={_ARRAY: (make, more, options)})


def columns_in(namespace: Mapping[str, Any], axis: str) -> tuple[tuple[Stated, ...], tuple[arrays.Column, ...]]:
    """The stated fields of a class body; and what each array has to be, in the order of the fields, flags before the
    arrays that count where they are set."""
    declared = {name: value.metadata for name, value in namespace.items() if isinstance(value, Field)}
    stated_fields = tuple(_of_field(name, axis, *one[_STATED]) for name, one in declared.items() if _STATED in one)
    found = {one.array.name: one.array for one in stated_fields}
    found |= {one.name: one for one in namespace.get("COLUMNS", ())}
    for name, (make, more, options) in ((name, one[_ARRAY]) for name, one in declared.items() if _ARRAY in one):
        found[name] = make(name, axis, *more, **options)
    ordered = (found[name] for name in namespace.get("__annotations__", ()) if name in found)
    return stated_fields, tuple(sorted(ordered, key=lambda one: bool(one.where)))


def _of_field(name: str, axis: str, column: Column, array: arrays.Column | None, total: bool, dat: str) -> Stated:
    if array is None and column.type is ColumnType.BOOLEAN:
        array = arrays.flags(name, axis)
    elif array is None and column.type is ColumnType.REAL:
        array = arrays.reals(name, axis, most=column.maximum)
    elif array is None and column.type is ColumnType.LABEL:
        array = arrays.positions(name, axis, f"{column.axis}s", beyond=int(not column.required))
    elif array is None:
        most = len(column.choices) - 1 if column.choices else column.maximum
        least = None if column.minimum < 0 else int(column.minimum)
        array = arrays.amounts(name, axis, least=least, most=None if most is None else int(most), total=total)
    return Stated(replace(column, field=name), array, dat)


def arrays_of(group: Any, tables: Tables, table: str) -> dict[str, NDArray[Any]]:  # noqa: ANN401 - a class of groups
    """Field → its values as a table states them; the length of an axis where a position is absent."""
    found: dict[str, NDArray[Any]] = {}
    for one in group.STATED:
        values = tables.get(table, one.column.name)
        if one.array.beyond:
            values = np.where(tables.has(table, one.column.name), values, len(tables.axes[one.column.axis or ""]))
        elif one.array.content == arrays.NUMBERS:
            values = values / one.column.scale
        found[one.array.name] = values
    return found


def cells_of(
    group: Any,  # noqa: ANN401 - a group
    axes: Mapping[str, Sequence[str]],
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.bool_]]]:
    """The columns that state a group, and which cells of them hold a value. A column that was added to the format later
    holds none where it has the default."""
    values: dict[str, NDArray[Any]] = {}
    present: dict[str, NDArray[np.bool_]] = {}
    for one in group.STATED:
        name, array = one.column.name, getattr(group, one.array.name)
        if one.array.beyond:
            present[name] = array < len(axes[one.column.axis or ""])
            array = np.where(present[name], array, 0)
        elif one.array.content == arrays.NUMBERS and one.column.type is not ColumnType.REAL:
            array = np.rint(array * one.column.scale).astype(np.int64)
        elif one.column.later and one.column.default is not None:
            present[name] = array != one.column.default
        values[name] = array
    return values, present


def stated_tables(
    problem: Any,  # noqa: ANN401 - a problem of groups
    tables: Schema,
    axes: Mapping[str, Sequence[str]],
) -> tuple[dict[str, dict[str, NDArray[Any]]], dict[str, dict[str, NDArray[np.bool_]]]]:
    """Values and presence of the tables that each state a group of the problem; no rows where it has no such group."""
    values: dict[str, dict[str, NDArray[Any]]] = {}
    present: dict[str, dict[str, NDArray[np.bool_]]] = {}
    for table in tables.tables:
        if table.group:
            group = getattr(problem, table.group)
            cells, present[table.name] = ({}, {}) if group is None else cells_of(group, axes)
            keys = np.arange(0 if group is None else len(group))
            values[table.name] = {column.name: cells.get(column.name, keys) for column in table.columns}
    return values, present


def left_out(tables: Schema, values: Mapping[str, Mapping[str, NDArray[Any]]]) -> frozenset[str]:
    """The optional tables without rows."""
    return frozenset(one.name for one in tables.tables if not one.required and not len(values[one.name][one.key[0]]))
