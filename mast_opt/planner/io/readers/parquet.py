"""A Parquet file as a raw table, with its memory counted before it is read."""

from __future__ import annotations

import io
from collections.abc import Collection

import polars as pl

from mast_opt.core.limits import (
    FREE_TEXT_BYTES,
    MOST_COLUMNS,
    TABLE_CELL_BYTES,
    TABLE_ROW_BYTES,
    most_table_bytes,
    most_unpacked,
)
from mast_opt.core.memory import available_bytes
from mast_opt.planner.io.faults import Faults, shortened
from mast_opt.planner.io.raw_table import RawTable, is_cell_type, raw_table
from mast_opt.planner.io.readers.base import panics_as_text
from mast_opt.planner.io.readers.parquet_footer import DELTA_BYTE_ARRAY, Footer, pages, read_footer


def parse_parquet(data: bytes, file: str, faults: Faults) -> RawTable | None:
    """The table in a Parquet file's bytes, or None with a fault."""
    columns: list[pl.Series] | None = None
    reason = ""
    with panics_as_text() as panics:
        try:
            columns = _columns(data)
        except (pl.exceptions.PolarsError, OSError, ValueError, MemoryError) as error:
            reason = str(error)
    if columns is None:
        faults.add(file, f"a complete Parquet file ({shortened(panics[0] if panics else reason, 200)})")
        return None
    return raw_table(file, [column.name for column in columns], columns, faults)


def _columns(data: bytes) -> list[pl.Series]:
    """The columns of the table; without content where they have a type that no cell can have."""
    footer = read_footer(data)
    schema = pl.read_parquet_schema(io.BytesIO(data))
    if len(schema) > MOST_COLUMNS:
        raise ValueError(f"it has {len(schema):,} columns; at most {MOST_COLUMNS:,} are read")
    readable = [name for name, dtype in schema.items() if is_cell_type(dtype)]
    check_memory(data, footer, readable)
    frame = pl.read_parquet(io.BytesIO(data), columns=readable, hive_partitioning=False) if readable else pl.DataFrame()
    check_text(frame, len(data))
    return [frame[name] if name in frame.columns else pl.Series(name, [], dtype) for name, dtype in schema.items()]


def check_memory(data: bytes, footer: Footer, columns: Collection[str]) -> None:
    """Raises ValueError where reading these columns takes more memory than is allowed or there is.

    The sizes are those that the footer and the headers of the pages announce, whichever are larger.
    """
    wanted = set(columns)
    unpacked = 0
    allowed = most_unpacked(len(data))
    for chunk in footer.chunks:
        if chunk.column not in wanted:
            continue
        size = values = 0
        for page in pages(data, chunk):
            size += page.unpacked
            values += page.values
            if page.encoding == DELTA_BYTE_ARRAY:
                raise ValueError(
                    f"column {chunk.column} is encoded as DELTA_BYTE_ARRAY; write it with another encoding"
                )
        if values > chunk.rows:
            raise ValueError(f"column {chunk.column} has more values than rows")
        unpacked += max(size, chunk.unpacked)
        if unpacked > allowed:
            raise ValueError(f"it unpacks to more than {allowed:,} bytes")
    memory = unpacked + footer.rows * (len(wanted) * TABLE_CELL_BYTES + TABLE_ROW_BYTES)
    extent = f"{footer.rows:,} rows of {len(wanted)} columns"
    allowed = most_table_bytes(len(data))
    if memory > allowed:
        raise ValueError(f"{extent} take about {memory:,} bytes of memory; at most {allowed:,} for a file of this size")
    there = available_bytes()
    if there is not None and memory > there:
        raise ValueError(f"{extent} take about {memory:,} bytes of memory; {there:,} are available")


def check_text(frame: pl.DataFrame, packed: int) -> None:
    """Raises ValueError where text that repeats is far longer than its file: it is stored once, but copied later."""
    allowed = max(most_unpacked(packed), frame.height * frame.width * FREE_TEXT_BYTES)
    size = 0
    for column in frame:
        if column.dtype == pl.String:
            size += int(column.str.len_bytes().cast(pl.UInt64).sum())
        elif column.dtype in (pl.Categorical, pl.Enum):
            size += int(column.cat.len_bytes().cast(pl.UInt64).sum())
    if size > allowed:
        raise ValueError(f"its cells have {size:,} bytes of text; at most {allowed:,} are read")
