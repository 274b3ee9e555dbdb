"""A folder with one CSV or Parquet file a table."""

from __future__ import annotations

import io
from pathlib import Path

from mast_opt.planner.io.validation.frames import table_frames, with_numbers
from mast_opt.problems.kind.schema import Schema, Tables


def write_tables(folder: Path, format: str, schema: Schema, tables: Tables) -> None:
    """Every table that is not missing, header-only where it has no rows. ``format``: ``csv`` or ``parquet``."""
    for table, frame in table_frames(schema, tables):
        content = io.BytesIO()
        if format == "csv":
            frame.write_csv(content)
        else:
            with_numbers(table, frame).write_parquet(content)
        (folder / f"{table.name}.{format}").write_bytes(content.getbuffer())
