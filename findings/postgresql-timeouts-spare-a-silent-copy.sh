#!/usr/bin/env bash
# PostgreSQL: a leader that goes silent in the middle of COPY keeps its locks; neither idle_in_transaction_session_timeout
# nor statement_timeout ends it.
#
# Versions: PostgreSQL 16.2 (pgserver 0.1.4), psycopg 3.2.9, Python 3.11. PostgreSQL 15.18 of Debian bookworm did the same
# for two hours.
#
# Expected: with idle_in_transaction_session_timeout and statement_timeout at 1 s, a client that sends nothing for 5 s
# inside a transaction has lost its session, and an advisory lock of the transaction is free.
# What happens: that is so between two statements. Inside COPY FROM STDIN the session is "active" and waits for its
# client ("ClientRead"); neither timeout counts there, and the lock is kept as long as the connection lives.
# Output seen:
#     silent between statements: lock free True
#     silent inside COPY: lock free False, active ClientRead
#     after pg_terminate_backend: lock free True
# Why a user cares: schedulers elect a leader by a lock in PostgreSQL, and write events in bulk by COPY. A leader that is
# paused (a virtual machine that is moved, a swapped-out process) in that moment blocks every follower although the
# timeouts are set; on one machine TCP keepalives do not help either. Whoever waits for the lock has to end the session.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pgserver==0.1.4 "psycopg[binary]==3.2.9"
"$folder/venv/bin/python" - "$folder/data" 2> /dev/null <<'PYTHON' | tee "$folder/seen"
import sys
import time

import pgserver
import psycopg

server = pgserver.get_server(sys.argv[1])
url = server.get_uri()
TERMINATE = "SELECT pg_terminate_backend(%s)"
with psycopg.connect(url, autocommit=True) as watcher:
    watcher.execute("CREATE TABLE events (seq int)")

    def free(lock):
        found = watcher.execute("SELECT pg_try_advisory_lock(%s)", (lock,)).fetchone()[0]
        watcher.execute("SELECT pg_advisory_unlock_all()")
        return found

    def leader(lock):
        session = psycopg.connect(url, autocommit=True)
        for name in ("idle_in_transaction_session_timeout", "statement_timeout"):
            session.execute(f"SET {name} = '1s'")
        session.execute("BEGIN")
        session.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
        return session

    between = leader(1)
    time.sleep(5)
    print("silent between statements: lock free", free(1))

    inside = leader(2)
    copying = inside.cursor().copy("COPY events FROM STDIN")
    copying.__enter__().write_row((1,))
    time.sleep(5)
    state = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = %s"
    print(f"silent inside COPY: lock free {free(2)},", *watcher.execute(state, (inside.info.backend_pid,)).fetchone())
    watcher.execute(TERMINATE, (inside.info.backend_pid,))
    time.sleep(1)
    print("after pg_terminate_backend: lock free", free(2))
server.cleanup()
sys.stdout.flush()
__import__("os")._exit(0)
PYTHON
grep -qx "silent between statements: lock free True" "$folder/seen"
grep -qx "silent inside COPY: lock free False, active ClientRead" "$folder/seen"
grep -qx "after pg_terminate_backend: lock free True" "$folder/seen"
