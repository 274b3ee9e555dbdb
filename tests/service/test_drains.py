"""Servers that take no job more: by server, rack and cluster, over HTTP and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.live import Live
from mast_opt.live.service.restart import opening_of
from mast_opt.live.store.recovery import recovered
from mast_opt.live.store.sqlite import open_sqlite
from tests.cli.conftest import Call, call
from tests.platforms import needs
from tests.service.loops import SERVERS, running, web
from tests.service.processes import Service
from tests.service.test_live import until

__all__ = ["call"]


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"job": name, "gpus": 8, "duration_s": 3600, **more}


@pytest.mark.parametrize(
    ("of", "name", "servers"),
    [("server", "s0", ["s0"]), ("rack", "east-r", ["s0", "s1"]), ("cluster", "west-1", ["s2"])],
)
def test_what_is_closed_takes_no_job_until_it_is_opened(tmp_path: Path, of: str, name: str, servers: list[str]) -> None:
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None)))
        closed = client.post("/v1/drains", json={"of": of, "name": name, "state": "closed", "why": "power"})
        assert (closed.status_code, closed.json()["servers"]) == (200, servers)
        client.post("/v1/jobs", json=[job("a"), job("b"), job("c")])
        used = {one["server"]: (one["used"], one["state"]) for one in client.get("/v1/fleet").json()["servers"]}
        assert used == {f"s{at}": (0, "closed") if f"s{at}" in servers else (8, "up") for at in range(3)}
        assert [one["server"] for one in client.get("/v1/drains").json()["servers"]] == servers
        opened = client.post("/v1/drains", json={"of": of, "name": name, "state": "open"})
        assert opened.status_code == 200
        until(lambda: sum(one.state.value == "running" for one in live._engine.state.jobs.values()) == 3)
        assert client.get("/v1/drains").json() == {"servers": []}
        assert check_log(store.read()) == ()


def test_what_runs_ends_or_is_stopped_by_a_time_and_runs_elsewhere(tmp_path: Path) -> None:
    store, now = open_sqlite(tmp_path), 10**12
    live = Live(store, opening_of(store, SERVERS), Mast, SimulatedLiveHost, clock=lambda: now, ticks=lambda: 0.0)
    live.begin()
    for request in (ev.Submitted("a", JobSpec(mgpu=8000, duration_ms=10**7)),):
        _ask(live, request)
    until(lambda: live.step() and live._engine.state.jobs["a"].state.value == "running")
    (there,) = (share.server for share in live._engine.state.jobs["a"].shares)
    _ask(live, ev.ServerClosed(there, now + 600_000, "power"))
    assert live._next_wake == now + 600_000
    now += 599_999
    live.step()
    assert live._engine.state.jobs["a"].state.value == "running"
    now += 1
    live.step()
    assert [type(one.event) for one in store.of_job("a")].count(ev.StopAsked) == 1
    for _ in range(20):
        now += 1000
        live.step()
    record = live._engine.state.jobs["a"]
    assert (record.state.value, record.attempt) == ("running", 2)
    assert there not in [share.server for share in record.shares]
    _ask(live, ev.ServerDown(there), ev.ServerUp(there, *_place(there)))
    assert there in live._engine.state.inventory.closed
    _ask(live, *(ev.Submitted(name, JobSpec(mgpu=8000)) for name in "bc"))
    assert sum(one.waits for one in live._engine.state.jobs.values()) == 1
    assert check_log(store.read()) == ()
    assert recovered(store, opening_of(store)).state.digest() == live._engine.state.digest()
    live._save_snapshot()
    found = recovered(store, opening_of(store))
    assert found.events == 0
    assert found.state.inventory.closed == live._engine.state.inventory.closed
    store.close()


def _ask(live: Live, *events: ev.Event) -> None:
    from mast_opt.live.service.turn_requests import Request

    live.submit(Request(events, lambda verdicts: (200, "")))
    assert live.step()


def _place(name: str) -> tuple[Any, ...]:
    one = next(server for server in SERVERS if server.name == name)
    return one.region, one.cluster, one.rack, one.gpu_type, one.gpus, one.cpu_mcores, one.memory_mib


def test_a_job_on_a_closed_server_is_a_violation() -> None:
    up = [ev.Stored(1, 0, ev.ServerUp("s0", *_place("s0"))), ev.Stored(2, 0, ev.ServerClosed("s0"))]
    from mast_opt.problems.job_placement.live_fleet.types import Share

    placed = ev.Placed("a", 1, "east", "east-1", (Share("s0", 1, {0: 1000}),))
    log = [*up, ev.Stored(3, 0, ev.Submitted("a", JobSpec())), ev.Stored(4, 0, placed)]
    assert [one.what for one in check_log(log)] == ["server"]
    log.insert(2, ev.Stored(3, 0, ev.ServerOpened("s0")))
    assert check_log([ev.Stored(at, 0, one.event) for at, one in enumerate(log, start=1)]) == ()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"of": "server", "name": "none", "state": "closed"}, 404),
        ({"of": "room", "name": "s0", "state": "closed"}, 422),
        ({"of": "server", "name": "s0", "state": "closed", "stop_after_s": -1}, 422),
        ({"of": "server", "name": "s0", "state": "open"}, 200),
    ],
)
def test_drains_that_cannot_be(tmp_path: Path, body: dict[str, Any], status: int) -> None:
    with running(tmp_path) as (live, store):
        assert web(build(live, store, Access(None))).post("/v1/drains", json=body).status_code == status


@pytest.mark.second_tier
@needs("signals")
def test_the_command_drains_a_running_service(tmp_path: Path, call: Call) -> None:
    service = Service(tmp_path / "state")
    try:
        fleet = call("drain", "cluster", "2869ce", "--url", service.url, "--wait", "--json")
        assert fleet.code == 0, fleet.err
        found = json.loads(fleet.out)
        assert found["servers"]
        assert found["waits_for"] == []
        assert "take jobs again" in call("drain", "cluster", "2869ce", "--url", service.url, "--back").out
        wrong = call("drain", "rack", "none", "--url", service.url)
        assert (wrong.code, "there is no rack none" in wrong.err) == (2, True)
    finally:
        service.process.kill()
        service.process.wait()
        assert service.process.stderr is not None
        service.process.stderr.close()
    assert call("drain", "rack", "none", "--url", service.url).code == 2
