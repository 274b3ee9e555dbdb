"""Importer ``tables``: an instance from files, databases and dumps, by a mapping file that is shown before use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mast_opt.core.errors import InstanceError, SourceError
from mast_opt.planner.importers.base import Importer, Input
from mast_opt.planner.importers.mapped.formats import FORMATS
from mast_opt.planner.importers.mapped.mapping import MappedTable, read_mapping
from mast_opt.planner.importers.mapped.sources import Sources
from mast_opt.planner.importers.notices import issue
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.tables import from_tables_with_warnings


@dataclass(frozen=True)
class Settings:
    """None: everything is in the mapping file."""


def build(paths: Sequence[Path], settings: Settings, rng: np.random.Generator) -> Any:  # noqa: ANN401 - the mapping says of which kind
    """The instance of a mapping file. Raises SourceError for the file, its sources, queries and columns."""
    faults = Faults()
    mapping = read_mapping(paths[0], faults)
    if mapping is None:
        raise SourceError(faults.found)
    sources = Sources(paths[0].parent, faults)
    for name, (kind, where) in mapping.sources.items():
        sources.add(name, kind, where)
    if faults:
        raise SourceError(faults.found)
    sources.warn_of_unavailable([table.query for table in mapping.tables.values() if table.database is None])
    frames: dict[str, pl.DataFrame] = {}
    for name, table in mapping.tables.items():
        answer = sources.ask(name, table.query, table.database)
        if answer is not None:
            frame = _mapped(name, table, answer, faults)
            if frame is not None:
                frames[name] = frame
    if faults:
        raise SourceError(faults.found)
    kinds = ", ".join(dict.fromkeys(kind for kind, _ in mapping.sources.values()))
    words = f"Imported by {paths[0].name} ({kinds})."
    try:
        header = {"name": mapping.name, "provenance": words, **mapping.header}
        problem, found = from_tables_with_warnings(mapping.kind, frames, header)
    except InstanceError as error:
        raise SourceError(error.faults) from error
    for one in found:
        issue(one)
    return problem


def preview(paths: Sequence[Path]) -> list[str]:
    """The mapping in words, before anything is asked."""
    mapping = read_mapping(paths[0], Faults()) if paths else None
    return [] if mapping is None else mapping.lines()


def _mapped(name: str, table: MappedTable, answer: pl.DataFrame, faults: Faults) -> pl.DataFrame | None:
    """The table of the instance; without columns in the mapping, the answer as it is."""
    if not table.columns:
        return answer
    made: list[pl.Expr] = []
    for column, source in table.columns.items():
        if source.column is None:
            made.append(pl.lit(source.value).alias(column))
        elif source.column not in answer.columns:
            found = ", ".join(answer.columns) or "none"
            faults.add(name, f"a column of the query: {found}", column=column, value=source.column)
        elif source.times != 1 and not answer.schema[source.column].is_numeric():
            faults.add(name, "a column of numbers, as it is multiplied", column=column, value=source.column)
        else:
            taken = pl.col(source.column)
            made.append((taken if source.times == 1 else taken * source.times).alias(column))
    return None if faults else answer.select(made)


TABLES = Importer(
    kind="any kind",
    help="tables of your own (CSV, Parquet, Excel, SQLite, PostgreSQL, kubectl, Prometheus, sinfo) by a mapping file",
    inputs=(Input("mapping", "the mapping file, .toml; see docs/how-to/import.md"),),
    settings_type=Settings,
    build=build,
    formats=FORMATS,
    preview=preview,
)
