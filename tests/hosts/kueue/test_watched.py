"""Workloads that a watch keeps at hand: the same as a server has, whatever comes in between."""

from __future__ import annotations

import pytest

from mast_opt.live.hosts.kueue.api import ApiError
from mast_opt.live.hosts.kueue.manager_snapshot import Reader, take_snapshot
from mast_opt.live.hosts.kueue.watched import GONE, WatchedApi
from tests.hosts.kueue.objects import queue, workload
from tests.hosts.kueue.stand_in import StandIn


class Watch:
    """A watched stand-in; after the changes that are to come the watch is interrupted, and that ends the test's."""

    def __init__(self, *names: str) -> None:
        self.server = StandIn(*(workload(name, uid=name) for name in names))
        self.asked: list[str] = []
        self.seen: list[list[str]] = []
        self.ticks = 0.0
        self.api = WatchedApi(self.server, self._changed, 5.0, lambda: self.ticks)
        listing = self.server.list

        def counted(kind: str) -> list[dict[str, object]]:
            self.asked.append(kind)
            return listing(kind)

        self.server.list = counted  # type: ignore[method-assign]

    def _changed(self) -> None:
        self.seen.append(self.names())
        if len(self.seen) > len(self.server.coming):
            self.api._stop.set()

    def names(self) -> list[str]:
        return sorted(str(one["metadata"]["name"]) for one in self.api.list("Workload"))


def test_changes_are_taken_in_and_nothing_is_asked_for_again() -> None:
    watch = Watch("a", "b")
    watch.server.coming = [
        ("ADDED", [workload("c")]),
        ("MODIFIED", [workload("a", uid="other")]),
        (GONE, [workload("b")]),
        (GONE, [workload("b")]),
    ]
    watch.api.follow_on()
    assert watch.seen == [["a", "b"], ["a", "b", "c"], ["a", "b", "c"], ["a", "c"], ["a", "c"]]
    assert watch.asked == ["Workload"]
    assert {one["metadata"].get("uid") for one in watch.api.list("Workload")} == {None, "other"}


def test_while_the_watch_is_interrupted_the_server_is_asked() -> None:
    watch = Watch("a")
    assert watch.names() == ["a"]
    watch.server.down = "connection refused"
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        watch.server.down = ""
        return True

    watch.api._stop.wait = wait  # type: ignore[method-assign,assignment]
    watch.api._changed = lambda: None
    found = iter([False, False, True])
    watch.api._stop.is_set = lambda: next(found)  # type: ignore[method-assign]
    watch.api.follow_on()
    assert waits == [5.0]
    watch.server.create(workload("b"))
    watch.api._objects = None
    assert watch.names() == ["a", "b"]
    watch.server.down = "connection refused"
    with pytest.raises(ApiError, match="refused"):
        watch.api.list("Workload")


def test_other_kinds_are_asked_for_after_a_while() -> None:
    watch = Watch()
    watch.server.create(queue(gpus=8))
    for tick in (0.0, 4.0, 6.0):
        watch.ticks = tick
        assert len(watch.api.list("ClusterQueue")) == 1
    assert watch.asked == ["ClusterQueue"] * 2


def test_what_is_the_same_object_is_read_once() -> None:
    reader, found = Reader(), workload("a", uid="a")
    reader.begin()
    one = reader.read(found)
    reader.begin()
    assert reader.read(found) is one
    assert reader.read({**found}) is not one
    reader.begin()
    reader.begin()
    assert reader.read(found) is not one  # it was not there at the last look
    assert take_snapshot(StandIn(found), {}, reader).managed["default/a"].workload.uid == one.uid
