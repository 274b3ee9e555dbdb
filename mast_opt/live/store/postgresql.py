"""Store on a PostgreSQL server, for services on several machines (extra ``postgresql``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from mast_opt.live.store.database import Row
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.sql_store import SqlStore

if TYPE_CHECKING:
    import psycopg

    Connection: TypeAlias = psycopg.Connection[Any]

PATIENCE_S = 10
"""Seconds that a transaction waits for one of another process, and after which the server ends an idle transaction."""
LEADER, WRITER = 1, 2
"""Second keys of advisory locks; the first key is the hash of the schema's name."""
_SETTINGS = (
    "SET synchronous_commit = on",
    f"SET lock_timeout = '{PATIENCE_S}s'",
    f"SET idle_in_transaction_session_timeout = '{PATIENCE_S}s'",
    "SET client_min_messages = warning",
)


def open_postgresql(url: str) -> SqlStore:
    """Store in the current schema of a database; creates the tables if there are none.

    Args:
        url: as libpq takes it, such as ``postgresql://user@host/name``.

    Raises:
        StoreError: psycopg is missing, or there is no connection.
    """
    return SqlStore(PostgresqlDatabase(url))


class PostgresqlDatabase:
    """Database in PostgreSQL. A lost connection is made again at the next use."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise StoreError("psycopg is not installed; install it with: pip install 'mast-opt[postgresql]'") from error
        self._psycopg = psycopg
        self._url = url
        self._open: Connection | None = None
        self._locked = False
        self._confirmed = 0
        self._connection()

    def _connection(self) -> Connection:
        """Open connection to the PostgreSQL server; reconnects if it was lost."""
        if self._open is None or self._open.closed:
            self._locked = False
            with self._explained("there is no connection"):
                self._open = self._psycopg.connect(self._url, autocommit=True, connect_timeout=PATIENCE_S)
                for setting in _SETTINGS:
                    self._open.execute(setting)
        return self._open

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """PostgreSQL transaction that holds the writer's advisory lock."""
        try:
            with self._explained("nothing was written"), self._connection().transaction():
                self.execute(f"SELECT pg_advisory_xact_lock(hashtext(current_schema()), {WRITER})")
                yield
        except StoreError as error:
            if isinstance(error.__cause__, self._psycopg.errors.LockNotAvailable):
                self._end_silent_writer()
            raise

    def _end_silent_writer(self) -> None:
        """End the session of a writer that has sent nothing for so long in the middle of a COPY, such as a paused
        process: the server's timeout for idle transactions does not count then (PostgreSQL 15)."""
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE granted"
            " AND locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND classid = (hashtext(current_schema())::bigint & 4294967295)::oid AND objsubid = 2"
            f" AND objid = {WRITER} AND wait_event = 'ClientRead' AND state_change < now() - interval '{PATIENCE_S}s'"
        )

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Execute an SQL statement, and return its rows."""
        with self._explained("the statement failed"):
            cursor = self._connection().execute(statement.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description is not None else []

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Insert rows in PostgreSQL into a table with COPY."""
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()
        with (
            self._explained("nothing was written"),
            self._connection().cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def has_table(self, name: str) -> bool:
        """Whether the PostgreSQL database has a table of this name."""
        return bool(self.execute("SELECT 1 WHERE to_regclass(?) IS NOT NULL", (name,)))

    def hold_lock(self) -> bool:
        """Take the leader's advisory lock in PostgreSQL. It is the session's, and ends with it."""
        if not self._locked:
            statement = f"SELECT pg_try_advisory_lock(hashtext(current_schema()), {LEADER})"
            self._locked = bool(self.execute(statement)[0][0])
        return self._locked

    def confirm(self, seq: int) -> None:
        """Remember the event, as long as this process lives: another server that takes over from this one may lack the
        end of the log."""
        self._confirmed = seq

    def confirmed(self) -> int:
        """Number of the last event of the log that this process has written."""
        return self._confirmed

    def left_aside(self) -> list[str]:
        """Return nothing: a PostgreSQL server keeps its own files."""
        return []

    def damage(self) -> str:
        """Return an empty text: the PostgreSQL server's own tools check its files."""
        return ""

    def types(self) -> dict[str, str]:
        """Names of the types that differ in PostgreSQL."""
        return {"BYTES": "BYTEA"}

    def close(self) -> None:
        """Close the connection to the database."""
        if self._open is not None:
            self._open.close()

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Raise errors of PostgreSQL as StoreError, whose message begins with ``what``."""
        try:
            yield
        except self._psycopg.Error as error:
            words = " ".join(str(error).split())
            raise StoreError(f"{what}: {words}") from error
