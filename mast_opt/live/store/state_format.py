"""A state of the loop as bytes, of numbers and texts only, and back.

MAGIC, a fingerprint of the classes, a digest of what follows, the content: JSON, compressed. It has the jobs as
columns, which are read several times as fast as the events that led to them, and the rest as a tree. A state that other
classes wrote is not read: the log leads to the same state.
"""

import base64
import hashlib
import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np

try:
    import msgspec
except ImportError:
    msgspec = None  # type: ignore[assignment]

from mast_opt.core.errors import MastOptError
from mast_opt.live.loop import (
    cluster_use,
    datasets,
    demand,
    fleet_work,
    handovers,
    inventory,
    plans,
    reclaimable,
    tenants,
)
from mast_opt.live.loop.events import PlanStep, Promised
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobClasses, JobRecord
from mast_opt.live.loop.state import State
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.snapshot_format import VERSION as FLEET_VERSION
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Server, Share

MAGIC = b"mast-opt state 6\n"
DIGEST = 16


class OtherState(MastOptError):
    """Bytes that are no state which this version reads."""

    code = "other-state"


def _own(module: object) -> Iterator[type]:
    """The classes of the loop's state that a module defines."""
    name = getattr(module, "__name__", "")
    return (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name)


_PARTS = (
    *(cluster_use, datasets, demand, fleet_work, handovers),
    *(inventory, plans, reclaimable, tenants),
)
CLASSES: Mapping[str, type] = {
    f"{cls.__module__.rpartition('.')[2]}.{cls.__qualname__}": cls
    for cls in (
        *(State, JobSpec, PlanStep, Promised, Job, Part, Server, Share),
        *(cls for part in _PARTS for cls in _own(part)),
    )
}  # fmt: skip
"""Everything that a state may consist of, in addition to what JSON has, to collections and to arrays."""
_NAMES = {cls: name for name, cls in CLASSES.items()}
_PLAIN = (str, int, float, bool, type(None))
_loads: Callable[[bytes], Any] = json.loads if msgspec is None else msgspec.json.decode
_STATES = {state.value: state for state in JobState}


def _slots(cls: type) -> tuple[str, ...]:
    """The attributes of an object of the state, where its class says so."""
    if is_dataclass(cls):
        return tuple(one.name for one in fields(cls))
    return tuple(getattr(cls, "_fields", ()))


def fingerprint() -> bytes:
    """Fingerprint of the state's classes: equal for versions that read each other's states."""
    shape = [(name, _slots(cls)) for name, cls in sorted({**CLASSES, "JobRecord": JobRecord}.items())]
    return hashlib.blake2b(repr((FLEET_VERSION, shape)).encode(), digest_size=DIGEST).digest()


def state_bytes(state: State) -> bytes:
    """A state as bytes."""
    encoder, jobs = _Encoder(), list(state.jobs.values())
    classes, of = _firsts(record.of for record in jobs)
    first, spec = _firsts(record.spec for record in jobs)
    content = {
        "jobs": len(jobs),
        "shared": len(first),
        "specs": encoder.columns(JobSpec, [jobs[at].spec for at in first]),
        "records": encoder.columns(JobRecord, jobs),
        "classes": classes,
        "of": of,
        "spec": spec,
        "rest": encoder.rest(state),
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, check_circular=False)
    packed = zlib.compress(text.encode(), 1)
    return MAGIC + fingerprint() + hashlib.blake2b(packed, digest_size=DIGEST).digest() + packed


def _firsts(values: Iterable[object]) -> tuple[list[int], list[int]]:
    """Places where each object comes first, and for every object which of these is its own."""
    first, numbers, own = list[int](), dict[int, int](), list[int]()
    for at, value in enumerate(values):
        number = numbers.setdefault(id(value), len(first))
        if number == len(first):
            first.append(at)
        own.append(number)
    return first, own


def state_from(data: bytes) -> State:
    """The state. Raises OtherState for bytes of another version, or that were changed."""
    head = len(MAGIC) + DIGEST
    if data[:head] != MAGIC + fingerprint():
        raise OtherState("the snapshot was written by another version of mast-opt; the log leads to the same state")
    packed = data[head + DIGEST :]
    if hashlib.blake2b(packed, digest_size=DIGEST).digest() != data[head : head + DIGEST]:
        raise OtherState("the snapshot is damaged")
    found = _loads(zlib.decompress(packed))
    decoder, classes = _Decoder(), JobClasses()
    specs = list(map(classes.shared, decoder.filled(JobSpec, found["shared"], found["specs"])))
    records = decoder.filled(JobRecord, found["jobs"], found["records"])
    _set(JobRecord, "spec", records, map(specs.__getitem__, found["spec"]))
    known = [classes.of(records[at].name, records[at].spec) for at in found["classes"]]
    _set(JobRecord, "of", records, map(known.__getitem__, found["of"]))
    decoder.jobs = dict(zip(map(attrgetter("name"), records), records))
    state = decoder.decoded(found["rest"])
    if not isinstance(state, State):
        raise OtherState("the snapshot holds no state")
    state.jobs, state._classes = decoder.jobs, classes
    for record in state.jobs.values():
        state.tell_work(record)
    return state


def _set(cls: Any, name: str, objects: list[Any], values: Iterable[Any]) -> None:  # noqa: ANN401 - any class with slots
    """Set an attribute of many objects of a stored state, as fast as Python can."""
    deque(map(getattr(cls, name).__set__, objects, values), 0)


def _columns(cls: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - a dataclass with slots
    """Name and default of every field of the state that is a column."""
    return ((one.name, one.default) for one in fields(cls) if one.name not in ("spec", "of"))


class _Encoder:
    """Objects are numbered as they come; one that comes again is its number. Jobs go by their names."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._alive: list[object] = []

    def columns(self, cls: Any, objects: list[Any]) -> dict[str, Any]:  # noqa: ANN401 - a dataclass with slots
        """Columns of many objects of the state; one of defaults is left out, and of one with few values each is there
        once.
        """
        found: dict[str, Any] = {}
        for name, default in _columns(cls):
            values = [getattr(one, name) for one in objects]
            if all(value == default for value in values):
                continue
            if all(type(value) in _PLAIN for value in values):
                known = {value: number for number, value in enumerate(dict.fromkeys(values))}
                few = 4 * len(known) < len(values)
                found[name] = [list(known), [known[value] for value in values], 0] if few else [values, None, 0]
            else:
                texts: dict[str, int] = {}
                kept, at = list[Any](), list[int]()
                for value in values:
                    count, encoded = len(self._numbers), self.encoded(value)
                    number = texts.setdefault(json.dumps(encoded), len(texts))
                    if number == len(kept):
                        kept.append(encoded)
                    else:  # who reads it back meets its objects once
                        self._forget(count)
                    at.append(number)
                found[name] = [kept, at, 1]
        return found

    def _forget(self, count: int) -> None:
        """Take back the numbers of all objects of the state that the store writes, but the first ones."""
        while len(self._numbers) > count:
            self._numbers.popitem()

    def rest(self, state: State) -> Any:  # noqa: ANN401 - JSON
        """JSON form of a state without its jobs."""
        bare = State.__new__(State)
        vars(bare).update({name: value for name, value in vars(state).items() if name not in ("jobs", "_classes")})
        return self.encoded(bare)

    def encoded(self, value: Any) -> Any:  # noqa: ANN401 - any part of a state
        """JSON form of a value of the state."""
        if type(value) in _PLAIN:
            return value
        if type(value) is JobRecord:
            return ["j", value.name]
        if type(value) is JobState:
            return ["e", value.value]
        if type(value) is tuple:
            return ["t", *map(self.encoded, value)]
        if type(value) is frozenset:
            return ["f", *map(self.encoded, _ordered(value))]
        number = self._numbers.get(id(value))
        if number is not None:
            return ["r", number]
        self._numbers[id(value)] = len(self._numbers)
        self._alive.append(value)
        return self._object(value)

    def _object(self, value: Any) -> Any:  # noqa: ANN401
        """JSON form of an object of the state with members; equal objects are written once."""
        cls = type(value)
        if cls is list:
            return ["l", *map(self.encoded, value)]
        if cls is dict:
            return ["d", *(self.encoded(part) for pair in value.items() for part in pair)]
        if cls is set:
            return ["s", *map(self.encoded, _ordered(value))]
        if cls is deque:
            return ["q", value.maxlen, *map(self.encoded, value)]
        if cls is np.ndarray and not value.dtype.hasobject:
            return ["a", value.dtype.str, list(value.shape), base64.b64encode(value.tobytes()).decode()]
        if cls is Fleet:
            return ["F", base64.b64encode(value.snapshot_bytes()).decode()]
        name = _NAMES.get(cls)
        if name is None:
            raise TypeError(f"a state cannot be written: it holds a {cls.__qualname__}")
        if isinstance(value, tuple):
            return ["n", name, *map(self.encoded, value)]
        return ["o", name, *(part for key, item in _attributes(value) for part in (key, self.encoded(item)))]


def _ordered(values: Iterable[Any]) -> list[Any]:
    """Members of a set of the state, in the order in which the store writes them."""
    return sorted(values, key=repr)


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Name and value of every attribute of an object of the state."""
    slots = _slots(type(value))
    if slots:
        return ((name, getattr(value, name)) for name in slots)
    return iter(vars(value).items())


class _Decoder:
    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self._objects: list[Any] = []
        self._read: Mapping[str, Callable[[list[Any]], Any]] = {
            "e": lambda found: _STATES[found[1]],
            "j": lambda found: self.jobs[found[1]],
            "t": lambda found: tuple(map(self.decoded, found[1:])),
            "f": lambda found: frozenset(map(self.decoded, found[1:])),
            "r": lambda found: self._objects[found[1]],
            "l": lambda found: self._filled([], lambda new: new.extend(map(self.decoded, found[1:]))),
            "s": lambda found: self._filled(set(), lambda new: new.update(map(self.decoded, found[1:]))),
            "d": lambda found: self._filled({}, lambda new: self._pairs(new, found)),
            "q": lambda found: self._filled(
                deque(maxlen=found[1]), lambda new: new.extend(map(self.decoded, found[2:]))
            ),
            "a": self._array,
            "F": lambda found: self._known(Fleet.from_bytes(base64.b64decode(found[1]))),
            "n": self._named,
            "o": self._object,
        }

    def filled(self, cls: Any, count: int, columns: Mapping[str, Any]) -> list[Any]:  # noqa: ANN401
        """Objects of a stored state from their columns."""
        objects = list(map(object.__new__, repeat(cls, count)))
        for name, default in _columns(cls):
            values, at, is_encoded = columns.get(name, (repeat(default), None, 0))
            if is_encoded:
                values = [self.decoded(value) for value in values]
            _set(cls, name, objects, values if at is None else map(values.__getitem__, at))
        return objects

    def decoded(self, found: Any) -> Any:  # noqa: ANN401 - any part of a state
        """Value of the state from its JSON form."""
        return self._read[found[0]](found) if type(found) is list else found

    def _known(self, value: Any) -> Any:  # noqa: ANN401
        """Remember a decoded object of the state, so that later references find it."""
        self._objects.append(value)
        return value

    def _filled(self, new: Any, fill: Callable[[Any], None]) -> Any:  # noqa: ANN401
        """Remember a new object of the state, then fill it, so that it may refer to itself."""
        fill(self._known(new))
        return new

    def _pairs(self, new: dict[Any, Any], found: list[Any]) -> None:
        """Fill a dictionary with decoded pairs of the state."""
        for at in range(1, len(found), 2):
            key = self.decoded(found[at])
            new[key] = self.decoded(found[at + 1])

    def _array(self, found: list[Any]) -> Any:  # noqa: ANN401
        """NumPy array of a stored state."""
        content = np.frombuffer(base64.b64decode(found[3]), np.dtype(found[1]))
        return self._known(content.reshape(found[2]).copy())

    def _named(self, found: list[Any]) -> Any:  # noqa: ANN401
        """Named tuple of a stored state."""
        at = len(self._objects)
        self._objects.append(None)
        self._objects[at] = CLASSES[found[1]](*map(self.decoded, found[2:]))
        return self._objects[at]

    def _object(self, found: list[Any]) -> Any:  # noqa: ANN401
        """Object of a stored state, of a class with fields."""
        cls: Any = CLASSES[found[1]]
        new = self._known(cls.__new__(cls))
        for at in range(2, len(found), 2):
            object.__setattr__(new, found[at], self.decoded(found[at + 1]))
        return new
