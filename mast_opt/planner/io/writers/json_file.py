"""One JSON file: the header under ``instance``, then a list of rows a table, one row a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mast_opt.planner.io.validation.frames import is_number, table_frames
from mast_opt.problems.kind.schema import Column, ColumnType, Schema, Tables


def write_json(path: Path, fields: Mapping[str, Any], schema: Schema, tables: Tables) -> None:
    """Numbers are written with all their digits, whatever a float could hold."""
    parts = [f'"instance": {json.dumps(fields, ensure_ascii=False, indent=1)}']
    for table, frame in table_frames(schema, tables):
        members = [_member(table.column(name), name) for name in frame.columns]
        row = pl.concat_str([pl.lit(" {"), pl.concat_str(members, separator=", "), pl.lit("}")])
        rows = frame.select(row).to_series()
        body = ",\n".join(rows.to_list())
        parts.append(f'"{table.name}": [\n{body}\n]' if body else f'"{table.name}": []')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8", newline="\n")


def _member(column: Column, name: str) -> pl.Expr:
    """``"name": value`` for each row. Labels hold no control characters, so two escapes are enough."""
    value = pl.col(name).cast(pl.String)
    if not is_number(column) and column.type is not ColumnType.BOOLEAN:
        escaped = value.str.replace_all("\\", "\\\\", literal=True).str.replace_all('"', '\\"', literal=True)
        value = '"' + escaped + '"'
    return f'"{name}": ' + value.fill_null("null")
