"""A log of events as text: a line that says the format, then one line of JSON for each event.

    {"format": "mast-opt-log/1", "events": 3}
    {"seq": 1, "at_ms": 0, "event": "Queued", "job": "a"}

Fields with their default are left out. The number of events in the first line, where it is known, shows whether a log
was cut at the end of a line.
"""

import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from mast_opt.core.errors import Fault, InputError, UsageError
from mast_opt.core.wording import did_you_mean, shown
from mast_opt.live.loop.events import EVENTS, FORMAT, Event, Stored

LONGEST_VALUE = 60
"""Characters of a line that a message shows."""
LISTED = 20
"""Faulty lines that are listed; no further line is read after them."""
_ORDER = "no time before that of the line above"


class LogError(InputError):
    """A log with faults; ``faults`` lists them, by line."""

    code = "log"

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("faults in the log:\n" + "\n".join(f"  {fault}" for fault in self.faults))


class _Wrong(Exception):
    """A value that does not fit; the arguments are the name of its field, the value, and what was expected."""


def log_lines(log: Iterable[Stored], events: int | None = None) -> Iterator[str]:
    """The lines of a log of events, each with its end.

    Args:
        log: events in order.
        events: how many there are; None where that is not known yet.
    """
    head: dict[str, object] = {"format": FORMAT}
    if events is not None:
        head["events"] = events
    yield json.dumps(head) + "\n"
    for stored in log:
        yield event_line(stored) + "\n"


def event_line(stored: Stored) -> str:
    """An event as one line of JSON, without the end of the line."""
    event = stored.event
    stated = {"seq": stored.seq, "at_ms": stored.at_ms, "event": type(event).__name__}
    by = {"by": stored.by} if stored.by else {}
    return json.dumps({**stated, **by, **_stated(event)}, allow_nan=False)


def fields_of(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """The fields of an event or command as JSON has them, without those that have their default."""
    return _stated(record)


def event_of(name: str, stated: Mapping[str, Any]) -> Event:
    """The event of that name with these fields; the inverse of ``fields_of``. Raises LogError."""
    cls = EVENTS.get(name)
    if cls is None:
        raise LogError([Fault("log", "the name of an event", value=_shortened(name))])
    return record_of(cls, stated)


_SCALARS = frozenset((str, int, float, bool, type(None)))
RecordT = TypeVar("RecordT")


def record_of(cls: type[RecordT], stated: Mapping[str, Any]) -> RecordT:
    """The event, command or other dataclass with these fields. Raises LogError."""
    try:
        found: RecordT = _filled(cls, stated)
        return found
    except _Wrong as wrong:
        name, value, expected = wrong.args
        at = None if value is None else _shortened(str(value))
        raise LogError([Fault(cls.__name__, expected, column=name or None, value=at)]) from None


def _stated(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """The fields of a dataclass that do not have their default."""
    cls: Any = type(value)
    found = ((name, getattr(value, name), default) for name, _, default in _shape(cls))
    return {name: _plain(item) for name, item, default in found if default is MISSING or item != default}


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a field holds
    """A value of an event's field as JSON has it."""
    if type(value) in _SCALARS:
        return value
    if is_dataclass(value):
        return _stated(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


@cache
def _shape(cls: Any) -> tuple[tuple[str, Callable[[Any, str], Any], Any], ...]:  # noqa: ANN401 - any dataclass
    """Name, reader in a log and default of every field of a class."""
    hints = typing.get_type_hints(cls)
    return tuple((field.name, _reader(hints[field.name]), field.default) for field in fields(cls))


def _reader(hint: Any) -> Callable[[Any, str], Any]:  # noqa: ANN401 - a type
    """A reader of events' fields, which turns a value of JSON into one of this type; it raises _Wrong where that cannot
    be.
    """
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _one_of([_reader(part) for part in inside], " or ".join(map(_words, inside)))
    if origin is tuple:
        return _list_of(_reader(inside[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_of(inside[0], _reader(inside[1]))
    if is_dataclass(hint):
        return lambda value, name: _object(hint, value, name)
    return _scalar(hint)


def _scalar(cls: type[Any]) -> Callable[[Any, str], Any]:
    """A reader of events' fields that are text, numbers, true or false."""

    def read(value: Any, name: str) -> Any:  # noqa: ANN401
        if type(value) is cls or (cls is float and type(value) is int):
            return value
        raise _Wrong(name, value, _words(cls))

    return read


def _list_of(item: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """A reader of events' fields that are lists, which become tuples."""

    def read(value: Any, name: str) -> Any:  # noqa: ANN401
        if not isinstance(value, list):
            raise _Wrong(name, value, "a list")
        return tuple(item(one, name) for one in value)

    return read


def _mapping_of(key: type[Any], item: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """A reader of events' fields that are objects with text or numbers as keys."""

    def read(value: Any, name: str) -> Any:  # noqa: ANN401
        if not isinstance(value, dict) or (key is int and not all(one.isdecimal() and one.isascii() for one in value)):
            raise _Wrong(name, value, "an object" if key is str else "an object with numbers as its keys")
        return {key(one): item(other, name) for one, other in value.items()}

    return read


def _one_of(readers: list[Callable[[Any, str], Any]], expected: str) -> Callable[[Any, str], Any]:
    """A reader of events' fields that may be of several types: the first that takes the value."""

    def read(value: Any, name: str) -> Any:  # noqa: ANN401
        for one in readers:
            try:
                return one(value, name)
            except _Wrong:
                continue
        raise _Wrong(name, value, expected)

    return read


def _object(cls: Any, value: Any, name: str) -> Any:  # noqa: ANN401 - any dataclass
    """A dataclass in an event's field from an object of JSON. Raises _Wrong."""
    if not isinstance(value, dict):
        raise _Wrong(name, value, "an object")
    try:
        return _filled(cls, value)
    except UsageError as error:  # a part of a job that cannot be
        raise _Wrong(name, None, str(error)) from None


def _filled(cls: Any, value: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any dataclass
    """An event or other dataclass with these fields. Raises _Wrong for a field too many, missing or of another type."""
    shape = _shape(cls)
    known = [name for name, _, _ in shape]
    for name in value:
        if name not in known:
            raise _Wrong(name, None, f"no field of this name in {cls.__name__}{did_you_mean(name, known)}")
    found = {}
    for name, read, default in shape:
        if name in value:
            found[name] = read(value[name], name)
        elif default is MISSING:
            raise _Wrong(name, None, f"this field of {cls.__name__}")
    return cls(**found)


def _words(cls: Any) -> str:  # noqa: ANN401 - a type
    """The type of an event's field in words, for messages about a log."""
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}
    return words.get(cls, "an object" if is_dataclass(cls) else "a list or an object")


@dataclass
class _Place:
    """Position up to which a log has been read."""

    seq: int = 0
    at_ms: int | None = None


def read_log(lines: Iterable[str], file: str = "log") -> Iterator[Stored]:
    """The events of a log, one after another.

    Args:
        lines: its lines with their ends, as a file gives them.
        file: what messages call it.

    Raises:
        LogError: no first line with the format, a line that is no event, an unknown event, a number of an event that is
            not the next one, a time before that of the line above, or a log that was cut. Events before the first
            faulty line have been given by then.
    """
    faults: list[Fault] = []
    stated: int | None = None
    place, number = _Place(), 0
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n"):
            faults.append(Fault(file, "the rest of this line: the log was cut", number, value=_shortened(line)))
            break
        if number == 1:
            stated = _stated_events(line, file)
            continue
        try:
            event = _stored(line, place)
        except _Wrong as wrong:
            name, value, expected = wrong.args
            at = name or None
            faults.append(Fault(file, expected, number, at, None if value is None else _shortened(str(value))))
            if len(faults) == LISTED:
                break
            continue
        if not faults:
            yield event
    if number == 0:
        raise LogError([Fault(file, f'a first line with "format": "{FORMAT}"')])
    if not faults and stated is not None and stated != place.seq:
        faults.append(
            Fault(file, f"{stated:,} events, as the first line says; the log was cut", value=f"{place.seq:,}")
        )
    if faults:
        raise LogError(faults)


def _stated_events(line: str, file: str) -> int | None:
    """The number of events that the first line of a log states."""
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise LogError([Fault(file, f'a first line with "format": "{FORMAT}"', 1, value=_shortened(line.strip()))])
    events = head.get("events")
    if events is not None and (type(events) is not int or events < 0):
        raise LogError([Fault(file, "a whole number of events", 1, "events", _shortened(str(events)))])
    return events


def _stored(line: str, place: _Place) -> Stored:
    """The event of a line of a log, which becomes the place. Raises _Wrong."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _Wrong("", line.strip(), "an object of JSON with seq, at_ms and event")
    seq, at_ms, name = found.pop("seq", None), found.pop("at_ms", None), found.pop("event", None)
    if type(seq) is not int or seq != place.seq + 1:
        place.seq += 1
        raise _Wrong("seq", seq, f"{place.seq}, the number of the next event")
    place.seq = seq
    if type(at_ms) is not int:
        raise _Wrong("at_ms", at_ms, "a whole number of ms")
    if place.at_ms is not None and at_ms < place.at_ms:
        raise _Wrong("at_ms", at_ms, f"{_ORDER}, which is {place.at_ms}")
    place.at_ms = at_ms
    cls = EVENTS.get(name) if isinstance(name, str) else None
    if cls is None:
        hint = did_you_mean(name, EVENTS) if isinstance(name, str) else ""
        raise _Wrong("event", name, f"the name of an event, such as {next(iter(EVENTS))}{hint}")
    by = found.pop("by", "")
    if type(by) is not str:
        raise _Wrong("by", by, "text")
    event: Event = _filled(cls, found)
    return Stored(seq, at_ms, event, by)


def _shortened(text: str) -> str:
    """A value of a log's line for a message, cut if it is long."""
    return shown(text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…")
