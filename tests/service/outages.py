"""A leader that is paused past its lease while a second process waits, and a PostgreSQL server that restarts or crashes
while clients submit.

    python -m tests.service.outages --times 20 --seed 1
"""

from __future__ import annotations

import argparse
import signal
import sqlite3
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mast_opt.live.store.postgresql import open_postgresql
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import DATABASE, open_sqlite
from tests.platforms import POSTGRESQL
from tests.service.processes import Clients, Service, check
from tests.store.postgres_server import Server, postgres_server

LEASE_S = 2


def opened(state: Path | str) -> SqlStore:
    return open_postgresql(state) if isinstance(state, str) else open_sqlite(state)


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:  # nobody listens
        return 0


def pauses(times: int, seed: int, state: Path | str) -> str:
    """Pause the leader so often until the process that waits leads, and let it go on. Raises AssertionError where the
    paused one writes again, or does not end."""
    rng = np.random.default_rng(seed)
    lease = ("--lease-s", str(LEASE_S))
    leader = Service(state, *lease)
    urls = [leader.url]
    with Clients(urls) as clients:
        for _ in range(times):
            other = Service(state, *lease, waits=True)
            other.announced("Waiting: ")
            time.sleep(float(rng.uniform(0.05, 0.8)))
            pause(leader, state)
            urls.append(other.announced())
            time.sleep(float(rng.uniform(0.05, 0.8)))  # the new one writes
            leader.process.send_signal(signal.SIGCONT)
            assert leader.process.wait() == 1, "a leader that was overtaken has to end"
            assert leader.process.stderr is not None
            assert "is over" in leader.process.stderr.read()
            leader.process.stderr.close()
            leader = other
        time.sleep(1)
    assert leader.end(signal.SIGTERM) == 0
    store = opened(state)
    try:
        return f"{times} pauses of the leader: {check(store, clients, range(1, times + 2), times)}"
    finally:
        store.close()


def pause(leader: Service, state: Path | str) -> None:
    """Pause a leader. One that has the lock of an SQLite file keeps it while it is paused, and nobody can write: then
    another moment is tried."""
    for _ in range(1000):
        leader.process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        if isinstance(state, str) or may_write(state):
            return
        leader.process.send_signal(signal.SIGCONT)
        time.sleep(0.01)
    raise AssertionError("the leader always writes")


def may_write(folder: Path) -> bool:
    connection = sqlite3.connect(folder / DATABASE, timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def restarts(times: int, seed: int, server: Server) -> str:
    """Restart the database so often, in turn in good order and as if it had crashed."""
    rng = np.random.default_rng(seed)
    service = Service(server.url)
    with Clients([service.url]) as clients:
        for count in range(times):
            time.sleep(float(rng.uniform(0.05, 0.8)))
            server.stop("immediate" if count % 2 else "fast")
            time.sleep(float(rng.uniform(0.0, 0.5)))
            server.start()
            until(lambda: status_of(service.url + "readyz") == 200)
        time.sleep(1)
    assert service.end(signal.SIGTERM) == 0
    store = opened(server.url)
    try:
        return f"{times} restarts of PostgreSQL: {check(store, clients, [1], times)}"
    finally:
        store.close()


def until(true: Callable[[], bool]) -> None:
    for _ in range(6000):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it has not come about")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("SQLite:", pauses(given.times, given.seed, Path(folder) / "state"))
    if POSTGRESQL is None:
        print("PostgreSQL: there is no server on this machine")
        return
    with postgres_server() as server:
        print("PostgreSQL:", pauses(given.times, given.seed, server.url))
    with postgres_server() as server:
        print("PostgreSQL:", restarts(given.times, given.seed, server))


if __name__ == "__main__":
    main()
