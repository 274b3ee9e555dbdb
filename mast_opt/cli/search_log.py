"""``--log``: how a solver searches, line by line for people; ``--events FILE``: one JSON line an event."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from mast_opt.core.errors import InputError
from mast_opt.core.solve_result import Event
from mast_opt.core.wording import percent, plain
from mast_opt.planner.io.events import event_line, has_events
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
        """Say one message of a solver's search."""
        if self._say is not None:
            self._say(record.getMessage())

    def __enter__(self) -> "SearchLog":
        if self._say is not None:
            LOG.addHandler(self)
            LOG.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        LOG.removeHandler(self)
        LOG.setLevel(self._level)

    def __call__(self, event: Event) -> None:
        """Say what is known now."""
        if self._say is None or (event.incumbent is None and event.bound is None):
            return
        stage = f"  {event.stage}" if event.stage else ""
        known = f"objective {plain(event.incumbent)}  bound {plain(event.bound)}  gap {percent(event.gap)}"
        self._say(f"{event.elapsed_s:8.2f} s{stage}  {known}")


class EventLog:
    """A context manager to be called with each event; without a file it does nothing.

    Raises:
        InputError: on entering, if something else than an earlier log is there.
        OSError: on entering, if the file cannot be written. A failure later on (a full disk) stops the log, not
            the solve; see ``failure``.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        self.failure: OSError | None = None
        """The error that ended the log early; None if it is complete."""

    def __enter__(self) -> "EventLog":
        if self._path is not None:
            if self._path.is_file() and not has_events(self._path):
                raise InputError(f"{self._path} exists already and is no log of events; choose another path")
            self._file = self._path.open("w", encoding="utf-8", buffering=1)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as failure:
                self.failure = self.failure or failure

    def __call__(self, event: Event) -> None:
        """One more event as a line of the file; after a failure to write, and without a file, nothing."""
        if self._file is None or self.failure is not None:
            return
        try:
            self._file.write(event_line(event) + "\n")
        except OSError as failure:
            self.failure = failure
