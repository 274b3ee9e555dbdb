"""Table schemas: how a problem declares its tables, and the validated arrays that it is built from.

A kind of problem says which tables it reads and what each column means; ``mast_opt.planner.io`` reads, checks and
converts any file format against that declaration. What reaches a problem is ``Tables``: numpy arrays with
labels replaced by positions on a named axis and quantities converted to integers in base units.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

LARGEST = int(np.iinfo(np.int64).max)
"""Base units of any quantity."""


class ColumnType(enum.Enum):
    """Type of the cells of a column; the value says so in words."""

    LABEL = "text"
    INTEGER = "a whole number"
    QUANTITY = "a number"
    REAL = "a decimal number"
    BOOLEAN = "true or false"
    CHOICE = "one of a list"


class Role(enum.Enum):
    """Direction in which a quantity finer than its base unit is rounded: never in favour of feasibility."""

    NEED = "up"
    SUPPLY = "down"


@dataclass(frozen=True)
class Column:
    """One column of a table. Build it with the functions below, which read like the design's tables."""

    name: str
    type: ColumnType
    axis: str | None = None
    """Axis on which a label is a position; None for other columns."""
    scale: int = 1
    """Base units of a quantity per unit in the file (1 TB = 1,000,000 MB)."""
    role: Role = Role.NEED
    choices: tuple[str, ...] = ()
    minimum: float = 0
    """Smallest value allowed, in base units."""
    maximum: float | None = None
    above: bool = False
    """True where a real has to be above its minimum."""
    required: bool = True
    """False: the column may be missing and its cells empty."""
    default: float | bool | None = None
    """Value of an empty cell in base units; None leaves it absent (see ``Tables.present``)."""
    later: bool = False
    """True: the column was added to the format later. A checksum does not mention it where every cell has the default,
    so that checksums from before still hold."""
    field: str = ""
    """Name of the values in base units, in an entity or an event; empty = that of the column."""
    help: str = ""
    """Meaning and unit, for templates and documentation."""

    @property
    def attribute(self) -> str:
        """Name of the values in base units."""
        return self.field or self.name

    def in_base_units(self, value: float | Decimal) -> int:
        """One value of a column of numbers, rounded as in files. Raises ValueError for one that no cell may have."""
        try:
            exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
            direction = ROUND_CEILING if self.role is Role.NEED else ROUND_FLOOR
            base = int((exact * self.scale).to_integral_value(direction))
        except (ArithmeticError, ValueError):
            raise ValueError(f"{self.name} is {value}; expected {self.type.value}") from None
        most = LARGEST if self.maximum is None else self.maximum
        if exact < 0 <= self.minimum or not self.minimum <= base <= most:
            raise ValueError(f"{self.name} is {value}; expected {self.minimum / self.scale:g} to {most / self.scale:g}")
        return base


def label(name: str, axis: str, *, required: bool = True, later: bool = False, help: str = "") -> Column:
    """A column of labels of an axis."""
    return Column(name, ColumnType.LABEL, axis=axis, required=required, later=later, help=help)


class About(TypedDict, total=False):
    """Keywords of a column in addition to its name and type; see ``Column``."""

    minimum: float
    maximum: float | None
    above: bool
    default: float | bool | None
    required: bool
    later: bool
    field: str
    help: str


def integer(name: str, **about: Unpack[About]) -> Column:
    """A column of whole numbers, bounds included."""
    return Column(name, ColumnType.INTEGER, **about)


def need(name: str, scale: int, **about: Unpack[About]) -> Column:
    """A quantity asked for: finer decimals round up."""
    return Column(name, ColumnType.QUANTITY, scale=scale, role=Role.NEED, **about)


def supply(name: str, scale: int, **about: Unpack[About]) -> Column:
    """A quantity offered: finer decimals round down."""
    return Column(name, ColumnType.QUANTITY, scale=scale, role=Role.SUPPLY, **about)


def real(name: str, **about: Unpack[About]) -> Column:
    """A column of floating-point numbers of at least 0, or above 0."""
    return Column(name, ColumnType.REAL, **about)


def boolean(name: str, **about: Unpack[About]) -> Column:
    """A column of true and false."""
    return Column(name, ColumnType.BOOLEAN, **about)


def choice(name: str, *choices: str, required: bool = True, default: int | None = None, help: str = "") -> Column:
    """One of ``choices``; encoded as the position in that list."""
    return Column(name, ColumnType.CHOICE, choices=choices, required=required, default=default, help=help)


@dataclass(frozen=True)
class Table:
    """One entity or relation."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """Columns whose combination may occur once."""
    required: bool = True
    """False: the file may be missing."""
    rows_required: bool = False
    """True: a table without rows is a fault."""
    missing: str = "reads as empty"
    """Meaning, in words, of the absence of an optional table."""
    later: bool = False
    """True: the table was added to the format later. A checksum does not mention it where it is missing, so that
    checksums from before still hold."""
    order_counts_with: str | None = None
    """The table with whose rows the order of this table's rows has a meaning; None if it never has one. Then a checksum
    mentions the order, where it is not that of the keys."""
    order_within: tuple[str, ...] = ()
    """Only rows with the same values in these columns are in an order that has a meaning."""
    help: str = ""
    group: str = ""
    """Field of the problem that the table states, column by column; empty where it states parts of several."""

    def column(self, name: str) -> Column:
        """The column of that name. Raises StopIteration if there is none."""
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True)
class Axis:
    """A set of labels. With a table, it is that table's key and every other mention must be there;
    without one, it is every label mentioned, in order of first appearance."""

    name: str
    table: str | None = None
    offered: str | None = None
    """Table whose labels a template offers where other tables mention an axis that has no table."""
    later: bool = False
    """True: the axis was added to the format later. A checksum does not mention it where it has no labels."""


@dataclass(frozen=True)
class Schema:
    """The tables of an instance or a plan, and their axes."""

    tables: tuple[Table, ...]
    axes: tuple[Axis, ...]

    def table(self, name: str) -> Table:
        """The table of that name. Raises StopIteration if there is none."""
        return next(table for table in self.tables if table.name == name)


@dataclass(frozen=True)
class Tables:
    """Validated content of the tables of a schema, as arrays."""

    axes: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Mapping[str, NDArray[Any]]]
    """table → column → array: int64 in base units, float64 for reals, int64 positions for labels and choices, bool.
    Where a cell is absent, 0 or False stands in its place; ask ``present`` first."""
    present: Mapping[str, Mapping[str, NDArray[np.bool_]]] = field(default_factory=dict)
    """table → column → which cells hold a value, only for columns where some do not."""
    missing: frozenset[str] = frozenset()
    """Optional tables that the input does not have (they read as empty)."""

    def rows(self, table: str) -> int:
        """Number of rows of a table."""
        return len(next(iter(self.values[table].values())))

    def get(self, table: str, column: str) -> NDArray[Any]:
        """The values of a column, in base units or as positions on its axis."""
        return self.values[table][column]

    def has(self, table: str, column: str) -> NDArray[np.bool_]:
        """Mask of the rows that hold a value in this column."""
        mask = self.present.get(table, {}).get(column)
        return np.ones(self.rows(table), np.bool_) if mask is None else mask
