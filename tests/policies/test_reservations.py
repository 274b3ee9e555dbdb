"""Servers that are reserved for gangs: who keeps away, who may use them meanwhile, and when they are open again."""

from __future__ import annotations

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.job_placement.live_fleet.types import Server
from mast_opt.loop import events as ev
from mast_opt.loop.engine import Engine
from mast_opt.loop.state import State
from mast_opt.policies.mast import Mast, MastParams

HOUR_MS = 3_600_000
SERVERS = tuple(Server(name, "east", "east-1", "rack", "H100", 8, 0, 0) for name in ("s1", "s2"))


class Run:
    """An engine whose jobs start at once."""

    def __init__(self, **params: int | str) -> None:
        self.engine = Engine(State(SERVERS, tiers=(0, 1), placement="best-fit"), Mast(MastParams(**params)))  # type: ignore[arg-type]
        self.engine.advance(0, self.engine.state.opening())

    def submit(self, hour: float, name: str, gpus: int, tier: int = 0) -> tuple[str, ...]:
        spec = ev.JobSpec(tier=tier, mgpu=gpus * 1000, preemptible=tier > 0)
        self.report(hour, ev.Submitted(name, spec))
        return self.servers(name)

    def finish(self, hour: float, name: str) -> None:
        self.report(hour, ev.Finished(name, self.engine.state.jobs[name].attempt))

    def report(self, hour: float, event: ev.Event) -> None:
        events: list[ev.Event] = [event]
        while events:
            turn = self.engine.advance(round(hour * HOUR_MS), events)
            asked = [stored.event for stored in turn.events if isinstance(stored.event, ev.StopAsked)]
            events = [ev.Stopped(one.job, one.attempt, 0, 0) for one in asked]
            for record in self.engine.state.jobs.values():
                if record.shares and record.state.value == "starting":
                    events.append(ev.Started(record.name, record.attempt))

    def servers(self, name: str) -> tuple[str, ...]:
        return tuple(share.server for share in self.engine.state.jobs[name].shares)


def waiting(**params: int | str) -> Run:
    """s1 has 2 GPUs of tier 0, s2 has 4; a gang of 8 waits, since hour 1."""
    run = Run(**params)
    assert run.submit(0, "two", 2) == ("s1",)
    filler = run.submit(0, "six", 6)
    assert filler == ("s1",)
    assert run.submit(0, "four", 4) == ("s2",)
    run.finish(0.5, "six")
    assert run.submit(1, "gang", 8) == ()
    return run


def test_jobs_of_the_same_tier_keep_away_from_reserved_servers() -> None:
    run = waiting(reserve_s=3600)
    run.submit(2.5, "clock", 1, tier=1)  # a turn, in which the gang has waited long enough
    assert run.submit(3, "more", 4) == ("s2",)
    assert run.submit(3, "late", 2) == ()
    run.finish(4, "two")
    assert run.servers("gang") == ("s1",)
    assert run.servers("late") == ()


def test_without_reservations_they_take_what_is_free() -> None:
    run = waiting()
    run.submit(3, "more", 4)
    assert run.submit(3, "late", 2) == ("s1",)
    run.finish(4, "two")
    assert run.servers("gang") == ()


def test_what_the_gang_may_stop_uses_reserved_servers_meanwhile() -> None:
    run = waiting(reserve_s=3600)
    run.submit(2.5, "clock", 1, tier=1)
    run.submit(3, "more", 4)
    assert run.submit(3, "low", 6, tier=1) in ((), ("s1",))
    assert run.submit(3, "lower", 4, tier=1) in ((), ("s1",))
    assert {run.servers("low"), run.servers("lower")} != {()}
    run.finish(4, "two")
    assert run.servers("gang") == ("s1",)


def test_a_cancelled_gang_opens_its_servers() -> None:
    run = waiting(reserve_s=3600)
    run.submit(2.5, "clock", 1, tier=1)
    run.submit(3, "more", 4)
    assert run.submit(3, "late", 2) == ()
    run.report(4, ev.Cancelled("gang"))
    run.submit(5, "another", 1, tier=1)
    assert run.servers("late") == ("s1",)


def test_less_important_gangs_reserve_nothing_unless_they_may() -> None:
    for tier, open_server in ((0, ("s1",)), (1, ())):
        run = Run(reserve_s=3600, reserve_tier=tier)
        run.submit(0, "two", 2)
        run.submit(0, "six", 6)
        run.submit(0, "four", 8)
        run.finish(0.5, "six")
        assert run.submit(1, "gang", 8, tier=1) == ()
        run.submit(2.5, "clock", 7, tier=1)
        assert run.submit(3, "late", 2, tier=1) == open_server


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(UsageError, match="reserve_s is -1"):
        MastParams(reserve_s=-1)
    with pytest.raises(UsageError, match="reserve_s is 60"):
        MastParams(reserve_s=60, runner_up=True)
