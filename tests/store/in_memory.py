"""A store in memory whose database fails and takes its time as a test sets it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import SqliteDatabase


class Unreliable(SqliteDatabase):
    """Commits that fail, before or after the data is there, or take long.

    Args:
        fault: asked at every commit: ``""``, ``before`` or ``after``.
    """

    def __init__(self, fault: Callable[[], str]) -> None:
        self._fault = fault
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._seq = 0

    def _commit(self) -> None:
        fault = self._fault()
        if fault == "before":
            raise sqlite3.OperationalError("disk I/O error")
        super()._commit()
        if fault == "after":
            raise sqlite3.OperationalError("disk I/O error")

    def hold_lock(self) -> bool:
        """The process that led has ended."""
        return True

    def confirm(self, seq: int) -> None:
        """See ``Database``."""
        self._seq = seq

    def confirmed(self) -> int:
        """See ``Database``."""
        return self._seq

    def left_aside(self) -> list[str]:
        """See ``Database``."""
        return []

    def close(self) -> None:
        """What is in memory outlives a process here."""


def store_over(database: Unreliable) -> SqlStore:
    """A store over a database, as a process opens it."""
    return SqlStore(database)
