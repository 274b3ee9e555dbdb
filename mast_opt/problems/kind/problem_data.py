"""Base classes of problems: groups of arrays that validate, copy and freeze, and rows that are replaced by label.

A problem is a frozen dataclass of a few groups. ``Entities`` have labels (regions, jobs); a ``Relation`` joins them
and has a key instead (what a workload reads). A group checks what it can see alone; the problem checks what joins
groups. Arrays that a group does not own are copied, so that the caller's stay as they are and nobody can write into
the group's; ``dataclasses.replace`` shares the arrays of groups that do not change.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, fields, replace
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import BOOLEANS, INTEGERS, Arrays, Column, Labels, owned, scalars
from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.wording import did_you_mean, plain
from mast_opt.problems.kind import schema
from mast_opt.problems.kind.header import term_faults
from mast_opt.problems.kind.origin import Origin
from mast_opt.problems.kind.overrides import NO_OVERRIDES, Overrides
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.kind.stated_columns import Stated, columns_in

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Frozen:
    """Equality by content, and copies by pickle whose arrays are read-only too."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return all(_equal(getattr(self, item.name), getattr(other, item.name)) for item in _fields(self))

    def __hash__(self) -> int:
        """Equal things have equal hashes; sizes are enough for that, and quick."""
        return hash((type(self), *(len(group) for group in _groups(self).values())))

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in _fields(self)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, owned(value) if isinstance(value, np.ndarray) else value)


class Group(Frozen, ABC):
    """Arrays of a problem that have their first axis in common: the rows of one entity or relation.

    A subclass is a frozen dataclass (``eq=False, repr=False``) that names its axis and declares its columns.
    """

    AXIS: ClassVar[str]
    """The rows; also the field of the problem."""
    COLUMNS: ClassVar[tuple[Column, ...]]
    """Requirements of each array; a subclass names those that no column states."""
    STATED: ClassVar[tuple[Stated, ...]] = ()
    """The fields that a column of the group's table states."""

    def __init_subclass__(cls) -> None:
        cls.STATED, columns = columns_in(vars(cls), vars(cls).get("AXIS", ""))
        if columns:
            cls.COLUMNS = columns

    @classmethod
    def columns(cls) -> tuple[schema.Column, ...]:
        """The columns of the group's table, without the labels of its own axis."""
        return tuple(one.column for one in cls.STATED)

    def __post_init__(self) -> None:
        for one in self.STATED:
            if one.may_be_left_out and getattr(self, one.array.name) is None:
                object.__setattr__(self, one.array.name, one.default(len(self)))
        check = Arrays(self, place=self.AXIS)
        self._check_labels(check)
        check.take(*self.COLUMNS)
        if not check.faults:
            self._check_rows(check)
        if check.faults:
            raise InstanceError(check.faults)

    def __hash__(self) -> int:
        return hash((type(self), len(self)))

    def __repr__(self) -> str:
        columns = ", ".join(column.name for column in self.COLUMNS)
        return f"{type(self).__name__}({len(self):,} {self.AXIS.replace('_', ' ')}: {columns})"

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    def rows(self, which: Bools | Ints, **others: object) -> Self:
        """The group with only these rows: a mask [rows], or positions in the order that is wanted.

        Args:
            others: field → its array or labels, instead of those of the rows.
        """
        return replace(self, **self._rows(np.arange(len(self))[which]) | others)  # type: ignore[type-var]

    def with_arrays(self, **arrays: object) -> Self:
        """The group with other arrays or labels. Where the number of rows changes, a column that holds nothing but its
        default has the default in all of them.

        Raises:
            InstanceError: arrays that are not sound, or not of one length; it lists every fault.
        """
        rows = arrays.get("labels" if isinstance(self, Entities) else self.COLUMNS[0].name, self)
        if isinstance(rows, Sized) and len(rows) != len(self):
            absent = (one for one in self.STATED if one.may_be_left_out)
            plain = {one.array.name: one.default(len(rows)) for one in absent if one.is_default(self)}
            arrays = plain | arrays
        return replace(self, **arrays)  # type: ignore[type-var]

    def appended(self, **arrays: Sequence[str] | NDArray[Any]) -> Self:
        """The group with further rows: their arrays and labels. A column that is left out has its default there.

        Raises:
            InstanceError: rows that are not sound, or do not fit the others; it lists every fault.
        """
        count = len(next(iter(arrays.values())))
        more = {one.array.name: one.default(count) for one in self.STATED if one.may_be_left_out} | arrays
        longer: dict[str, Any] = {name: np.concatenate([getattr(self, name), rows]) for name, rows in more.items()}
        if isinstance(self, Entities):
            longer["labels"] = (*self.labels, *arrays["labels"])
        return replace(self, **longer)  # type: ignore[type-var]

    def _rows(self, at: Ints) -> dict[str, Any]:
        """Field → values of a problem's group at these positions."""
        found: dict[str, Any] = {}
        for column in self.COLUMNS:
            found[column.name] = getattr(self, column.name)
            for place, axis in enumerate(column.shape):
                if axis == self.AXIS:
                    found[column.name] = found[column.name].take(at, axis=place)
        return found

    def _check_labels(self, check: Arrays) -> None:
        """Note faults of a group's labels, which are no arrays."""

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of a group's sound arrays that only several of them show."""


@dataclass(frozen=True, eq=False, repr=False)
class Entities(Group):
    """Things with labels, and their arrays.

    Raises:
        InstanceError: labels or arrays that are not sound by themselves; it lists every fault.
    """

    MAY_REPEAT: ClassVar[bool] = False
    """True if labels may occur twice."""
    MAY_BE_EMPTY: ClassVar[bool] = False
    """True if one label may be empty."""

    labels: tuple[str, ...]

    @classmethod
    def table(cls, axis: str, **about: Any) -> schema.Table:  # noqa: ANN401 - fields of a table
        """The table that states the group, with labels of this axis as its key. Rows are required if the table is."""
        stated: dict[str, Any] = {"name": cls.AXIS, "rows_required": about.get("required", True), **about}
        return schema.Table(columns=(schema.label(axis, axis), *cls.columns()), key=(axis,), group=cls.AXIS, **stated)

    def __len__(self) -> int:
        return len(self.labels)

    def _rows(self, at: Ints) -> dict[str, Any]:
        """Rows of the group, with their labels."""
        return {"labels": tuple(self.labels[row] for row in at.tolist()), **super()._rows(at)}

    def _check_labels(self, check: Arrays) -> None:
        """Note faults of the labels of a group of entities: empty ones, or twice the same."""
        check.labels("labels", self.AXIS, unique=not self.MAY_REPEAT, empty=self.MAY_BE_EMPTY)


class Relation(Group):
    """Rows that join entities, each known by its key.

    Raises:
        InstanceError: arrays that are not sound by themselves, or two rows with the same key; it lists every fault.
    """

    KEY: ClassVar[tuple[str, ...]] = ()
    """Columns that no two rows have in common; empty where rows may be equal."""

    @classmethod
    def table(cls, name: str, **about: Any) -> schema.Table:  # noqa: ANN401 - fields of a table
        """The table of this name that states the relation, with the same key."""
        key = tuple(one.column.name for one in cls.STATED if one.array.name in cls.KEY)
        return schema.Table(name, cls.columns(), key, group=cls.AXIS, **about)

    def __len__(self) -> int:
        return len(getattr(self, self.COLUMNS[0].name))

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of a relation: rows with the same key."""
        if self.KEY:
            where = {column.name: column.where for column in self.COLUMNS if column.where}
            check.key(*self.KEY, where=where)


class GroupedProblem(Summarised, Frozen, Problem[PlanT]):
    """One instance: groups, axes that have nothing but labels, and an objective.

    A subclass is a frozen dataclass (``eq=False, repr=False``). Whatever follows from its fields is a property.
    """

    WEIGHTS: ClassVar[Mapping[str, float]]
    """Objective term → its default weight."""
    LABELS: ClassVar[Mapping[str, bool]] = {}
    """Axis that has nothing but labels → may one of them be empty?"""

    @classmethod
    @cache
    def field_types(cls) -> dict[str, tuple[type, ...]]:
        """The types that every field of a problem may have, but those of labels and tiers, whose items are checked."""
        hints = get_type_hints(cls)
        stated = {one.name: hints[one.name] for one in fields(cls) if get_origin(hints[one.name]) is not tuple}  # type: ignore[arg-type]
        return {
            name: tuple(get_origin(one) or one for one in (get_args(hint) if isinstance(hint, UnionType) else (hint,)))
            for name, hint in stated.items()
        }

    def __post_init__(self) -> None:
        check = Arrays(self)
        for axis, empty in self.LABELS.items():
            check.labels(axis, empty=empty)
        if hasattr(self, "tiers"):
            check.tiers("tiers")
        check.faults += scalars(self, self.field_types())
        check.faults += term_faults(self.objective, self.WEIGHTS)
        groups = _groups(self)
        for axis, group in groups.items():
            if isinstance(group, Entities) and isinstance(group.labels, Labels):
                check.axes[axis], check.names[axis] = len(group), group.labels
        if not check.faults:
            for axis, group in groups.items():
                check.join(axis, group.COLUMNS)
        if not check.faults:
            self._check_rows(check)
        if check.faults:
            raise InstanceError(check.faults)

    def _summary(self) -> Summary:
        """Summary of the problem: sizes of its groups, objective."""
        groups = tuple((axis, f"{len(group):,}") for axis, group in _groups(self).items())
        order = self.objective.order
        objective = order or tuple(name for name, weight in self.objective.weights.items() if weight)
        rows = tuple((name, "" if order else plain(self.objective.weights[name])) for name in objective)
        facts = (("name", repr(self.name)), *groups)
        return Summary(type(self).__name__, facts, ("objective, in order" if order else "term", "weight"), rows)

    def _check_rows(self, check: Arrays) -> None:
        """Note faults of a problem's sound groups that only several of them show."""

    @classmethod
    def from_columns(cls, columns: Mapping[str, object]) -> Self:
        """A problem from its columns and other fields: ``regions.storage_mb`` → array, ``name`` → text.

        Raises:
            InstanceError: groups that are not sound, or do not fit one another; it lists every fault.
        """
        made: dict[str, Any] = {name: value for name, value in columns.items() if "." not in name}
        for group, arrays in _by_group(columns).items():
            made[group] = cls.field_types()[group][0](**arrays)
        return cls(**made)

    def with_columns(self, columns: Mapping[str, object]) -> Self:
        """The problem with other arrays or labels in some columns: ``regions.storage_mb`` → array. Defaults follow new
        labels, see ``Group.with_arrays``.

        Raises:
            InstanceError: groups that are not sound with them, or do not fit one another; it lists every fault.
        """
        changed: dict[str, Any] = {name: value for name, value in columns.items() if "." not in name}
        for group, arrays in _by_group(columns).items():
            changed[group] = getattr(self, group).with_arrays(**arrays)
        return replace(self, **changed)  # type: ignore[type-var]

    def labels_of(self, axis: str) -> tuple[str, ...]:
        """The labels of an axis. Raises UsageError for one that has none."""
        found = getattr(self, axis, None)
        labels = found.labels if isinstance(found, Entities) else found
        if not isinstance(labels, Labels):
            known = (*self.LABELS, *(name for name, group in _groups(self).items() if isinstance(group, Entities)))
            raise UsageError(f"there is no axis {axis!r}; expected one of: {', '.join(known)}")
        return labels

    def table_axes(self, tables: schema.Schema) -> dict[str, tuple[str, ...]]:
        """Axis of a schema → the labels that its tables can mention: each once, and none that is empty."""
        found = {}
        for axis in tables.axes:
            name = axis.table or f"{axis.name}s"
            labels = () if getattr(self, name) is None else self.labels_of(name)
            plain = isinstance(labels, Labels) and labels.unique and not labels.has_empty
            found[axis.name] = labels if plain else tuple(dict.fromkeys(filter(None, labels)))
        return found

    def relabelled(self, labels: Mapping[str, tuple[str, ...]]) -> Self:
        """The problem with other labels on some axes (axis → labels)."""
        entities = {axis for axis, group in _groups(self).items() if isinstance(group, Entities)}
        return self.with_columns(
            {f"{axis}.labels" if axis in entities else axis: names for axis, names in labels.items()}
        )

    def replace(self, group: str, row: str | Sequence[object], **values: object) -> Self:
        """The problem with other values in one row of a group.

            problem.replace("regions", "us-east", cpu_mcores=96_000_000, supply_mgpu={"h100": 64_000})
            problem.replace("options", ("train-3", "h100"), mgpu=16_000)

        Args:
            group: field of the problem, such as ``regions``.
            row: the label of an entity, or the labels that are the key of a relation (None for an empty one).
            values: column → value, in the column's unit. Where the column holds positions, the value is a label, or
                None for none; where it is a grid, a value for each label that changes, or a whole row.

        Raises:
            UsageError: there is no such group, row, column or label, or a value is not of the column's type.
            InstanceError: the problem with these values has faults; it lists every one.
        """
        found = _groups(self).get(group)
        if found is None:
            raise UsageError(f"there is no group {group!r}; expected one of: {', '.join(_groups(self))}")
        at = self._row(found, row)
        columns = {column.name: column for column in found.COLUMNS}
        changed: dict[str, Any] = {}
        for name, value in values.items():
            if name not in columns:
                raise UsageError(f"{group} has no column {name!r}; expected one of: {', '.join(columns)}")
            place = f"{name} of {row!r} in {group}"
            changed[name] = getattr(found, name).copy()
            changed[name][at] = self._entry(place, columns[name], changed[name][at], value)
        changed[group] = replace(found, **changed)  # type: ignore[type-var]
        return replace(self, **{group: changed[group]})  # type: ignore[type-var]

    def _row(self, group: Group, row: str | Sequence[object]) -> int:
        """The position of a row in a problem's group."""
        if isinstance(group, Entities):
            return self._position(f"row of {group.AXIS}", group.AXIS, row)
        key: tuple[str, ...] = getattr(group, "KEY", ())
        if isinstance(row, str) or len(row) != len(key) or not key:
            names = f"a tuple ({', '.join(key)})" if key else "dataclasses.replace, as its rows have no key"
            raise UsageError(f"row of {group.AXIS} is {row!r}; expected {names}")
        columns = {column.name: column for column in group.COLUMNS}
        same = np.ones(len(group), np.bool_)
        for name, part in zip(key, row, strict=True):
            where = columns[name].where
            if part is None and where:
                same &= ~getattr(group, where)
                continue
            same &= getattr(group, name) == self._value(f"{name} of a row of {group.AXIS}", columns[name], part)
            if where:
                same &= getattr(group, where)
        if not same.any():
            raise UsageError(f"{group.AXIS} has no row ({', '.join(map(str, row))})")
        return int(np.flatnonzero(same)[0])

    def _entry(self, place: str, column: Column, now: NDArray[Any], value: object) -> object:
        """Value for one row of a problem's column."""
        if len(column.shape) == 1:
            return self._value(place, column, value)
        if not isinstance(value, Mapping):
            parts = value if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else ()
            if len(parts) != len(now):
                raise UsageError(f"{place} is {value!r}; expected {len(now)} values, or a mapping from labels")
            return np.array([self._value(place, column, part) for part in parts], now.dtype)
        entry = now.copy()
        for label, part in value.items():
            at = self._place(place, column.shape[1], label)
            entry[at] = self._value(f"{place}, {label}", column, part)
        return entry

    def _value(self, place: str, column: Column, value: object) -> object:
        """A value in the unit of a problem's column; a label becomes its position."""
        if column.into:
            if value is None and column.beyond:
                return len(getattr(self, column.into))
            return self._position(place, column.into, value)
        if column.content == BOOLEANS:
            if not isinstance(value, bool | np.bool_):
                raise UsageError(f"{place} is {value!r}; expected true or false")
        elif isinstance(value, bool) or not isinstance(value, Integral if column.content == INTEGERS else Real):
            name = "whole number" if column.content == INTEGERS else "number"
            raise UsageError(f"{place} is {value!r}; expected a {name}")
        elif isinstance(value, Integral) and column.content == INTEGERS and not -(2**63) <= int(value) < 2**63:
            raise UsageError(f"{place} is {value}; expected a whole number that fits in 64 bits")
        return value

    def _place(self, place: str, axis: str | int, label: object) -> int:
        """The position of a label of the problem; of a position itself, on an axis that has a fixed length."""
        if isinstance(axis, str):
            return self._position(place, axis, label)
        if not isinstance(label, int) or not 0 <= label < axis:
            raise UsageError(f"{place} has no part {label!r}; expected a position from 0 to {axis - 1}")
        return label

    def _position(self, place: str, axis: str, label: object) -> int:
        """The position of a label of the problem, or of a tier."""
        if axis == "tiers":
            tiers: tuple[int, ...] = getattr(self, axis)
            if label not in tiers:
                raise UsageError(f"{place}: there is no tier {label!r}; expected one of: {', '.join(map(str, tiers))}")
            return tiers.index(label)
        labels = self.labels_of(axis)
        assert isinstance(labels, Labels)
        at = labels.first.get(label) if isinstance(label, str) else None
        if at is None:
            near = did_you_mean(label, labels) if isinstance(label, str) else ""
            raise UsageError(f"{place}: there is no {label!r} among the {len(labels):,} {axis}{near}")
        if not labels.unique and labels.count(label) > 1:
            raise UsageError(f"{place}: {label!r} is the label of several {axis}; expected one that is unique")
        return at


class Decisions(Summarised, Frozen):
    """A plan: the arrays of its decisions, equal by content.

    A subclass is a frozen dataclass (``eq=False, repr=False``).
    """

    origin: Origin | None = None
    """The instance that the plan was made for; None for a plan that somebody put together. It does not count when
    plans are compared."""

    def made_for(self, problem: Problem[Any], overrides: Overrides = NO_OVERRIDES) -> Self:
        """The plan as one of this instance: functions refuse it for another one, and judge it with these overrides.

        Args:
            problem: an instance that the plan fits.
            overrides: what its solve was asked for instead of the instance's weights, order and limits.
        """
        copy: Self = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, origin=Origin(problem, overrides))
        return copy

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | ({} if self.origin is None else {"origin": self.origin})

    def _summary(self) -> Summary:
        """Summary of the plan: shapes of its arrays."""
        sizes = ((item.name, "×".join(map(str, getattr(self, item.name).shape))) for item in _fields(self))
        return Summary("Plan", tuple(sizes))


def _fields(owner: object) -> tuple[Any, ...]:
    """Fields of a problem or group, which are dataclasses."""
    return fields(owner)  # type: ignore[arg-type]  # every subclass is a dataclass


def _groups(owner: object) -> dict[str, Group]:
    """The groups of a problem, by field; none of a group."""
    found = ((item.name, getattr(owner, item.name)) for item in _fields(owner))
    return {name: value for name, value in found if isinstance(value, Group)}


def _by_group(columns: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Group → column → array, for names such as ``regions.storage_mb``."""
    found: dict[str, dict[str, Any]] = {}
    for name, array in columns.items():
        group, dot, column = name.partition(".")
        if dot:
            found.setdefault(group, {})[column] = array
    return found


def _equal(one: object, other: object) -> bool:
    """Whether two fields of a problem or plan are equal, arrays entry by entry."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one == other
