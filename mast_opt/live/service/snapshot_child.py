"""A snapshot by a process of its own, so that nobody who asks the service waits for it.

    MAST_OPT_STATE=FOLDER python -m mast_opt.live.service.snapshot_child EPOCH KEEP_MS

It reads the last snapshot and the events since, and writes the state that they lead to. With KEEP_MS above 0 it then
deletes older events that no snapshot needs, some at a time; the names of their jobs are kept.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from mast_opt.live.service.restart import opening_of
from mast_opt.live.store.recovery import recovered, snapshot_of
from mast_opt.live.store.sql_store import SqlStore

STATE, PARENT = "MAST_OPT_STATE", "MAST_OPT_PARENT"
NICENESS = 10
"""The service comes first."""
LOOK_S = 0.5
"""Time between two looks whether the service is still there."""
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
    return begin_child(__name__, (str(epoch), str(keep_ms)), state)


def begin_child(
    module: str, arguments: Sequence[str], state: str, out: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Begin a process of the service that reads its log in a folder or at a URL."""
    environment = {**os.environ, STATE: state, PARENT: str(os.getpid())}
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(command, env=environment, stdout=out, start_new_session=True)


def stay_behind() -> None:
    """Let the service come before this process, and end this process once the service is gone: a service that is killed
    again and again would leave one of each behind every time."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    if PARENT in os.environ:
        threading.Thread(target=_end_with, args=(int(os.environ[PARENT]),), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process once its parent is gone; what it writes is one transaction."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


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
    stay_behind()
    store = opened(os.environ[STATE])
    try:
        save(store, int(sys.argv[1]), int(sys.argv[2]))
    finally:
        store.close()


if __name__ == "__main__":
    main()
