"""Rows that are damaged in PostgreSQL: the service starts, or says what cannot be read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mast_opt.live.service.turn_requests import Unavailable
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.postgresql import open_postgresql
from tests.platforms import needs
from tests.service.loops import running, submit
from tests.service.test_damage import LOG, TABLES, damage_log, damage_row, leave, starts
from tests.service.test_live import until
from tests.store.postgres_server import Server, postgres_server

pytestmark = needs("PostgreSQL")
UNSEEN = [one for one in LOG if "value = 'x'" in one[0] or "its end is lost" in one[1]]
"""A text where PostgreSQL takes only numbers; and a lost end, of which only the process that wrote it can know."""


class Kept:
    """What a service has left in a folder and a database."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server, self._folder, self._count = server, folder, 0
        self._make("kept", "template1")
        leave(folder, lambda: open_postgresql(self._url("kept")))

    def copy(self, folder: Path) -> tuple[Path, str]:
        """A copy of the folder, and the URL of one of the database."""
        self._count += 1
        self._make(f"copy{self._count}", "kept")
        return Path(shutil.copytree(self._folder, folder)), self._url(f"copy{self._count}")

    def _url(self, name: str) -> str:
        return self._server.url.replace("/postgres?", f"/{name}?")

    def _make(self, name: str, like: str) -> None:
        import psycopg

        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}".encode())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with postgres_server() as server:
        yield Kept(server, tmp_path_factory.mktemp("kept") / "state")


def test_an_undamaged_database_leaves_nothing_aside(kept: Kept, tmp_path: Path) -> None:
    folder, url = kept.copy(tmp_path / "state")
    assert starts(folder, open_postgresql(url)) == []


@pytest.mark.parametrize("how", ["gone", "value", "digest"])
@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_row_stops_no_service(kept: Kept, tmp_path: Path, table: str, how: str) -> None:
    folder, url = kept.copy(tmp_path / "state")
    store = open_postgresql(url)
    damage_row(store, table, how)
    store.close()
    said = starts(folder, open_postgresql(url))
    if table in ("commands", "plans") and how != "gone":
        assert any(table[:-1] in words for words in said)


@pytest.mark.parametrize(("statement", "words"), [one for one in LOG if one not in UNSEEN])
def test_a_log_that_cannot_be_read_is_refused_by_name(kept: Kept, tmp_path: Path, statement: str, words: str) -> None:
    folder, url = kept.copy(tmp_path / "state")
    store = open_postgresql(url)
    damage_log(store, statement)
    store.close()
    for _ in range(2):
        with pytest.raises(StoreError, match=words):
            starts(folder, open_postgresql(url))


def test_a_server_that_lacks_the_end_of_the_log_is_not_followed(tmp_path: Path) -> None:
    with postgres_server() as server, running(tmp_path, open_postgresql(server.url)) as (live, _):
        assert submit(live, "a").result(60) == (201, "accepted")
        server.stop("immediate")
        server.start()
        other = open_postgresql(server.url)
        other._db.execute("DELETE FROM events WHERE seq > 1")
        other.close()
        with pytest.raises((StoreError, Unavailable)):
            submit(live, "b").result(60)
        until(lambda: "its end is lost; restore a backup" in live.problem)
