"""One number for what an instance says, however it is written down."""

import hashlib
import json
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.core.fork_safety import use_tables
from mast_opt.problems.kind.header import Header
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.kind.schema import ColumnType, Schema, Table, Tables
from mast_opt.problems.registry import kind_named, kind_of


def checksum(problem: Problem[Any]) -> str:
    """``sha256:…`` over the content of an instance: kind, rules, objective and tables.

    The same for every file format, spelling of a number, and order of rows that has no meaning; the name and the
    provenance do not count. So it shows whether a plan was made for this instance.
    """
    use_tables("compute a checksum")
    kind = kind_of(problem)
    return checksum_of(kind.tables.schema, *kind.tables.problem_to_tables(problem))


def checksum_of(schema: Schema, header: Header, tables: Tables) -> str:
    """The checksum of a problem that is already taken apart."""
    digest = hashlib.sha256(_header_text(header).encode())
    ranks = {axis.name: _ranks(axis.name, schema, tables) for axis in schema.axes}
    for table in schema.tables:
        if table.later and table.name in tables.missing:
            continue
        there = "missing" if table.name in tables.missing else str(tables.rows(table.name))
        digest.update(f"\n{table.name} {there}\n".encode())
        digest.update(_content(table, tables, {name: rank for name, (rank, _) in ranks.items()}).tobytes())
    later = {axis.name for axis in schema.axes if axis.later}
    for name, (_, labels) in ranks.items():
        if name in later and not labels:
            continue
        digest.update(f"\n{name}\n".encode() + "\n".join(labels).encode("utf-8", "surrogatepass"))
    return f"sha256:{digest.hexdigest()}"


def _header_text(header: Header) -> str:
    """Header of an instance as text for its checksum."""
    objective, stated = header.objective, kind_named(header.kind).terms
    content: dict[str, Any] = {
        "kind": header.kind,
        "rules": {name: str(value) for name, value in header.rules.items()},
        "weights": {name: float(one) for name, one in objective.weights.items() if one or not stated[name].later},
        "tier_weights": {str(tier): float(weight) for tier, weight in objective.tier_weights.items()},
        "order": list(objective.order),
    }
    if any(objective.peak_levels.values()):
        content["peak_levels"] = {str(tier): float(level) for tier, level in objective.peak_levels.items()}
    if objective.policy:
        content |= {name: getattr(objective, name) for name in ("policy", "mechanism", "inside")}
    if header.limits:
        content["limits"] = {name: str(value) for name, value in header.limits.items()}
    return json.dumps(content, sort_keys=True)


def _ranks(axis: str, schema: Schema, tables: Tables) -> tuple[NDArray[np.int64], list[str]]:
    """Rank of each label among those that the tables mention, in alphabetical order, and these labels."""
    labels = tables.axes[axis]
    mentioned = np.zeros(len(labels), np.bool_)
    for table in schema.tables:
        for column in table.columns:
            if column.axis == axis:
                mentioned[tables.get(table.name, column.name)[tables.has(table.name, column.name)]] = True
    where = np.flatnonzero(mentioned)
    order = where[pl.Series(labels, dtype=pl.String).gather(where).arg_sort().to_numpy()]
    ranks = np.zeros(len(labels), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks, [labels[position] for position in order.tolist()]


def _content(table: Table, tables: Tables, ranks: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """[rows, 2 · columns] values and which are present, in the order of the rows' keys."""
    columns, keys = [], {}
    for column in table.columns:
        values, present = tables.get(table.name, column.name), tables.has(table.name, column.name)
        if column.later and (values[present] == column.default).all():
            continue
        if column.axis is not None:
            values = ranks[column.axis][values] if len(ranks[column.axis]) else values
        if column.type is ColumnType.REAL:
            values = (values + 0.0).astype("<f8").view("<i8")  # + 0.0: there is one zero
        columns += [np.where(present, values, 0).astype("<i8"), present.astype("<i8")]
        keys[column.name] = np.where(present, values, -1)
    order = np.lexsort([keys[name] for name in reversed(table.key) if name in keys])
    other = table.order_counts_with
    if other is not None and other not in tables.missing and tables.rows(other):
        columns += _places(order, [keys[name] for name in reversed(table.order_within)])
    return np.ascontiguousarray(np.stack(columns, axis=1)[order])


def _places(by_key: NDArray[np.int64], within: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The place of each row among those with equal values ``within``, one column; none if they are listed by key."""
    count = np.arange(len(by_key))
    key_rank = np.empty_like(count)
    key_rank[by_key] = count
    listed = np.lexsort([count, *within])
    if np.array_equal(listed, np.lexsort([key_rank, *within])):
        return []
    place = np.empty_like(count)
    place[listed] = count
    return [place.astype("<i8")]
