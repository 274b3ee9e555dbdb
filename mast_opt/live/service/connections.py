"""Connections of the web server: so many, heads of so many bytes, and no waiting for one that says nothing.

Where there are as many connections as there may be, a new one takes the place of one that has not sent a whole request:
the oldest of the client that has the most. So who holds connections open keeps nobody out. An answer that its client
does not read takes memory, so there are few of those, and not for long.
"""

import asyncio
import logging
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_CONNECTIONS = 1000
MOST_HEAD_BYTES = 64 * 2**10
HEAD_S = 10.0
"""Seconds in which the head of a request has to be there, and before it what TLS agrees on."""
MOST_DESCRIPTORS = 65_536
REPEAT_S = 60.0
"""Seconds after which the log says again that the system lacks something."""
MOST_PIPELINED = 32
"""Requests that a connection may send before the one before them is answered."""
MOST_UNREAD, UNREAD_S = 100, 30.0
"""Connections with answers that their clients do not read, and seconds for which each is kept."""


class Room:
    """Connections that there are, and those among them that have not sent a whole request.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        self._most = most
        self._of: Counter[str] = Counter()
        self._idle: dict[LimitedConnection, None] = {}
        self._unread: dict[LimitedConnection, None] = {}

    def enter(self, one: "LimitedConnection") -> bool:
        """Let a connection of the web server in, perhaps in the place of another one; False if there is no room."""
        if self._of.total() >= self._most:
            (most, _), *_ = self._of.most_common(1)
            other = next((idle for idle in self._idle if idle.address == most), None)
            other = other or next(iter(self._idle), None)
            if other is None:
                return False
            self.leave(other)
            other.transport.abort()
        self._of[one.address] += 1
        self._idle[one] = None
        one.counted = True
        return True

    def leave(self, one: "LimitedConnection") -> None:
        """Forget a connection of the web server."""
        self._idle.pop(one, None)
        self._unread.pop(one, None)
        if one.counted:
            one.counted = False
            self._of[one.address] -= 1
            if not self._of[one.address]:
                del self._of[one.address]

    def asks(self, one: "LimitedConnection") -> None:
        """Note that a connection has sent a whole request."""
        self._idle.pop(one, None)

    def rests(self, one: "LimitedConnection") -> None:
        """Note that a connection's request was answered."""
        if one.counted:
            self._idle[one] = None

    def stops_reading(self, one: "LimitedConnection") -> None:
        """Note that a client does not read its answer, and end the oldest connection like that if they are too many."""
        self._unread[one] = None
        if len(self._unread) > MOST_UNREAD:
            next(iter(self._unread)).transport.abort()

    def reads_on(self, one: "LimitedConnection") -> None:
        """Note that a client reads its answer again."""
        self._unread.pop(one, None)


class LimitedConnection(HttpToolsProtocol):
    """A connection within limits; ``limited`` makes the class of a server."""

    room: ClassVar[Room]

    address = ""
    counted = False
    """Whether the room counts it."""
    _head, _in_head, _in_body, _brought_body = 0, False, False, False
    _timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let the connection of the web server in, or end it."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if self.room.enter(self):
            self._wait()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection of the web server that was lost."""
        self.room.leave(self)
        self._go_on()
        self._reads_on()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Stop writing to a client that does not read, and end the connection if that lasts."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(UNREAD_S, self.transport.abort)
        self.room.stops_reading(self)

    def resume_writing(self) -> None:
        """Write to a client that reads again."""
        super().resume_writing()
        self._reads_on()

    def data_received(self, data: bytes) -> None:
        """Read an HTTP request on, up to the most that a head, or what follows a chunked body, may have."""
        self._brought_body = False
        super().data_received(data)
        if self._in_head or (self._in_body and not self._brought_body):
            self._head += len(data)
            if self._head > MOST_HEAD_BYTES:
                self.transport.abort()
            elif self._in_head and self._timer is None:
                self._wait()

    def on_message_begin(self) -> None:
        """Begin the head of an HTTP request."""
        self._in_head, self._head = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of an HTTP request. What follows a chunked body is none, and is dropped."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin an HTTP request, whose head is there. Raises ConnectionError, which ends the connection, if too many
        others wait for their answers."""
        self._go_on()
        self._in_head, self._in_body, self._head = False, True, 0
        if len(self.pipeline) == MOST_PIPELINED:
            raise ConnectionError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of an HTTP request's body."""
        self._brought_body, self._head = True, 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that an HTTP request is there whole."""
        self._in_body = False
        self.room.asks(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Note that an HTTP request was answered."""
        super().on_response_complete()
        if not self.pipeline:
            self.room.rests(self)

    def _reads_on(self) -> None:
        """Stop the clock of a client that did not read."""
        self.room.reads_on(self)
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _wait(self) -> None:
        """Give the client its time for a head."""
        self._timer = self.loop.call_later(HEAD_S, self.transport.abort)

    def _go_on(self) -> None:
        """Stop the clock of a client that has sent its head in time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def limited(most: int = MOST_CONNECTIONS) -> type[LimitedConnection]:
    """The class of the connections of the service's web server, with a limit on their number."""
    return type("LimitedConnection", (LimitedConnection,), {"room": Room(most)})


def descriptors() -> int:
    """Descriptors that this process may have open, after raising that as far as its limits allow."""
    if sys.platform == "win32":
        return MOST_DESCRIPTORS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < least:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class RateLimitedErrors(logging.Filter):
    """Filter of a log in which what the system lacks stands once a minute: the event loop has a line for each
    connection that it could not take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._next_s = clock, 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record stands in the log of errors."""
        if not isinstance(record.exc_info and record.exc_info[1], OSError):
            return True
        if (now_s := self._clock()) < self._next_s:
            return False
        self._next_s = now_s + REPEAT_S
        return True


class Server(uvicorn.Server):
    """The web server, which waits for what TLS agrees on no longer than for a head."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on the sockets of the web server."""
        if self.config.is_ssl:
            loop = asyncio.get_running_loop()
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=HEAD_S)  # type: ignore[method-assign]
        await super().startup(sockets)
