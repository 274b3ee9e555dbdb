"""The interface: what it answers, and what it says about requests that it cannot honour."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.handlers import Answers
from mast_opt.live.service.live import Live
from mast_opt.live.service.requests import MOST_BYTES
from tests.service.loops import running, web


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[TestClient, Live]]:
    with running(tmp_path) as (live, store), web(build(live, store, Access(None))) as client:
        yield client, live


@pytest.fixture
def client(served: tuple[TestClient, Live]) -> TestClient:
    return served[0]


def long(name: str, **more: Any) -> dict[str, Any]:
    return {"job": name, "gpus": 8, "duration_s": 3600, **more}


def test_a_job_from_submission_to_its_end(client: TestClient) -> None:
    answer = client.post("/v1/jobs", json={"job": "a", "duration_s": 0, "tier": 1})
    assert (answer.status_code, answer.json()) == (201, {"job": "a", "result": "accepted"})
    for _ in range(300):
        found = client.get("/v1/jobs/a").json()
        if found["state"] == "finished":
            break
        time.sleep(0.01)
    assert [event["event"] for event in found["events"]] == ["Submitted", "Placed", "Started", "Finished"]
    assert client.delete("/v1/jobs/a").status_code == 404
    assert client.post("/v1/jobs", json={"job": "a"}).status_code == 409


def test_a_job_of_several_parts(client: TestClient) -> None:
    parts = [{"part": "t", "tasks": 2, "gpus": 4}, {"part": "r", "gpus": 1, "cpu_cores": 1, "within": "server"}]
    job = {"job": "a", "within": "region", "duration_s": 3600, "parts": parts}
    bids = client.post("/v1/whatif", json=job).json()
    assert sum(bids["bids"][0]["servers"].values()) == 3
    assert {one["part"] for one in bids["clusters"]} == {"t", "r"}
    assert {part: sum(there.values()) for part, there in bids["bids"][0]["parts"].items()} == {"t": 2, "r": 1}
    assert client.post("/v1/jobs", json=job).status_code == 201
    found = client.get("/v1/jobs/a").json()
    assert (found["gpus"], sum(found["servers"].values())) == (9, 3)
    assert (found["tasks"], found["min_tasks"], found["max_tasks"]) == (3, 3, 3)
    listed = [(one["part"], one["tasks"], one["gpus"], one["gpu_types"]) for one in found["parts"]]
    assert listed == [("t", 2, 4, None), ("r", 1, 1, None)]
    assert [sum(one["servers"].values()) for one in found["parts"]] == [2, 1]
    large = {**job, "job": "b", "parts": [{**parts[0], "tasks": 1000}, parts[1]]}
    assert client.post("/v1/jobs", json=large).status_code == 201
    found = client.get("/v1/jobs/b").json()
    assert (found["state"], found["servers"], found["why"] != "") == ("submitted", {}, True)
    for wrong, words in (
        ({"tasks": 2}, "expected none for the job itself"),
        ({"parts": [parts[0], parts[0]]}, "each part once"),
        ({"parts": [{"part": "t", "gpus": 1.5}]}, "expected whole GPUs"),
        ({"parts": [{"tasks": 1}]}, "required field `part`"),
        ({"parts": []}, "within is 'region'"),
    ):
        answer = client.post("/v1/jobs", json={**job, "job": "c", **wrong})
        assert (answer.status_code, words in answer.json()["detail"]) == (422, True)


def test_lists_of_jobs(client: TestClient) -> None:
    answer = client.post("/v1/jobs", json=[long("a"), long("team/b", tier=2)])
    assert answer.status_code == 201
    answer = client.post("/v1/jobs", json=[long("a"), long("c")])
    assert answer.status_code == 207
    assert [one["result"] for one in answer.json()["jobs"]] == ["exists", "accepted"]
    first = client.get("/v1/jobs", params={"limit": 2}).json()
    assert ([one["job"] for one in first["jobs"]], first["count"]) == (["a", "team/b"], 3)
    rest = client.get("/v1/jobs", params={"after": "team/b"}).json()
    assert [one["job"] for one in rest["jobs"]] == ["c"]
    assert client.get("/v1/jobs/team/b").json()["tier"] == 2
    assert client.get("/v1/jobs", params={"state": "held"}).json()["jobs"] == []


def test_the_queue_is_listed_by_place(client: TestClient) -> None:
    client.post("/v1/jobs", json=[long(f"full-{number}", tier=0) for number in range(3)])
    client.post("/v1/jobs", json=[long(f"{tier}-{number}", tier=tier) for number in range(2) for tier in (2, 0, 1)])
    asked = {"state": "waiting", "order": "place"}
    found = client.get("/v1/jobs", params=asked).json()
    assert [one["place"] for one in found["jobs"]] == [1, 2, 3, 4, 5, 6]
    names = [one["job"] for one in found["jobs"]]
    assert names == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]
    for at, name in enumerate(names):
        rest = client.get("/v1/jobs", params={**asked, "after": name, "limit": 2}).json()
        assert ([one["job"] for one in rest["jobs"]], rest["matching"]) == (names[at + 1 : at + 3], 6)
    by_submission = client.get("/v1/jobs", params={"state": "waiting", "after": "0-0"}).json()
    assert [one["job"] for one in by_submission["jobs"]] == ["1-0", "2-1", "0-1", "1-1"]
    assert client.get("/v1/jobs", params={"order": "name"}).status_code == 422


def test_a_job_that_waits_is_explained_and_cancelled(client: TestClient) -> None:
    client.post("/v1/jobs", json=[long(name, tier=0) for name in "abcd"])
    waiting = [one["job"] for one in client.get("/v1/jobs").json()["jobs"] if one["state"] in ("submitted", "queued")]
    (name,) = waiting
    found = client.get(f"/v1/jobs/{name}/explain").json()
    assert found["bids"] == []
    assert {one["cluster"] for one in found["clusters"]} == {"east-1", "west-1"}
    assert all(one["why"] for one in found["clusters"])
    answer = client.delete(f"/v1/jobs/{name}")
    assert (answer.status_code, answer.json()["result"]) == (202, "cancelled")
    assert client.get(f"/v1/jobs/{name}").json()["state"] == "cancelled"
    other = next(one for one in "abcd" if one != name)
    assert client.get(f"/v1/jobs/{other}/explain").status_code == 409


def test_what_if_changes_nothing(client: TestClient) -> None:
    before = client.get("/v1/events").json()["last"]
    found = client.post("/v1/whatif", json=long("x", tasks=2)).json()
    assert [bid["region"] for bid in found["bids"]] == ["east"]
    assert {one["cluster"]: one["fits"] for one in found["clusters"]} == {"east-1": True, "west-1": False}
    assert client.get("/v1/events").json()["last"] == before
    assert client.get("/v1/jobs").json()["count"] == 0


def test_servers_data_and_quotas(client: TestClient) -> None:
    assert client.put("/v1/datasets/logs", json={"regions": ["west"], "size_tb": 1}).status_code == 200
    client.post("/v1/jobs", json=long("a", datasets=["logs"]))
    assert client.get("/v1/jobs/a").json()["region"] == "west"
    client.put("/v1/datasets/logs", json={"regions": ["west", "east"]})
    assert client.get("/v1/fleet").json()["datasets"] == {"logs": ["east", "west"]}
    client.put("/v1/datasets/logs", json={"regions": ["east"]})
    assert client.get("/v1/fleet").json()["datasets"] == {"logs": ["east"]}
    new = {"state": "up", "region": "west", "cluster": "west-1", "rack": "west-r", "gpu_type": "H100", "gpus": 16}
    assert client.put("/v1/servers/s9", json=new).status_code == 200
    client.post("/v1/jobs", json=long("b", gpus=16))
    assert client.get("/v1/jobs/b").json()["servers"] == {"s9": 1}
    assert client.put("/v1/servers/s9", json={"state": "down"}).status_code == 200
    found = {one["server"]: one for one in client.get("/v1/fleet").json()["servers"]}
    assert (found["s9"]["state"], found["s2"]["used"]) == ("down", 8)
    assert client.get("/v1/jobs/b").json()["state"] == "queued"
    assert client.put("/v1/servers/s9", json={"state": "up"}).status_code == 200
    assert client.get("/v1/jobs/b").json()["servers"] == {"s9": 1}
    elsewhere = new | {"region": "east"}
    assert client.put("/v1/servers/s10", json=elsewhere).status_code == 422
    assert client.put("/v1/quotas/team", json={"gpus": 12}).status_code == 200
    assert client.get("/v1/fleet").json()["quotas"] == {"team": 12}
    client.put("/v1/quotas/team", json={"gpus": None})
    assert client.get("/v1/fleet").json()["quotas"] == {}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "is no JSON"),
        (b"\xff", 400, "is no JSON"),
        (b"[" * 100_000, 400, "is no JSON"),
        (b'{"job":' + b"[" * 10_000, 422, "Expected `str`"),
        (b"3", 422, "Expected `object`"),
        (b"{}", 422, "missing required field `job`"),
        (b'{"job": "a", "gpu": 3}', 422, "unknown field `gpu`"),
        (b'{"job": "a", "min_tasks": 1}', 422, "unknown field `min_tasks`"),
        (b'{"job": "a b"}', 422, "regex"),
        (b'{"job": "../x"}', 422, "regex"),
        (b'{"job": "a\\n"}', 422, "regex"),
        (b'{"job": "a", "tenant": "a\\n"}', 422, "regex"),
        (b'{"job": "a", "tier": 10}', 422, "<= 9"),
        (b'{"job": "a", "gpus": 1.5}', 422, "expected whole GPUs"),
        (b'{"job": "a", "gpus": -1}', 422, ">= 0"),
        (b'{"job": "a", "gpus": 1e999}', 422, "out of range"),
        (b'{"job": "a", "within": "room"}', 422, "room"),
        (b'[{"job": "a"}, {"job": 3}, {"tier": 1}]', 422, "2 of 3 jobs have faults"),
        (b"[" + b"1," * 10_000 + b"1]", 413, "<= 10000"),
        (b" " * (MOST_BYTES + 1), 413, "expected at most"),
    ],
)
def test_bodies_that_cannot_be_honoured(client: TestClient, body: bytes, status: int, words: str) -> None:
    answer = client.post("/v1/jobs", content=body, headers={"content-type": "application/json"})
    found = answer.json()
    assert (answer.status_code, found["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in found["detail"]
    assert client.get("/v1/jobs").json()["count"] == 0


def test_every_fault_of_a_list_is_named(client: TestClient) -> None:
    found = client.post("/v1/jobs", json=[{"job": "a"}, {"job": 3}, {"tier": 1}]).json()
    assert [fault.partition(":")[0] for fault in found["faults"]] == ["job 1", "job 2"]


def test_other_requests_that_cannot_be_honoured(client: TestClient) -> None:
    cases = [
        ("GET", "/v1/nothing", None, 404),
        ("PATCH", "/v1/jobs", None, 405),
        ("GET", "/v1/jobs/none", None, 404),
        ("GET", "/v1/jobs?limit=0", None, 422),
        ("GET", "/v1/jobs?after=none", None, 422),
        ("GET", "/v1/events?after=99999999", None, 422),
        ("PUT", "/v1/servers/none", {"state": "down"}, 422),
        ("PUT", "/v1/quotas/a", {}, 422),
        ("PUT", "/v1/quotas/a%20b", {"gpus": 1}, 422),
    ]
    for method, path, body, status in cases:
        answer = client.request(method, path, json=body)
        assert (path, answer.status_code) == (path, status)
        assert answer.json()["type"].startswith("urn:mast-opt:")
    answer = client.post("/v1/jobs", content=b"job=a", headers={"content-type": "text/plain"})
    assert answer.status_code == 415


def test_what_has_no_name_may_be_said(client: TestClient) -> None:
    body = long("a", tenant="", workload="", namespace="")
    assert client.post("/v1/jobs", json=body).status_code == 201
    assert client.put("/v1/datasets/d", json={"regions": ["east"], "namespace": ""}).status_code == 200


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/jobs", "GET, HEAD, POST"),
        ("/v1/jobs/a", "DELETE, GET, HEAD"),
        ("/v1/solves", "GET, HEAD, POST"),
        ("/v1/servers/a", "PUT"),
    ],
)
def test_a_method_that_is_not_allowed_gets_those_that_are(client: TestClient, path: str, allowed: str) -> None:
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json"}):
        answer = client.patch(path, headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
        for method in {"POST", "PUT", "DELETE"} - {*allowed.split(", ")}:
            assert client.request(method, path, content=b"a", headers=headers).status_code == 405


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_no_type_makes_a_path_that_there_is_not(client: TestClient, method: str) -> None:
    assert client.request(method, "/v1/nothing", content=b"a").status_code == 404


def test_the_document_has_every_refusal_of_a_type(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            headers = {"Content-Type": "text/plain"}
            if method != "get":
                answer = client.request(method, re.sub("{.*?}", "a", path), content=b"a", headers=headers)
                assert (answer.status_code, "415" in operation["responses"]) == (415, True), (method, path)
            assert ("415" in operation["responses"]) == (method != "get")
            assert "409" in operation["responses"] or method != "put"  # what it was asked of may have changed


def test_idempotency_keys(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = client.post("/v1/jobs", json=long("a"), headers=headers)
    again = client.post("/v1/jobs", json=long("a"), headers=headers)
    assert (first.status_code, first.text) == (again.status_code, again.text) == (201, again.text)
    other = client.post("/v1/jobs", json=long("b"), headers=headers)
    assert (other.status_code, other.json()["type"]) == (422, "urn:mast-opt:key-reused")
    assert client.post("/v1/jobs", json=long("b"), headers={"Idempotency-Key": "a b"}).status_code == 422
    assert client.get("/v1/jobs").json()["count"] == 1
    headers = {"Idempotency-Key": "k2"}
    assert client.put("/v1/quotas/research", json={"gpus": 4}, headers=headers).status_code == 200
    elsewhere = client.put("/v1/quotas/sales", json={"gpus": 4}, headers=headers)
    assert (elsewhere.status_code, elsewhere.json()["type"]) == (422, "urn:mast-opt:key-reused")


def test_events_as_they_come(served: tuple[TestClient, Live]) -> None:
    client, live = served
    client.post("/v1/jobs", json=long("a"))
    listed = client.get("/v1/events", params={"after": 0, "limit": 3}).json()
    assert [one["event"] for one in listed["events"]] == ["ServerUp"] * 3
    with client.stream("GET", "/v1/events/stream", headers={"Last-Event-ID": "3"}) as answer:
        lines = answer.iter_lines()
        found = [next(lines) for _ in range(5)]
        live.problem = "over"
        assert found[0] == "id: 4"
        assert json.loads(found[1].removeprefix("data: "))["event"] == "LeadTaken"
        assert found[3] == "id: 5"
        for call in live._stored:
            call(0)
    live.problem = ""


def test_probes_metrics_page_and_document(served: tuple[TestClient, Live]) -> None:
    client, live = served
    client.post("/v1/jobs", json=long("a"))
    assert client.get("/livez").text == "alive\n"
    assert client.get("/readyz").status_code == 200
    text = client.get("/metrics").text
    assert 'mast_opt_gpus{region="east"} 16.0' in text
    assert 'mast_opt_requests_total{method="POST",status="201"} 1.0' in text
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http://" not in page.text
    document = client.get("/openapi.json").json()
    paths = {path.replace(":path", "") for path in document["paths"]}
    assert paths == {route.path.replace(":path", "") for route in client.app.routes if route.path.startswith("/v1")}  # type: ignore[attr-defined]
    live.problem = "reading"
    assert client.get("/readyz").status_code == 503
    refused = client.post("/v1/jobs", json=long("b"))
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    live.problem = ""


def test_tokens_scopes_and_tenants(tmp_path: Path) -> None:
    access = Access(tmp_path / "tokens.json")
    tokens = {
        "ada": access.add("ada", ["submit", "read"], "research"),
        "eve": access.add("eve", ["read"]),
        "ops": access.add("ops", ["read", "operate", "submit"]),
        "lead": access.add("lead", ["submit", "operate"], "research"),
    }
    stored = (tmp_path / "tokens.json").read_text()
    assert all(token not in stored for token in tokens.values())
    with running(tmp_path / "state") as (live, store):
        client = web(build(live, store, Access(tmp_path / "tokens.json")))

        def ask(who: str, method: str, path: str, body: object = None) -> int:
            headers = {"Authorization": f"Bearer {tokens.get(who, who)}"} if who else {}
            return client.request(method, path, json=body, headers=headers).status_code

        assert ask("", "GET", "/v1/jobs") == ask("wrong", "GET", "/v1/jobs") == ask("", "GET", "/metrics") == 401
        assert ask("eve", "GET", "/v1/jobs") == ask("eve", "GET", "/metrics") == 200
        assert ask("eve", "POST", "/v1/jobs", long("a")) == 403
        assert ask("ada", "POST", "/v1/jobs", long("a")) == 201
        assert live._engine.state.jobs["a"].spec.tenant == "research"
        assert ask("ada", "POST", "/v1/jobs", long("b", tenant="other")) == 403
        assert ask("ops", "POST", "/v1/jobs", long("c", tenant="other")) == 201
        assert ask("ada", "DELETE", "/v1/jobs/c") == 403
        assert ask("ops", "DELETE", "/v1/jobs/c") == 202
        assert ask("ops", "POST", "/v1/jobs", long("d", tenant="other")) == 201
        assert ask("lead", "DELETE", "/v1/jobs/d") == 202
        assert ask("ada", "PUT", "/v1/quotas/research", {"gpus": 1}) == 403
        assert ask("", "GET", "/livez") == ask("", "GET", "/") == 200


def test_a_tenant_sees_its_own_quotas_and_those_above_it(tmp_path: Path) -> None:
    access = Access(tmp_path / "tokens.json")
    of_tenant = access.add("ada", ["read"], "team")
    of_all = [access.add("eve", ["read"]), access.add("lead", ["read", "operate"], "team")]
    with running(tmp_path / "state") as (live, store):
        client = web(build(live, store, access))
        operator = {"Authorization": f"Bearer {of_all[1]}"}
        for name, parent in (("top", ""), ("lab", "top"), ("team", "lab"), ("rival", "lab"), ("stranger", "")):
            body = {"gpus": 1, "parent": parent}
            assert client.put(f"/v1/quotas/{name}", json=body, headers=operator).status_code == 200

        def seen(token: str) -> tuple[list[str], list[str], list[str]]:
            headers = {"Authorization": f"Bearer {token}"}
            paths = ("quotas", "fleet", "overview")
            quotas, fleet, overview = (client.get(f"/v1/{path}", headers=headers).json() for path in paths)
            return (
                [one["tenant"] for one in quotas["quotas"]],
                list(fleet["quotas"]),
                [one["tenant"] for one in overview["tenants"]],
            )

        assert seen(of_tenant) == (["lab", "team", "top"], ["lab", "team", "top"], ["team"])
        for token in of_all:
            everybody = ["lab", "rival", "stranger", "team", "top"]
            assert seen(token) == (everybody, everybody, everybody)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic wrong", "Bearer w\xf6rng"])
def test_a_wrong_token_is_refused_with_the_reason(tmp_path: Path, header: str | None) -> None:
    access = Access(tmp_path / "tokens.json")
    token = access.add("ada", ["submit", "read"])
    headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
    with running(tmp_path / "state") as (live, store):
        client = web(build(live, store, access))
        for method, path in (("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("PUT", "/v1/quotas/a"), ("GET", "/metrics")):
            answer = client.request(method, path, headers=headers, json=None if method == "GET" else {"job": "a"})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json() | {"title": ""} == {
                "type": "urn:mast-opt:token",
                "title": "",
                "status": 401,
                "detail": "expected an Authorization header with Bearer and a token that is known",
            }
        assert client.get("/v1/jobs", headers={"Authorization": f"Basic {token}"}).status_code == 401
        assert client.get("/v1/jobs", headers={"Authorization": f"bearer {token}"}).json()["count"] == 0
        assert token not in client.get("/v1/jobs", headers={"Authorization": f"Bearer {token}x"}).text


def test_who_asks_too_often_waits(tmp_path: Path) -> None:
    now = 0.0
    access = Access(None, rate=2, burst=3, clock=lambda: now)
    with running(tmp_path) as (live, store):
        client = web(build(live, store, access))
        codes = [client.get("/v1/fleet").status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]
        now = 0.5
        assert client.get("/v1/fleet").status_code == 200
        refused = client.get("/v1/fleet")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")


def test_answers_of_one_turn_wake_an_event_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> tuple[list[object], int]:
        answers, wakes, loop = Answers(), list[object](), asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def counted(*call: Any) -> object:
            wakes.append(call)
            return wake(*call)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        futures: list[Future[tuple[int, str]]] = [Future() for _ in range(4)]
        tasks = [asyncio.ensure_future(answers.of(future)) for future in futures]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
        for number, future in enumerate(futures[:3]):
            future.set_result((201, str(number)))
        futures[3].set_exception(RuntimeError("full"))
        return [str(found) for found in await asyncio.gather(*tasks, return_exceptions=True)], len(wakes)

    assert asyncio.run(ask()) == (["(201, '0')", "", "(201, '2')", "full"], 1)
