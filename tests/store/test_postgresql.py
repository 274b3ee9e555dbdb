"""The store on a PostgreSQL server: the conformance suite, a server that restarts, and a leader that is paused."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from mast_opt.live.store import postgresql
from mast_opt.live.store.errors import Fenced, StoreError
from mast_opt.live.store.postgresql import PostgresqlDatabase, open_postgresql
from mast_opt.live.store.records import Batch
from mast_opt.live.store.sql_store import SqlStore
from tests.platforms import needs
from tests.store.conformance import Conformance, timers
from tests.store.postgres_server import Server, postgres_server

pytestmark = needs("PostgreSQL")
_COUNT = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def opened(server: Server) -> Iterator[Callable[[], SqlStore]]:
    import psycopg

    schema = f"test_{os.getpid()}_{next(_COUNT)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    stores: list[SqlStore] = []

    def open_one() -> SqlStore:
        stores.append(open_postgresql(f"{server.url}&options=-csearch_path%3D{schema}"))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


class TestPostgresql(Conformance):
    @pytest.fixture
    def opened(self, opened: Callable[[], SqlStore]) -> Callable[[], SqlStore]:
        return opened


def test_a_server_that_restarts_loses_nothing(opened: Callable[[], SqlStore], server: Server) -> None:
    store = opened()
    epoch = store.take_lead("one", 1)
    end = store.append(epoch, Batch(0, timers(1, 10)))
    for mode in ("fast", "immediate"):  # immediate: as if it had crashed
        server.stop(mode)
        with pytest.raises(StoreError):
            store.append(epoch, Batch(end, timers(end + 1, 1)))
        server.start()
        assert store.last_seq() == end
        store.renew_lead(epoch)
        end = store.append(epoch, Batch(end, timers(end + 1, 5)))
    assert list(store.read()) == list(timers(1, 20))


def test_a_lost_connection_gives_the_lead_away(opened: Callable[[], SqlStore]) -> None:
    old, new = opened(), opened()
    first = old.take_lead("old", 1)
    new._db.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
    )  # waits for its end
    second = new.take_lead("new", 1000)
    assert second == first + 1
    with pytest.raises(StoreError):
        old.append(first, Batch(0, timers(1, 1)))  # its connection is gone
    with pytest.raises(Fenced):
        old.append(first, Batch(0, timers(1, 1)))
    assert new.append(second, Batch(0, timers(1, 1))) == 1


def test_a_missing_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no connection"):
        open_postgresql(f"postgresql:///postgres?host={tmp_path}")


def test_a_writer_that_is_paused_in_the_middle_of_its_rows_is_ended(
    opened: Callable[[], SqlStore], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's timeout for idle transactions leaves it alone."""

    monkeypatch.setattr(postgresql, "PATIENCE_S", 1)
    monkeypatch.setattr(postgresql, "_SETTINGS", ("SET lock_timeout = '1s'",))
    paused, other = (cast(PostgresqlDatabase, opened()._db) for _ in range(2))

    def write() -> None:
        with paused.transaction(), paused._connection().cursor() as cursor, cursor.copy(b"COPY commands FROM STDIN"):
            with pytest.raises(StoreError, match="lock timeout"), other.transaction():
                pass
            with other.transaction():
                assert other.execute("SELECT 1") == [(1,)]

    with pytest.raises(StoreError):
        write()
    assert paused._open is not None
    assert paused._open.closed
    with paused.transaction():
        assert paused.execute("SELECT 1") == [(1,)]
