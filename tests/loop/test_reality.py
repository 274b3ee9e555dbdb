"""What hosts report against the loop's own will: work that runs already, and capacity that is no longer there."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Start
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.events import CorruptLog
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.store.state_format import state_bytes, state_from
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

SPEC = JobSpec(tier=1, mgpu=8000, preemptible=True)
SMALL = JobSpec(tier=1, mgpu=1000, preemptible=True)


def server(name: str, region: str, gpus: int = 8) -> Server:
    return Server(name, region, f"{region}-1", f"{region}-r", "H100", gpus, 64_000, 512_000)


class Loop:
    def __init__(self, *servers: Server) -> None:
        self.engine = Engine(State(servers), Mast())
        self.log: list[ev.Stored] = []
        self.now = 0
        self.advance(*self.engine.state.opening())

    def advance(self, *events: ev.Event) -> Turn:
        self.now += 10
        turn = self.engine.advance(self.now, events)
        self.log += turn.events
        return turn

    def check(self, opening: State) -> None:
        """The log is sound, and leads to the same state again; so does its snapshot."""
        assert check_log(self.log) == ()
        for stored in self.log:
            opening.apply(stored.seq, stored.at_ms, stored.event)
        opening.now_ms = self.engine.state.now_ms
        assert opening.digest() == self.engine.state.digest()
        assert state_from(state_bytes(opening)).digest() == opening.digest()


def shares(server: str, gpus: int = 8, first: int = 0) -> tuple[Share, ...]:
    return (Share(server, 1, dict.fromkeys(range(first, first + gpus), 1000)),)


def test_work_that_runs_already_is_taken_over() -> None:
    loop = Loop(server("a", "east"), server("b", "west"))
    loop.advance(ev.Submitted("old", SPEC), ev.Adopted("old", 1, "east", "east-1", shares("a")))
    record = loop.engine.state.jobs["old"]
    assert (record.state, record.region, record.attempt) == (JobState.RUNNING, "east", 1)
    turn = loop.advance(ev.Submitted("new", SPEC))
    assert [one.shares[0].server for one in turn.commands if isinstance(one, Start)] == ["b"]
    loop.advance(ev.Adopted("old", 2, "east", "east-1", shares("a")))  # it runs, so this is late
    assert loop.engine.dropped == 1
    loop.advance(ev.Started("new", 1), ev.Finished("old", 1), ev.Finished("new", 1))
    assert not loop.engine.state.jobs
    loop.check(State((server("a", "east"), server("b", "west"))))


def test_reality_wins_even_beyond_what_there_is() -> None:
    loop = Loop(server("a", "east"))
    loop.advance(ev.Submitted("placed", SPEC))
    loop.advance(ev.Submitted("old", SPEC), ev.Adopted("old", 1, "east", "east-1", shares("a")))
    loop.advance(ev.Started("placed", 1), ev.Submitted("next", SMALL))
    assert loop.engine.state.jobs["next"].waits
    loop.advance(ev.Finished("placed", 1))
    assert loop.engine.state.jobs["next"].waits  # the other one still has everything
    turn = loop.advance(ev.Finished("old", 1))
    assert [one.job for one in turn.commands if isinstance(one, Start)] == ["next"]
    loop.check(State((server("a", "east"),)))


def test_a_server_that_shrinks_under_work_takes_none_until_it_has_room() -> None:
    loop = Loop(server("a", "east"))
    loop.advance(*(ev.Submitted(name, SMALL) for name in "xyz"))
    loop.advance(*(ev.Started(name, 1) for name in "xyz"))
    loop.advance(ev.CapacitySet("a", 1, 64_000, 512_000), ev.Submitted("next", SMALL))
    assert loop.engine.state.inventory.supply_mgpu["east"] == 8000
    gpu_of = {name: min(loop.engine.state.jobs[name].shares[0].gpus) for name in "xyz"}
    for name in sorted(gpu_of, key=gpu_of.__getitem__, reverse=True):
        assert loop.engine.state.jobs["next"].waits
        turn = loop.advance(ev.Finished(name, 1))
    assert loop.engine.state.inventory.supply_mgpu["east"] == 1000
    assert [one.job for one in turn.commands if isinstance(one, Start)] == ["next"]
    loop.advance(ev.CapacitySet("a", 1, 64_000, 512_000))  # it has that already
    assert loop.engine.dropped == 1
    loop.advance(ev.Submitted("more", SMALL))
    turn = loop.advance(ev.CapacitySet("a", 2, 64_000, 512_000))
    assert [one.job for one in turn.commands if isinstance(one, Start)] == ["more"]
    loop.check(State((server("a", "east"),)))


def test_the_only_server_comes_back_as_another_one_and_moves() -> None:
    state = State((server("a", "east"),))
    changes = (
        ev.ServerDown("a"),
        ev.ServerUp("a", "west", "east-1", "r", "H100", 4, 64_000, 512_000),
        ev.MoveAsked("a", "west-2"),
        ev.ServerMoved("a", "west", "west-2"),
    )
    for seq, event in enumerate((*state.opening(), *changes), start=1):
        state.apply(seq, 0, event)
    assert state.inventory.supply_mgpu == {"east": 0, "west": 4000}
    assert {one.cluster for one in state.inventory.in_service()} == {"west-2"}


def test_what_cannot_be_is_corrupt() -> None:
    state = State((server("a", "east"),))
    for seq, event in enumerate((*state.opening(), ev.Submitted("x", SPEC)), start=1):
        state.apply(seq, 0, event)
    with pytest.raises(CorruptLog, match="follows attempt 0"):
        state.apply(3, 0, ev.Adopted("x", 2, "east", "east-1", shares("a")))
    state = State((server("a", "east"),))
    with pytest.raises(CorruptLog, match="cannot be resized"):
        state.apply(1, 0, ev.CapacitySet("a", 2))


def test_the_checker_sees_what_is_wrong_with_reports() -> None:
    up = ev.ServerUp("a", "east", "east-1", "r", "H100", 8, 64_000, 512_000)
    adopted = ev.Adopted("x", 1, "east", "east-1", shares("a"))
    log = [
        up,
        ev.Submitted("x", SPEC),
        adopted,
        adopted,
        ev.CapacitySet("b", 1),
        ev.CapacitySet("a", 4, 64_000, 512_000),
    ]
    log += [ev.Submitted("y", SMALL), ev.Placed("y", 1, "east", "east-1", shares("a", 1)), ev.ServerDown("a")]
    found = check_log([ev.Stored(seq, 0, event) for seq, event in enumerate(log, start=1)])
    assert [(one.seq, one.what) for one in found] == [(4, "attempt"), (5, "server"), (8, "capacity")]


@pytest.mark.parametrize("seed", range(6))
def test_random_reports(seed: int) -> None:
    """Servers grow and shrink, work turns up and ends; the log stays sound and can be read again."""
    rng = np.random.default_rng(seed)
    opening = (server("a", "east"), server("b", "west", 16))
    loop = Loop(*opening)
    gpus = {"a": 8, "b": 16}
    for number in range(300):
        events: list[ev.Event] = []
        state = loop.engine.state
        for record in state.jobs.values():
            if record.state is JobState.STARTING and not record.blockers and rng.random() < 0.7:
                events.append(ev.Started(record.name, record.attempt))
            elif record.state is JobState.STOPPING and rng.random() < 0.7:
                events.append(ev.Stopped(record.name, record.attempt, 0, 0))
            elif record.state is JobState.RUNNING and rng.random() < 0.2:
                events.append(ev.Finished(record.name, record.attempt))
        if rng.random() < 0.2:
            name = str(rng.choice(["a", "b"]))
            gpus[name] = int(rng.integers(1, 20))
            events.append(ev.CapacitySet(name, gpus[name], 64_000, 512_000))
        tier = int(rng.integers(0, 4))
        spec = JobSpec(tier=tier, mgpu=1000 * int(rng.integers(1, 5)), preemptible=tier > 0)
        events.append(ev.Submitted(f"j{number}", spec))
        name = str(rng.choice(["a", "b"]))
        if rng.random() < 0.3 and spec.mgpu // 1000 <= gpus[name]:
            region = "east" if name == "a" else "west"
            taken = shares(name, spec.mgpu // 1000, int(rng.integers(0, gpus[name] - spec.mgpu // 1000 + 1)))
            events.append(ev.Adopted(f"j{number}", 1, region, f"{region}-1", taken))
        loop.advance(*events)
    loop.check(State(opening))
    assert any(isinstance(one.event, ev.Adopted) for one in loop.log)
