"""Connections to the web server of this process: bytes that come in pieces, late, cut off, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httptools
import uvicorn
from uvicorn.server import ServerState

from mast_opt.live.service.connections import limited


class _Wire(asyncio.Transport):
    """The server's end of a connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str) -> None:
        super().__init__({"peername": (address, 1), "sockname": ("127.0.0.1", 8765)})
        self._loop, self.open = loop, True
        self.protocol: asyncio.Protocol
        self.received = bytearray()
        self.news = asyncio.Event()

    def write(self, data: Any) -> None:
        if self.open:
            self.received += data
            self.news.set()

    def is_closing(self) -> bool:
        return not self.open

    def close(self) -> None:
        if self.open:
            self.open = False
            self.news.set()
            self._loop.call_soon(self.protocol.connection_lost, None)

    abort = close

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...


@dataclass
class Answer:
    """What came back of one request; ``whole`` once it has ended."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    whole: bool = False

    def json(self) -> Any:
        return json.loads(bytes(self.body))


class _Reader:
    """Callbacks of the parser of answers."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def on_header(self, name: bytes, value: bytes) -> None:
        self._answer.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self._answer.body += body

    def on_message_complete(self) -> None:
        self._answer.whole = True


class Network:
    """Connections to one process of the service.

    Args:
        most: connections that the server takes.
    """

    def __init__(self, app: Any, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._config = uvicorn.Config(
            app, http=limited(most), ws="none", log_level="critical", access_log=False, timeout_keep_alive=30
        )
        self._config.load()
        self._protocol: Any = self._config.http_protocol_class
        self._loop, self._state = loop, ServerState()
        self._wires: list[_Wire] = []

    def connect(self, address: str) -> Connection:
        """A connection from an address."""
        protocol = self._protocol(config=self._config, server_state=self._state, app_state={}, _loop=self._loop)
        wire = _Wire(self._loop, address)
        wire.protocol = protocol
        self._wires = [one for one in self._wires if one.open] + [wire]
        protocol.connection_made(wire)
        return Connection(wire)

    def cut(self) -> None:
        """The process is gone: every connection ends."""
        for wire in self._wires:
            wire.close()
        for task in self._state.tasks:
            task.cancel()

    @property
    def room(self) -> Any:
        """Connections that the server counts."""
        return self._protocol.room


class Connection:
    """A client's end of a connection."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    @property
    def open(self) -> bool:
        return self._wire.open

    def cut(self) -> None:
        self._wire.close()

    async def send(self, pieces: Sequence[tuple[bytes, float]]) -> None:
        """Send pieces, with a pause of so many seconds after each."""
        for piece, pause_s in pieces:
            if not self.open:
                return
            self._wire.protocol.data_received(piece)
            if pause_s:
                await asyncio.sleep(pause_s)

    async def answer(self, patience_s: float) -> Answer:
        """What comes within some time; an answer that is not whole if the connection ends before, or nothing comes."""
        found = Answer()
        parser = httptools.HttpResponseParser(_Reader(found))
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while not found.whole:
                    self._wire.news.clear()
                    some, self._wire.received = bytes(self._wire.received), bytearray()
                    if some:
                        parser.feed_data(some)
                        found.status = parser.get_status_code()
                    elif not self.open:
                        break
                    else:
                        await self._wire.news.wait()
        return found


def request_bytes(
    method: str, path: str, headers: Mapping[str, str], body: bytes | None, *, chunks: int = 0
) -> tuple[bytes, bytes]:
    """Head and body of a request; in chunks of so many bytes where that is not 0."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if body is None:
        return "\r\n".join([*lines, "", ""]).encode(), b""
    if not chunks:
        return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode(), body
    parts = [body[at : at + chunks] for at in range(0, len(body), chunks)]
    sent = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    return "\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]).encode(), sent
