"""Who may ask: requests from other sites, other names, tokens that come and go, and who is named for what was asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from mast_opt.core.errors import InputError
from mast_opt.live.loop import events as ev
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.door import MOST_HEADERS, AccessLog, Hosts
from mast_opt.live.service.problems import Problem
from mast_opt.live.store.sql_store import SqlStore
from tests.cli.conftest import Call, call
from tests.platforms import BROWSER, needs
from tests.service.loops import running, web
from tests.service.processes import Service

__all__ = ["call"]
JOB = {"job": "a", "gpus": 8, "duration_s": 3600}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[TestClient, SqlStore]]:
    log = AccessLog(tmp_path / "access.jsonl")
    with running(tmp_path) as (live, store):
        yield web(build(live, store, Access(tmp_path / "tokens.json"), log=log)), store


@pytest.fixture
def client(served: tuple[TestClient, SqlStore]) -> TestClient:
    return served[0]


# --- other sites ---


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/jobs"), ("POST", "/v1/whatif"), ("PUT", "/v1/quotas/a"), ("POST", "/v1/plans/p/adopt")],
)
@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "text/plain; application/json"]
)
def test_a_change_bears_the_type_of_json(client: TestClient, method: str, path: str, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    answer = client.request(method, path, content=json.dumps(JOB).encode(), headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (415, "urn:mast-opt:media-type")
    assert client.request(method, path, headers=headers).status_code == 415
    assert client.get("/v1/jobs").json()["count"] == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://localhost"},
        {"Origin": "http://localhost:8000"},
        {"Origin": "http://localhost.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
    ],
)
def test_a_page_of_another_site_may_ask_nothing(client: TestClient, headers: dict[str, str]) -> None:
    for method, path in (("POST", "/v1/jobs"), ("GET", "/v1/jobs"), ("DELETE", "/v1/jobs/a"), ("GET", "/metrics")):
        answer = client.request(method, path, headers=headers, json=JOB if method == "POST" else None)
        assert (answer.status_code, answer.json()["type"]) == (403, "urn:mast-opt:other-site")
    assert client.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Content-Type", ("application/json", "text/plain")),
        ("Sec-Fetch-Site", ("same-origin", "cross-site")),
        ("Idempotency-Key", ("one", "two")),
        ("Authorization", ("Bearer one", "Bearer two")),
    ],
)
def test_a_header_that_is_there_twice_is_not_read_once(client: TestClient, name: str, values: tuple[str, str]) -> None:
    headers = [("Content-Type", "application/json")] if name != "Content-Type" else []
    headers += [(name, value) for value in values]
    answer = client.post("/v1/jobs", content=json.dumps(JOB), headers=headers)
    assert (answer.status_code, answer.json()["detail"].split(";")[0]) == (
        422,
        f"the header {name.lower()} is there twice",
    )
    assert client.get("/v1/jobs").json()["count"] == 0


def test_a_body_that_is_packed_is_refused(client: TestClient) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert client.post("/v1/jobs", content=json.dumps(JOB), headers=headers).status_code == 415
    assert client.post(
        "/v1/jobs", content=json.dumps(JOB), headers=headers | {"Content-Encoding": "identity"}
    ).is_success


@pytest.mark.parametrize("path", ["/v1/jobs?limt=1", "/v1/jobs?limit=1&limit=2", "/v1/fleet?x", "/v1/jobs/a?why=1"])
def test_a_query_that_would_be_ignored_is_refused(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, "the query has" in answer.json()["detail"]) == (422, True)


def test_what_an_address_would_change_is_no_name(client: TestClient) -> None:
    server = {"state": "up", "region": "east", "cluster": "east-1", "rack": "east-r", "gpu_type": "H100", "gpus": 8}
    for name in ("a%2F..%2Fb", "a%2F%2Fb", "a%2F."):
        for path, body in (("servers", server), ("datasets", {"regions": []}), ("quotas", {"gpus": 1})):
            assert client.put(f"/v1/{path}/{name}", json=body).status_code == 422
    assert len(client.get("/v1/fleet").json()["servers"]) == 3


def test_the_own_page_and_programs_may(client: TestClient) -> None:
    own = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/v1/jobs", json=JOB, headers=own).status_code == 201
    assert client.delete("/v1/jobs/a", headers=own).status_code == 202
    assert client.get("/v1/jobs", headers={"Sec-Fetch-Site": "none"}).status_code == 200


@pytest.mark.parametrize(
    ("host", "alone", "other"),
    [
        ("localhost:8765", True, True),
        ("127.0.0.1:8765", True, True),
        ("[::1]:8765", True, True),
        ("mast.example", True, True),
        ("MAST.example.:443", True, True),
        ("10.0.0.7:8765", False, True),
        ("evil.example", False, False),
        ("evil.example:8765", False, False),
        ("mast.example.evil.example", False, False),
        ("localhost:80.evil.example", False, False),
        ("localhost@evil.example", False, False),
        ("evil.example@localhost", False, False),
        ("localhost/evil.example", False, False),
        ("localhost?evil.example", False, False),
        ("localhost#evil.example", False, False),
        ("[", False, False),
        ("", False, False),
    ],
)
def test_the_names_under_which_a_service_is_reached(tmp_path: Path, host: str, alone: bool, other: bool) -> None:
    names = ("mast.example",)
    assert Hosts(names).has(host) is alone
    assert Hosts(names, alone=False).has(host) is other
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None), hosts=Hosts(names)))
        for method, path in (("GET", "/"), ("GET", "/v1/fleet"), ("POST", "/v1/jobs"), ("GET", "/livez")):
            answer = client.request(method, path, headers={"Host": host}, json=JOB if method == "POST" else None)
            assert (answer.status_code != 421) is alone


def test_behind_a_proxy_the_page_is_of_its_name(tmp_path: Path) -> None:
    access = Access(tmp_path / "tokens.json")
    token = access.add("ada", ["submit"])
    with running(tmp_path) as (live, store):
        hosts = Hosts(("mast.example",), alone=False)
        client = web(build(live, store, access, hosts=hosts, behind_proxy=True))
        for origin, status in (
            ("https://mast.example", 201),
            ("https://evil.example", 403),
            ("https://localhost:1", 403),
        ):
            headers = {"Host": "10.0.0.7", "Origin": origin, "Authorization": f"Bearer {token}"}
            forwarded = [("X-Forwarded-For", one) for one in ("6.6.6.6, 7.7.7.7", "10.1.1.1")]  # the proxy adds a line
            asked = [*headers.items(), *forwarded]
            assert client.post("/v1/jobs", json=JOB, headers=asked).status_code == status
        assert [one.by.split()[:2] for one in store.of_job("a")][:1] == [["ada", "10.1.1.1"]]


EVIL = """<!doctype html><title>evil</title><pre id=said>asking</pre><script>
const at = decodeURIComponent(location.hash.slice(1));
async function ask(path, how) {
  try {
    const one = await fetch(at + path, how);
    return one.type + " " + one.status;
  } catch (error) { return "none"; }
}
(async () => {
  const job = (name) => JSON.stringify({job: name, gpus: 1, duration_s: 3600});
  const said = [
    await ask("v1/jobs", {method: "POST", mode: "no-cors", body: job("plain")}),
    await ask("v1/jobs", {method: "POST", mode: "no-cors", body: new Blob([job("blob")])}),
    await ask("v1/jobs", {method: "POST", body: job("json"), headers: {"Content-Type": "application/json"}}),
    await ask("v1/jobs/mine", {method: "DELETE"}),
    await ask("v1/servers/" + "x", {method: "PUT", body: "{}"}),
    await ask("v1/fleet", {}),
  ];
  document.getElementById("said").textContent = "done: " + said.join("; ");
})();
</script>"""


class Evil(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(EVIL.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def seen(url: str, *more: str) -> str:
    """What a browser makes of a page."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=15000", "--dump-dom", *more]
    assert BROWSER is not None
    return subprocess.run([BROWSER, *options, url], check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.second_tier
@needs("browser")
@needs("signals")
def test_a_page_in_the_operators_browser_changes_nothing(tmp_path: Path) -> None:
    service = Service(tmp_path / "state")
    evil = ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=evil.serve_forever, daemon=True).start()
    try:
        httpx.post(service.url + "v1/jobs", json={**JOB, "job": "mine"}).raise_for_status()
        there = f"http://evil.test:{evil.server_port}/#"
        port = service.url.rstrip("/").rpartition(":")[2]
        for target in (service.url, f"http://fleet.test:{port}/"):
            page = seen(there + target, "--host-resolver-rules=MAP *.test 127.0.0.1")
            assert "done: " in page
            assert not {"basic 200", "cors 200", "cors 201"} & set(page.partition("done: ")[2].split("; "))
        assert [one["job"] for one in httpx.get(service.url + "v1/jobs").json()["jobs"]] == ["mine"]
        page = seen(service.url)
        assert ">1<" in page.partition("start, run or stop")[0]
        rebound = seen(f"http://fleet.test:{port}/", "--host-resolver-rules=MAP *.test 127.0.0.1")
        assert "is not called" in rebound
    finally:
        evil.shutdown()
        evil.server_close()
        service.process.kill()
        service.process.wait()
        assert service.process.stderr is not None
        service.process.stderr.close()


# --- tokens ---


def test_tokens_are_read_again(tmp_path: Path, served: tuple[TestClient, SqlStore]) -> None:
    client, _ = served
    assert client.get("/v1/overview").json()["open"] is True  # the page says so
    path = tmp_path / "tokens.json"
    ada = {"Authorization": "Bearer " + Access(path).add("ada", ["read"])}
    assert client.get("/v1/fleet").status_code == 401
    assert client.get("/v1/overview", headers=ada).json()["open"] is False
    eve = {"Authorization": "Bearer " + Access(path).add("eve", ["read"])}
    assert client.get("/v1/fleet", headers=eve).status_code == 200
    stored = json.loads(path.read_text())
    stored["tokens"] = [one for one in stored["tokens"] if one["name"] == "ada"]
    path.write_text(json.dumps(stored))
    assert client.get("/v1/fleet", headers=eve).status_code == 401
    assert client.get("/v1/fleet", headers=ada).status_code == 200
    other = stored["tokens"][0] | {"hash": "é"}
    changes: list[dict[str, Any]] = [{"tokens": []}, {"tokens": [other]}, {"salt": "00" * 65}]
    odd = [json.dumps(stored | change) for change in changes]
    for damaged in (*odd, "", "{", "[]", json.dumps(stored)[:-9]):
        path.write_text(damaged)
        for headers in ({}, ada):
            answer = client.get("/v1/fleet", headers=headers)
            assert (answer.status_code, answer.json()["type"]) == (503, "urn:mast-opt:tokens")
        assert client.get("/livez").status_code == client.get("/").status_code == 200
    path.write_text(json.dumps(stored))
    assert client.get("/v1/fleet", headers=ada).status_code == 200
    path.unlink()
    assert client.get("/v1/fleet", headers=ada).status_code == client.get("/v1/fleet").status_code == 503


@needs("mode bits")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_believed(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "tokens.json"
    token = Access(path).add("ada", ["read"])
    path.chmod(mode)
    access = Access(path)
    assert "may be written by others" in access.problem
    with running(tmp_path / "state") as (live, store):
        client = web(build(live, store, access))
        assert client.get("/v1/fleet", headers={"Authorization": f"Bearer {token}"}).status_code == 503
    with pytest.raises(InputError, match="others"):
        access.add("eve", ["read"])


@pytest.mark.parametrize("rate", [0.5, 5, 5000])
def test_as_much_at_once_as_in_two_seconds(rate: float) -> None:
    access, let_in = Access(None, rate=rate, clock=lambda: 0.0), 0
    with suppress(Problem):
        while let_in < 20_000:
            access.principal(None)
            let_in += 1
    assert let_in == max(1, 2 * rate)


@pytest.mark.parametrize("more", [["--behind-proxy"], ["--listen", "0.0.0.0:0"]])
def test_no_tokens_this_machine_alone(call: Call, tmp_path: Path, more: list[str]) -> None:
    said = call("serve", "--state", tmp_path, *more)
    assert said.code == 2
    assert "there are no tokens" in said.err


@pytest.mark.second_tier
@needs("signals")
@pytest.mark.parametrize(
    ("tokens", "words", "status"),
    [(None, "There are no tokens", 200), ('{"salt": "00", "tokens": []}', "Nobody is let in", 503)],
)
def test_each_start_says_who_is_let_in(tmp_path: Path, tokens: str | None, words: str, status: int) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    if tokens is not None:
        (tmp_path / "state" / "tokens.json").write_text(tokens)
        (tmp_path / "state" / "tokens.json").chmod(0o600)
    more = () if tokens is None else ("--behind-proxy",)
    for _ in range(2):
        service = Service(tmp_path / "state", *more, waits=True)
        try:
            service.announced(f"{words}: ")
            service.announced()
            assert httpx.get(service.url + "v1/jobs").status_code == status
            if tokens is None:
                assert "mast_opt_open 1.0" in httpx.get(service.url + "metrics").text
        finally:
            service.end(signal.SIGTERM)


def test_a_password_does_not_stand_among_the_arguments(call: Call, tmp_path: Path) -> None:
    for url in ("postgresql://me:secret@localhost/x", "postgresql://localhost/x?password=secret"):
        said = call("serve", "--state", url)
        assert said.code == 2
        assert "list of processes" in said.err
        assert "secret" not in said.err
    (tmp_path / "url").write_text("mysql://me:secret@localhost/x\n")
    said = call("serve", "--state", f"@{tmp_path / 'url'}")
    assert said.code == 2
    assert "expected a folder or postgresql" in said.err


# --- who asked ---


def test_the_log_and_the_access_log_name_who_asked(tmp_path: Path, served: tuple[TestClient, SqlStore]) -> None:
    client, store = served
    ada = {"Authorization": "Bearer " + Access(tmp_path / "tokens.json").add("ada", ["submit", "operate", "read"])}
    answer = client.post("/v1/jobs", json=JOB, headers={**ada, "X-Request-Id": "r-1"})
    assert answer.headers["x-request-id"] == "r-1"
    other = client.put("/v1/servers/s2", json={"state": "down"}, headers={**ada, "X-Request-Id": "no id\t"})
    client.delete("/v1/jobs/a", headers=ada)
    client.get("/v1/jobs", headers={"Authorization": "Bearer x"})
    by = {type(one.event): one.by for one in store.read() if one.by}
    assert by[ev.Submitted] == "ada testclient r-1"
    assert by[ev.ServerDown] == f"ada testclient {other.headers['x-request-id']}"
    assert set(by) == {ev.Submitted, ev.ServerDown, ev.Cancelled}
    listed = client.get("/v1/events", headers=ada).json()["events"]
    assert {one["event"] for one in listed if "by" in one} == {"Submitted", "ServerDown", "Cancelled"}
    lines = [json.loads(line) for line in (tmp_path / "access.jsonl").read_text().splitlines()]
    shown = [(one["by"], one["method"], one["path"], one["status"]) for one in lines]
    assert shown == [
        ("ada", "POST", "/v1/jobs", 201),
        ("ada", "PUT", "/v1/servers/s2", 200),
        ("ada", "DELETE", "/v1/jobs/a", 202),
        ("", "GET", "/v1/jobs", 401),
        ("ada", "GET", "/v1/events", 200),
    ]
    assert lines[0]["request"] == "r-1"
    if os.name == "posix":
        assert (tmp_path / "access.jsonl").stat().st_mode & 0o777 == 0o600


def test_an_access_log_does_not_grow_for_ever_and_never_hurts(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "a.jsonl", most_bytes=100)
    for number in range(50):
        log.write({"number": number})
    log.close()
    assert {path.name for path in tmp_path.iterdir()} == {"a.jsonl", "a.jsonl.1"}
    assert json.loads((tmp_path / "a.jsonl").read_text().splitlines()[-1]) == {"number": 49}
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())
    AccessLog(tmp_path / "none" / "a.jsonl").write({})


def test_many_and_large_headers_are_refused(client: TestClient) -> None:
    many = {f"x-{number}": "a" for number in range(MOST_HEADERS)}
    for headers in (many, {"x": "a" * 20_000}):
        answer = client.get("/v1/fleet", headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (431, "urn:mast-opt:headers")


@pytest.mark.parametrize("name", ["a/..", "a/../b", "a/./b", "a//b", "a/explain", "b/a/explain"])
def test_a_name_that_an_address_cannot_carry_is_refused(client: TestClient, name: str) -> None:
    for body in ({**JOB, "job": name}, {**JOB, "tenant": name}, {**JOB, "datasets": [name]}):
        assert client.post("/v1/jobs", json=body).status_code == 422
    assert client.get("/v1/jobs").json()["count"] == 0
    assert client.post("/v1/jobs", json={**JOB, "job": "a/explained/..b"}).status_code == 201
    assert client.get("/v1/jobs/a/explained/..b").json()["job"] == "a/explained/..b"
