"""``--log``: how a solver searches, line by line for people."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType

from mast_opt.core.number_format import percent, plain
from mast_opt.core.solve_result import Event
from mast_opt.problems.search.strategy import LOG


class SearchLog(logging.Handler):
    """Log of a search for people: a context manager that says what mast-opt logs, and to be called with each event.

    Without ``say`` it does nothing.
    """

    def __init__(self, say: Callable[[str], None] | None) -> None:
        super().__init__(logging.INFO)
        self._say = say
        self._level = LOG.level

    def emit(self, record: logging.LogRecord) -> None:
        """Say one message."""
        if self._say is not None:
            self._say(record.getMessage())

    def __enter__(self) -> SearchLog:
        if self._say is not None:
            LOG.addHandler(self)
            LOG.setLevel(logging.INFO)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        LOG.removeHandler(self)
        LOG.setLevel(self._level)

    def __call__(self, event: Event) -> None:
        """Say what is known now."""
        if self._say is None or (event.incumbent is None and event.bound is None):
            return
        stage = f"  {event.stage}" if event.stage else ""
        known = f"objective {plain(event.incumbent)}  bound {plain(event.bound)}  gap {percent(event.gap)}"
        self._say(f"{event.elapsed_s:8.2f} s{stage}  {known}")
