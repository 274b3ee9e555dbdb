"""Server-sent events: messages as they come, and a sign of life now and then."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request as Asked
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mast_opt.live.service.problems import Problem

PAUSE_S = 15.0
"""Seconds of silence after which a stream says that it is alive."""
MOST_STREAMS, MOST_OF_CLIENT = 100, 10
ALIVE = ": alive\n\n"


def message(data: object, number: int | None = None, event: str = "") -> str:
    """A message of server-sent events, with its number and the name of its event where there are any."""
    head = f"event: {event}\n" if event else ""
    head += "" if number is None else f"id: {number}\n"
    return f"{head}data: {json.dumps(data, allow_nan=False)}\n\n"


def last_seen(asked: Asked, default: int) -> int:
    """The number of the last message that a client has seen: its ``Last-Event-ID``."""
    header = asked.headers.get("last-event-id", "")
    return int(header) if header.isdecimal() and header.isascii() and len(header) < 18 else default


class _Stream(StreamingResponse):
    """A client's stream, which counts among its open ones from the moment that it is let in."""

    def __init__(self, counts: Counter[str], client: str, messages: AsyncIterator[str]) -> None:
        super().__init__(messages, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._counts, self._client = counts, client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages of a stream, and give back its place."""
        self._counts[self._client] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._counts[self._client] -= 1


class Streams:
    """All streams of a service: not too many, and they end when it does."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._news: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.ended = False

    def answer(self, client: str, messages: AsyncIterator[str], stands: Callable[[], bool]) -> Response:
        """A stream of messages. Raises Problem where there are too many streams.

        Args:
            stands: whether the client's token is still one; without it the stream ends.
        """
        if self._open[client] >= MOST_OF_CLIENT or self._open.total() >= MOST_STREAMS:
            words = f"{client} has {self._open[client]} streams, of {self._open.total()} in all"
            raise Problem(429, "streams", words, headers={"Retry-After": "30"})
        self._loop = asyncio.get_running_loop()
        return _Stream(self._open, client, self._until_ended(messages, stands))

    async def _until_ended(self, messages: AsyncIterator[str], stands: Callable[[], bool]) -> AsyncIterator[str]:
        """Messages of a stream, until the service ends or the client's token is none any more."""
        async for one in messages:
            if not stands():
                return
            yield one
            if self.ended:
                return

    async def pause(self, news: asyncio.Event, seconds: float = PAUSE_S) -> bool:
        """Let a stream wait for news, or for the end of the service; False if neither comes."""
        self._news.add(news)
        try:
            await asyncio.wait_for(news.wait(), 0.0 if self.ended else seconds)
        except TimeoutError:
            return False
        finally:
            self._news.discard(news)
        return True

    def end(self) -> None:
        """End all streams soon; from any thread."""
        self.ended = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        """Wake every stream: there is news."""
        for news in self._news:
            news.set()
