"""A snapshot by a process of its own, so that nobody who asks the service waits for it.

    MAST_OPT_STATE=FOLDER python -m mast_opt.live.service.snapshot_child EPOCH KEEP_MS

It reads the last snapshot and the events since, and writes the state that they lead to. With KEEP_MS above 0 it then
deletes older events that no snapshot needs, some at a time; the names of their jobs are kept.
"""

import os
import subprocess
import sys
from pathlib import Path

from mast_opt.live.service.restart import opening_of
from mast_opt.live.store.recovery import recovered, snapshot_of
from mast_opt.live.store.sql_store import SqlStore

STATE = "MAST_OPT_STATE"
NICENESS = 10
"""The service comes first."""
SOME = 2000
"""Events that are deleted at a time."""


def opened(state: str) -> SqlStore:
    """The service's store in a folder or at a URL. Raises StoreError."""
    if state.startswith(("postgresql://", "postgres://")):
        from mast_opt.live.store.postgresql import open_postgresql

        return open_postgresql(state)
    from mast_opt.live.store.sqlite import open_sqlite

    return open_sqlite(Path(state))


def begin(state: str, epoch: int, keep_ms: int) -> subprocess.Popen[bytes]:
    """Begin the process that writes the service's snapshot, for the log in a folder or at a URL."""
    command = [sys.executable, "-m", "mast_opt.live.service.snapshot_child", str(epoch), str(keep_ms)]
    return subprocess.Popen(command, env={**os.environ, STATE: state}, start_new_session=True)


def save(store: SqlStore, epoch: int, keep_ms: int) -> None:
    """Write the service's snapshot, and delete old events. Raises Fenced where another process leads by now."""
    state = recovered(store, opening_of(store)).state
    store.save_snapshot(epoch, snapshot_of(state))
    if keep_ms > 0:
        last = min(store.oldest_snapshot(), store.seq_before(state.now_ms - keep_ms))
        for seq in range(store.first_seq() + SOME, last + 1 + SOME, SOME):
            store.retain(epoch, events_from=min(seq, last + 1), answers_from_ms=0)


def main() -> None:
    """Run the process that writes a snapshot of the service's store."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    store = opened(os.environ[STATE])
    try:
        save(store, int(sys.argv[1]), int(sys.argv[2]))
    finally:
        store.close()


if __name__ == "__main__":
    main()
