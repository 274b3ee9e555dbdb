"""Reading the CSV files of others: the columns that are needed, checked; further columns are left alone."""

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.core.limits import unzipped
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.io.faults import Faults, one_of
from mast_opt.planner.io.raw_table import RawTable
from mast_opt.planner.io.readers.base import read_bytes
from mast_opt.planner.io.readers.csv_text import parse_csv
from mast_opt.planner.io.validation.cells import absent, convert
from mast_opt.problems.kind.schema import Column, ColumnType

_GZIP_MARK = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class SourceTable:
    """The columns of a file that were asked for."""

    file: str
    labels: dict[str, pl.Series]
    numbers: dict[str, NDArray[Any]]
    """Numbers in base units; 0 where the cell is empty."""
    filled: dict[str, NDArray[np.bool_]]
    """Masks of the cells that are not empty."""


def read_table(
    path: Path, columns: Sequence[Column], faults: Faults, *, lacking: Collection[str] = ()
) -> SourceTable | None:
    """These columns of a public trace's CSV file, plain or gzipped; None (and faults that say why) if they cannot be
    had.

    Args:
        lacking: columns that may be missing; their cells are then empty.
    """
    data = content_of(path, faults)
    raw = None if data is None else parse_csv(data, path.name, faults)
    return None if raw is None else columns_of(raw, columns, faults, lacking)


def columns_of(
    raw: RawTable, columns: Sequence[Column], faults: Faults, lacking: Collection[str] = ()
) -> SourceTable | None:
    """These columns of a public trace's table as it stands in a file; see ``read_table``."""
    before, file = len(faults.found), raw.file
    table = SourceTable(file, {}, {}, {})
    for column in columns:
        present = column.name in raw.frame.columns
        if not present and column.name not in lacking:
            found = did_you_mean(column.name, raw.frame.columns) or f"; found: {one_of(raw.frame.columns)}"
            faults.add(file, f"a column {column.name} ({column.help}){found}")
            continue
        cells = convert(raw, column, faults) if present else absent(column, raw.frame.height)
        table.filled[column.name] = cells.filled
        if column.type is ColumnType.LABEL:
            assert cells.text is not None
            table.labels[column.name] = cells.text
        else:
            assert cells.values is not None
            table.numbers[column.name] = cells.values
    if raw.frame.height == 0:
        faults.add(file, "at least one row")
    return table if len(faults.found) == before else None


def find(folder: Path, name: str, faults: Faults) -> Path | None:
    """The file of that name in a folder of public data, or its gzipped form; a fault if neither is there."""
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    faults.add(str(folder), f"a folder with {name} or {name}.gz" + ("" if folder.exists() else "; it does not exist"))
    return None


def content_of(path: Path, faults: Faults) -> bytes | None:
    """The content of a file of public data, unzipped if it is gzipped; None, with a fault, where it cannot be had."""
    data = read_bytes(path, str(path), faults)
    if data is None or not data.startswith(_GZIP_MARK):
        return data
    try:
        return unzipped(data)
    except (OSError, EOFError, zlib.error) as error:
        faults.add(path.name, f"a gzip file that is whole ({error})")
        return None
