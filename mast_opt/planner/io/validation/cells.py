"""Cells of input tables: numbers, truth values and labels, also as spreadsheets show them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.core.arrays import exact_column_sums
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.io.faults import Faults, at, one_of
from mast_opt.planner.io.raw_table import RawTable
from mast_opt.planner.io.validation.quantities import INFINITE, LARGEST, Converted, to_base, to_text
from mast_opt.problems.kind.problem_data import Bools, Ints
from mast_opt.problems.kind.schema import Column, ColumnType

Values = NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]

_NUMBER = r"([+-]?\d+(?:[.,]\d+)?)"
_REAL = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$"
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T].*)?")
_PERCENTAGE = re.compile(_NUMBER + r"\s*%")
_WITH_UNIT = re.compile(_NUMBER + r"\s*[^\W\d_]+")
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+")
_IN_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[,.'’\s]\d{3})+(?:[.,]\d+)?")
_TRUTH = {"yes": "true", "y": "true", "no": "false", "n": "false"}


def number_meant(text: str) -> str:
    """Suffix for a fault of an input's cell, such as ``"; did you mean 12.5?"`` for ``12,5``; empty if none applies."""
    text = text.strip()
    if _DATE.fullmatch(text):
        return "; the cell is a date: format it as a number and retype it"
    if _IN_THOUSANDS.fullmatch(text):
        return "; omit thousands separators and use a decimal point"
    if _WITH_COMMA.fullmatch(text):
        return f"; did you mean {text.replace(',', '.')}?"
    if share := _PERCENTAGE.fullmatch(text):
        return f"; did you mean {(Decimal(share[1].replace(',', '.')) / 100).normalize():f}?"
    if amount := _WITH_UNIT.fullmatch(text):
        return f"; did you mean {amount[1].replace(',', '.')}? (omit the unit)"
    return ""


def truth_meant(text: str) -> str:
    """Suffix for a fault of an input's cell: ``"; did you mean true?"`` for ``yes``; empty if none applies."""
    meant = _TRUTH.get(text.strip().casefold())
    return f"; did you mean {meant}?" if meant else ""


_BAD_LABEL = r"^\s|\s$|[\p{Cc}\p{Zl}\p{Zp}\x{FFFE}\x{FFFF}]"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, eq=False)
class Cells:
    """Content of a column."""

    good: Bools
    """[rows] True for cells without a fault: a proper value, or empty where that is allowed."""
    filled: Bools
    """[rows] True for cells that are not empty."""
    values: Values | None
    """[rows] integers in base units, floats, positions of choices, or truth values, defaults filled in; None for
    labels."""
    text: pl.Series | None = None
    """[rows] labels; None for other columns."""
    rounded: int = 0
    """Number of values that were rounded to the base unit."""


def convert(raw: RawTable, column: Column, faults: Faults) -> Cells:
    """Checked cells of an input's column that is present."""
    reader = _Reader(raw, column, faults)
    if column.type is ColumnType.LABEL:
        return reader.labels()
    if column.type is ColumnType.BOOLEAN:
        return reader.booleans()
    if column.type is ColumnType.CHOICE:
        return reader.choices()
    if column.type is ColumnType.REAL:
        return reader.reals()
    return reader.numbers()


def absent(column: Column, rows: int) -> Cells:
    """Cells of an optional input column that is absent."""
    none = np.zeros(rows, np.bool_)
    if column.type is ColumnType.LABEL:
        return Cells(~none, none, None, pl.Series(column.name, [None] * rows, pl.String))
    return Cells(~none, none, _defaults(column, rows))


def faulty_labels(text: pl.Series) -> Bools:
    """[rows] True for labels that a file would not preserve, or that mislead: surrounding blanks, control characters,
    empty labels."""
    return (text.str.contains(_BAD_LABEL).fill_null(False) | (text == "").fill_null(False)).to_numpy()


LABEL_EXPECTED = "a label without leading or trailing spaces and without control characters"


def _defaults(column: Column, rows: int) -> Values:
    """Values of an input's column that the table lacks: the default in each row."""
    if column.type is ColumnType.REAL:
        return np.full(rows, column.default or 0.0, np.float64)
    if column.type is ColumnType.BOOLEAN:
        return np.full(rows, bool(column.default), np.bool_)
    return np.full(rows, column.default or 0, np.int64)


class _Reader:
    """Checks and converts the cells of one column of an input, and lists their faults."""

    def __init__(self, raw: RawTable, column: Column, faults: Faults) -> None:
        self.raw, self.column, self.faults = raw, column, faults
        self.text = raw.frame[column.name]
        self.filled: Bools = self.text.is_not_null().to_numpy()
        self.good = np.ones(len(self.text), np.bool_)
        self.meaning = f" ({column.help})" if column.help else ""
        if column.required and column.default is None:
            self.refuse(~self.filled, f"{self._noun()}, not an empty cell")

    def _noun(self) -> str:
        """Expected sort of an input's cell, in words."""
        if self.column.type is ColumnType.LABEL:
            return "a label"
        return self.column.type.value + self.meaning if not self.column.choices else one_of(self.column.choices)

    def refuse(self, which: Bools, expected: str, meant: Callable[[str], str] | None = None) -> None:
        """List the faulty cells of an input's column, each with what was perhaps meant, and count them as bad."""
        indices = np.flatnonzero(which)
        if not len(indices):
            return
        self.good[indices] = False
        value = at(self.text, indices)
        detail = None if meant is None else lambda n: meant(str(value(n)))
        self.faults.cells(self.raw.file, self.column.name, self.raw.numbers(indices), value, expected, detail)

    def labels(self) -> Cells:
        """Cells of a column of labels."""
        if self.raw.partial:  # a garbled label has its fault already
            self.good &= ~self.text.str.contains(_REPLACEMENT, literal=True).fill_null(False).to_numpy()
        self.refuse(self.good & self.filled & faulty_labels(self.text), LABEL_EXPECTED)
        return Cells(self.good, self.filled, None, self.text)

    def booleans(self) -> Cells:
        """Cells of a column of booleans."""
        place = self._place(("false", "true"), self.text.str.strip_chars().str.to_lowercase())
        return self._done(place.astype(np.bool_))

    def choices(self) -> Cells:
        """Cells of a column of words, as positions among its choices."""
        return self._done(self._place(self.column.choices, self.text.str.strip_chars()))

    def _place(self, words: tuple[str, ...], text: pl.Series) -> Ints:
        """Position of each cell among the words; 0 (and a fault) for any other."""
        place = text.replace_strict(list(words), range(len(words)), default=None, return_dtype=pl.Int64)
        known = place.is_not_null().to_numpy()
        truth = self.column.type is ColumnType.BOOLEAN
        noun = "true or false" if truth else one_of(words)

        def meant(text: str) -> str:
            return (truth_meant(text) if truth else "") or did_you_mean(text, words)

        self.refuse(self.filled & ~known, noun + self.meaning, meant)
        return place.fill_null(0).to_numpy()

    def numbers(self) -> Cells:
        """Cells of a column of quantities or whole numbers, in base units."""
        column = self.column
        text = self.text if self.filled.all() else self.text.fill_null("0")
        found = to_base(text, column.scale, column.role)
        whole = column.type is ColumnType.INTEGER
        noun = ("a whole number" if whole else "a number") + self.meaning
        self.refuse(found.malformed, noun, number_meant)
        self.refuse(found.infinite, f"a finite number{self.meaning}")
        beyond = found.overflow if column.minimum < 0 else found.overflow & ~found.negative
        self.refuse(beyond, f"{noun} of at most {_written(LARGEST, column)}, so that it fits in 64 bits")
        if whole:
            self.refuse(self.good & found.rounded, noun)
        self.refuse(self._below(found), f"{noun} of at least {_written(column.minimum, column)}")
        if column.maximum is not None:
            high = self.good & self.filled & (found.values > column.maximum)
            self.refuse(high, f"{noun} of at most {_written(column.maximum, column)}")
        values = np.where(self.good, found.values, 0)
        [total] = exact_column_sums(values[:, None])
        if total > LARGEST and not whole:
            expected = f"a total of at most {_written(LARGEST, column)}, so that sums fit in 64 bits"
            shown = f"a total of {float(total) / column.scale:g}"
            self.faults.add(self.raw.file, expected, column=column.name, value=shown)
        rounded = 0 if whole else int((self.good & self.filled & found.rounded).sum())
        return self._done(values, rounded)

    def reals(self) -> Cells:
        """Cells of a column of real numbers."""
        column = self.column
        noun = "a number" + self.meaning
        text = self.text if self.filled.all() else self.text.fill_null("0")
        infinite = text.str.contains(INFINITE).to_numpy()
        decimal = text.str.contains(_REAL)
        self.refuse(~(infinite | decimal.to_numpy()), noun, number_meant)
        self.refuse(infinite, f"a finite number{self.meaning}")
        read = pl.select(pl.when(decimal).then(text.str.strip_chars()).otherwise(pl.lit("0"))).to_series()
        values = read.cast(pl.Float64).to_numpy()
        self.refuse(~np.isfinite(values), f"{noun} that a 64-bit float can hold")
        low = values <= column.minimum if column.above else values < column.minimum
        words = f"above {column.minimum:g}" if column.above else f"of at least {column.minimum:g}"
        self.refuse(self.good & self.filled & low, f"{noun} {words}")
        if column.maximum is not None:
            high = self.good & self.filled & (values > column.maximum)
            self.refuse(high, f"{noun} of at most {column.maximum:g}")
        return self._done(np.where(self.good, values, 0.0))

    def _below(self, found: Converted) -> Bools:
        """Mask of the good cells below the column's minimum."""
        low = found.values < self.column.minimum
        if self.column.minimum == 0:
            low = found.negative
        return self.good & self.filled & low

    def _done(self, values: Values, rounded: int = 0) -> Cells:
        """Cells of the column, with defaults where they are empty."""
        if not self.filled.all():
            values = np.where(self.filled, values, _defaults(self.column, len(values)))
        return Cells(self.good, self.filled, values, rounded=rounded)


def _written(value: float, column: Column) -> str:
    """A column's limit as it would be written in the file."""
    text: str = to_text(np.array([value], np.int64), column.scale)[0]
    return text
