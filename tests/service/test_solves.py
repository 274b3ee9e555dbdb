"""Solves and plans: a process of its own for each, an end in the log, and steps that people or hosts take."""

from __future__ import annotations

import json
import signal
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.policies.mast import Mast
from mast_opt.live.service import solves as solves_module
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.live import Live
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.solve_files import LOST, OUTCOME, PLAN
from mast_opt.live.service.solves import MOST_AT_ONCE, Solves
from mast_opt.live.service.turn_requests import Request
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import open_sqlite
from tests.platforms import needs
from tests.service.loops import SERVERS, running, web
from tests.service.processes import Service
from tests.service.test_live import until

WORK = {"gpus": 8, "duration_s": 864_000}
LONG = {"path": "data", "gap": 0, "time_limit_s": 3600}
"""A solve that does not end by itself where the work is that of ``many``."""

pytestmark = pytest.mark.second_tier


class Clock:
    """Time that goes on when a test says so: a forecast takes some of it."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


@contextmanager
def served(folder: Path) -> Iterator[tuple[TestClient, Live, SqlStore, Solves]]:
    clock, store = Clock(), open_sqlite(folder / "log")
    live = Live(store, opening_of(store, SERVERS), Mast, SimulatedLiveHost, clock=clock)
    live.start()
    found = Solves(live, store, folder / "plans")
    found.resume()
    client = web(build(live, store, Access(None), found))
    client.app.clock = clock  # type: ignore[attr-defined]
    try:
        yield client, live, store, found
    finally:
        found.close()
        live.close()
        store.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with served(tmp_path) as (client, *_):
        yield client


def few(client: Any) -> None:
    """Work that reads data of one region and asks for more than it has."""
    client.put("/v1/regions/east", json={"storage_tb": 10})
    client.put("/v1/datasets/logs", json={"regions": ["west"], "size_tb": 2})
    client.post("/v1/jobs", json=[{"job": f"j{number}", "datasets": ["logs"], **WORK} for number in range(3)])
    client.app.clock.ahead_ms += 3_600_000


def many() -> list[tuple[str, str, Any]]:
    """Requests after which a plan is not proven optimal."""
    data = [
        ("PUT", f"v1/datasets/d{one}", {"regions": ["east" if one % 3 else "west"], "size_tb": 1 + one % 7})
        for one in range(60)
    ]
    jobs = [
        {"job": f"j{one}", "tier": one % 4, "datasets": [f"d{one % 60}", f"d{7 * one % 60}"], **WORK}
        for one in range(200)
    ]
    return [*data, ("POST", "v1/jobs", jobs)]


def has_incumbent(events: Path) -> bool:
    lines = events.read_text().splitlines(keepends=True) if events.exists() else []
    return any(json.loads(line)["incumbent"] is not None for line in lines if line.endswith("\n"))


def begin(client: TestClient, asked: Any) -> str:
    answer = client.post("/v1/solves", json=asked)
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/solves/{answer.json()['solve']}"
    return str(answer.headers["location"])


def ended(client: TestClient, path: str) -> dict[str, Any]:
    until(lambda: client.get(path).json()["status"] not in ("RUNNING", "STOPPING"))
    return dict(client.get(path).json())


def test_a_plan_from_the_question_to_its_last_step(tmp_path: Path) -> None:
    with served(tmp_path) as (client, _, store, _solves):
        few(client)
        path = begin(client, {"path": "data", "solver": "highs"})
        found = ended(client, path)
        assert (found["status"], found["solver"], found["by"], found["error"]) == ("OPTIMAL", "highs", "local", "")
        with client.stream("GET", f"{path}/events", headers={"Last-Event-ID": "1"}) as answer:
            lines = list(answer.iter_lines())
        assert lines[0] == "id: 2"
        assert lines[-3] == "event: end"
        assert json.loads(lines[-2].removeprefix("data: ")) == found
        plan = client.get("/v1/plans").json()["plans"][0]
        assert (plan["plan"], plan["adopted"], plan["objective"]) == (found["plan"], False, found["objective"])
        adopted = client.post(f"/v1/plans/{plan['plan']}/adopt", json={}).json()
        copy = {"does": "copy", "name": "logs", "source": "west", "target": "east", "first_wave": 0, "by": "people"}
        assert adopted == {"plan": plan["plan"], "steps": [copy], "dropped": []}
        shown = client.get(f"/v1/plans/{plan['plan']}").json()
        assert shown["steps"] == [{"state": "under way", **copy}]
        assert shown["progress"] == {"steps": 1, "waiting": 0, "under_way": 1, "dropped": 0}
        assert store.open_commands() == []  # the host cannot copy
        client.put("/v1/datasets/logs", json={"regions": ["west", "east"]})
        assert client.get(f"/v1/plans/{plan['plan']}").json()["steps"] == []
        until(lambda: client.get("/v1/jobs/j2").json()["region"] == "east")
        log = list(store.read())
    assert check_log(log, replicas={}) == ()
    kinds = [type(stored.event) for stored in log if isinstance(stored.event, (ev.SolveAsked, ev.SolveEnded))]
    assert kinds == [ev.SolveAsked, ev.SolveEnded]
    with served(tmp_path) as (client, live, store, solves):
        assert client.get(path).json() == found
        assert client.get("/v1/plans").json()["plans"][0]["adopted"]
        files = solves.folder_of(solves.one(found["solve"]))
        (files / PLAN / "plan.toml").write_text("changed")
        answer = client.post(f"/v1/plans/{found['plan']}/adopt", json={})
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:mast-opt:plan-changed")
        (files / PLAN).rename(tmp_path / "gone")
        answer = client.post(f"/v1/plans/{found['plan']}/adopt", json={})
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:mast-opt:plan-lost")
        live.submit(
            Request((ev.SolveAsked("data", solves.one(found["solve"]).checksum),), lambda verdicts: (200, ""))
        ).result()
        (files / OUTCOME).unlink()
    with served(tmp_path) as (client, live, store, solves):  # the log waits for it, and nothing is left
        assert ended(client, path)["status"] == LOST
        assert sum(isinstance(one.event, ev.SolveEnded) for one in store.read()) == 2
        with live.state() as state:
            assert state.plans.awaited("data") == ""


def test_a_solve_goes_on_from_an_earlier_plan(tmp_path: Path) -> None:
    with served(tmp_path) as (client, *_, solves):
        for method, path, body in many():
            client.request(method, f"/{path}", json=body)
        client.app.clock.ahead_ms += 3_600_000  # type: ignore[attr-defined]
        first = ended(client, begin(client, {"path": "data", "time_limit_s": 2}))
        assert client.post("/v1/solves", json={"path": "data", "from_plan": "none"}).status_code == 404
        assert client.post("/v1/solves", json={"path": "servers", "from_plan": first["plan"]}).status_code in (404, 409)
        client.post("/v1/jobs", json=[{"job": "another", "datasets": ["d3"], **WORK}])
        asked = {"path": "data", "from_plan": first["plan"], "time_limit_s": 60}
        again = ended(client, begin(client, asked))
        assert again["error"] == ""
        stated = tomllib.loads((solves.folder_of(solves.one(again["solve"])) / PLAN / "plan.toml").read_text())
        assert stated["reuse"]["start"], stated["reuse"]


def test_a_solve_is_stopped_and_keeps_its_incumbent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as (client, *_):
        for method, path, body in many():
            client.request(method, f"/{path}", json=body)
        client.app.clock.ahead_ms += 3_600_000  # type: ignore[attr-defined]
        headers = {"Idempotency-Key": "k"}
        answer = client.post("/v1/solves", json=LONG, headers=headers)
        solve = f"/v1/solves/{answer.json()['solve']}"
        again = client.post("/v1/solves", json=LONG, headers=headers)
        assert (again.status_code, again.text, again.headers["location"]) == (202, answer.text, solve)
        assert client.post("/v1/solves", json={**LONG, "seed": 1}, headers=headers).status_code == 422
        other = client.post("/v1/solves", json=LONG)
        assert (other.status_code, other.json()["type"]) == (409, "urn:mast-opt:awaited")
        assert client.post("/v1/solves", json={"path": "servers"}).json()["type"] == "urn:mast-opt:nothing-to-plan"
        monkeypatch.setattr(solves_module, "MOST_AT_ONCE", 1)
        refused = client.post("/v1/solves", json=LONG)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
        assert len(client.get("/v1/solves").json()["solves"]) == 1
        events = tmp_path / "plans" / solve.rpartition("/")[2] / "events.jsonl"
        until(partial(has_incumbent, events))
        assert client.delete(solve).json()["status"] == "STOPPING"
        found = ended(client, solve)
        assert (found["status"], found["plan"]) == ("FEASIBLE", solve.rpartition("/")[2])
        assert client.delete(solve).status_code == 200


@needs("signals")
def test_incumbents_outlive_a_service_that_is_killed_or_stopped(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def ask(method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(service.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def begun() -> str:
        for _ in range(300):  # a forecast takes some seconds of work
            with suppress(urllib.error.HTTPError):
                return str(ask("POST", "v1/solves", LONG)["solve"])
            time.sleep(0.1)
        raise AssertionError("there is nothing to plan for")

    service = Service(state)
    regions = sorted({server["region"] for server in ask("GET", "v1/fleet")["servers"]})[:2]
    for method, path, body in many():
        if method == "PUT":
            body["regions"] = [regions[body["regions"] == ["east"]]]
        ask(method, path, body)
    for number in (signal.SIGKILL, signal.SIGTERM):
        name = begun()
        events = state / "plans" / name / "events.jsonl"
        until(partial(has_incumbent, events))
        assert service.end(number) == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        service = Service(state)
        for _ in range(3000):
            found = ask("GET", f"v1/solves/{name}")
            if found["status"] not in ("RUNNING", "STOPPING"):
                break
            time.sleep(0.1)
        assert (found["status"], found["plan"]) == ("FEASIBLE", name)
    assert len(ask("GET", "v1/plans")["plans"]) == 2
    service.end(signal.SIGKILL)


def test_what_is_not_allowed(client: TestClient) -> None:
    few(client)
    for body, words in (
        ({"path": "data", "option": ["presolve=off"]}, "unknown field `option`"),
        ({"path": "/etc/passwd"}, "Invalid enum value"),
        ({"path": "data", "solver": "gurobi"}, "Invalid enum value"),
        ({"path": "data", "time_limit_s": 1e6}, "<= 86400"),
        ({"path": "data", "ingress_tb_per_day": {"a b": 1}}, "regex"),
    ):
        answer = client.post("/v1/solves", json=body)
        assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text
    for path in ("/v1/solves/x", "/v1/plans/x", "/v1/solves/x/events"):
        assert client.get(path).status_code == 404
    assert client.delete("/v1/solves/x").status_code == client.post("/v1/plans/x/adopt", json={}).status_code == 404
    assert client.put("/v1/regions/x", json={"storage_tb": 1}).status_code == 404


def test_a_solver_that_does_not_fit_says_so(client: TestClient) -> None:
    few(client)
    found = ended(client, begin(client, {"path": "data", "solver": "ras"}))
    assert (found["status"], found["plan"]) == ("FAILED", None)
    assert "ras" in found["error"]


def test_a_solve_that_cannot_begin_is_lost_and_takes_no_place(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(folder: Path) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    few(client)
    monkeypatch.setattr(solves_module, "begin_process", busy)
    for _ in range(MOST_AT_ONCE + 1):
        assert ended(client, begin(client, {"path": "data"}))["status"] == "LOST"


def test_without_a_folder_nothing_is_solved(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None)))
        answer = client.post("/v1/solves", json={"path": "data"})
        assert (answer.status_code, answer.json()["type"]) == (501, "urn:mast-opt:no-folder")
        assert client.get("/v1/solves").json() == {"solves": []}


def test_a_server_that_moves_is_reported_when_it_is_there(tmp_path: Path) -> None:
    with served(tmp_path) as (client, live, _, _solves):
        new = {"state": "up", "region": "east", "cluster": "east-2", "rack": "r2", "gpu_type": "H100", "gpus": 8}
        client.put("/v1/servers/s9", json=new)
        steps = (ev.PlanStep(ev.MOVE, "s9", "east-1"),)
        solves_asked = (ev.SolveAsked("servers", "c"), ev.SolveEnded("servers", "c", "OPTIMAL", "p"))
        events = (*solves_asked, ev.PlanAdopted("servers", "p", (), steps))
        live.submit(Request(events, lambda verdicts: (200, ""))).result()
        answer = client.put("/v1/servers/s9", json={"state": "up"})
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:mast-opt:moves")
        assert client.put("/v1/servers/s9", json={"state": "up", "cluster": "east-1"}).status_code == 200
        found = {one["server"]: one["cluster"] for one in client.get("/v1/fleet").json()["servers"]}
        assert found["s9"] == "east-1"
