"""Ctrl-C while a solver runs: the first keeps the best plan found, the second leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

from mast_opt.cli.exits import Exit


class Interrupt:
    """While entered, the first SIGINT or SIGTERM sets ``cancel``, and the next one ends the process.

    Args:
        on_first: called with what to tell the user.
        on_second: the last thing that is done before the process ends.
    """

    def __init__(self, on_first: Callable[[str], None], on_second: Callable[[], None]) -> None:
        self.cancel = threading.Event()
        self._on_first = on_first
        self._on_second = on_second
        self._previous: dict[signal.Signals, signal.Handlers] = {}

    @property
    def happened(self) -> bool:
        return self.cancel.is_set()

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)  # type: ignore[assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.cancel.is_set():
            try:
                self._on_second()
            finally:
                os._exit(Exit.INTERRUPTED)
        self.cancel.set()
        self._on_first("Stopping; the best plan so far will be kept. Press Ctrl-C again to leave at once.")
