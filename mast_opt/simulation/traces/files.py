"""Job traces in files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from mast_opt.io.plain_tables import read_tables, write_folder
from mast_opt.kind.schema import Tables
from mast_opt.simulation.traces.schema import KIND, SCHEMA
from mast_opt.simulation.traces.trace import JobTrace, trace_from_tables


def read_trace(path: str | PathLike[str]) -> JobTrace:
    """The trace in a folder, an .xlsx workbook or a .json file.

    Raises InstanceError, which lists everything that is wrong with the files.
    """
    return read_tables(path, KIND, SCHEMA, trace_from_tables)


def write_trace(
    path: str | PathLike[str], name: str, provenance: str, tables: Tables, *, format: str = "csv", force: bool = False
) -> None:
    """Write the tables of a trace to a new folder.

    Args:
        format: ``csv`` or ``parquet``.
        force: replace an instance that is there.

    Raises:
        InputError: it cannot be written, or something else is there.
    """
    write_folder(Path(path), KIND, name, provenance, SCHEMA, tables, format=format, force=force)
