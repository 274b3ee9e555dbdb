"""The engine: decisions become events, a job starts where nobody is any more, and a log leads to the same state."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack

import pytest

from benchmarks.head_of_line import HeadOfLine
from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.commands import Start, Stop
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.events import CorruptLog
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.problems.job_placement.live_fleet.types import Server

ONE = (Server("s1", "east", "east-1", "rack-1", "H100", 8, 0, 0),)
TWO = (*ONE, Server("s2", "west", "west-1", "rack-2", "H100", 8, 0, 0))
WHOLE = JobSpec(tier=1, mgpu=8000, preemptible=True)
SEARCH = JobSpec(tier=1, mgpu=8000, tenant="search")


def state(servers: tuple[Server, ...] = ONE) -> State:
    return State(servers, tiers=(0, 1), replicas={"logs": {"west"}}, placement="best-fit")


def opened(engine: Engine, *events: ev.Event) -> Turn:
    return engine.advance(0, [*engine.state.opening(), *events])


def kinds(turn: Turn) -> list[str]:
    return [type(stored.event).__name__ for stored in turn.events if not isinstance(stored.event, ev.ServerUp)]


class TestTurns:
    def test_job_is_placed_started_and_gone(self) -> None:
        engine = Engine(state(), HeadOfLine())
        turn = opened(engine, ev.Submitted("a", WHOLE))
        assert kinds(turn) == ["Submitted", "Placed"]
        (command,) = turn.commands
        assert isinstance(command, Start)
        assert command.id == "a/1/start"
        assert engine.state.jobs["a"].state is JobState.STARTING
        engine.advance(10, [ev.Started("a", 1)])
        assert engine.state.jobs["a"].queued_ms == 10
        engine.advance(50, [ev.Finished("a", 1)])
        assert engine.state.jobs == {}
        assert engine.state.inventory.used_mgpu == {"east": 0}
        assert engine.state.fleet.running() == ()

    def test_newcomer_starts_when_the_victim_has_stopped(self) -> None:
        engine = Engine(state(), Mast())
        opened(engine, ev.Submitted("old", WHOLE))
        engine.advance(1, [ev.Started("old", 1)])
        turn = engine.advance(5, [ev.Submitted("new", dataclasses.replace(WHOLE, tier=0))])
        assert kinds(turn) == ["Submitted", "Placed", "StopAsked"]
        assert [type(command) for command in turn.commands] == [Stop]
        assert engine.state.jobs["new"].blockers == {"old"}
        turn = engine.advance(9, [ev.Stopped("old", 1, 4, 0)])
        assert [command.id for command in turn.commands] == ["new/1/start"]
        old = engine.state.jobs["old"]
        assert (old.state, old.work_ms, old.attained_mgpu_ms) == (JobState.QUEUED, 4, 4 * 8000)
        turn = engine.advance(20, [ev.Started("new", 1), ev.Finished("new", 1)])
        assert [command.id for command in turn.commands] == ["old/2/start"]

    def test_a_start_that_was_never_sent_is_withdrawn(self) -> None:
        engine = Engine(state(), Mast())
        opened(engine, ev.Submitted("old", WHOLE))
        engine.advance(1, [ev.Started("old", 1)])
        engine.advance(5, [ev.Submitted("new", dataclasses.replace(WHOLE, tier=0))])
        turn = engine.advance(6, [ev.Cancelled("new")])
        assert kinds(turn) == ["Cancelled", "StopAsked", "Stopped"]
        assert "new" not in engine.state.jobs
        turn = engine.advance(9, [ev.Stopped("old", 1, 4, 0)])
        assert [command.id for command in turn.commands] == ["old/2/start"]

    def test_server_that_breaks_returns_its_jobs_to_the_queue(self) -> None:
        engine = Engine(state(TWO), Mast())
        opened(engine, ev.Submitted("a", WHOLE))
        (share,) = engine.state.jobs["a"].shares
        engine.advance(1, [ev.Started("a", 1)])
        turn = engine.advance(7, [ev.ServerDown(share.server), ev.Stopped("a", 1, 0, 6)])
        assert [command.id for command in turn.commands] == ["a/2/start"]
        assert engine.state.jobs["a"].shares[0].server != share.server
        assert sum(engine.state.inventory.supply_mgpu.values()) == 8000
        engine.advance(8, [engine.state.opening()[int(share.server == "s2")]])
        assert sum(engine.state.inventory.supply_mgpu.values()) == 16000

    def test_reports_that_come_twice_or_late_change_nothing(self) -> None:
        engine = Engine(state(), HeadOfLine())
        opened(engine, ev.Submitted("a", WHOLE))
        started = ev.Started("a", 1)
        turn = engine.advance(1, [started, started, ev.Finished("a", 2), ev.Stopped("b", 1, 0, 0)])
        assert kinds(turn) == ["Started"]
        assert engine.dropped == 3

    def test_job_without_its_data_waits_for_a_copy(self) -> None:
        engine = Engine(state(TWO), Mast())
        turn = opened(engine, ev.Submitted("a", dataclasses.replace(WHOLE, datasets=("logs", "images"))))
        refused = turn.events[-1].event
        assert isinstance(refused, ev.Refused)
        assert refused.code == "data"
        turn = engine.advance(5, [ev.CopyEnded("images", "west", whole=False)])
        assert turn.commands == ()
        turn = engine.advance(9, [ev.CopyEnded("images", "west")])
        assert [command.id for command in turn.commands] == ["a/1/start"]
        assert engine.state.jobs["a"].region == "west"

    def test_a_held_job_is_gone_once_it_is_cancelled(self) -> None:
        engine = Engine(state(), Mast())
        opened(engine, ev.Submitted("a", dataclasses.replace(WHOLE, datasets=("images",))))
        assert engine.state.jobs["a"].state is JobState.HELD
        assert kinds(engine.advance(5, [ev.Cancelled("a")])) == ["Cancelled"]
        assert engine.state.jobs == {}

    def test_credit_decides_before_age(self) -> None:
        engine = self._busy()
        waiting = [ev.Submitted("search", SEARCH), ev.Submitted("maps", dataclasses.replace(SEARCH, tenant="maps"))]
        engine.advance(2, waiting)
        turn = engine.advance(9, [ev.Finished("other", 1)])
        assert [command.id for command in turn.commands] == ["maps/1/start"]

    def test_work_over_quota_comes_after_all_tiers(self) -> None:
        engine = self._busy()
        engine.advance(2, [ev.Submitted("more", dataclasses.replace(SEARCH, tenant="ads"))])
        engine.advance(3, [ev.Submitted("search", SEARCH)])
        turn = engine.advance(9, [ev.Finished("other", 1)])
        assert [command.id for command in turn.commands] == ["search/1/start"]
        turn = engine.advance(12, [ev.Finished("first", 1)])
        assert [command.id for command in turn.commands] == ["more/1/start"]

    def test_less_important_work_of_a_tenant_is_over_its_quota_first(self) -> None:
        engine = self._busy()
        engine.advance(2, [ev.Submitted("urgent", dataclasses.replace(SEARCH, tier=0, tenant="ads"))])
        assert not engine.state.jobs["first"].over_quota
        turn = engine.advance(9, [ev.Finished("other", 1)])
        assert [command.id for command in turn.commands] == ["urgent/1/start"]
        assert engine.state.jobs["first"].over_quota
        turn = engine.advance(10, [ev.Submitted("search", SEARCH)])
        assert [command.id for command in turn.commands] == ["first/1/stop"]

    @staticmethod
    def _busy() -> Engine:
        """Both servers are in use, and the tenant ``ads`` uses all of its quota."""
        quotas = {"ads": 8000, "maps": 80_000}
        engine = Engine(State(TWO, tiers=(0, 1, 2), quotas=quotas, placement="best-fit"), Mast())
        opened(engine, ev.Submitted("first", dataclasses.replace(SEARCH, tenant="ads")), ev.Submitted("other", SEARCH))
        engine.advance(1, [ev.Started("first", 1), ev.Started("other", 1)])
        return engine

    def test_policy_may_stop_a_job_for_the_next_one(self) -> None:
        class Rotating(HeadOfLine):
            def decide(self, snapshot: Snapshot, actions: Actions) -> None:
                waiting = [record for record in snapshot.jobs.values() if record.waits]
                running = [record for record in snapshot.jobs.values() if record.state is JobState.RUNNING]
                for record in running if waiting else ():
                    actions.preempt(record.name, "its turn is over")
                super().decide(snapshot, actions)

        engine = Engine(state(), Rotating())
        opened(engine, ev.Submitted("a", WHOLE))
        engine.advance(1, [ev.Started("a", 1)])
        turn = engine.advance(4, [ev.Submitted("b", WHOLE)])
        assert kinds(turn) == ["Submitted", "StopAsked", "Placed"]
        assert [command.id for command in turn.commands] == ["a/1/stop"]
        turn = engine.advance(6, [ev.Stopped("a", 1, 3, 0)])
        assert [command.id for command in turn.commands] == ["b/1/start"]
        with pytest.raises(UsageError, match="only a queued job"):
            Actions(engine.state, engine.record, ExitStack()).place("b")

    def test_ticks_put_decisions_off(self) -> None:
        engine = Engine(state(), HeadOfLine(), tick_ms=10)
        opened(engine)
        turn = engine.advance(3, [ev.Submitted("a", WHOLE)])
        assert kinds(turn) == ["Submitted"]
        assert turn.next_wake_ms == 10
        assert kinds(engine.advance(10, [])) == ["Placed"]

    def test_time_does_not_go_back(self) -> None:
        engine = Engine(state(), HeadOfLine())
        engine.advance(5, [])
        with pytest.raises(UsageError, match="last turn was at 5"):
            engine.advance(4, [])


class TestReplay:
    @pytest.mark.parametrize(
        ("event", "words"),
        [
            (ev.Started("a", 1), "there is no job a"),
            (ev.ServerUp("s1", "east", "east-1", "rack-1", "H100", 8), "in service already"),
            (ev.ServerDown("s9"), "not in service"),
        ],
    )
    def test_event_that_does_not_fit(self, event: ev.Event, words: str) -> None:
        replayed = state()
        replayed.apply(1, 0, replayed.opening()[0])
        with pytest.raises(CorruptLog, match=words):
            replayed.apply(2, 0, event)

    def test_gap_and_backward_time(self) -> None:
        replayed = state()
        with pytest.raises(CorruptLog, match="follows event 0"):
            replayed.apply(2, 0, replayed.opening()[0])
        replayed = state()
        replayed.apply(1, 7, replayed.opening()[0])
        with pytest.raises(CorruptLog, match="lies before 7 ms"):
            replayed.apply(2, 6, ev.Submitted("a", WHOLE))
