"""Time that passes when nobody has anything to do: an event loop without waiting, without threads, from one seed."""

from __future__ import annotations

import asyncio
import secrets
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio.to_thread
import numpy as np
import pytest


class Clock:
    """Ticks that never go back, and a wall clock that may."""

    def __init__(self) -> None:
        self.ticks_s = 1000.0
        self.now_ms = 10**12

    def go_on(self, seconds: float) -> None:
        self.ticks_s += seconds
        self.now_ms += round(1000 * seconds)


class _Selector(selectors.BaseSelector):
    """Files of this process, looked at without waiting; the clock goes on instead."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._inner = clock, selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = self._inner.select(0)
        if not found and timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        if not found and timeout:
            self._clock.go_on(timeout)
        return found

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a clock of its own. What would run in a thread runs at once."""

    def __init__(self, clock: Clock) -> None:
        self._virtual = clock
        super().__init__(_Selector(clock))
        self.failed: list[str] = []
        self.set_exception_handler(lambda loop, context: self.failed.append(str(context)))

    def time(self) -> float:
        return self._virtual.ticks_s

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except BaseException as error:
            done.set_exception(error)
        return done


@contextmanager
def one_seed(rng: np.random.Generator, clock: Clock) -> Iterator[None]:
    """Names that are drawn come from the seed, pauses of threads take no time, and handlers get no thread."""

    async def at_once(func: Callable[..., Any], *args: Any, **_: Any) -> Any:
        return func(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_hex", lambda size: rng.bytes(size).hex())
        patch.setattr(secrets, "token_bytes", rng.bytes)
        patch.setattr(secrets, "token_urlsafe", lambda size: rng.bytes(size).hex())
        patch.setattr(anyio.to_thread, "run_sync", at_once)
        patch.setattr(time, "sleep", clock.go_on)
        yield
