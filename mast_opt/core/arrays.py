"""Checks of the arrays that a problem, a plan or a program is constructed from.

A class declares its arrays with ``positions``, ``amounts``, ``flags`` and ``reals``; ``Arrays`` takes ownership of
them and collects every fault. A fault names the field, the position in the array, the value and what was expected.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import zip_longest
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import Fault

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]
Shape = tuple[str | int, ...]
INTEGERS, BOOLEANS, NUMBERS = "integers", "booleans", "numbers"
_DTYPES: Mapping[str, type] = {INTEGERS: np.int64, BOOLEANS: np.bool_, NUMBERS: np.float64}
_ACCEPTED = {INTEGERS: "iu", BOOLEANS: "b", NUMBERS: "fiu"}
OTHER_INSTANCE = "the plan does not fit this instance; give the instance that it was made for"
MOST_TOTAL = 2.0**63
"""Amounts of one array add up to less."""
MOST_KEY = 2**62
"""Cells of a grid of keys that are numbered in 64 bits."""


@dataclass(frozen=True, slots=True)
class Column:
    """Requirements of one array field."""

    name: str
    shape: Shape
    """Axes by name, or a fixed length. An axis that has no labels has the length of the first array on it."""
    content: str = INTEGERS
    least: int | float | None = 0
    most: int | float | None = None
    into: str = ""
    """The axis that positions point into."""
    beyond: int = 0
    """1 where a position may also be the length of that axis, which stands for none."""
    where: str = ""
    """Boolean field that says which values count; empty for all."""
    ascending: bool = False
    total: bool = False
    """True if the values add up to something that must fit in 64 bits."""


def positions(name: str, axis: str, into: str, *, beyond: int = 0, where: str = "", ascending: bool = False) -> Column:
    """Description of a checked array: positions on the axis ``into``."""
    return Column(name, (axis,), into=into, beyond=beyond, where=where, ascending=ascending)


def amounts(
    name: str, *shape: str | int, least: int | None = 0, most: int | None = None, where: str = "", total: bool = True
) -> Column:
    """Description of a checked array: whole numbers in base units."""
    return Column(name, shape, least=least, most=most, where=where, total=total)


def flags(name: str, *shape: str | int) -> Column:
    """Description of a checked array: truth values."""
    return Column(name, shape, BOOLEANS, least=None)


def reals(name: str, *shape: str | int, least: float = 0.0, most: float | None = None) -> Column:
    """Description of a checked array: finite floating-point numbers."""
    return Column(name, shape, NUMBERS, least=least, most=most)


class Labels(tuple[str, ...]):
    """The labels of an axis, looked through once: ``dataclasses.replace`` on an instance with a million of them does
    not check them again."""

    unique: bool
    """True if all labels differ."""
    has_empty: bool

    def __new__(cls, labels: Iterable[str]) -> "Labels":
        """A tuple of labels that knows whether they differ and whether any is empty."""
        made = super().__new__(cls, labels)
        different = set(made)
        made.unique = len(different) == len(made)
        made.has_empty = "" in different
        return made

    def __reduce__(self) -> "tuple[type[Labels], tuple[tuple[str, ...]]]":
        return Labels, (tuple(self),)

    @cached_property
    def first(self) -> Mapping[str, int]:
        """First position of each label of an instance's axis."""
        return dict(zip(reversed(self), range(len(self) - 1, -1, -1)))


def labels_of(instance: Any) -> dict[str, Labels]:  # noqa: ANN401 - any dataclass
    """The labels of an instance's axes, by field."""
    values = {axis.name: getattr(instance, axis.name) for axis in fields(instance)}
    labels = {axis: getattr(value, "labels", value) for axis, value in values.items()}
    return {axis: found for axis, found in labels.items() if isinstance(found, Labels)}


class Arrays:
    """The array fields of a frozen dataclass, while it is constructed.

    Construction copies every array that the instance does not own yet: the caller's arrays stay as they are, and
    nobody can write into the instance's.
    """

    def __init__(self, owner: object, axes: Mapping[str, int] | None = None, place: str = "") -> None:
        """``axes``: lengths by name. ``place``: what the owner is called in faults."""
        self.owner = owner
        self.axes = dict(axes or {})
        self.place = f"{place}." if place else ""
        self.names: dict[str, Sequence[str]] = {}
        """Axis → its labels, by which faults name positions."""
        self.shapes: dict[str, Shape] = {}
        self.faults: list[Fault] = []

    def get(self, name: str) -> NDArray[Any]:
        """A field of the checked object by name, or a field of a field, as in ``regions.storage_mb``."""
        found: NDArray[Any] = attrgetter(name)(self.owner) if "." in name else getattr(self.owner, name)
        return found

    def labels(self, name: str, axis: str = "", *, unique: bool = True, empty: bool = False) -> None:
        """Check a tuple of texts, which becomes the axis (of the same name, unless given).

        Args:
            name: of the field.
            axis: that it labels.
            unique: must they differ?
            empty: may one of them be empty?
        """
        found = getattr(self.owner, name)
        axis = axis or name
        self.axes[axis] = 0
        if not isinstance(found, tuple):
            self.fault(name, "a tuple of texts", type(found).__name__)
            return
        self.axes[axis] = len(found)
        if not isinstance(found, Labels):
            if set(map(type, found)) - {str}:
                at = next(at for at, label in enumerate(found) if type(label) is not str)
                self.fault(f"{name}[{at}]", "a text", repr(found[at]))
                return
            found = Labels(found)
            object.__setattr__(self.owner, name, found)
        self.names[axis] = found
        if unique and not found.unique:
            first: dict[str, int] = {}
            at = next(at for at, label in enumerate(found) if first.setdefault(label, at) != at)
            self.fault(f"{name}[{at}]", f"another label than {name}[{first[found[at]]}]", found[at])
        elif not empty and found.has_empty:
            self.fault(f"{name}[{found.index('')}]", "a label that is not empty", "")

    def tiers(self, name: str) -> None:
        """Check a tuple of tiers, which are whole numbers from 0, ascending; it becomes the axis of that name."""
        found = getattr(self.owner, name)
        self.axes[name] = 0
        if not isinstance(found, tuple) or any(type(tier) is not int or tier < 0 for tier in found):
            self.fault(name, "a tuple of whole numbers of at least 0", repr(found)[:80])
        elif any(first >= second for first, second in itertools.pairwise(found)):
            self.fault(name, "tiers in ascending order, each once", repr(found)[:80])
        else:
            self.axes[name] = len(found)

    def take(self, *columns: Column) -> None:
        """Copy each array that is not owned, and check it by itself."""
        for column in columns:
            self.shapes[column.name] = column.shape
            if self._own(column) and self._fits(column) and self.get(column.name).size:
                self._check(column)

    def join(self, group: str, columns: Iterable[Column]) -> None:
        """Check the arrays of a field, which are sound by themselves, against the axes of other fields.

        The first axis of each is the rows of the field.
        """
        held = getattr(self.owner, group)
        for column in columns:
            name, found = f"{group}.{column.name}", getattr(held, column.name)
            self.shapes[name] = column.shape
            expected = found.shape
            if len(column.shape) > 1:
                known = [self.axes.get(str(axis), at) for axis, at in zip(column.shape[1:], expected[1:], strict=True)]
                expected = (expected[0], *known)
            if found.shape != expected:
                axes = ", ".join(str(axis) for axis in column.shape)
                self.fault(name, f"shape {expected} ({axes})", f"shape {found.shape}")
            elif column.into and found.size:
                most = self.axes[column.into] - 1 + column.beyond
                counted = found[getattr(held, column.where)] if column.where else found
                if counted.size and counted.max() > most:
                    broken = found > most
                    if column.where:
                        broken &= getattr(held, column.where)
                    self.wrong(name, broken, _range(column, most))

    def key(self, *names: str, where: Mapping[str, str] | None = None) -> None:
        """Note a fault where two entries are equal in all of these arrays of positions.

        ``where``: array → booleans; the array counts only where they are true.
        """
        parts = [self.get(name) for name in names]
        if len(parts[0]) < 2:
            return
        for at, name in enumerate(names):
            if where and name in where:
                parts[at] = np.where(self.get(where[name]), parts[at], -1)
        twice = repeated(parts)
        if twice is not None:
            earlier, later = twice
            value = ", ".join(str(part[later]) for part in parts)
            fields = ", ".join(names)
            self.fault(f"{names[0]}[{later}]", f"{fields} that differ from those at position {earlier}", value)

    def wrong(self, name: str, broken: NDArray[np.bool_], expected: str) -> None:
        """Note a fault for the first entry of an array that is broken; the others are counted."""
        at = np.argwhere(broken)
        if len(at):
            axes = self.shapes.get(name, ())
            place = ", ".join(self._called(axis, int(part)) for axis, part in zip_longest(axes, at[0]))
            self._fault_at(name, place, self.get(name)[tuple(at[0])], expected, len(at))

    def fault(self, where: str, expected: str, value: str | None = None) -> None:
        """Note a fault of a field, or of an entry of it, as in ``initial[p1]``."""
        self.faults.append(Fault(f"{self.place}{where}", expected, value=value))

    def _called(self, axis: str | int | None, position: int) -> str:
        """A position in an array's fault: its label, where the axis has labels."""
        known = self.names.get(axis, ()) if isinstance(axis, str) else ()
        return known[position] if position < len(known) else str(position)

    def _own(self, column: Column) -> bool:
        """Replace an array of a column by a copy of its own, or note a fault."""
        found = getattr(self.owner, column.name)
        if not isinstance(found, np.ndarray):
            self.fault(column.name, f"a NumPy array of {column.content}", type(found).__name__)
            return False
        if found.dtype.kind not in _ACCEPTED[column.content]:
            self.fault(column.name, f"an array of {column.content}", f"dtype {found.dtype}")
            return False
        if found.dtype.kind == "u" and found.size and int(found.max()) > np.iinfo(np.int64).max:
            self.fault(column.name, "integers that fit in 64 bits with a sign", str(found.max()))
            return False
        object.__setattr__(self.owner, column.name, owned(found, _DTYPES[column.content]))
        return True

    def _fits(self, column: Column) -> bool:
        """Whether the checked array has the column's shape; notes a fault otherwise."""
        found, expected = self.get(column.name).shape, column.shape
        if len(found) == len(expected):
            lengths = tuple(
                [
                    self.axes.setdefault(axis, length) if isinstance(axis, str) else axis
                    for axis, length in zip(expected, found, strict=True)
                ]
            )
            if found == lengths:
                return True
            words = f"shape {lengths}"
        else:
            words = f"{len(expected)} dimension{'s' * (len(expected) != 1)}"
        names = ", ".join(str(axis) for axis in expected)
        self.fault(column.name, f"{words} ({names})", f"shape {found}")
        return False

    def _check(self, column: Column) -> None:
        """Note values of the array that are outside the column's range."""
        if column.content == BOOLEANS:
            return
        values = self.get(column.name)
        where = np.asarray(self.get(column.where)) if column.where else None
        if where is not None and (where.shape != values.shape or where.dtype != np.bool_):
            return
        counted = values if where is None else values[where]
        least, most = column.least, column.most
        if column.into in self.axes:
            most = self.axes[column.into] - 1 + column.beyond
        if column.content == NUMBERS and not np.isfinite(values).all():
            self.wrong(column.name, ~np.isfinite(values), "a finite number")
        elif counted.size and (
            (least is not None and counted.min() < least) or (most is not None and counted.max() > most)
        ):
            broken = np.zeros(values.shape, np.bool_)
            if least is not None:
                broken |= values < least
            if most is not None:
                broken |= values > most
            self.wrong(column.name, broken if where is None else broken & where, _range(column, most))
        elif column.ascending and len(values) > 1 and (values[1:] < values[:-1]).any():
            at = int(np.flatnonzero(values[1:] < values[:-1])[0]) + 1
            self.fault(f"{column.name}[{at}]", f"at least {values[at - 1]}: values ascend", str(values[at]))
        elif column.total and np.abs(counted, dtype=np.float64).sum() >= MOST_TOTAL:
            self.fault(column.name, "amounts that together fit in 64 bits", f"{counted.sum(dtype=np.float64):g} in all")

    def _fault_at(self, name: str, place: str, value: object, expected: str, count: int) -> None:
        """Note a fault of one entry of an array, with the number of others like it."""
        more = f" ({count - 1:,} more like it)" if count > 1 else ""
        self.fault(f"{name}[{place}]", f"{expected}{more}", str(value))


def owned(array: NDArray[Any], dtype: type | None = None) -> NDArray[Any]:
    """The checked array itself where it owns its memory and is read-only, else a read-only copy in row-major order."""
    wanted = array.dtype if dtype is None else np.dtype(dtype)
    if (
        type(array) is np.ndarray
        and array.dtype == wanted
        and array.flags.owndata
        and array.flags.c_contiguous
        and not array.flags.writeable
    ):
        return array
    copy: NDArray[Any] = np.array(array, wanted, order="C", subok=False)
    copy.setflags(write=False)
    return copy


def repeated(parts: Sequence[NDArray[Any]]) -> tuple[int, int] | None:
    """Positions of an array's entry and of a later one that is equal to it in every part; None where all differ."""
    number = numbered(parts)
    if (number[1:] > number[:-1]).all():
        return None
    order = np.argsort(number, kind="stable")
    sorted_ = number[order]
    equal = np.flatnonzero(sorted_[1:] == sorted_[:-1])
    return (int(order[equal[0]]), int(order[equal[0] + 1])) if len(equal) else None


def numbered(parts: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """One number for each entry of several arrays; equal numbers mean equal entries."""
    spans = [(int(part.min()), int(part.max()) - int(part.min()) + 1) for part in parts]
    cells = 1
    for _, span in spans:
        cells *= span
    if cells > MOST_KEY:
        return np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    number = np.zeros(len(parts[0]), np.int64)
    for part, (low, span) in zip(parts, spans, strict=True):
        number = number * span + (part - low)
    return number


def _range(column: Column, most: int | float | None) -> str:
    """Range of an array's values in words, for a fault."""
    if column.into and most is not None:
        none = ", the last for none" if column.beyond else ""
        if most < 0:
            return f"no entries: there are no {column.into.replace('_', ' ')}"
        return f"a position on {column.into}, from 0 to {most}{none}"
    if most is None:
        return f"at least {column.least}"
    if column.least is None:
        return f"at most {most}"
    return f"from {column.least} to {most}"


def scalars(owner: object, fields: Mapping[str, tuple[type, ...]]) -> Iterator[Fault]:
    """Faults of an object's fields that are of none of their types."""
    for name, types in fields.items():
        found = getattr(owner, name)
        if not isinstance(found, types):
            names = " or ".join(one.__name__.replace("NoneType", "None") for one in types)
            yield Fault(name, f"a {names}", value=f"{type(found).__name__} {found!r}"[:80])


def exact_column_sums(amounts: NDArray[np.int64]) -> list[int]:
    """Column sums as Python integers, which do not overflow."""
    high, low = (amounts >> 32).sum(axis=0), (amounts & 0xFFFFFFFF).sum(axis=0)
    return [(upper << 32) + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]
