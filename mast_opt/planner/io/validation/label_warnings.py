"""Names that are allowed and make trouble: formulas in a spreadsheet, hidden characters, names that look alike."""

import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from mast_opt.core.input_warning import InputWarning
from mast_opt.core.wording import UNSAFE
from mast_opt.problems.kind.schema import Axis, Schema, Tables

_FORMULA = r"^[=+\-@\t\r]"
LISTED = 5
"""Names of one axis with the same warning that are listed one by one; the rest are counted."""


def label_warnings(schema: Schema, tables: Tables) -> tuple[InputWarning, ...]:
    """Warnings on the labels of all axes; files are called by the names of their tables, rows are counted from 1."""
    found: list[InputWarning] = []
    for axis in schema.axes:
        labels = tables.axes[axis.name]
        if labels:
            found += _formulas(schema, tables, axis, labels)
            found += _unusual(schema, tables, axis, labels)
    return tuple(found)


def _formulas(schema: Schema, tables: Tables, axis: Axis, labels: Sequence[str]) -> list[InputWarning]:
    """Warnings of labels that a spreadsheet takes for formulas."""
    matches = pl.Series(labels, dtype=pl.String).str.contains(_FORMULA).to_numpy()
    message = "a spreadsheet that opens a CSV file with this name takes it for a formula"
    said = dict.fromkeys(np.flatnonzero(matches).tolist(), message)
    return _listed(schema, tables, axis, labels, said, "begin names with a letter or a digit")


def _unusual(schema: Schema, tables: Tables, axis: Axis, labels: Sequence[str]) -> list[InputWarning]:
    """Warnings of labels that look like others, and of the rest those with characters that hide or reorder text."""
    alike = _alike(labels)
    hidden = {
        at: f"U+{ord(found[0]):04X} in it hides or reorders the text around it"
        for at, label in enumerate(labels)
        if at not in alike and not label.isascii() and (found := UNSAFE.search(label)) is not None
    }
    write = "write both the same way if they are one thing"
    return [
        *_listed(schema, tables, axis, labels, alike, write),
        *_listed(schema, tables, axis, labels, hidden, "write the name without this character"),
    ]


def _alike(labels: Sequence[str]) -> dict[int, str]:
    """Names that are the same once Unicode variants are unified and invisible characters are left out."""
    unusual = [at for at, label in enumerate(labels) if not label.isascii()]
    if not unusual:
        return {}
    plain = {at: _visible(labels[at]) for at in unusual}
    wanted = set(plain.values())
    first: dict[str, int] = {}
    said: dict[int, str] = {}
    for at, label in enumerate(labels):
        name = plain.get(at, label)
        if name not in wanted:
            continue
        if name in first:
            other = labels[first[name]]
            said[at] = f"looks like {other!r} and is another name"
        else:
            first[name] = at
    return said


def _visible(label: str) -> str:
    """A label as a reader sees it: Unicode variants unified, invisible characters left out."""
    text = unicodedata.normalize("NFKC", UNSAFE.sub("", label))
    return "".join(character for character in text if unicodedata.category(character) != "Cf")


def _listed(
    schema: Schema,
    tables: Tables,
    axis: Axis,
    labels: Sequence[str],
    said: Mapping[int, str],
    suggestion: str,
) -> list[InputWarning]:
    """Warnings of these labels, each with its message and place; the last one counts those not listed."""
    found = []
    for n, (at, message) in enumerate(said.items()):
        if n == LISTED:
            break
        more = len(said) - LISTED if n == LISTED - 1 else 0
        table, column, row = _place(schema, tables, axis, at)
        found.append(InputWarning(table, message, row, column, labels[at], suggestion, 1 + more))
    return found


def _place(schema: Schema, tables: Tables, axis: Axis, at: int) -> tuple[str, str, int | None]:
    """Table, column and row (from 1) where a label is first mentioned."""
    for table in schema.tables:
        if table.name in tables.missing or (axis.table is not None and table.name != axis.table):
            continue
        for column in table.columns:
            if column.axis == axis.name and (axis.table is None or column.name in table.key):
                rows = np.flatnonzero((tables.get(table.name, column.name) == at) & tables.has(table.name, column.name))
                if len(rows):
                    return table.name, column.name, int(rows[0]) + 1
    return axis.name, axis.name, None
