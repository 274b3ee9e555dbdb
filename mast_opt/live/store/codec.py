"""Events, commands and checks of what is stored."""

import hashlib
import json
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, cast

import msgspec

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import shown
from mast_opt.live.loop.events import EVENTS, Stored
from mast_opt.live.store.errors import CorruptStore
from mast_opt.live.store.schema import LOG_FORMAT

CHAIN_BYTES = 8
START = bytes(CHAIN_BYTES)
"""Chain before the first event."""
dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False).encode
ENCODER = msgspec.json.Encoder()
"""Writes the events."""


def body_of(stored: Stored) -> tuple[str, str | None, str]:
    """Kind, job and body of an event as the store keeps it."""
    event = stored.event
    job = getattr(event, "job", None)
    return type(event).__name__, job, ENCODER.encode(_stated(event)).decode()


@cache
def _decoder(cls: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - any class
    """Decoder of stored events or commands of a class."""
    return msgspec.json.Decoder(cls)


@cache
def _defaults(cls: Any) -> tuple[tuple[str, Any], ...]:  # noqa: ANN401 - any dataclass
    """Name and default of every field of an event's class; the store leaves defaults out."""
    return tuple((field.name, field.default) for field in fields(cls))


def _stated(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any event
    """The fields of an event that do not have their default, and the same of a record in one of them."""
    found, cls = {}, cast(Any, type(record))
    for name, default in _defaults(cls):
        value = getattr(record, name)
        if value is not default and (default is MISSING or value != default):
            found[name] = _stated(value) if is_dataclass(value) else value
    return found


def chained(before: bytes, at_ms: int, kind: str, body: str, by: str | None = None) -> bytes:
    """Next link of the log's chain: it depends on every event before."""
    text = f"{at_ms} {kind} {body} {by}" if by else f"{at_ms} {kind} {body}"
    return hashlib.blake2b(text.encode(), digest_size=CHAIN_BYTES, key=before).digest()


def digest_of(*parts: object) -> bytes:
    """Checksum of a row of the store."""
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=CHAIN_BYTES).digest()


def event_from(row: tuple[int, int, int, str, str, str | None]) -> Stored:
    """The event of a row (seq, at_ms, format, kind, body, by). Raises CorruptStore for one that is none."""
    seq, at_ms, form, kind, body, by = row
    try:
        if form != LOG_FORMAT:
            raise CorruptStore(
                f"event {seq} has format {form}; this version reads format {LOG_FORMAT}: use a later version"
            )
        if kind not in EVENTS:
            raise CorruptStore(f"event {seq} is a {shown(kind)}, which this version does not know: use a later version")
        return Stored(seq, at_ms, _decoder(cast(Any, EVENTS[kind])).decode(body), by or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as error:
        raise CorruptStore(f"event {seq} cannot be read: {shown(str(error))}") from error
