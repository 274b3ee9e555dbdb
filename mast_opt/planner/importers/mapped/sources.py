"""Named sources of a mapping file: data frames that SQL can ask, and databases that are asked in their own SQL."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mast_opt.core.limits import MOST_FILE_BYTES
from mast_opt.planner.importers.mapped.dumps import kubectl, prometheus, sinfo
from mast_opt.planner.importers.notices import warn
from mast_opt.planner.io.faults import Faults

DUMPS: Mapping[str, Callable[[Path, Faults], dict[str, pl.DataFrame]]] = {
    "kubectl": kubectl,
    "prometheus": prometheus,
    "sinfo": sinfo,
}
FILES = ("csv", "parquet", "json", "excel")
DATABASES = ("sqlite", "postgresql")
KEYS = (*FILES, *DUMPS, *DATABASES)


class Sources:
    """Sources that the queries of a mapping may read."""

    def __init__(self, folder: Path, faults: Faults) -> None:
        self._folder, self._faults = folder, faults
        self._frames: dict[str, pl.DataFrame] = {}
        self._databases: dict[str, tuple[str, str]] = {}

    def add(self, name: str, kind: str, where: str) -> None:
        """One more source; a file is looked for next to the mapping."""
        if kind in DATABASES:
            self._databases[name] = (kind, where)
            return
        path = self._folder / where
        if kind in DUMPS:
            for table, frame in DUMPS[kind](path, self._faults).items():
                self._frames[f"{name}_{table}"] = frame
            return
        try:
            if path.stat().st_size > MOST_FILE_BYTES:
                self._faults.add(str(path), f"a file of at most {MOST_FILE_BYTES:,} bytes")
                return
            self._frames[name] = _file(kind, path)
        except (OSError, pl.exceptions.PolarsError, ValueError, ImportError) as error:
            self._faults.add(str(path), f"a {kind} file that can be read ({_first_line(error)})")

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that SQL can ask when no database is named."""
        return tuple(self._frames)

    def warn_of_unavailable(self, queries: Sequence[str]) -> None:
        """Warn of nodes that take no jobs, where a query that reads their table asks for nothing of the kind."""
        for name, frame in self._frames.items():
            flag = next((one for one in ("available", "ready") if frame.schema.get(one) == pl.Boolean), None)
            if flag is None:
                continue
            down = frame.filter(~pl.col(flag))["node"].unique(maintain_order=True).to_list()
            reads = [query for query in queries if re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE)]
            if down and any(not re.search(rf"\b({flag}|state)\b", query, re.IGNORECASE) for query in reads):
                words = "this node takes no jobs now (down, drained or cordoned), and a query counts it"
                warn(name, words, column=flag, values=down, suggestion=f"'where {flag}' leaves such nodes out")

    def ask(self, table: str, query: str, database: str | None) -> pl.DataFrame | None:
        """The answer of a query; None, and a fault, where it fails."""
        try:
            if database is None:
                return pl.SQLContext(self._frames, eager=True).execute(query)
            if database not in self._databases:
                known = ", ".join(self._databases) or "none"
                self._faults.add(
                    table, f"one of the databases of [sources]: {known}", column="database", value=database
                )
                return None
            return _from_database(*self._databases[database], self._folder, query)
        except Exception as error:
            self._faults.add(
                table, f"a query that the source answers ({_first_line(error)})", column="query", value=query
            )
            return None


def _file(kind: str, path: Path) -> pl.DataFrame:
    if kind == "csv":
        return pl.read_csv(path, infer_schema_length=None)
    if kind == "parquet":
        return pl.read_parquet(path)
    if kind == "json":
        return pl.read_json(path, infer_schema_length=None)
    return pl.read_excel(path, engine="openpyxl", infer_schema_length=None)


def _from_database(kind: str, where: str, folder: Path, query: str) -> pl.DataFrame:
    if kind == "sqlite":
        path = (folder / where).resolve(strict=True)
        connection: Any = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    else:
        import psycopg

        connection = psycopg.connect(where)
        connection.read_only = True
    try:
        return pl.read_database(query, connection, infer_schema_length=None)
    finally:
        connection.close()


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
