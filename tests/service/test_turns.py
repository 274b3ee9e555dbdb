"""Requests of one turn: one that does not fit, or that nobody foresaw, hurts no other."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.state import State
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.live import Live
from mast_opt.live.service.turn_requests import Request, Respond, Unavailable
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.problems.job_placement.live_fleet.types import Share
from tests.service.loops import LONG, loop, running, submit, web
from tests.service.test_live import until

Event = ev.Event


class Panic(BaseException):
    """What a library raises that is written in another language."""


def breaking(error: BaseException) -> Request:
    """A request that fails in its turn."""

    def prepare(state: State) -> tuple[tuple[Event, ...], Respond]:
        raise error

    return Request((), lambda verdicts: (200, ""), prepare=prepare)


def unfit() -> Request:
    """A request whose event cannot be applied, and that no check finds."""
    event = ev.MoveAsked("s0", "east-2")
    return Request((event, event), lambda verdicts: (200, ""))


@pytest.mark.parametrize("request_of", [lambda: breaking(RuntimeError("no")), lambda: breaking(Panic("no")), unfit])
def test_a_request_that_nobody_foresaw_fails_alone(tmp_path: Path, request_of: Any) -> None:
    with running(tmp_path) as (live, store):
        with live._lock:  # so that all of them wait for the same turn
            found = [submit(live, "a"), live.submit(request_of()), submit(live, "b", "c"), submit(live, "d")]
        assert [found[at].result(60) for at in (0, 2, 3)] == [
            (201, "accepted"),
            (201, "accepted,accepted"),
            (201, "accepted"),
        ]
        assert found[1].exception(60) is not None
        assert submit(live, "e").result(60) == (201, "accepted")
        assert check_log(store.read()) == ()


@pytest.mark.parametrize("error", [Panic("library"), MemoryError(), OSError(24, "Too many open files")])
def test_what_the_machine_lacks_is_said_and_passes(tmp_path: Path, error: BaseException) -> None:
    with running(tmp_path) as (live, store):
        client, submitted = web(build(live, store, Access(None))), live.submit

        def once(request: Request) -> Future[tuple[int, str]]:
            live.submit = submitted  # type: ignore[method-assign]
            request.prepare = breaking(error).prepare
            return submitted(request)

        live.submit = once  # type: ignore[method-assign]
        answer = client.post("/v1/jobs", json={"job": "a"})
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:mast-opt:unavailable")
        assert answer.json()["detail"]
        until(lambda: not live.problem)
        assert client.post("/v1/jobs", json={"job": "a"}).status_code == 201


def test_requests_that_contradict_are_decided_one_after_the_other(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        read = _count_reads(live)
        client = web(build(live, store, Access(None)))
        server = {"state": "up", "cluster": "new", "rack": "n", "gpu_type": "H100", "gpus": 8}
        with _together(live) as asked:
            asked.append(("PUT", "/v1/servers/n1", server | {"region": "east"}, 200))
            asked.append(("PUT", "/v1/servers/n2", server | {"region": "west"}, 422))
            asked.append(("PUT", "/v1/servers/n1", server | {"region": "west", "cluster": "other"}, 409))
            asked.append(("PUT", "/v1/servers/n3", {"state": "down"}, 422))
            asked.append(("POST", "/v1/jobs", {"job": "a"}, 201))
            asked.append(("POST", "/v1/jobs", {"job": "a"}, 409))
            asked.append(("DELETE", "/v1/jobs/a", None, 202))
            asked.append(("DELETE", "/v1/jobs/a", None, 404))
            asked.append(("PUT", "/v1/datasets/d", {"regions": ["east"], "size_tb": 1}, 200))
            asked.append(("PUT", "/v1/datasets/d", {"regions": ["west"]}, 200))
            asked.append(("PUT", "/v1/datasets/d", {"regions": ["nowhere"]}, 422))
            asked.run(client)
        assert client.get("/v1/fleet").json()["datasets"] == {"d": ["west"]}
        assert read == []
        assert check_log(store.read()) == ()


def test_the_right_over_a_job_is_looked_at_in_the_turn(tmp_path: Path) -> None:
    access = Access(tmp_path / "tokens.json")
    tokens = {who: access.add(who, ["submit"], who) for who in ("ada", "eve")}
    with running(tmp_path / "state") as (live, store):
        client = web(build(live, store, access))
        headers = {who: {"Authorization": f"Bearer {token}"} for who, token in tokens.items()}
        with _together(live) as asked:
            asked.append(("DELETE", "/v1/jobs/a", None, 404, headers["eve"]))
            asked.append(("POST", "/v1/jobs", {"job": "a"}, 201, headers["ada"]))
            asked.append(("DELETE", "/v1/jobs/a", None, 403, headers["eve"]))
            asked.run(client)
        assert live._engine.state.jobs["a"].spec.tenant == "ada"


def test_whatever_comes_together_no_turn_fails(tmp_path: Path) -> None:
    """Random events of clients, many to a turn: each is taken in or refused, and the log is read once."""
    rng = np.random.Generator(np.random.PCG64(7))
    with running(tmp_path) as (live, store):
        read, client = _count_reads(live), web(build(live, store, Access(None)))

        def one_of(*values: Any) -> Any:
            return values[int(rng.integers(len(values)))]

        for _ in range(60):
            with _together(live) as asked:
                for _ in range(12):
                    server, region = f"s{rng.integers(5)}", one_of("east", "west", "north")
                    place = {
                        "region": region,
                        "cluster": one_of("east-1", "west-1", "n-1"),
                        "rack": one_of("east-r", "n-r"),
                    }
                    amounts = {"gpus": int(one_of(0, 4, 8, 16)), "gpu_type": one_of("H100", "A100")}
                    job = {"job": f"j{rng.integers(12)}", "tasks": int(rng.integers(1, 4)), "tenant": one_of("", "t")}
                    asked.append(
                        one_of(
                            ("PUT", f"/v1/servers/{server}", {"state": "up", **place, **amounts}, 0),
                            ("PUT", f"/v1/servers/{server}", {"state": "up", "gpus": amounts["gpus"]}, 0),
                            ("PUT", f"/v1/servers/{server}", {"state": one_of("up", "down")}, 0),
                            ("PUT", "/v1/quotas/t", {"gpus": one_of(None, 0, 8)}, 0),
                            (
                                "PUT",
                                f"/v1/datasets/d{rng.integers(3)}",
                                {"regions": [region], "size_tb": int(rng.integers(3))},
                                0,
                            ),
                            ("PUT", f"/v1/regions/{region}", {"storage_tb": 1}, 0),
                            (
                                "POST",
                                "/v1/jobs",
                                {**job, "gpus": int(one_of(1, 8)), "duration_s": one_of(0, 1, 999)},
                                0,
                            ),
                            ("POST", "/v1/jobs", {**job, "datasets": ["d1"]}, 0),
                            ("DELETE", f"/v1/jobs/j{rng.integers(12)}", None, 0),
                        )
                    )
                asked.run(client)
            assert all(status < 500 for status in asked.statuses), asked.statuses
        assert read == []
        found = [one for one in check_log(store.read()) if one.what not in ("work", "data")]  # people say where data is
        assert found == []


def _count_reads(live: Live) -> list[bool]:
    found: list[bool] = []
    recover = live._recover

    def counted(*, first: bool = False) -> None:
        found.append(first)
        recover(first=first)

    live._recover = counted  # type: ignore[method-assign]
    return found


class _together(list[tuple[Any, ...]]):
    """Requests over HTTP that wait for the same turn, in order."""

    def __init__(self, live: Live) -> None:
        super().__init__()
        self._live = live
        self.statuses: list[int] = []

    def __enter__(self) -> _together:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held any more."""

    def run(self, client: Any) -> None:
        """Ask all of them at once; each has to get the status that it states."""
        kept: list[Request] = []
        submitted = self._live.submit

        def keep(request: Request) -> Future[tuple[int, str]]:
            kept.append(request)
            request.done.set_result((299, "{}"))
            return request.done

        self._live.submit = keep  # type: ignore[method-assign]
        early = [client.request(one[0], one[1], json=one[2], headers=one[4] if len(one) > 4 else None) for one in self]
        self._live.submit = submitted  # type: ignore[method-assign]
        with self._live._lock:
            waiting = []
            for request in kept:
                request.done = Future()
                waiting.append(submitted(request))
        answers = iter(waiting)
        for one, first in zip(self, early, strict=True):
            self.statuses.append(_status(next(answers)) if first.status_code == 299 else first.status_code)
            assert one[3] in (0, self.statuses[-1]), (one, self.statuses[-1], first.text)


def _status(done: Future[tuple[int, str]]) -> int:
    error = done.exception(60)
    if error is None:
        return done.result()[0]
    if isinstance(error, Unavailable):
        return 503
    return getattr(error, "status", 500)


def respond(verdicts: Sequence[str]) -> tuple[int, str]:
    return 200, ",".join(verdicts)


def test_a_turn_with_nothing_but_refusals_writes_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        submit(live, "a", spec=LONG).result(60)
        until(lambda: isinstance(store.of_job("a")[-1].event, ev.Started))
        last = store.last_seq()
        assert submit(live, "a").result(60) == (201, "exists")
        assert live.submit(Request((ev.Cancelled("none"),), respond)).result(60) == (200, "unknown")
        assert store.last_seq() == last


class Astray(SimulatedLiveHost):
    """A host that reports so many times that a waiting job of one task runs, with two."""

    times = 0

    def reports(self, now_ms: int) -> Sequence[Event]:
        if not self.times:
            return super().reports(now_ms)
        self.times -= 1
        return [ev.Adopted("d", 1, "east", "east-1", (Share("s0", 2, {0: 1000}),))]


def test_a_host_that_goes_on_disagreeing_with_the_log_ends_the_loop(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path)
    live = loop(store, Astray, retry_s=0.001)
    live.start()
    try:
        submit(live, "a", "b", "c", "d").result(60)
        assert isinstance(live.host, Astray)
        live.host.times = 1
        asked = submit(live, "e")
        until(lambda: not live.goes_on)
        assert "log and host disagree, as the host reports Adopted of job d" in live.problem
        assert "end or remove job d on the host" in live.problem
        assert "its shares have 2 tasks" in str(asked.exception(60))
        assert not any(isinstance(one.event, ev.Adopted) for one in store.read())
    finally:
        live.close()
        store.close()
