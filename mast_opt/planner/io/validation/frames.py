"""Validated tables back into columns of text, numbers and truth values in the units of files."""

from collections.abc import Iterator, Mapping

import polars as pl

from mast_opt.core.errors import Fault, InstanceError
from mast_opt.planner.io.faults import LISTED, shortened
from mast_opt.planner.io.validation.cells import LABEL_EXPECTED, faulty_labels
from mast_opt.planner.io.validation.quantities import to_text
from mast_opt.problems.kind.schema import Column, ColumnType, Schema, Table, Tables

EXACT_DIGITS = 15
"""A decimal of up to this many digits comes back from a 64-bit float unchanged."""


def table_frames(schema: Schema, tables: Tables) -> Iterator[tuple[Table, pl.DataFrame]]:
    """Each table there is, as a frame: labels, choices and quantities as text (a quantity as an exact decimal).

    Optional columns without any value are left out; a table without rows has all columns but those that were added to
    the format later. Raises InstanceError for labels that no file could carry.
    """
    labels = {axis.name: _labels(axis.name, tables) for axis in schema.axes}
    for table in schema.tables:
        if table.name not in tables.missing:
            columns = [_column(table, column, tables, labels) for column in table.columns]
            kept = [
                values
                for column, values in zip(table.columns, columns)
                if column.required or values.null_count() < len(values) or not (len(values) or column.later)
            ]
            yield table, pl.DataFrame(kept)


def _labels(axis: str, tables: Tables) -> pl.Series:
    """Labels of an axis as a column of files. Raises InstanceError for labels that no file can carry."""
    try:
        labels = pl.Series(tables.axes[axis], dtype=pl.String)
    except UnicodeEncodeError as error:
        raise InstanceError([Fault(axis, "labels that can be written in UTF-8", value=repr(error.object))]) from None
    faulty = labels.filter(pl.Series(faulty_labels(labels), dtype=pl.Boolean)).to_list()
    repeated = labels.filter(labels.is_duplicated()).unique(maintain_order=True).to_list()
    faults = [Fault(axis, LABEL_EXPECTED, value=shortened(name)) for name in faulty[:LISTED]]
    faults += [Fault(axis, "each label once", value=shortened(name)) for name in repeated[:LISTED]]
    if faults:
        raise InstanceError(faults)
    return labels


def _column(table: Table, column: Column, tables: Tables, labels: Mapping[str, pl.Series]) -> pl.Series:
    """A column of checked tables in the units of files: text, numbers or truth values."""
    values, present = tables.get(table.name, column.name), tables.has(table.name, column.name)
    if column.type is ColumnType.LABEL:
        names = labels[column.axis or ""]
        text = names.gather(values) if len(names) else pl.Series([None] * len(values), dtype=pl.String)
    elif column.type is ColumnType.CHOICE:
        text = pl.Series(column.choices, dtype=pl.String).gather(values)
    elif column.type is ColumnType.QUANTITY:
        text = to_text(values, column.scale)
    elif column.type is ColumnType.REAL:
        text = pl.Series(values, dtype=pl.Float64).cast(pl.String).str.replace(r"\.0$", "")
    elif column.type is ColumnType.BOOLEAN:
        text = pl.Series(values, dtype=pl.Boolean)
    else:
        text = pl.Series(values, dtype=pl.Int64)
    if not present.all():
        text = text.set(~pl.Series(present), None)
    return text.alias(column.name)


def is_number(column: Column) -> bool:
    """Whether cells of a table's column are numbers."""
    return column.type in (ColumnType.QUANTITY, ColumnType.INTEGER, ColumnType.REAL)


def digits(text: pl.Series) -> pl.Series:
    """Number of significant digits of each decimal in an input's column, at most."""
    return text.str.replace_all(r"[-.]", "").str.strip_chars_start("0").str.len_bytes().fill_null(0).cast(pl.Int64)


def exact_numbers(text: pl.Series) -> pl.Series:
    """Decimals of a column as numbers that read back as the same decimals: floats where they suffice, else Decimal."""
    if (digits(text) <= EXACT_DIGITS).all():
        return text.cast(pl.Float64)
    places = text.str.split_exact(".", 1).struct.field("field_1").str.len_bytes().fill_null(0).to_numpy().max()
    return text.cast(pl.Decimal(38, int(places)))


def with_numbers(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame of a table, its quantities as numbers instead of decimal text."""
    of_type = {name: table.column(name).type for name in frame.columns}
    return frame.with_columns(
        exact_numbers(frame[name]) if type_ is ColumnType.QUANTITY else frame[name].cast(pl.Float64)
        for name, type_ in of_type.items()
        if type_ in (ColumnType.QUANTITY, ColumnType.REAL)
    )
