"""A folder with one CSV or Parquet file a table."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from mast_opt.io.validation.frames import exact_numbers, table_frames
from mast_opt.kind.schema import ColumnType, Schema, Table, Tables


def write_tables(folder: Path, format: str, schema: Schema, tables: Tables) -> None:
    """Every table that is not missing, header-only where it has no rows. ``format``: ``csv`` or ``parquet``."""
    for table, frame in table_frames(schema, tables):
        content = io.BytesIO()
        if format == "csv":
            frame.write_csv(content)
        else:
            _typed(table, frame).write_parquet(content)
        (folder / f"{table.name}.{format}").write_bytes(content.getbuffer())


def _typed(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    quantities = [name for name in frame.columns if table.column(name).type is ColumnType.QUANTITY]
    return frame.with_columns(exact_numbers(frame[name]) for name in quantities)
