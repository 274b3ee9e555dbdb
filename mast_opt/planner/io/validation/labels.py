"""Labels into positions: the axes of a schema, references to them, and keys that may occur once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from mast_opt.core.arrays import numbered
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.io.faults import Faults, at
from mast_opt.planner.io.raw_table import RawTable
from mast_opt.planner.io.validation.cells import Cells
from mast_opt.planner.io.validation.quantities import Bools, Ints
from mast_opt.problems.kind.schema import Axis, Schema, Table


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
