"""Mapping file: which column of which query becomes which column of an instance, with factors between units."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mast_opt.core.limits import MOST_HEADER_BYTES, read_regular
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.importers.mapped.sources import KEYS
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.readers.folder import check_keys
from mast_opt.problems.kind.schema import Schema
from mast_opt.problems.registry import kind_named, kind_names

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
        """The mapping in words, a line for each column."""
        found = [f"{self.name} ({self.kind})"]
        for table, mapped in self.tables.items():
            where = "" if mapped.database is None else f", asked of {mapped.database}"
            found.append(f"  {table}: {' '.join(mapped.query.split())}{where}")
            found += [f"    {column} ← {source}" for column, source in mapped.columns.items()]
        return found


def read_mapping(path: Path, faults: Faults) -> MappingFile | None:
    """The mapping; None, and faults that say why, where it is none."""
    try:
        text = read_regular(path, MOST_HEADER_BYTES).decode("utf-8")
        check_keys(text)
        content = tomllib.loads(text)
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
