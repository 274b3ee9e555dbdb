"""Tables of a store, and how those of an earlier version become those of today."""

from collections.abc import Sequence

LOG_FORMAT = 1
"""Format of the bodies of events that are written; the 1 of ``mast-opt-log/1``."""

MIGRATIONS: Sequence[Sequence[str]] = (
    (
        """CREATE TABLE events (seq BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL, epoch BIGINT NOT NULL,
           format BIGINT NOT NULL, kind TEXT NOT NULL, job TEXT, body TEXT NOT NULL, chain BYTES NOT NULL)""",
        """CREATE TABLE commands (id TEXT PRIMARY KEY, seq BIGINT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
           digest BYTES NOT NULL)""",
        """CREATE TABLE answers (principal TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL,
           status BIGINT NOT NULL, body TEXT NOT NULL, at_ms BIGINT NOT NULL, digest BYTES NOT NULL,
           PRIMARY KEY (principal, key))""",
        """CREATE TABLE snapshots (seq BIGINT PRIMARY KEY, state TEXT NOT NULL, blob BYTES NOT NULL,
           chain BYTES NOT NULL, digest BYTES NOT NULL)""",
        """CREATE TABLE lead (one BIGINT PRIMARY KEY, holder TEXT NOT NULL, epoch BIGINT NOT NULL,
           renewals BIGINT NOT NULL, released BIGINT NOT NULL)""",
        """CREATE TABLE base (one BIGINT PRIMARY KEY, seq BIGINT NOT NULL, chain BYTES NOT NULL)""",
    ),
    ("CREATE INDEX events_by_job ON events (job, seq) WHERE job IS NOT NULL",),
    ("CREATE INDEX answers_by_time ON answers (at_ms)",),
    (
        """CREATE TABLE plans (id TEXT PRIMARY KEY, path TEXT NOT NULL, folder TEXT NOT NULL, checksum TEXT NOT NULL,
           instance TEXT NOT NULL, status TEXT NOT NULL, objective TEXT NOT NULL, bound TEXT, at_ms BIGINT NOT NULL,
           digest BYTES NOT NULL)""",
    ),
    ("ALTER TABLE events ADD COLUMN asked_by TEXT", "CREATE TABLE names (job TEXT PRIMARY KEY)"),
)
"""Statements that lead from each version to the next; BYTES and BIGINT stand for what a database calls them."""

VERSION = len(MIGRATIONS)
