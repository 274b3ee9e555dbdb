"""A store in an SQL database: the log, with further records in the same transactions."""

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future

from mast_opt.live.loop.events import Stored
from mast_opt.live.store.codec import START, body_of, chained, digest_of, dumps, event_from
from mast_opt.live.store.database import Database, Row
from mast_opt.live.store.errors import Conflict, CorruptStore, Fenced, LeadHeld, StoreError
from mast_opt.live.store.records import Answer, Batch, Lead, OpenCommand, Snapshot, StoredPlan
from mast_opt.live.store.schema import LOG_FORMAT, MIGRATIONS, VERSION
from mast_opt.live.store.writer import GroupWriter, Waiting

CHUNK = 5000
"""Events that are read at a time."""
MOST_NAMES = 400
"""Most names in one statement."""
SNAPSHOTS = 2
"""Number of snapshots that are kept."""
PLAN_COLUMNS = ("id", "path", "folder", "checksum", "instance", "status", "objective", "bound", "at_ms", "digest")
EVENT_COLUMNS = ("seq", "at_ms", "epoch", "format", "kind", "job", "body", "chain", "asked_by")
_READ = "seq, at_ms, format, kind, body, asked_by"


class SqlStore:
    """A log, and what belongs to it, in an SQL database. Every method may raise StoreError.

    Args:
        clock: seconds that never go back, to see whether a leader is alive.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = database
        self._clock = clock
        self._mutex = threading.RLock()
        self._tail: tuple[int, bytes] | None = None
        self.left_aside = database.left_aside()
        """Rows and files that are not what was written, and without which the log is whole."""
        self._seen: tuple[int, int, float] | None = None
        """Epoch and renewals of another leader, and since when they are the same."""
        try:
            self._migrate()
            self._check_tail()
        except BaseException:
            database.close()
            raise
        self._writer = GroupWriter(self._commit)

    # --- tables ---

    def _migrate(self) -> None:
        """Bring the tables of the store to this version."""
        with self._mutex, self._db.transaction():
            if not self._db.has_table("meta"):
                self._ddl("CREATE TABLE meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)")
                self._db.insert("meta", ("name", "value"), [("schema", 0)])
            found = self._db.execute("SELECT value FROM meta WHERE name = 'schema'")
            version = found[0][0] if found else None
            if not isinstance(version, int):
                raise CorruptStore("the store does not say which version its tables have; restore a backup")
            if version > VERSION:
                raise StoreError(f"the store has tables of version {version}; this version of mast-opt reads {VERSION}")
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    self._ddl(statement)
            if version < VERSION:
                self._db.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (VERSION,))
            if not version:
                self._db.insert("base", ("one", "seq", "chain"), [(1, 0, START)])

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Rows of an SQL statement; threads take turns."""
        with self._mutex:
            return self._db.execute(statement, values)

    def _ddl(self, statement: str) -> None:
        """Execute a statement that defines tables, with the types of this database."""
        for name, own in self._db.types().items():
            statement = statement.replace(name, own)
        self._db.execute(statement)

    def _check_tail(self) -> None:
        """Check that the log does not end before an event that was confirmed. Raises CorruptStore."""
        confirmed, last = self._db.confirmed(), self.last_seq()
        if last < confirmed:
            raise CorruptStore(
                f"the log ends with event {last}, but event {confirmed} was acknowledged: its end is lost; "
                "restore a backup"
            )

    def _last(self) -> tuple[int, bytes]:
        """Number and chain of the last event."""
        if self._tail is None:
            rows = self._db.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1")
            self._tail = (rows[0][0], bytes(rows[0][1])) if rows else self._base()
        return self._tail

    def _base(self) -> tuple[int, bytes]:
        """Number and chain of the last event that is not kept any more."""
        rows = self._db.execute("SELECT seq, chain FROM base WHERE one = 1")
        if rows:
            return rows[0][0], bytes(rows[0][1])
        first = self._db.execute("SELECT MIN(seq) FROM events")[0][0]
        if first not in (None, 1):
            raise CorruptStore("the store does not say where its log begins; restore a backup")
        return 0, START

    # --- lead ---

    def lead(self) -> Lead | None:
        """The present leader of the log; None if there never was one."""
        rows = self._rows("SELECT holder, epoch, renewals, released FROM lead WHERE one = 1")
        return Lead(rows[0][0], rows[0][1], rows[0][2], bool(rows[0][3])) if rows else None

    def take_lead(self, holder: str, ttl_s: float) -> int:
        """Take the lead of the log, and return its epoch, which every write carries.

        A leader whose process has ended is followed at once; one that cannot be seen to have ended, when it has not
        renewed its lead for ``ttl_s`` seconds by the clock of who asks.

        Raises:
            LeadHeld: another process leads. Ask again.
        """
        with self._mutex, self._db.transaction():
            lead, locked = self.lead(), self._db.hold_lock()
            if lead is None:  # or its row is lost: no epoch comes twice
                ((last,),) = self._db.execute("SELECT COALESCE(MAX(epoch), 0) FROM events")
                row = 1, holder, last + 1, 0, 0
                self._db.insert("lead", ("one", "holder", "epoch", "renewals", "released"), [row])
                return int(last) + 1
            if not (locked or lead.released or self._is_silent(lead, ttl_s)):
                raise LeadHeld(lead.holder, lead.epoch)
            self._db.execute(
                "UPDATE lead SET holder = ?, epoch = ?, renewals = 0, released = 0 WHERE one = 1",
                (holder, lead.epoch + 1),
            )
            self._tail = self._seen = None
            return lead.epoch + 1

    def _is_silent(self, lead: Lead, ttl_s: float) -> bool:
        """Whether the leader of the log has not renewed its lead for so long, by this process' clock."""
        now = self._clock()
        if self._seen is None or self._seen[:2] != (lead.epoch, lead.renewals):
            self._seen = lead.epoch, lead.renewals, now
        return now - self._seen[2] >= ttl_s

    def renew_lead(self, epoch: int) -> None:
        """Renew the lead of the log. Raises Fenced if another process has taken it, CorruptStore if the end of the log
        is lost."""
        with self._mutex, self._db.transaction():
            self._fence(epoch)
            self._tail = None  # it may be another server by now
            self._check_tail()
            self._db.hold_lock()
            self._db.execute("UPDATE lead SET renewals = renewals + 1 WHERE one = 1")

    def release_lead(self, epoch: int) -> None:
        """Release the lead of the log, so that another process can take it at once. Raises Fenced."""
        with self._mutex, self._db.transaction():
            self._fence(epoch)
            self._db.execute("UPDATE lead SET released = 1 WHERE one = 1")

    def _fence(self, epoch: int) -> None:
        """Refuse a write to the store of a leader whose epoch is over. Raises Fenced."""
        lead = self.lead()
        if lead is None or lead.epoch != epoch:
            raise Fenced(f"epoch {epoch} is over; {'nobody' if lead is None else lead.holder} leads")

    # --- writing ---

    def append(self, epoch: int, batch: Batch) -> int:
        """Append a batch, and return the number of the last event once it is committed.

        Raises:
            Fenced: another process leads.
            Conflict: the batch does not follow the last event.
        """
        return self.append_soon(epoch, batch).result()

    def append_soon(self, epoch: int, batch: Batch) -> Future[int]:
        """Append a batch without waiting; batches that come together are committed together."""
        return self._writer.put(epoch, batch)

    def _commit(self, group: Sequence[Waiting]) -> None:
        """Commit to the store a group of batches in one transaction, and complete their futures."""
        with self._mutex:
            failed: dict[int, StoreError] = {}
            ends: dict[int, int] = {}
            try:
                with self._db.transaction():
                    lead, (seq, chain) = self.lead(), self._last()
                    for at, waiting in enumerate(group):
                        wrong = _misfit(waiting, None if lead is None else lead.epoch, seq)
                        if wrong is not None:
                            failed[at] = wrong
                            continue
                        seq, chain = self._write(waiting.epoch, waiting.batch, seq, chain)
                        ends[at] = seq
            except BaseException:
                self._tail = None
                raise
            self._tail = seq, chain
            if ends:
                self._db.confirm(seq)
        for at, waiting in enumerate(group):
            if at in failed:
                waiting.done.set_exception(failed[at])
            else:
                waiting.done.set_result(ends[at])

    def _write(self, epoch: int, batch: Batch, seq: int, chain: bytes) -> tuple[int, bytes]:
        """Write one batch, and return the number and chain of its last event."""
        rows: list[tuple[object, ...]] = []
        for stored in batch.events:
            kind, job, body = body_of(stored)
            chain = chained(chain, stored.at_ms, kind, body, stored.by)
            seq = stored.seq
            rows.append((seq, stored.at_ms, epoch, LOG_FORMAT, kind, job, body, chain, stored.by or None))
        if rows:
            self._db.insert("events", EVENT_COLUMNS, rows)
        if batch.commands:
            given = [(one.id, seq, one.kind, dumps(dict(one.fields))) for one in batch.commands]
            self._db.insert(
                "commands", ("id", "seq", "kind", "body", "digest"), [(*row, digest_of(*row)) for row in given]
            )
        for command in batch.settled:
            self._db.execute("DELETE FROM commands WHERE id = ?", (command,))
        if batch.answers:
            said = [(one.principal, one.key, one.digest, one.status, one.body, one.at_ms) for one in batch.answers]
            columns = ("principal", "key", "request", "status", "body", "at_ms", "digest")
            for one in said:  # the answer that was there is damaged
                if f"the answer to request {one[1]} is not what was written" in self.left_aside:
                    self._db.execute("DELETE FROM answers WHERE principal = ? AND key = ?", one[:2])
            self._db.insert("answers", columns, [(*row, digest_of(*row)) for row in said])
        return seq, chain

    # --- reading ---

    def last_seq(self) -> int:
        """Number of the last event; 0 for an empty log."""
        with self._mutex:
            return self._last()[0]

    def first_seq(self) -> int:
        """Number of the first event of the log that is kept."""
        with self._mutex:
            return self._base()[0] + 1

    def read(self, after_seq: int = 0, to_seq: int | None = None) -> Iterator[Stored]:
        """Read events of the log in order. Raises CorruptStore where the chain is broken."""
        chain = self._chain_at(after_seq)
        at = after_seq
        while True:
            last = at + CHUNK if to_seq is None else min(to_seq, at + CHUNK)
            with self._mutex:
                rows = self._db.execute(
                    f"SELECT {_READ}, chain FROM events WHERE seq > ? AND seq <= ? ORDER BY seq",
                    (at, last),
                )
                end = self.last_seq()
            for row in rows:
                at += 1
                if row[0] != at:
                    raise CorruptStore(f"event {at} is missing; the next one is {row[0]}; restore a backup")
                chain = chained(chain, row[1], row[3], row[4], row[5])
                if bytes(row[6]) != chain:
                    raise CorruptStore(f"event {at} is not what was written; restore a backup")
                yield event_from(row[:6])
            if at < min(last, end):
                raise CorruptStore(f"event {at + 1} is missing; restore a backup")
            if at != last or at == to_seq:
                return

    def _chain_at(self, seq: int) -> bytes:
        """Chain of the log at an event. Raises StoreError if it is not kept or not there."""
        with self._mutex:
            base, chain = self._base()
            if seq == base:
                return chain
            if seq < base:
                raise StoreError(f"events are kept from {base + 1} on; those after {seq} were asked for")
            rows = self._db.execute("SELECT chain FROM events WHERE seq = ?", (seq,))
        if not rows:
            raise StoreError(f"there is no event {seq}")
        return bytes(rows[0][0])

    def of_job(self, job: str) -> list[Stored]:
        """Read the events of a job, in order."""
        rows = self._rows(f"SELECT {_READ} FROM events WHERE job = ? AND job IS NOT NULL ORDER BY seq", (job,))
        return [event_from(row) for row in rows]

    def known_jobs(self, names: Collection[str]) -> set[str]:
        """Names among these of jobs that the log knows."""
        asked = list(names)
        known: set[str] = set()
        for first in range(0, len(asked), MOST_NAMES):
            some = asked[first : first + MOST_NAMES]
            places = ", ".join("?" * len(some))
            rows = self._rows(
                f"SELECT job FROM events WHERE job IN ({places}) AND job IS NOT NULL "
                f"UNION SELECT job FROM names WHERE job IN ({places})",
                [*some, *some],
            )
            known.update(row[0] for row in rows)
        return known

    def open_commands(self) -> list[OpenCommand]:
        """Stored commands without an answer, in order."""
        rows = self._rows("SELECT id, seq, kind, body, digest FROM commands ORDER BY seq, id")
        sound = [row for row in rows if self._is_sound(row, f"command {row[0]}")]
        return [OpenCommand(row[0], row[2], json.loads(row[3])) for row in sound]

    def _is_sound(self, row: Row, what: str) -> bool:
        """Whether a row of the store is what was written; one that is not is left aside."""
        if row[-1] is not None and bytes(row[-1]) == digest_of(*row[:-1]):
            return True
        words = f"{what} is not what was written"
        if words not in self.left_aside:
            self.left_aside.append(words)
        return False

    def answer(self, principal: str, key: str) -> Answer | None:
        """The stored answer to a request; None if it is not known."""
        rows = self._rows(
            "SELECT principal, key, request, status, body, at_ms, digest FROM answers WHERE principal = ? AND key = ?",
            (principal, key),
        )
        if not rows or not self._is_sound(rows[0], f"the answer to request {key}"):
            return None
        return Answer(*rows[0][:6])

    # --- plans, snapshots, retention ---

    def save_plan(self, epoch: int, plan: StoredPlan) -> None:
        """Save the record of a plan; one of the same id is replaced. Raises Fenced."""
        bound = None if plan.bound is None else repr(plan.bound)
        row = (*(getattr(plan, name) for name in PLAN_COLUMNS[:6]), repr(plan.objective), bound, plan.at_ms)
        with self._mutex, self._db.transaction():
            self._fence(epoch)
            self._db.execute("DELETE FROM plans WHERE id = ?", (plan.id,))
            self._db.insert("plans", PLAN_COLUMNS, [(*row, digest_of(*row))])

    def delete_plan(self, epoch: int, name: str) -> None:
        """Delete the stored record of a plan. Raises Fenced."""
        with self._mutex, self._db.transaction():
            self._fence(epoch)
            self._db.execute("DELETE FROM plans WHERE id = ?", (name,))

    def plans(self) -> list[StoredPlan]:
        """Records of every stored plan, the newest first."""
        rows = self._rows(f"SELECT {', '.join(PLAN_COLUMNS)} FROM plans ORDER BY at_ms DESC, id")
        found = []
        for row in rows:
            if not self._is_sound(row, f"plan {row[0]}"):
                continue
            name, path, folder, checksum, instance, status, objective, bound, at_ms, _ = row
            lowest = None if bound is None else float(bound)
            found.append(StoredPlan(name, path, folder, checksum, instance, status, float(objective), lowest, at_ms))
        return found

    def save_snapshot(self, epoch: int, snapshot: Snapshot) -> None:
        """Save the state after an event, and delete all older snapshots but the last."""
        with self._mutex, self._db.transaction():
            self._fence(epoch)
            chain = self._chain_at(snapshot.seq)
            self._db.execute("DELETE FROM snapshots WHERE seq = ?", (snapshot.seq,))
            row = snapshot.seq, snapshot.digest, snapshot.blob, chain
            digest = digest_of(snapshot.seq, snapshot.digest, digest_of(snapshot.blob).hex(), chain.hex())
            self._db.insert("snapshots", ("seq", "state", "blob", "chain", "digest"), [(*row, digest)])
            kept = self._db.execute(f"SELECT seq FROM snapshots ORDER BY seq DESC LIMIT {SNAPSHOTS}")
            self._db.execute("DELETE FROM snapshots WHERE seq < ?", (kept[-1][0],))

    def newest_snapshot(self) -> int:
        """Event after which the newest snapshot was taken; 0 if there is none."""
        return int(self._rows("SELECT COALESCE(MAX(seq), 0) FROM snapshots")[0][0])

    def oldest_snapshot(self) -> int:
        """Event after which the oldest snapshot was taken; 0 if there is none."""
        return int(self._rows("SELECT COALESCE(MIN(seq), 0) FROM snapshots")[0][0])

    def seq_before(self, at_ms: int) -> int:
        """Number of the last event of the log that is kept and lies before a time; 0 if there is none."""
        first, last = self.first_seq(), self.last_seq() + 1
        while first < last:
            middle = (first + last) // 2
            ((found,),) = self._rows("SELECT at_ms FROM events WHERE seq = ?", (middle,))
            first, last = (middle + 1, last) if found < at_ms else (first, middle)
        return first - 1

    def snapshots(self) -> Iterator[Snapshot]:
        """Stored snapshots of the state, the newest first; damaged ones are left out."""
        numbers = self._rows("SELECT seq FROM snapshots ORDER BY seq DESC")
        for number in numbers:
            with self._mutex:
                rows = self._db.execute("SELECT seq, state, blob, chain, digest FROM snapshots WHERE seq = ?", number)
                last = self.last_seq()
            for seq, state, blob, chain, digest in rows:
                blob = bytes(blob)
                sound = bytes(digest) == digest_of(seq, state, digest_of(blob).hex(), bytes(chain).hex())
                if sound and seq <= last and self._chain_at(seq) == bytes(chain):
                    yield Snapshot(seq, state, blob)

    def retain(self, epoch: int, *, events_from: int, answers_from_ms: int) -> Mapping[str, int]:
        """Delete events before one of that number, and answers before that time; return how many of each. The names of
        their jobs stay known.

        Raises:
            StoreError: there is no snapshot from which the events that stay would lead to the state.
        """
        with self._mutex, self._db.transaction():
            self._fence(epoch)
            base, last = self._base()[0], min(events_from - 1, self._last()[0])
            if last > base:
                snapshots = list(self.snapshots())
                if not snapshots or min(snapshot.seq for snapshot in snapshots) < last:
                    raise StoreError(
                        f"not every snapshot holds the state after event {last}, or there is none; save one, then "
                        "delete events"
                    )
                chain = self._chain_at(last)
                self._db.execute("UPDATE base SET seq = ?, chain = ? WHERE one = 1", (last, chain))
                self._db.execute(
                    "INSERT INTO names (job) SELECT job FROM events WHERE seq <= ? AND job IS NOT NULL "
                    "EXCEPT SELECT job FROM names",
                    (last,),
                )
                self._db.execute("DELETE FROM events WHERE seq <= ?", (last,))
            old = self._db.execute("SELECT count(*) FROM answers WHERE at_ms < ?", (answers_from_ms,))[0][0]
            self._db.execute("DELETE FROM answers WHERE at_ms < ?", (answers_from_ms,))
        return {"events": max(0, last - base), "answers": old}

    def check(self) -> int:
        """Check every event, and return their number. Raises CorruptStore."""
        first = self.first_seq()
        count = sum(1 for _ in self.read(first - 1))
        self.open_commands()
        self.plans()
        with self._mutex:
            keys = self._db.execute("SELECT principal, key FROM answers")
            words = self._db.damage()
        if words:
            raise CorruptStore(f"the database is damaged ({words}); restore a backup")
        for principal, key in keys:
            self.answer(principal, key)
        if self.left_aside:
            raise CorruptStore(f"{'; '.join(self.left_aside)}; restore a backup")
        return count

    def close(self) -> None:
        """Close the store after all batches are written."""
        self._writer.close()
        with self._mutex:
            self._db.close()


def _misfit(waiting: Waiting, epoch: int | None, last: int) -> StoreError | None:
    """Reason why a batch may not be written after this event."""
    batch = waiting.batch
    if waiting.epoch != epoch:
        return Fenced(f"epoch {waiting.epoch} is over; epoch {epoch} has begun")
    if batch.after_seq != last:
        return Conflict(f"the events follow event {batch.after_seq}; the last one that is stored is {last}")
    if [stored.seq for stored in batch.events] != list(range(last + 1, last + 1 + len(batch.events))):
        return Conflict(f"the events are not numbered from {last + 1} on without gaps")
    return None
