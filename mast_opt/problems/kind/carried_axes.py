"""Labels and rows of two instances, matched by digests, so that what a solve knows of one can go over to the other.

Digests are the same on every machine. A plan folder keeps those of its instance, which itself may be gone by then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.kind.schema import Schema, Tables

Digests = Mapping[str, NDArray[np.uint64]]
"""``axis NAME`` → digests of labels; ``key TABLE`` and ``row TABLE`` → digests of the rows' keys and of whole rows;
``totals TABLE`` → the sums of its columns of numbers, in the bits of a float."""
_KEPT = "_digests"
_SHIFTS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_STEP = 0x9E3779B97F4A7C15


def digests_of(
    problem: Problem[Any],
    schema: Schema,
    to_tables: Callable[[Any], tuple[Any, Tables]],
    classes: Mapping[str, Mapping[str, NDArray[np.int64]]],
) -> Digests:
    """Digests of an instance's labels and rows; computed once for each problem object.

    Args:
        classes: see ``TableInterface``.
    """
    found: dict[str, NDArray[np.uint64]] | None = problem.__dict__.get(_KEPT)
    if found is not None:
        return found
    tables = to_tables(problem)[1]
    found = {f"axis {axis}": _of_labels(labels) for axis, labels in tables.axes.items()}
    for table in schema.tables:
        key = np.zeros(tables.rows(table.name), np.uint64)
        row, totals = np.zeros_like(key), []
        for number, column in enumerate(table.columns, start=1):
            values, there = tables.get(table.name, column.name), tables.present.get(table.name, {}).get(column.name)
            if column.axis is not None:
                labels = found[f"axis {column.axis}"]
                digest = labels[values] if len(labels) else np.zeros(len(values), np.uint64)
            else:
                digest = (values + 0.0).view(np.uint64) if values.dtype == np.float64 else values.astype(np.uint64)
                totals.append(float(values.sum()))
            digest = _mixed(digest + _salt(number))
            if there is not None:
                digest = np.where(there, digest, 0)
            row += digest
            if column.name in table.key:
                key += digest
        found |= {f"key {table.name}": key if table.key else row, f"row {table.name}": row}
        found[f"totals {table.name}"] = np.array(totals).view(np.uint64)
    for name, places in classes.items():
        parts = (found[f"axis {axis}"][at] + _salt(number) for number, (axis, at) in enumerate(places.items(), start=1))
        found[f"key {name}"] = np.sum([_mixed(part) for part in parts], axis=0, dtype=np.uint64)
    problem.__dict__[_KEPT] = found
    return found


@dataclass(frozen=True, eq=False)
class Match:
    """The labels and rows of an instance among those of an earlier one."""

    earlier: Digests
    now: Digests

    def axis(self, name: str) -> NDArray[np.int64]:
        """Position of each label of an axis in the earlier instance, −1 where that did not have it."""
        return _positions(self.earlier[f"axis {name}"], self.now[f"axis {name}"])

    def rows(self, table: str) -> NDArray[np.int64]:
        """Position of each row of a table, by its key, in the earlier instance, −1 where that did not have it."""
        return _positions(self.earlier[f"key {table}"], self.now[f"key {table}"])

    def same(self, axis: str) -> bool:
        """Whether an axis has the labels that it had, in any order."""
        at = self.axis(axis)
        return len(at) == len(self.earlier[f"axis {axis}"]) and bool((at >= 0).all())

    def shared(self) -> bool:
        """Whether the two have any label in common."""
        axes = sorted((name for name in self.now if name.startswith("axis ")), key=lambda name: len(self.now[name]))
        return any((_positions(self.earlier[name], self.now[name]) >= 0).any() for name in axes)

    def replaced(self, table: str) -> int:
        """Number of rows of a table that are new or gone, whichever are more."""
        at = self.rows(table)
        kept = int(np.count_nonzero(at >= 0))
        return max(len(at), len(self.earlier[f"key {table}"])) - kept

    def growth(self, table: str) -> float:
        """Largest change in the sum of a column of a table, relative to the smaller sum."""
        then, now = (of[f"totals {table}"].view(np.float64) for of in (self.earlier, self.now))
        apart, least = np.abs(now - then), np.minimum(np.abs(now), np.abs(then))
        return float(np.divide(apart, least, out=np.where(apart > 0, np.inf, 0.0), where=least > 0).max(initial=0.0))

    def changed(self) -> dict[str, tuple[int, int]]:
        """Table → number of rows that are new, gone or have other values, and of rows in the larger instance."""
        found = {}
        for name in (name for name in self.now if name.startswith("row ")):
            table, row, before = name.removeprefix("row "), self.now[name], self.earlier[name]
            at = self.rows(table)
            kept = at >= 0
            same = int(np.count_nonzero(row[kept] == before[at[kept]]))
            gone = max(len(before) - int(np.count_nonzero(kept)), 0)
            found[table] = len(row) - same + gone, max(len(row), len(before))
        return found


@dataclass(frozen=True)
class Continuation:
    """Way of a solver to go on from an earlier solve."""

    rounds: int | None
    """Iterations of a re-solve where neither they nor a time limit is given; None for a method that ends by itself."""
    fixed: tuple[str, ...]
    """Axes of whose labels each shapes the whole plan: where one is new or gone, there is nothing to go on from."""
    certificate: Callable[[Any, Mapping[str, NDArray[Any]], Match], Mapping[str, NDArray[Any]]]
    """(instance, arrays of an earlier certificate, match) → arrays of one for this instance, whose prices the search
    may have to bring into their boxes. Raises PlanError for arrays that are no certificate."""


def taken(values: NDArray[Any], at: NDArray[np.int64], axis: int = 0) -> NDArray[Any]:
    """Values of an earlier instance at these positions of an axis, 0 where the position is −1."""
    if not values.shape[axis]:
        return np.zeros((*values.shape[:axis], len(at), *values.shape[axis + 1 :]), values.dtype)
    there = (at >= 0).reshape(-1, *[1] * (values.ndim - axis - 1))
    return np.where(there, values.take(np.maximum(at, 0), axis=axis), values.dtype.type(0))


def _positions(earlier: NDArray[np.uint64], now: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Position of each digest among earlier ones, −1 where it is not there; most are expected where they were."""
    both = min(len(earlier), len(now))
    stayed = earlier[:both] == now[:both]
    at = np.full(len(now), -1)
    at[:both][stayed] = np.flatnonzero(stayed)
    others, left = np.flatnonzero(at < 0), np.flatnonzero(np.append(~stayed, np.ones(len(earlier) - both, np.bool_)))
    if len(others) and len(left):
        left = left[np.argsort(earlier[left], kind="stable")]
        found = left[np.minimum(np.searchsorted(earlier[left], now[others]), len(left) - 1)]
        at[others] = np.where(earlier[found] == now[others], found, -1)
    return at


def _of_labels(labels: tuple[str, ...]) -> NDArray[np.uint64]:
    """Digest of each label: the sum over its characters, each mixed with its place."""
    digest = np.zeros(len(labels), np.uint64)
    if labels:
        characters = np.array(labels, np.str_).view(np.uint32).reshape(len(labels), -1)
        for place, column in enumerate(characters.T, start=1):
            digest += np.where(column > 0, _mixed(column + _salt(place)), 0)
    return digest


def _salt(number: int) -> np.uint64:
    """Number that tells one column or place from another."""
    return np.uint64(number * _STEP % 2**64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection whose every bit depends on all."""
    for shift, factor in _SHIFTS:
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
