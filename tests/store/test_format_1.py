"""Logs and snapshots of format 1, as ``format_1/README.md`` describes them, are still read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mast_opt.live.loop.event_log import read_log
from mast_opt.live.loop.state import State
from mast_opt.live.store.postgresql import open_postgresql
from mast_opt.live.store.recovery import recovered, replay
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import DATABASE, HEAD, open_sqlite
from tests.platforms import needs
from tests.store.postgres_server import postgres_server
from tests.store.test_replay import SERVERS

FOLDER = Path(__file__).parent / "format_1"
NAMES = ("quota-of-a-type", "quota-of-all-types")


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())[name]
    return found


def content(state: State) -> dict[str, Any]:
    return {
        "seq": state.seq,
        "jobs": {record.name: [record.state.value, record.attempt] for record in state.jobs.values()},
        "runs": sorted(state.fleet.running()),
        "up": sorted(state.inventory.up),
        "quota_mgpu": {tenant: quota.nominal for tenant, key, quota, _ in state.quotas.rows() if key is None},
        "typed": sorted(tenant for tenant, key, _, _ in state.quotas.rows() if key is not None),
    }


def check(store: SqlStore, name: str) -> None:
    """The snapshot is of classes that have changed since: the log leads to the same state."""
    facts = expected(name)
    del facts["snapshot_seq"]
    found = recovered(store, lambda: State(SERVERS))
    assert found.snapshot_seq == 0
    assert content(found.state) == facts
    store.check()


@pytest.mark.parametrize("name", NAMES)
def test_log(name: str) -> None:
    state = State(SERVERS)
    with gzip.open(FOLDER / f"{name}.log.gz", "rt", encoding="utf-8") as lines:
        replay(state, read_log(lines))
    facts = expected(name)
    del facts["snapshot_seq"]
    assert content(state) == facts


@pytest.mark.parametrize("name", NAMES)
def test_sqlite(name: str, tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(gzip.decompress((FOLDER / f"{name}.sqlite.gz").read_bytes()))
    (tmp_path / HEAD).write_bytes((FOLDER / f"{name}.head").read_bytes())
    store = open_sqlite(tmp_path)
    check(store, name)
    store.close()


@needs("PostgreSQL")
def test_postgresql() -> None:
    import psycopg

    name = "quota-of-all-types"
    with postgres_server() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(gzip.decompress((FOLDER / f"{name}.postgresql.sql.gz").read_bytes()))
        store = open_postgresql(server.url)
        check(store, name)
        store.close()
