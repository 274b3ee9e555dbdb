"""A folder with a TOML header and one CSV or Parquet file a table."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from mast_opt.planner.io.validation.frames import table_frames, with_numbers
from mast_opt.problems.kind.schema import Schema, Tables


def write_tables(folder: Path, format: str, schema: Schema, tables: Tables) -> None:
    """Write the tables of an instance's folder: every one that is not missing, header-only where it has no rows.
    ``format``: ``csv`` or ``parquet``.
    """
    for table, frame in table_frames(schema, tables):
        content = io.BytesIO()
        if format == "csv":
            frame.write_csv(content)
        else:
            with_numbers(table, frame).write_parquet(content)
        (folder / f"{table.name}.{format}").write_bytes(content.getbuffer())


def toml_text(fields: Mapping[str, Any]) -> str:
    """TOML of a header for text, numbers, truth values, lists and mappings of these; a key whose value is None is left
    out.

    Raises:
        TypeError: a value of another type.
    """
    return tomli_w.dumps(_without_none(fields))


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a header that are not None, with plain values."""
    return {key: _plain(inner) for key, inner in fields.items() if inner is not None}


def _plain(value: object) -> object:
    """The value of a header with numbers of Python's own types and without keys whose value is None."""
    if isinstance(value, Mapping):
        return _without_none(value)
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
