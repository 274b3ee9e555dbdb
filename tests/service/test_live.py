"""The loop in its thread: what is acknowledged is in the log, whatever the disk and the clock do."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.hosts.protocol import Can
from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Command, Copy, Drop, Move, Start, Stop
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.leading import lead
from mast_opt.live.service.live import Live
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.restart import Reconciliation, opening_of
from mast_opt.live.service.turn_requests import KeyReused, Request, Unavailable
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.records import Batch
from mast_opt.live.store.recovery import recovered
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import SqliteDatabase, open_sqlite
from mast_opt.problems.job_placement.live_fleet.types import Part
from tests.hosts.conformance import resizing
from tests.service.loops import LONG, SERVERS, SHORT, loop, running, submit


def until(true: Callable[[], bool]) -> None:
    for _ in range(20_000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it has not come about")


def check(folder: Path) -> None:
    """The log passes the checker, and snapshot and tail lead to where the whole log leads."""
    store = open_sqlite(folder)
    assert check_log(store.read()) == ()
    opening = opening_of(store)
    with_snapshot = recovered(store, opening)
    assert with_snapshot.snapshot_seq > 0
    store._db.execute("DELETE FROM snapshots")
    assert recovered(store, opening).state.digest() == with_snapshot.state.digest()
    store.close()


def test_jobs_come_run_and_end(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        assert submit(live, "a", "b", spec=SHORT).result() == (201, "accepted,accepted")
        until(lambda: isinstance(store.of_job("b")[-1].event, ev.Finished))
        kinds = [type(stored.event).__name__ for stored in store.of_job("a")]
        assert kinds == ["Submitted", "Placed", "Started", "Finished"]
        assert store.open_commands() == []
    check(tmp_path)


def test_a_name_is_used_once(tmp_path: Path) -> None:
    with running(tmp_path) as (live, _):
        assert submit(live, "a", "b", "a", spec=SHORT).result()[1] == "accepted,accepted,exists"
        until(lambda: not live._engine.state.jobs)
        assert submit(live, "a", "c").result()[1] == "exists,accepted"


def test_a_repeated_request_gets_the_same_answer_once(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        with live._lock:  # so that the first two wait for the same turn
            twins = [submit(live, "a", key="k", digest="1") for _ in range(2)]
        first, second = (one.result() for one in twins)
        assert first == second == (201, "accepted")
        assert submit(live, "a", key="k", digest="1").result() == (201, "accepted")
        with pytest.raises(KeyReused):
            submit(live, "b", key="k", digest="2").result()
        with live._lock:  # another request with the key comes first in the turn
            reused, again = submit(live, "b", key="k", digest="2"), submit(live, "a", key="k", digest="1")
        assert again.result() == (201, "accepted")
        with pytest.raises(KeyReused):
            reused.result()
        assert sum(isinstance(stored.event, ev.Submitted) for stored in store.read()) == 1
    with running(tmp_path) as (live, _):
        assert submit(live, "a", key="k", digest="1").result() == (201, "accepted")


def test_what_ran_when_the_process_ended_runs_again(tmp_path: Path) -> None:
    with running(tmp_path) as (live, _):
        submit(live, *"abcd").result()
        until(lambda: sum(one.state is JobState.RUNNING for one in live._engine.state.jobs.values()) == 3)
    with running(tmp_path) as (live, _):
        until(lambda: sum(one.state is JobState.RUNNING for one in live._engine.state.jobs.values()) == 3)
        attempts = {name: one.attempt for name, one in live._engine.state.jobs.items()}
        assert set(attempts.values()) <= {0, 1, 2}
        assert sum(attempts.values()) == 6
        assert live.epoch == 2
    check(tmp_path)


def test_work_that_nobody_asked_for_is_stopped(tmp_path: Path) -> None:
    stopped = []

    class Busy(SimulatedLiveHost):
        def observe(self) -> set[tuple[str, int]]:
            return {("ghost", 3), *self._host.running()}

        def carry_out(self, now_ms: int, command: Command) -> None:
            if isinstance(command, Stop):
                stopped.append(command.id)

    store = open_sqlite(tmp_path)
    live = loop(store, Busy)
    live.start()
    live.close()
    store.close()
    assert stopped == ["ghost/3/stop"]


def test_work_of_nobody_is_stopped_after_the_second_look_that_finds_it(tmp_path: Path) -> None:
    with running(tmp_path) as (live, _):
        looks = Reconciliation()
        for found, runs in ((), {("ghost", 3)}), ((), set()), ((), {("ghost", 3)}), (("ghost/3/stop",), {("ghost", 3)}):
            asked = looks.look(live._engine.state, runs, ()).commands
            assert tuple(one.id for one in asked) == found


def test_work_that_the_host_has_lost_counts_as_stopped_after_the_second_look(tmp_path: Path) -> None:
    with running(tmp_path) as (live, _):
        submit(live, "a").result()
        until(lambda: live._engine.state.jobs["a"].state is JobState.RUNNING)
        looks, there, gone = Reconciliation(), {("a", 1)}, set[tuple[str, int]]()
        found = [looks.look(live._engine.state, runs, ()).events for runs in (gone, there, gone, gone)]
    assert found == [(), (), (), (ev.Stopped("a", 1, 0, 0),)]


class Failing(SqliteDatabase):
    """A disk that refuses for a while."""

    fails = ""

    def _commit(self) -> None:
        if self.fails == "before":
            raise sqlite3.OperationalError("database or disk is full")
        super()._commit()
        if self.fails == "after":
            self.fails = ""
            raise sqlite3.OperationalError("disk I/O error")


def test_a_full_disk_refuses_and_then_goes_on(tmp_path: Path) -> None:
    database = Failing(tmp_path)
    with running(tmp_path, SqlStore(database)) as (live, store):
        submit(live, "a").result()
        database.fails = "before"
        with pytest.raises((StoreError, Unavailable), match="full"):
            submit(live, "b").result()
        with pytest.raises(Unavailable):
            submit(live, "c").result()
        assert "b" not in [getattr(stored.event, "job", "") for stored in store.read()]
        database.fails = ""
        until(lambda: not live.problem)
        assert submit(live, "b").result() == (201, "accepted")
    check(tmp_path)


def test_a_commit_that_failed_too_late_is_found_again(tmp_path: Path) -> None:
    """The disk has the turn, and says that it failed: the client that repeats gets the answer of the first."""
    database = Failing(tmp_path)
    with running(tmp_path, SqlStore(database)) as (live, store):
        database.fails = "after"
        with pytest.raises(StoreError):
            submit(live, "a", key="k", digest="1").result()
        until(lambda: not live.problem)
        assert submit(live, "a", key="k", digest="1").result() == (201, "accepted")
        until(lambda: live._engine.state.jobs["a"].state is JobState.RUNNING)
        assert sum(isinstance(stored.event, ev.Submitted) for stored in store.read()) == 1
    check(tmp_path)


def test_a_report_outlives_a_turn_that_was_refused(tmp_path: Path) -> None:
    database = Failing(tmp_path)
    with running(tmp_path, SqlStore(database)) as (live, store):
        submit(live, "a", spec=JobSpec(mgpu=8000, duration_ms=300))
        until(lambda: [type(stored.event).__name__ for stored in store.of_job("a")][-1:] == ["Started"])
        database.fails = "before"
        until(lambda: live.problem != "")
        with pytest.raises(Unavailable), live.state():
            raise AssertionError("a state that is not in the log was shown")
        database.fails = ""
        until(lambda: not live.problem)
        until(lambda: "a" not in live._engine.state.jobs)
        kinds = [type(stored.event).__name__ for stored in store.of_job("a")]
        assert kinds == ["Submitted", "Placed", "Started", "Finished"]
    check(tmp_path)


def test_a_clock_that_goes_back_stops_nothing(tmp_path: Path) -> None:
    store, now = open_sqlite(tmp_path), 10**12
    live = Live(store, opening_of(store, SERVERS), Mast, SimulatedLiveHost, clock=lambda: now)
    live.start()
    submit(live, "a").result()
    now -= 3_600_000
    submit(live, "b").result()
    until(lambda: live._engine.state.jobs["b"].state is JobState.RUNNING)
    times = [stored.at_ms for stored in store.read()]
    assert times == sorted(times)
    live.close()
    store.close()


def test_a_leader_that_was_overtaken_says_so(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        submit(live, "a").result()
        store._db.execute("UPDATE lead SET epoch = 7, holder = 'other'")
        with pytest.raises(Unavailable, match="epoch 1 is over"):
            submit(live, "b").result()
        assert "epoch 1 is over" in live.problem


def test_a_second_process_waits_for_the_first(tmp_path: Path) -> None:
    first_store, second_store = open_sqlite(tmp_path), open_sqlite(tmp_path)
    first = loop(first_store)
    first.start()
    submit(first, "a").result()
    second, said, stop = loop(second_store), list[str](), threading.Event()
    thread = threading.Thread(target=lead, args=(second, stop, said.append))
    thread.start()
    until(lambda: bool(said))
    assert "mast-opt leads (epoch 1)" in said[0]
    first.close()
    first_store.close()
    thread.join()
    assert submit(second, "a").result()[1] == "exists"
    assert second.epoch == 2
    second.close()
    second_store.close()


def test_snapshots_are_taken_as_the_log_grows(tmp_path: Path) -> None:
    with running(tmp_path, snapshot_every=20) as (live, store):
        for number in range(12):
            submit(live, f"j{number}", spec=LONG if number % 3 else SHORT).result()
        until(lambda: bool(store.snapshots()))
    check(tmp_path)


def test_jobs_of_several_parts_are_refused_under_a_policy_that_places_none(tmp_path: Path) -> None:
    of_parts = JobSpec(duration_ms=3_600_000, parts=(Part("trainers", 2, 4000), Part("reader", 1, 0, cpu_mcores=1000)))
    with running(tmp_path, policy=resizing) as (live, store):
        with pytest.raises(Problem, match="job b has several parts, and the policy singularity places no") as found:
            submit(live, "b", "a", spec=of_parts).result()
        assert found.value.status == 422
        assert submit(live, "c").result() == (201, "accepted")
        assert {stored.event.job for stored in store.read() if isinstance(stored.event, ev.Submitted)} == {"c"}
    with running(tmp_path) as (live, _):
        assert submit(live, "a", spec=of_parts).result() == (201, "accepted")
    store = open_sqlite(tmp_path)
    with pytest.raises(UsageError, match=r"job a has several parts, .* expected a policy that does"):
        loop(store, policy=resizing).start()
    store.close()


def test_a_new_log_needs_a_fleet(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path)
    with pytest.raises(UsageError, match="--fleet"):
        opening_of(store)
    store.close()


def test_commands_that_the_host_cannot_carry_out_do_not_reach_it(tmp_path: Path) -> None:
    given: list[Command] = []

    class Listed(SimulatedLiveHost):
        def carry_out(self, now_ms: int, command: Command) -> None:
            given.append(command)
            super().carry_out(now_ms, command)

    def respond(verdicts: Sequence[str]) -> tuple[int, str]:
        return 200, ",".join(verdicts)

    store = open_sqlite(tmp_path)
    live = loop(store, Listed)
    live.start()
    events = (ev.DatasetCreated("logs", 1, ("east", "west")), ev.ReplicaDropped("logs", "west"))
    for event in events:
        live.submit(Request((event,), respond, None)).result(10)
    submit(live, "a").result(10)
    live.close()
    assert [type(command) for command in given] == [Start]
    assert [one.kind for one in store.open_commands()] in (["Start"], [])
    store.close()


class Careful(SimulatedLiveHost):
    """Copies data and moves servers when a test lets it finish, and keeps what it was given."""

    can = frozenset(Can)

    def __init__(self, spec_of: Callable[[str], JobSpec]) -> None:
        super().__init__(spec_of)
        self.given: list[Command] = []
        self.done: list[ev.Event] = []

    def carry_out(self, now_ms: int, command: Command) -> None:
        self.given.append(command)

    def reports(self, now_ms: int) -> Sequence[ev.Event]:
        found, self.done = self.done, []
        return found


def asked(live: Live, *events: ev.Event) -> None:
    """Events of a client are in the log, and the loop has given its commands."""
    live.submit(Request(events, lambda verdicts: (200, ""), None))
    assert live.step()


@contextmanager
def stepped(folder: Path) -> Iterator[tuple[Live, Careful, SqlStore]]:
    """A loop that takes a turn when it is asked to, and ends as if it were killed."""
    store = open_sqlite(folder)
    live = loop(store, Careful)
    live.begin()
    assert isinstance(live.host, Careful)
    yield live, live.host, store
    store.close()


def test_copies_and_moves_are_given_again_until_they_are_done(tmp_path: Path) -> None:
    with stepped(tmp_path) as (live, host, store):
        created = [ev.DatasetCreated(name, 1, ("east",)) for name in "de"]
        asked(live, *created, ev.CopyAsked("d", "east", "west", 1), ev.CopyAsked("e", "east", "west", 1))
        asked(live, ev.MoveAsked("s0", "east-2"), ev.MoveAsked("s1", "east-2"))
        first = [one.id for one in host.given]
        assert [type(one) for one in host.given] == [Copy, Copy, Move, Move]
        host.done = [ev.CopyEnded("d", "west")]
        assert live.step()
        asked(live, ev.ServerDown("s1"))
        assert [one.id for one in store.open_commands()] == [first[1], first[2]]
    for _ in range(2):
        with stepped(tmp_path) as (live, host, store):
            assert [one.id for one in host.given] == [first[1], first[2]]
    with stepped(tmp_path) as (live, host, store):
        host.done = [ev.CopyEnded("e", "west", whole=False), ev.ServerMoved("s0", "east", "east-2")]
        assert live.step()
        assert store.open_commands() == []
        asked(live, ev.CopyAsked("e", "east", "west", 1))
        assert len(store.open_commands()) == 1


def test_a_deletion_is_given_again_unless_the_host_has_taken_it_or_the_replica_is_back(tmp_path: Path) -> None:
    with stepped(tmp_path) as (live, host, store):
        asked(live, ev.DatasetCreated("d", 1, ("east", "west")), ev.ReplicaDropped("d", "west"))
        assert [type(one) for one in host.given] == [Drop]
        (kept,) = store.open_commands()
    with stepped(tmp_path) as (live, host, store):  # it ended before the log said so
        assert [one.id for one in host.given] == [kept.id]
        asked(live, ev.DatasetCreated("e", 1, ("east",)))
        assert store.open_commands() == []
    with stepped(tmp_path) as (live, host, store):
        assert host.given == []
        asked(live, ev.CopyAsked("d", "east", "west", 1))
        host.done = [ev.CopyEnded("d", "west")]
        assert live.step()
        store.append(live.epoch, Batch(store.last_seq(), commands=[kept]))
    with stepped(tmp_path) as (live, host, store):
        assert (host.given, store.open_commands()) == ([], [])


def test_what_another_host_cannot_do_is_not_given_again(tmp_path: Path) -> None:
    with stepped(tmp_path) as (live, _, store):
        asked(live, ev.DatasetCreated("d", 1, ("east",)), ev.CopyAsked("d", "east", "west", 1))
        assert len(store.open_commands()) == 1
    with running(tmp_path) as (live, store):
        assert store.open_commands() == []
        assert ("d", "west") in live._engine.state.datasets.copying
