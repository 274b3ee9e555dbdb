"""Code that the handlers of all routes share: authentication, bodies, and an answer once it is in the log."""

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from starlette.requests import Request as Asked
from starlette.responses import Response
from starlette.routing import Route

from mast_opt.live.loop import events as ev
from mast_opt.live.service.access import Access, Principal
from mast_opt.live.service.live import Live
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.requests import MOST_BYTES, NAME
from mast_opt.live.service.streams import Streams
from mast_opt.live.service.turn_requests import Key, KeyReused, Prepare, Request, Respond, Unavailable
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.sql_store import SqlStore

BODY_S = 30.0
"""Seconds in which a body has to be there."""
MOST_BODY_BYTES = 8 * MOST_BYTES
"""Bytes of the bodies of one client that are being read."""
Answered: TypeAlias = Future[tuple[int, str]]
"""Future of the status and body of an answer."""
HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])


@dataclass(frozen=True)
class Endpoint:
    """A method and path under /v1, and what the OpenAPI document says of them; a decorator of their handler."""

    method: str
    path: str
    summary: str
    body: type | None = None
    many: int = 0
    """Most bodies in a list that may come instead of one; 0 for no list."""
    done: tuple[int, ...] = (200,)
    errors: tuple[int, ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    """Parameter of the query → name of its schema."""
    key: bool = False
    """Whether it takes an Idempotency-Key."""

    def __call__(self, handler: HandlerT) -> HandlerT:
        """The handler, which answers here from now on."""
        vars(handler)["endpoint"] = self
        return handler


class Answers:
    """Answers of a loop, handed to the clients that await them; those of one turn wake an event loop once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: dict[asyncio.AbstractEventLoop, list[tuple[Answered, asyncio.Future[tuple[int, str]]]]] = {}

    async def of(self, done: Answered) -> tuple[int, str]:
        """Status and body with which a request is answered. Raises what its future holds."""
        loop = asyncio.get_running_loop()
        waits: asyncio.Future[tuple[int, str]] = loop.create_future()
        done.add_done_callback(lambda _: self._came(loop, done, waits))
        return await waits

    def _came(self, loop: asyncio.AbstractEventLoop, done: Answered, waits: asyncio.Future[tuple[int, str]]) -> None:
        """Note an answer; the first one wakes the event loop."""
        with self._lock:
            ready = self._ready.setdefault(loop, [])
            ready.append((done, waits))
            is_first = len(ready) == 1
        if is_first and not loop.is_closed():
            loop.call_soon_threadsafe(self._hand_out, loop)

    def _hand_out(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the answers that have come to those who await them."""
        with self._lock:
            ready = self._ready.pop(loop)
        for done, waits in ready:
            if waits.done():  # it was cancelled
                continue
            error = done.exception()
            if error is None:
                waits.set_result(done.result())
            else:
                waits.set_exception(error)


class Handlers:
    """Handlers over one loop."""

    @classmethod
    def endpoints(cls) -> Iterator[tuple[str, Endpoint]]:
        """Names of the handlers, and where each answers. Of two paths that match, the first one counts."""
        return ((name, one.endpoint) for name, one in vars(cls).items() if hasattr(one, "endpoint"))

    def routes(self) -> list[Route]:
        """Routes of all handlers."""
        return [Route(at.path, getattr(self, name), methods=[at.method]) for name, at in self.endpoints()]

    def __init__(self, live: Live, store: SqlStore, access: Access, streams: Streams) -> None:
        self.live, self.store, self.access, self.streams = live, store, access, streams
        self._answers = Answers()

    def who(self, asked: Asked, scope: str) -> Principal:
        """Client of a request. Raises Problem: 401, 403, 429."""
        who = self.access.principal(asked.headers.get("authorization"))
        asked.state.by = who.name
        who.check(scope)
        if asked.scope["query_string"]:
            check_query(asked, asked.scope["endpoint"].endpoint.query)
        if scope == "read":
            self.access.begin(who.name)
            asked.state.reads = True
        return who

    def streamed(self, who: Principal, messages: AsyncIterator[str]) -> Response:
        """A stream of messages for a client, for as long as it may read. Raises Problem."""
        return self.streams.answer(who.name, messages, lambda: self.access.stands(who))

    async def submitted(
        self,
        asked: Asked,
        who: Principal,
        body: bytes,
        events: tuple[ev.Event, ...] = (),
        respond: Respond = lambda verdicts: (200, ""),
        prepare: Prepare | None = None,
    ) -> Response:
        """The answer once the events are in the log. Raises Problem."""
        by = f"{who.name} {asked.state.address} {asked.state.request}"
        request = Request(events, respond, key_of(asked, who, body), by, prepare)
        try:
            status, text = await self._answers.of(self.live.submit(request))
        except KeyReused as error:
            raise Problem(422, "key-reused", str(error)) from None
        except (Unavailable, StoreError) as error:
            raise Problem(503, "unavailable", str(error), headers={"Retry-After": "1"}) from None
        return text_of(status, text)

    async def body(self, asked: Asked) -> bytes:
        """The body of a request whose client is known. Raises Problem for one that is too large or too slow."""
        length, held = asked.headers.get("content-length", ""), self.access.body_bytes
        if length.isdecimal() and int(length) > MOST_BYTES:
            raise Problem(413, "too-large", f"the body has {int(length):,} bytes; expected at most {MOST_BYTES:,}")
        parts, size, more, by = list[bytes](), 0, True, str(asked.state.by)
        try:
            async with asyncio.timeout(BODY_S):
                while more:
                    message = await asked.receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "cut", "the connection ended before the body")
                    part, more = message.get("body", b""), message.get("more_body", False)
                    size += len(part)
                    held[by] += len(part)
                    if size > MOST_BYTES:
                        raise Problem(413, "too-large", f"the body has more than {MOST_BYTES:,} bytes")
                    if held[by] > MOST_BODY_BYTES:
                        words = f"{by} sends more than {MOST_BODY_BYTES:,} bytes at once"
                        raise Problem(429, "bodies", words, headers={"Retry-After": "1"})
                    parts.append(part)
        except TimeoutError:
            raise Problem(408, "slow", f"the body was not there after {BODY_S:g} s") from None
        finally:
            held[by] -= size
        return b"".join(parts)

    async def answered_before(self, asked: Asked, who: Principal, body: bytes) -> Response | None:
        """The answer of the first request with this key; None if this is the first. Raises Problem."""
        key = key_of(asked, who, body)
        known = None if key is None else await asyncio.to_thread(self.store.answer, key.principal, key.key)
        if key is None or known is None:
            return None
        if known.digest != key.digest:
            raise Problem(422, "key-reused", f"the key {key.key} came with another request before")
        return text_of(known.status, known.body)


def key_of(asked: Asked, who: Principal, body: bytes) -> Key | None:
    """The name that a client gives its request. Raises Problem."""
    header = asked.headers.get("idempotency-key")
    if header is None:
        return None
    if not NAME.fullmatch(header):
        raise Problem(422, "fault", "Idempotency-Key: expected letters, digits and . _ : / @ -, at most 253")
    digest = hashlib.blake2b(f"{asked.method} {asked.url.path} ".encode() + body, digest_size=16).hexdigest()
    return Key(who.name, header, digest)


def check_query(asked: Asked, known: Collection[str]) -> None:
    """Refuse parameters of a query that would be ignored: those that are not known, or there twice. Raises Problem."""
    given = [name for name, _ in asked.query_params.multi_items()]
    for at, name in enumerate(given):
        if name not in known or name in given[:at]:
            expected = f"each of {', '.join(known)} at most once" if known else "no query"
            raise Problem(422, "fault", f"the query has {name[:30]!r}; expected {expected}")


def number_of(asked: Asked, name: str, default: int, least: int, most: int) -> int:
    """A whole number of a request's query. Raises Problem."""
    text = asked.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal() or not text.isascii() or len(text) > 18 or not least <= int(text) <= most:
        raise Problem(422, "fault", f"{name} is {text[:30]!r}; expected a whole number from {least:,} to {most:,}")
    return int(text)


def json_of(found: object, status: int = 200) -> Response:
    """An HTTP answer with an object as its JSON body."""
    return Response(json.dumps(found, allow_nan=False), status, media_type="application/json")


def text_of(status: int, text: str) -> Response:
    """An HTTP answer whose body is JSON already."""
    kind = "application/json" if status < 400 else "application/problem+json"
    return Response(text, status, media_type=kind)
