"""Two jobs on the same GPUs: who holds them, what each of the parts of the loop makes of it, and what may not be."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.events import CorruptLog
from mast_opt.live.loop.history import history
from mast_opt.live.loop.job_log import job_log
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.past_state import PastState
from mast_opt.live.loop.place_metrics import place_metrics
from mast_opt.live.loop.state import State
from mast_opt.live.store.state_format import state_bytes, state_from
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.types import Server, Share
from tests.loop.test_metrics import stored

SERVERS = (Server("s", "r", "c", "k", "h100", 2, 64, 512), Server("far", "west", "w", "k", "h100", 2, 64, 512))
ONE = JobSpec(tier=1, preemptible=True, tenant="t")
GPU_0 = (Share("s", 1, {0: 1000}),)


class World:
    """A state, a actions and a log, driven by hand."""

    def __init__(self) -> None:
        self.state = State(SERVERS, tiers=(0, 1), replicas={"d": ("west",)}, quotas={"t": 2000})
        self.log: list[ev.Stored] = []
        for event in self.state.opening():
            self.take(event)

    def take(self, event: ev.Event, bid: Bid | None = None, *, at: int | None = None) -> None:
        state = self.state
        state.apply(state.seq + 1, state.now_ms if at is None else at, event, bid)
        self.log.append(ev.Stored(state.seq, state.now_ms, event))

    @property
    def actions(self) -> Actions:
        return Actions(self.state, self.take, ExitStack())

    def submit(self, *names: str, **changed: Any) -> None:
        for name in names:
            self.take(ev.Submitted(name, replace(ONE, **changed)))

    def place(self, name: str, region: str = "r") -> None:
        bid = self.actions.place(name, (region,))
        assert isinstance(bid, Bid)
        self.actions.commit(bid)

    def start(self, name: str, at: int) -> None:
        self.take(ev.Started(name, self.state.jobs[name].attempt), at=at)

    def free(self) -> int:
        """Milli-GPUs that the fleet would give away."""
        return 4000 - sum(self.state.inventory.used_mgpu.values())

    def check(self) -> None:
        """A log that is read again leads to the same state, and has no fault."""
        again = World.__new__(World)
        again.state = State(SERVERS, tiers=(0, 1), replicas={"d": ("west",)}, quotas={"t": 2000})
        for one in self.log:
            again.state.apply(one.seq, one.at_ms, one.event)
        assert again.state.digest() == self.state.digest()
        assert state_from(state_bytes(self.state)).digest() == self.state.digest()
        assert again.state.fleet.running() == self.state.fleet.running()
        assert check_log(self.log, replicas={"d": {"west"}}, limited=("t",)) == ()


def joining() -> World:
    """a holds a GPU since 10 ms, b is about to start there."""
    world = World()
    world.submit("a", "b")
    world.place("a")
    world.start("a", 10)
    world.actions.share("b", "a")
    return world


def pair() -> World:
    """a holds a GPU since 10 ms, b has been there since 20 ms."""
    world = joining()
    world.start("b", 20)
    return world


def test_gpus_count_once() -> None:
    world = pair()
    a, b = world.state.jobs["a"], world.state.jobs["b"]
    assert (a.partner, a.is_guest, a.mgpu) == ("b", False, 1000)
    assert (b.partner, b.is_guest, b.mgpu) == ("a", True, 0)
    assert a.shares == b.shares
    assert world.state.inventory.used_mgpu == {"r": 1000, "west": 0}
    assert world.state.fleet._books.ledger.use("t") == 1000
    assert world.state.fleet._books.ledger.use("t") == 1000
    assert world.state.fleet.running() == ("a",)
    world.check()


def test_the_guest_leaves() -> None:
    world = pair()
    world.take(ev.Finished("b", 1), at=30)
    assert world.state.jobs["a"].partner == ""
    assert world.state.inventory.used_mgpu["r"] == 1000
    world.take(ev.Finished("a", 1), at=40)
    assert world.free() == 4000
    world.check()


@pytest.mark.parametrize("leave", [ev.Finished("a", 1), ev.Failed("a", 1), ev.Stopped("a", 1, 5, 5)])
def test_the_holder_leaves(leave: ev.Event) -> None:
    world = pair()
    world.take(leave, at=50)
    b = world.state.jobs["b"]
    assert (b.partner, b.is_guest, b.mgpu) == ("", False, 1000)
    assert world.state.inventory.used_mgpu["r"] == 1000
    assert world.state.fleet._books.ledger.use("t") == 1000
    assert world.state.fleet._books.ledger.use("t") == 1000
    assert world.state.fleet.running() == ("b",)
    world.check()
    world.take(ev.StopAsked("b", 1, ""), at=70)
    world.take(ev.Stopped("b", 1, 5, 5))
    assert world.state.jobs["b"].attained_mgpu_ms == 20 * 1000  # from when it held the GPU
    assert world.state.fleet.running() == ()
    world.check()


def test_a_server_goes_down() -> None:
    world = pair()
    world.take(ev.ServerDown("s", ""), at=30)
    assert {record.state for record in world.state.jobs.values()} == {JobState.STOPPING}
    assert world.state.fleet.running() == ()
    assert world.state.fleet._books.ledger.use("t") == 0
    for name in "ab":
        world.take(ev.Stopped(name, 1, 0, 0))
    world.check()


def test_a_guest_that_has_not_started_waits_for_a_holder_that_stops() -> None:
    world = joining()
    world.actions.preempt("a", "")
    assert world.state.take_startable() == ()
    world.take(ev.Stopped("a", 1, 0, 0), at=15)
    assert [record.name for record in world.state.take_startable()] == ["b"]
    world.check()


def test_a_job_that_joins_waits_until_the_one_before_has_stopped() -> None:
    world = pair()
    world.state.take_startable()
    world.submit("c")
    world.actions.preempt("b", "")
    world.actions.share("c", "a")
    assert world.state.take_startable() == ()
    world.take(ev.Stopped("b", 1, 0, 0), at=30)
    assert [record.name for record in world.state.take_startable()] == ["c"]
    world.start("c", 30)
    world.check()


def test_who_shares_with_a_victim_stops_too() -> None:
    world = World()
    world.submit("a", "b", "c", tenant="")
    for name in "ac":
        world.place(name)
        world.start(name, 10)
    world.actions.share("b", "a")
    world.start("b", 10)
    world.submit("urgent", tier=0, tasks=2, tenant="", preemptible=False)
    world.place("urgent")
    asked = [one.event.job for one in world.log if isinstance(one.event, ev.StopAsked)]
    assert sorted(asked) == ["a", "b", "c"]
    assert asked.index("b") < asked.index("a")
    world.check()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tasks": 2}, "cannot share GPUs"),
        ({"mgpu": 500}, "cannot share GPUs"),
        ({"cpu_mcores": 1}, "cannot share GPUs"),
        ({"memory_mib": 1}, "cannot share GPUs"),
        ({"gpu_types": {"k80": 1000}}, "cannot share GPUs"),
        ({"datasets": ("d",)}, "cannot run in r"),
    ],
)
def test_what_cannot_share(changed: dict[str, Any], words: str) -> None:
    world = World()
    world.submit("a")
    world.place("a")
    world.submit("b", **changed)
    with pytest.raises(UsageError, match=words):
        world.actions.share("b", "a")


def test_there_must_be_gpus_to_share() -> None:
    world = pair()
    world.submit("c", "d")
    for other in ("a", "d"):
        with pytest.raises(UsageError, match="no GPUs to share"):
            world.actions.share("c", other)


@pytest.mark.parametrize(
    "event",
    [
        ev.Shared(("a", "c"), "r", "c", GPU_0),  # a has a partner
        ev.Shared(("c", "a"), "r", "c", GPU_0),  # c holds nothing
    ],
)
def test_a_log_that_does_not_fit(event: ev.Event) -> None:
    world = pair()
    world.submit("c")
    with pytest.raises(CorruptLog):
        world.take(event)


def test_a_guest_elsewhere_does_not_fit() -> None:
    world = World()
    world.submit("a", "b")
    world.place("a")
    world.take(ev.Shared(("a", "b"), "r", "c", world.state.jobs["a"].shares))
    with pytest.raises(CorruptLog, match="placed elsewhere"):
        world.take(ev.Placed("b", 1, "west", "w", (Share("far", 1, {0: 1000}),)))


# --- figures, and the independent checker ---

UP = ev.ServerUp("s", "r", "c", "k", "h100", 2, 64, 512)
FAST = JobSpec(preemptible=True, model="m", duration_ms=80)
LOG: list[tuple[int, ev.Event]] = [
    (0, UP),
    (0, ev.Submitted("a", FAST)),
    (0, ev.Submitted("b", FAST)),
    (0, ev.Placed("a", 1, "r", "c", GPU_0)),
    (0, ev.Started("a", 1)),
    (20, ev.Shared(("a", "b"), "r", "c", GPU_0)),
    (20, ev.Placed("b", 1, "r", "c", GPU_0)),
    (20, ev.Started("b", 1)),
    (120, ev.Finished("a", 1, 120)),  # 20 ms alone, 100 ms at 0.6
    (140, ev.Finished("b", 1, 120)),  # 100 ms at 0.6, 20 ms alone
]
SPEEDS = {"speeds": {("m", "h100", 1): 10}, "packed": {("m", "m", "h100", 1): 6}}


def found(log: list[tuple[int, ev.Event]], **options: Any) -> list[str]:
    return [str(one) for one in check_log(stored(*log), **{"durations": True, "all_end": True, **SPEEDS, **options})]


def test_a_sound_log() -> None:
    assert found(LOG) == []


def without(place: int) -> list[tuple[int, ev.Event]]:
    return LOG[:place] + LOG[place + 1 :]


def put(place: int, event: ev.Event, at: int | None = None) -> list[tuple[int, ev.Event]]:
    return [*LOG[:place], (LOG[place][0] if at is None else at, event), *LOG[place + 1 :]]


def third() -> list[tuple[int, ev.Event]]:
    more = [(20, ev.Submitted("x", FAST)), (20, ev.Shared(("a", "x"), "r", "c", GPU_0))]
    return [*LOG[:8], *more, *LOG[8:]]


BROKEN: dict[str, tuple[Callable[[], list[tuple[int, ev.Event]]], str]] = {
    "not announced": (lambda: without(5), "capacity|GPU 0 of s"),
    "nobody there": (lambda: put(5, ev.Shared(("x", "b"), "r", "c", GPU_0)), "share: .* was never submitted"),
    "three": (third, "share: jobs a and x are running and waiting, or have partners"),
    "holds nothing": (lambda: put(5, ev.Shared(("b", "a"), "r", "c", GPU_0)), "share: jobs b and a are waiting and"),
    "elsewhere": (
        lambda: put(6, ev.Placed("b", 1, "r", "c", (Share("s", 1, {1: 1000}),))),
        "share: job b is not placed where its partner a is",
    ),
    "cores": (
        lambda: put(2, ev.Submitted("b", replace(FAST, cpu_mcores=1))),
        "share: job b or its partner does not take whole GPUs",
    ),
    "too early alone": (lambda: put(8, ev.Finished("a", 1, 119), 119), "work: job a has finished after 79 of 80"),
    "too early shared": (lambda: put(9, ev.Finished("b", 1, 119), 139), "work: job b has finished after 79 of 80"),
    "too much kept": (lambda: put(8, ev.Stopped("a", 1, 81, 0, 120, 0)), "cannot have kept 81 ms"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_log(name: str) -> None:
    log, words = BROKEN[name]
    faults = found(log(), all_end=False)
    assert faults
    assert any(re.search(words, fault) for fault in faults), faults


def test_figures() -> None:
    log = [*LOG, (240, UP)]
    measured = metrics(job_log(stored(*LOG)))
    assert measured.allocation == 140 / (2 * 140)
    assert measured.held_gpu_s.all == 0.24
    assert measured.held_gpu_s.useful == 0.24
    held = history(stored(*LOG)).held_mgpu["r"]
    assert held.at(np.array([0, 20, 120, 139, 140])).tolist() == [1000, 1000, 1000, 1000, 0]
    past = PastState()
    for one in stored(*LOG[:9]):
        past.take(one.at_ms, one.event)
    assert past.servers["s"].free[0] == 1000
    past.take(140, LOG[9][1])
    assert past.servers["s"].free[0] == 2000
    assert place_metrics(stored(*log)).started_without_data == 0
