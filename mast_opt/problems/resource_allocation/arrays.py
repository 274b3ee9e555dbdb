"""Groups of a resource allocation from the arrays that are known of it: the rest takes its default."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from mast_opt.core.arguments import refuse
from mast_opt.core.arrays import Column, Labels
from mast_opt.core.errors import Fault, InstanceError, UsageError
from mast_opt.core.wording import did_you_mean
from mast_opt.problems.kind.problem_data import Entities, Group
from mast_opt.problems.resource_allocation.entities import Configurations, Groups, Jobs, Members, Resources, Uses

Columns: TypeAlias = Mapping[str, Any]
"""Name of a column → its array; a single number stands for an array of it. Entities may have ``labels`` too."""
GROUPS: Mapping[str, tuple[type[Group], str]] = {
    "resources": (Resources, "k"),
    "groups": (Groups, "g"),
    "jobs": (Jobs, "j"),
    "configurations": (Configurations, "c"),
    "members": (Members, ""),
    "uses": (Uses, ""),
}
"""Group → its class, and the letter of labels that are not given."""


def groups_of(given: Mapping[str, Columns | int]) -> dict[str, Any]:
    """The groups of a problem, validated.

    Args:
        given: group → its columns; for entities also their number, where everything takes its default.

    Raises:
        UsageError: a column that there is not, or one that has no default and is not given.
        InstanceError: arrays that are not sound by themselves; it lists every fault of every group.
    """
    made: dict[str, Any] = {}
    faults: list[Fault] = []
    for group, (kind, letter) in GROUPS.items():
        found = given[group]
        columns: dict[str, Any] = {"labels": names(letter, found)} if isinstance(found, int) else dict(found)
        labels: dict[str, Any] = {}
        size = None
        if issubclass(kind, Entities):
            size = _size(group, columns)
            labels = {"labels": tuple(columns.pop("labels", ())) or names(letter, size)}
        if group == "jobs":
            columns.setdefault("group", len(made.get("groups", ())))
        known = {column.name: column for column in kind.COLUMNS}
        for name in columns.keys() - known.keys():
            raise UsageError(
                f"{group} has no column {name!r}{did_you_mean(name, known)}; expected some of: {', '.join(known)}"
            )
        defaults = {one.array.name: one.column.default for one in kind.STATED}
        arrays = {
            name: _array(f"{group}.{name}", columns, column, size, defaults[name]) for name, column in known.items()
        }
        try:
            made[group] = kind(**labels, **arrays)
        except InstanceError as error:
            faults += error.faults
    if faults:
        raise InstanceError(faults)
    return made


def names(letter: str, count: int) -> Labels:
    """Labels of a policy's program for so many entities: a letter and a number from 0."""
    return Labels([f"{letter}{number}" for number in range(count)])


def _size(group: str, columns: Columns) -> int:
    """The number of entities of a resource allocation: of their labels, or of the first column that is no single
    number.
    """
    for values in (columns.get("labels"), *columns.values()):
        if values is not None and np.ndim(values):
            return len(values)
    words = f"their number, their labels, or a column with a value for each of the {group}"
    raise UsageError(f"the number of {group} is not known; expected {words}")


def _array(
    name: str, columns: Columns, column: Column, size: int | None, default: float | None
) -> np.ndarray[Any, Any]:
    """A resource allocation's column as an array; what it holds is for the group to check."""
    value = columns.get(column.name, default)
    if value is None:
        raise UsageError(f"{name} is not given; expected an array")
    try:
        found = np.asarray(value)
    except ValueError:
        raise refuse(name, value, "an array") from None
    if column.into and not found.size:
        found = found.astype(np.int64)
    return np.full(size, found) if found.ndim == 0 and size is not None else found
