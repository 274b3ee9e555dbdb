"""``--events FILE``: one JSON line an event, as it happens."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TextIO

from mast_opt.core.errors import InputError
from mast_opt.core.solve_result import Event
from mast_opt.planner.io.events import event_line, has_events


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

    def __enter__(self) -> EventLog:
        if self._path is not None:
            if self._path.is_file() and not has_events(self._path):
                raise InputError(f"{self._path} exists already and is no log of events; choose another path")
            self._file = self._path.open("w", encoding="utf-8", buffering=1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
