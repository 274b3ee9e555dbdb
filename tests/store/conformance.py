"""What every store does."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from mast_opt.live.loop.events import Stored, Submitted, Timer
from mast_opt.live.store.errors import Conflict, CorruptStore, Fenced, LeadHeld, StoreError
from mast_opt.live.store.records import Answer, Batch, OpenCommand, StoredPlan
from mast_opt.live.store.recovery import recovered, snapshot_of
from mast_opt.live.store.schema import VERSION
from mast_opt.live.store.sql_store import SqlStore
from tests.store.logs import batches, log, opening, replayed

ANSWER = Answer("ada", "key-1", "digest", 201, '{"job":"a"}', 5)
STOP = OpenCommand("a/1/stop", "Stop", {"job": "a", "attempt": 1, "why": "for b"})


def timers(first: int, count: int) -> tuple[Stored, ...]:
    return tuple(Stored(seq, 0, Timer(f"t{seq}")) for seq in range(first, first + count))


class Conformance:
    """Subclasses have a fixture ``opened``, which opens the same store again and again; every one of them is closed at
    the end."""

    def run_sql(self, opened: Callable[[], SqlStore], statement: str) -> None:
        store = opened()
        with store._db.transaction():
            store._db.execute(statement)
        store.close()

    # --- the log ---

    def test_what_was_written_is_read(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        for batch in batches(log(), 37):
            assert store.append(epoch, batch) == batch.events[-1].seq
        store.close()
        again = opened()
        assert tuple(again.read()) == log()
        assert tuple(again.read(100, 130)) == log()[100:130]
        assert list(again.read(len(log()))) == []
        assert again.last_seq() == again.check() == len(log())
        assert again.first_seq() == 1

    def test_a_batch_is_written_whole_or_not_at_all(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        store.append(epoch, Batch(0, timers(1, 2), (STOP,), answers=(ANSWER,)))
        twice = Batch(2, timers(3, 1), (STOP,), answers=(dataclasses.replace(ANSWER, key="key-2"),))
        with pytest.raises(StoreError):
            store.append(epoch, twice)
        assert store.last_seq() == 2
        assert store.answer("ada", "key-2") is None
        assert store.append(epoch, Batch(2, timers(3, 1))) == 3

    def test_events_follow_those_that_are_stored(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        store.append(epoch, Batch(0, timers(1, 2)))
        for wrong in (
            Batch(1, timers(2, 1)),
            Batch(3, timers(4, 1)),
            Batch(3, (), answers=(ANSWER,)),
            Batch(2, timers(4, 1)),
            Batch(2, timers(3, 1) * 2),
        ):
            with pytest.raises(Conflict, match="events"):
                store.append(epoch, wrong)
        assert list(store.read()) == list(timers(1, 2))

    def test_appends_of_many_threads_are_all_there(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        turn, next_seq = threading.Lock(), 1

        def one(_: int) -> int:
            nonlocal next_seq
            with turn:
                done = store.append_soon(epoch, Batch(next_seq - 1, timers(next_seq, 3)))
                next_seq += 3
            return done.result()

        with ThreadPoolExecutor(16) as pool:
            ends = list(pool.map(one, range(100)))
        assert sorted(ends) == [3 * number for number in range(1, 101)]
        assert list(store.read()) == list(timers(1, 300))

    def test_one_misfit_in_a_group_harms_no_other(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        with store._mutex:  # so that all three wait for the same commit
            done = [store.append_soon(epoch, Batch(after, timers(after + 1, 1))) for after in (0, 0, 1)]
        assert done[0].result() == 1
        assert isinstance(done[1].exception(), Conflict)
        assert done[2].result() == 2

    def test_events_of_a_job(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        for batch in batches(log(), 500):
            store.append(epoch, batch)
        name = next(stored.event.job for stored in reversed(log()) if hasattr(stored.event, "job"))
        assert store.of_job(name) == [one for one in log() if getattr(one.event, "job", None) == name]
        assert store.known_jobs([name, "nobody"]) == {name}
        assert store.known_jobs([f"job-{number}" for number in range(1000)]) == {
            f"job-{number}" for number in range(70)
        }

    # --- what goes with it ---

    def test_commands_stay_until_they_are_settled(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        store.append(epoch, Batch(0, timers(1, 1), (STOP, dataclasses.replace(STOP, id="b/1/stop"))))
        store.append(epoch, Batch(1, settled=("a/1/stop", "unknown")))
        store.close()
        assert [command.id for command in opened().open_commands()] == ["b/1/stop"]

    def test_answers_are_kept(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        store.append(store.take_lead("one", 1), Batch(0, timers(1, 1), answers=(ANSWER,)))
        store.close()
        assert opened().answer("ada", "key-1") == ANSWER
        assert opened().answer("bob", "key-1") is None

    # --- who leads ---

    def test_two_leaders_never_both_write(self, opened: Callable[[], SqlStore]) -> None:
        old, new = opened(), opened()
        now = 0.0
        new._clock = lambda: now
        first = old.take_lead("old", 1)
        old.append(first, Batch(0, timers(1, 1)))
        with pytest.raises(LeadHeld, match=r"old leads \(epoch 1\)"):
            new.take_lead("new", 10)
        now = 9.0
        old.renew_lead(first)
        with pytest.raises(LeadHeld):
            new.take_lead("new", 10)
        now = 18.0  # by then the old one has been paused for 9 seconds
        with pytest.raises(LeadHeld):
            new.take_lead("new", 10)
        now = 19.0
        second = new.take_lead("new", 10)
        assert second == 2
        new.append(second, Batch(1, timers(2, 1)))
        for late in (Batch(1, timers(2, 1)), Batch(2, timers(3, 1))):
            with pytest.raises(Fenced, match="epoch 1 is over"):
                old.append(first, late)
        for renew in (old.renew_lead, old.release_lead):
            with pytest.raises(Fenced):
                renew(first)
        with pytest.raises(Fenced):
            old.save_snapshot(first, snapshot_of(replayed(())))
        assert list(old.read()) == list(timers(1, 2))

    def test_a_leader_that_was_overtaken_catches_up(self, opened: Callable[[], SqlStore]) -> None:
        old, new = opened(), opened()
        first = old.take_lead("old", 1)
        old.append(first, Batch(0, timers(1, 1)))
        old.release_lead(first)
        second = new.take_lead("new", 10)
        new.append(second, Batch(1, timers(2, 5)))
        new.release_lead(second)
        third = old.take_lead("old", 10)
        assert (third, old.lead().epoch) == (3, 3)  # type: ignore[union-attr]
        assert old.append(third, Batch(6, timers(7, 1))) == 7

    def test_a_leader_that_has_ended_is_followed_at_once(self, opened: Callable[[], SqlStore]) -> None:
        old = opened()
        old.take_lead("old", 1)
        old.close()
        assert opened().take_lead("new", 1000) == 2

    # --- snapshots and retention ---

    def test_plans_are_kept(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        first = StoredPlan("a", "data", "a", "c1", "c2", "FEASIBLE", 0.1 + 0.2, None, 5)
        second = dataclasses.replace(first, id="b", bound=0.25, at_ms=6)
        store.save_plan(epoch, first)
        store.save_plan(epoch, second)
        store.save_plan(epoch, first)
        assert store.plans() == [second, first]
        with pytest.raises(Fenced):
            store.save_plan(epoch + 1, first)
        self.run_sql(opened, "UPDATE plans SET checksum = 'c3' WHERE id = 'b'")
        with pytest.raises(CorruptStore, match="plan b is not what was written"):
            store.check()

    def test_replay_is_snapshot_and_tail(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        live = replayed(log())
        half = len(log()) // 2
        for batch in batches(log(), 100):
            store.append(epoch, batch)
        from_log = recovered(store, opening)
        assert (from_log.snapshot_seq, from_log.events) == (0, len(log()))
        store.save_snapshot(epoch, snapshot_of(replayed(log()[:half])))
        from_snapshot = recovered(store, opening)
        assert (from_snapshot.snapshot_seq, from_snapshot.events) == (half, len(log()) - half)
        assert live.digest() == from_log.state.digest() == from_snapshot.state.digest()

    def test_the_last_two_snapshots_are_kept(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        for batch in batches(log()[:60], 20):
            store.append(epoch, batch)
        for end in (20, 40, 60):
            store.save_snapshot(epoch, snapshot_of(replayed(log()[:end])))
        assert [snapshot.seq for snapshot in store.snapshots()] == [60, 40]

    def test_a_damaged_snapshot_is_passed_over(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        for batch in batches(log()[:60], 20):
            store.append(epoch, batch)
        for end in (20, 40):
            store.save_snapshot(epoch, snapshot_of(replayed(log()[:end])))
        self.run_sql(opened, "UPDATE snapshots SET state = 'other' WHERE seq = 40")
        found = recovered(store, opening)
        assert (found.snapshot_seq, found.state.digest()) == (20, replayed(log()[:60]).digest())

    def test_old_events_go_only_behind_a_snapshot(self, opened: Callable[[], SqlStore]) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        for batch in batches(log()[:60], 20):
            store.append(epoch, batch)
        store.append(epoch, Batch(60, answers=(ANSWER, dataclasses.replace(ANSWER, key="new", at_ms=50))))
        with pytest.raises(StoreError, match="snapshot"):
            store.retain(epoch, events_from=30, answers_from_ms=0)
        for end in (40, 50):
            store.save_snapshot(epoch, snapshot_of(replayed(log()[:end])))
        with pytest.raises(StoreError, match="snapshot"):
            store.retain(epoch, events_from=42, answers_from_ms=0)
        names = {stored.event.job for stored in log()[:60] if isinstance(stored.event, Submitted)}
        assert len(names) > 1
        assert store.retain(epoch, events_from=41, answers_from_ms=6) == {"events": 40, "answers": 1}
        assert store.known_jobs([*names, "other"]) == names
        assert store.answer("ada", "key-1") is None
        assert store.answer("ada", "new") is not None
        assert (store.first_seq(), store.check()) == (41, 20)
        with pytest.raises(StoreError, match="kept from 41 on"):
            list(store.read())
        assert recovered(store, opening).state.digest() == replayed(log()[:60]).digest()
        self.run_sql(opened, "DELETE FROM snapshots")
        with pytest.raises(StoreError, match="no snapshot can be read"):
            recovered(store, opening)

    # --- damage, versions ---

    @pytest.mark.parametrize(
        ("statement", "words"),
        [
            ('UPDATE events SET body = \'{"job":"other"}\' WHERE seq = 7', "event 7 is not what was written"),
            ("UPDATE events SET at_ms = at_ms + 1 WHERE seq = 7", "event 7 is not what was written"),
            ("DELETE FROM events WHERE seq = 7", "event 7 is missing"),
            ("UPDATE commands SET body = '{}'", "command c0 is not what was written"),
            ("UPDATE answers SET status = 200", "the answer to request key-1 is not what was written"),
        ],
    )
    def test_changed_rows_are_refused(self, opened: Callable[[], SqlStore], statement: str, words: str) -> None:
        store = opened()
        epoch = store.take_lead("one", 1)
        (batch,) = batches(log()[:20], 20)
        store.append(epoch, dataclasses.replace(batch, answers=(ANSWER,)))
        assert store.check() == 20
        self.run_sql(opened, statement)
        with pytest.raises(CorruptStore, match=words):
            store.check()

    def test_tables_of_a_later_version_are_refused(self, opened: Callable[[], SqlStore]) -> None:
        opened().close()
        self.run_sql(opened, f"UPDATE meta SET value = {VERSION + 1}")
        with pytest.raises(StoreError, match=f"tables of version {VERSION + 1}"):
            opened()

    def test_tables_of_every_earlier_version_become_those_of_today(
        self, opened: Callable[[], SqlStore], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mast_opt.live.store.sql_store.VERSION", 1)
        old = opened()
        version = old._db.execute("SELECT value FROM meta")
        monkeypatch.undo()
        assert version == [(1,)]
        old.close()
        statements = [
            "DROP INDEX events_by_job",
            "DROP INDEX answers_by_time",
            "DROP TABLE plans",
            "ALTER TABLE events DROP COLUMN asked_by",
            "DROP TABLE names",
            "UPDATE meta SET value = 1",
        ]
        monkeypatch.setattr(SqlStore, "_migrate", lambda self: None)
        for statement in statements:
            self.run_sql(opened, statement)
        monkeypatch.undo()
        store = opened()
        assert store._db.execute("SELECT value FROM meta") == [(VERSION,)]
        epoch = store.take_lead("one", 1)
        (batch,) = batches(log()[:20], 20)
        store.append(epoch, batch)
        assert store.check() == 20
