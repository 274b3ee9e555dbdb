"""Importer ``tables``: an instance from files, databases and dumps, by a mapping file that is shown before use.

Named sources of a mapping file: data frames that SQL can ask, and databases that are asked in their own SQL.
"""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mast_opt.core.errors import InstanceError, SourceError
from mast_opt.core.limits import MOST_FILE_BYTES, MOST_HEADER_BYTES, read_regular
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.importers.base import Importer, Input
from mast_opt.planner.importers.mapped.dumps import kubectl, prometheus, sinfo
from mast_opt.planner.importers.notices import issue, warn
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.readers.folder import parse_toml
from mast_opt.planner.io.tables import from_tables_with_warnings
from mast_opt.problems.kind.schema import Schema
from mast_opt.problems.registry import kind_named, kind_names

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
    """Data frame from a file that a mapping names: CSV, Parquet, JSON or a workbook."""
    if kind == "csv":
        return pl.read_csv(path, infer_schema_length=None)
    if kind == "parquet":
        return pl.read_parquet(path)
    if kind == "json":
        return pl.read_json(path, infer_schema_length=None)
    return pl.read_excel(path, engine="openpyxl", infer_schema_length=None)


def _from_database(kind: str, where: str, folder: Path, query: str) -> pl.DataFrame:
    """Answer of a database that a mapping names, read only: SQLite or PostgreSQL."""
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
    """First line of an error of a mapping's source, or the error's type."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


_TOP = ("kind", "name", "rules", "objective", "sources", "tables")


@dataclass(frozen=True)
class MappedColumn:
    """Source of the cells of a column: a column of the query times a factor, or one value for all rows."""

    column: str | None
    times: float = 1.0
    value: object = None

    def __str__(self) -> str:
        if self.column is None:
            return f"always {self.value}"
        return f'"{self.column}"' + ("" if self.times == 1 else f" × {self.times:g}")


@dataclass(frozen=True)
class MappedTable:
    """A table of the instance."""

    query: str
    database: str | None
    columns: Mapping[str, MappedColumn]


@dataclass(frozen=True)
class MappingFile:
    """Content of a mapping file."""

    kind: str
    name: str
    sources: Mapping[str, tuple[str, str]]
    """Name → (what it is, where it is)."""
    tables: Mapping[str, MappedTable]
    header: Mapping[str, Any] = field(default_factory=dict)
    """``rules`` and ``objective``, as in ``instance.toml``."""

    def lines(self) -> list[str]:
        """The mapping file in words, a line for each column."""
        found = [f"{self.name} ({self.kind})"]
        for table, mapped in self.tables.items():
            where = "" if mapped.database is None else f", asked of {mapped.database}"
            found.append(f"  {table}: {' '.join(mapped.query.split())}{where}")
            found += [f"    {column} ← {source}" for column, source in mapped.columns.items()]
        return found


def read_mapping(path: Path, faults: Faults) -> MappingFile | None:
    """The mapping file of an import; None, and faults that say why, where it is none."""
    try:
        content = parse_toml(read_regular(path, MOST_HEADER_BYTES))
    except OSError as error:
        faults.add(str(path), f"a mapping file ({error.strerror})")
        return None
    except (ValueError, RecursionError) as error:
        faults.add(str(path), f"TOML ({error})")
        return None
    for key in content.keys() - set(_TOP):
        faults.add(path.name, f"some of: {', '.join(_TOP)}{did_you_mean(key, _TOP)}", value=key)
    kind = content.get("kind")
    if kind not in kind_names():
        faults.add(path.name, f"one of: {', '.join(kind_names())}", column="kind", value=kind)
        return None
    schema = kind_named(kind).tables.schema
    tables = content.get("tables")
    if not isinstance(tables, dict) or not tables:
        faults.add(path.name, "a table [tables.NAME] for each table of the instance")
        return None
    sources = _sources(path.name, content.get("sources", {}), faults)
    mapped = {name: _table(path.name, name, stated, schema, faults) for name, stated in tables.items()}
    if faults:
        return None
    header: dict[str, Any] = {key: content[key] for key in ("rules", "objective") if key in content}
    name = str(content.get("name", path.stem))
    return MappingFile(kind, name, sources, {key: one for key, one in mapped.items() if one is not None}, header)


def _sources(file: str, stated: object, faults: Faults) -> dict[str, tuple[str, str]]:
    """Sources that a mapping file states: name → sort and place; faults for what is none."""
    found: dict[str, tuple[str, str]] = {}
    if not isinstance(stated, dict):
        faults.add(file, "a table [sources]", column="sources")
        return found
    for name, one in stated.items():
        pairs = list(one.items()) if isinstance(one, dict) else []
        if len(pairs) != 1 or pairs[0][0] not in KEYS or not isinstance(pairs[0][1], str):
            expected = f'one of {", ".join(KEYS)} and where it is, as in {name} = {{ csv = "nodes.csv" }}'
            faults.add(file, expected, column=f"sources.{name}", value=one)
        else:
            found[name] = pairs[0]
    return found


def _table(file: str, name: str, stated: object, schema: Schema, faults: Faults) -> MappedTable | None:
    """Table of a mapping file: its query and columns; None, with faults, where it is none."""
    known = [table.name for table in schema.tables]
    place = f"tables.{name}"
    if name not in known:
        faults.add(file, f"one of: {', '.join(known)}{did_you_mean(name, known)}", column=place, value=name)
        return None
    if not isinstance(stated, dict) or not isinstance(stated.get("query"), str):
        faults.add(file, 'a query, as in query = "select * from nodes"', column=place)
        return None
    unknown = stated.keys() - {"query", "database", "columns"}
    if unknown:
        faults.add(file, "query, database, columns", column=place, value=", ".join(sorted(unknown)))
    names = [column.name for column in schema.table(name).columns]
    columns: dict[str, MappedColumn] = {}
    for column, source in (stated.get("columns") or {}).items():
        if column not in names:
            hint = did_you_mean(column, names)
            faults.add(file, f"one of: {', '.join(names)}{hint}", column=f"{place}.columns", value=column)
            continue
        made = _column(source)
        if made is None:
            faults.add(
                file,
                'a column, { column = "Size (GB)", times = 0.001 } or { value = 1 }',
                column=f"{place}.columns.{column}",
                value=source,
            )
        else:
            columns[column] = made
    return MappedTable(stated["query"], stated.get("database"), columns)


def _column(source: object) -> MappedColumn | None:
    """Column of a mapping file: a source's column, perhaps times a factor, or a value; None where it is neither."""
    if isinstance(source, str):
        return MappedColumn(source)
    if not isinstance(source, dict):
        return None
    if set(source) == {"value"}:
        return MappedColumn(None, value=source["value"])
    times = source.get("times", 1.0)
    wrong = isinstance(times, bool) or not isinstance(times, int | float) or not 0 < times < float("inf")
    if not set(source) <= {"column", "times"} or not isinstance(source.get("column"), str) or wrong:
        return None
    return MappedColumn(source["column"], float(times))


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
    """The mapping file in words, before anything is asked."""
    mapping = read_mapping(paths[0], Faults()) if paths else None
    return [] if mapping is None else mapping.lines()


def _mapped(name: str, table: MappedTable, answer: pl.DataFrame, faults: Faults) -> pl.DataFrame | None:
    """The mapped table of the imported instance; without columns in the mapping, the answer as it is."""
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
    preview=preview,
)
