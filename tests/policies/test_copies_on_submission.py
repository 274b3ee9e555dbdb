"""Copies on submission: where a job is bound, what is copied, and what makes room for it."""

from __future__ import annotations

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.problems.job_placement.live_fleet.types import Server

GPUS = {"east": 8, "west": 16}
SERVERS = tuple(
    Server(f"{region}-1", region, f"{region}-c", "rack", "H100", gpus, 0, 0) for region, gpus in GPUS.items()
)


class Run:
    """An engine with data in ``east``."""

    def __init__(self, west_mb: int, **in_west: int) -> None:
        self.engine = Engine(State(SERVERS, tiers=(0, 1)), Mast(MastParams(bind="copy")))
        self.log: list[ev.Event] = []
        self.report(*self.engine.state.opening(), ev.StorageSet("east", 1000), ev.StorageSet("west", west_mb))
        self.report(*(ev.DatasetCreated(name, 100, ("east",)) for name in ("a", "b")))
        self.report(*(ev.DatasetCreated(name, mb, ("east", "west")) for name, mb in in_west.items()))
        self.log.clear()

    def report(self, *events: ev.Event) -> None:
        turn = self.engine.advance(self.engine.state.now_ms + 1000, list(events))
        self.log += [stored.event for stored in turn.events]

    def submit(self, name: str, *datasets: str) -> None:
        self.report(ev.Submitted(name, JobSpec(tier=0, mgpu=4000, datasets=datasets)))

    def of(self, *kinds: type) -> list[ev.Event]:
        return [event for event in self.log if isinstance(event, kinds)]


def test_a_job_waits_for_its_copy_where_most_is_left() -> None:
    run = Run(1000)
    run.submit("first", "a")  # no load anywhere: regions are equal, and east comes first
    run.submit("second", "a", "b")
    assert [(event.job, event.region) for event in run.of(ev.Bound)] == [("first", "east"), ("second", "west")]  # type: ignore[attr-defined]
    copies = run.of(ev.CopyAsked)
    assert copies == [ev.CopyAsked("a", "east", "west", 100), ev.CopyAsked("b", "east", "west", 100)]
    assert run.engine.state.jobs["second"].region == ""
    run.report(ev.CopyEnded("a", "west"))
    assert run.engine.state.jobs["second"].region == ""
    run.report(ev.CopyEnded("b", "west"))
    assert run.engine.state.jobs["second"].region == "west"


def test_a_copy_under_way_is_not_asked_for_again() -> None:
    run = Run(1000)
    for name in ("first", "second", "third"):
        run.submit(name, "a")
    assert len(run.of(ev.CopyAsked)) == 1


def test_replicas_that_nobody_reads_make_room_the_largest_first() -> None:
    run = Run(250, small=50, large=150)
    run.submit("first", "a")
    run.submit("second", "a")
    assert run.of(ev.ReplicaDropped) == [ev.ReplicaDropped("large", "west")]
    assert run.of(ev.CopyAsked) == [ev.CopyAsked("a", "east", "west", 100)]


def test_without_room_a_job_is_bound_where_its_data_is() -> None:
    run = Run(50)
    run.submit("first", "a")
    run.submit("second", "a")
    assert {event.region for event in run.of(ev.Bound)} == {"east"}  # type: ignore[attr-defined]
    assert run.of(ev.CopyAsked, ev.ReplicaDropped) == []


def test_desks_refuse_copies_and_deletions_that_cannot_be() -> None:
    wrong = {
        ("copy", "none", "west"): "cannot be copied; no region",
        ("copy", "there", "west"): "already",
        ("copy", "a", "west"): "no room",
        ("drop", "a", "east"): "nowhere else",
        ("drop", "a", "west"): "it is not there",
    }
    for (does, name, region), words in wrong.items():
        run = Run(50, there=50)

        def decide(snapshot: object, actions: object, does: str = does, name: str = name, region: str = region) -> None:
            getattr(actions, does)(name, region)

        run.engine.policy.decide = decide  # type: ignore[method-assign]
        with pytest.raises(UsageError, match=words):
            run.submit("job", "a")
