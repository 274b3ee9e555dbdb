"""The embedded store: a folder with an SQLite database in WAL mode, where a commit is on the disk when it returns."""

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mast_opt.live.store.database import Row
from mast_opt.live.store.errors import CorruptStore, StoreError
from mast_opt.live.store.sql_store import SqlStore

DATABASE, HEAD, LOCK = "mast-opt.sqlite", "head", "leader.lock"
"""Files of a folder: the log; how far it was confirmed; and what the leading process locks."""
BUSY_S = 10.0
"""Seconds that a transaction waits for that of another process."""
_DAMAGE = ("malformed", "not a database", "disk image", "corrupt", "could not decode")


def open_sqlite(folder: Path) -> SqlStore:
    """The store in a folder, which is made if there is none.

    Raises:
        StoreError: it cannot be opened.
        CorruptStore: what is there is not what was written.
    """
    return SqlStore(SqliteDatabase(folder))


class SqliteDatabase:
    """Database in a file of SQLite.

    SQLite takes a damaged end of its write-ahead log for a transaction that was not finished, and leaves it out. The
    file ``head`` says how far the log had come, so that this is noticed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: int | None = None
        self._head: int | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._head = os.open(folder / HEAD, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(f"{folder} cannot be used as a state folder: {error.strerror}") from error
        with _explained(f"{folder / DATABASE} cannot be opened"):
            self._connection = sqlite3.connect(
                folder / DATABASE, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "cell_size_check=ON", "fullfsync=ON"):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
            (folder / DATABASE).chmod(0o600)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """SQLite transaction that holds the only writer's place."""
        with _explained("nothing was written"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._commit()
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _commit(self) -> None:
        """Commit the transaction in SQLite."""
        self._connection.execute("COMMIT")

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Execute an SQL statement, and return its rows."""
        with _explained("the store cannot be read"):
            return self._connection.execute(statement, values).fetchall()

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Insert rows into a table in SQLite."""
        places = ", ".join("?" * len(columns))
        with _explained("nothing was written"):
            self._connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)

    def has_table(self, name: str) -> bool:
        """Whether the SQLite database has a table of this name."""
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def hold_lock(self) -> bool:
        """Take the leader's lock on a file next to the log."""
        import fcntl

        if self._lock is not None:
            return True
        descriptor = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def confirm(self, seq: int) -> None:
        """Write the number of the last event next to the log. It is not flushed: a head that lags behind does no
        harm."""
        text = f"{seq:020d}"
        try:
            assert self._head is not None
            os.pwrite(self._head, f"{text} {zlib.crc32(text.encode()):08x}\n".encode(), 0)
        except OSError as error:
            raise StoreError(f"{self._folder / HEAD} cannot be written: {error.strerror}") from error

    def confirmed(self) -> int:
        """Number of the last event of the log that was confirmed."""
        assert self._head is not None
        found = os.pread(self._head, 64, 0)
        if not found:
            return 0
        text, _, check = found.decode("ascii", "replace").strip().partition(" ")
        return int(text) if text.isdecimal() and check == f"{zlib.crc32(text.encode()):08x}" else 0

    def left_aside(self) -> list[str]:
        """Say that the head is damaged; the log itself is checked as it is read."""
        assert self._head is not None
        found = os.pread(self._head, 64, 0)
        if not found or self.confirmed():
            return []
        kept = self._folder / f"{HEAD}.damaged"
        kept.write_bytes(found)
        os.ftruncate(self._head, 0)
        return [f"{self._folder / HEAD}, now {kept.name}: nobody can say whether the log was longer"]

    def damage(self) -> str:
        """Damage that SQLite's own check finds; empty if there is none."""
        words = str(self.execute("PRAGMA integrity_check(1)")[0][0])
        return "" if words == "ok" else words

    def types(self) -> dict[str, str]:
        """Names of the types that differ in SQLite."""
        return {"BYTES": "BLOB", "BIGINT": "INTEGER"}

    def close(self) -> None:
        """Close the connection to SQLite and its locks."""
        self._connection.close()
        for descriptor in (self._head, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._head = self._lock = None


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Errors of SQLite as those of a store."""
    try:
        yield
    except sqlite3.Error as error:
        words = str(error)
        if any(word in words.lower() for word in _DAMAGE):
            raise CorruptStore(f"the database is damaged ({words}); restore a backup") from error
        raise StoreError(f"{what}: {words}") from error
    except (UnicodeDecodeError, OverflowError) as error:
        raise CorruptStore(f"the database is damaged ({error}); restore a backup") from error
