"""Tables of a trace from columns: labels become positions on their axes, what is not stated is absent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MILLI
from mast_opt.live.simulation.traces.schema import SCHEMA
from mast_opt.problems.kind.problem_data import Ints
from mast_opt.problems.kind.schema import Column, ColumnType, Tables

Given = NDArray[Any] | Sequence[str]
"""Texts of a column of labels, or whole numbers in base units; an empty text and a negative number are absent."""


@dataclass(frozen=True, eq=False)
class TraceTables:
    """A trace as tables, before it is written."""

    name: str
    provenance: str
    tables: Tables


def trace_tables(name: str, provenance: str, given: Mapping[str, Mapping[str, Given]]) -> TraceTables:
    """The tables of a trace.

    Args:
        given: table → column → cells. Columns that are not there are absent.
    """
    axes: dict[str, dict[str, int]] = {axis.name: {} for axis in SCHEMA.axes}
    values: dict[str, dict[str, NDArray[Any]]] = {}
    present: dict[str, dict[str, NDArray[np.bool_]]] = {}
    for table in SCHEMA.tables:
        columns = given.get(table.name, {})
        rows = len(next(iter(columns.values()), ()))
        values[table.name] = {}
        for column in table.columns:
            cells, filled = _cells(column, columns.get(column.name), rows, axes)
            values[table.name][column.name] = cells
            if not filled.all():
                present.setdefault(table.name, {})[column.name] = filled
    missing = frozenset(table.name for table in SCHEMA.tables if table.name not in given)
    labels = {axis: tuple(found) for axis, found in axes.items()}
    return TraceTables(name, provenance, Tables(labels, values, present, missing))


def _cells(
    column: Column, given: Given | None, rows: int, axes: Mapping[str, dict[str, int]]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values of a trace's column, and which of them there are."""
    kind = np.bool_ if column.type is ColumnType.BOOLEAN else np.int64
    if given is None:
        return np.zeros(rows, kind), np.zeros(rows, np.bool_)
    if column.axis is not None:
        at = axes[column.axis]
        positions = np.array([at.setdefault(text, len(at)) if text else -1 for text in given], np.int64)
        return np.maximum(positions, 0), positions >= 0
    numbers = np.asarray(given)
    return np.where(numbers < 0, 0, numbers).astype(kind), numbers >= 0


def places(
    regions: Sequence[str],
    servers: Sequence[str],
    region: Sequence[str],
    gpus: Ints,
    *,
    gpu_type: Sequence[str],
    rack: Sequence[str] | None = None,
    cpu_mcores: Ints | None = None,
    memory_mib: Ints | None = None,
) -> dict[str, Mapping[str, Given]]:
    """Tables of a trace's regions that have one cluster each, and of servers with so many whole GPUs.

    Args:
        region: of each server.
        rack: None for one rack.
        cpu_mcores, memory_mib: None for none.
    """
    nothing = np.zeros(len(servers), np.int64)
    return {
        "regions": {"region": regions},
        "clusters": {"cluster": regions, "region": regions},
        "servers": {
            "server": servers,
            "cluster": region,
            "rack": ["rack"] * len(servers) if rack is None else rack,
            "gpu_type": gpu_type,
            "gpus": gpus * MILLI,
            "cpu_cores": nothing if cpu_mcores is None else cpu_mcores,
            "memory_gb": nothing if memory_mib is None else memory_mib,
        },
    }


def equal_servers(names: Sequence[str], counts: Sequence[int], gpus: int) -> dict[str, Mapping[str, Given]]:
    """Tables of a trace's regions with so many servers each, all of them with as many GPUs."""
    region = [name for name, count in zip(names, counts, strict=True) for _ in range(count)]
    servers = [f"{name}-{at}" for name, count in zip(names, counts, strict=True) for at in range(count)]
    return places(names, servers, region, np.full(len(servers), gpus, np.int64), gpu_type=["gpu"] * len(servers))


def texts_of(tables: Tables, table: str, column: str, axis: str) -> list[str]:
    """Labels of a trace's column; empty where the cell is."""
    if not tables.rows(table):
        return []
    names = np.array([*tables.axes[axis], ""], dtype=object)
    found = np.where(tables.has(table, column), tables.get(table, column), len(names) - 1)
    return list(names[found])
