"""One client at its limit leaves the others, and the probes, as they are."""

from __future__ import annotations

import json
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from mast_opt.live.service import connections, door, handlers, requests
from mast_opt.live.service import live as loop_of_service
from mast_opt.live.service.access import MOST_READS, Access
from mast_opt.live.service.app import build
from mast_opt.live.service.live import Live, LiveParams
from mast_opt.live.service.one_solve import Solve, SolveLimits
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.requests import SolveRequest
from mast_opt.live.service.solve_files import ASKED
from mast_opt.live.service.solves import MOST_AT_ONCE, MOST_KEPT, Solves
from mast_opt.live.service.streams import MOST_OF_CLIENT, MOST_STREAMS
from mast_opt.live.store.sql_store import SqlStore
from tests.platforms import needs
from tests.service.loops import running, submit, web
from tests.service.test_live import until

MOST = 8
NUMBERS = {1: "one", 2: "two", 3: "three"}


@contextmanager
def listening(folder: Path, access: Access | None = None, **more: Any) -> Iterator[tuple[str, int, Live, SqlStore]]:
    """A server with few connections, in this process."""
    with running(folder) as (live, store):
        listener = socket.create_server(("127.0.0.1", 0))
        app, http = build(live, store, access or Access(None)), connections.limited(MOST)
        server = connections.Server(uvicorn.Config(app, http=http, log_level="error", ws="none", **more))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        port = listener.getsockname()[1]
        yield f"http://127.0.0.1:{port}/", port, live, store
        server.should_exit = True
        thread.join()
        listener.close()


def _opened(stack: ExitStack, port: int, said: bytes = b"") -> socket.socket:
    one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
    one.sendall(said)
    return one


@pytest.mark.parametrize(
    "said", [b"", b"GET /livez HTTP/1.1\r\nHost: localh", b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"]
)
def test_connections_that_say_nothing_keep_nobody_out(tmp_path: Path, said: bytes) -> None:
    with listening(tmp_path) as (url, port, _, _), ExitStack() as stack:
        for _ in range(3 * MOST):
            _opened(stack, port, said)
            time.sleep(0.002)
        for _ in range(3):
            assert httpx.get(url + "livez").status_code == 200
        assert httpx.post(url + "v1/jobs", json={"job": "a"}).status_code == 201


def test_slow_bodies_keep_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    with listening(tmp_path) as (url, port, _, _), ExitStack() as stack:
        for _ in range(3 * MOST):
            _opened(stack, port, head)
        assert httpx.get(url + "livez").status_code == 200
        monkeypatch.setattr(handlers, "BODY_S", 0.05)
        one = _opened(stack, port, head)
        assert b" 408 " in one.recv(4096)


def test_a_head_that_does_not_come_or_does_not_end_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.1)
    with listening(tmp_path) as (url, port, _, _), ExitStack() as stack:
        for said in (b"", b"GET / HTTP/1.1\r\n"):
            assert _closed(_opened(stack, port, said))
        endless = _opened(stack, port, b"GET / HTTP/1.1\r\nX: ")
        with pytest.raises(ConnectionError):
            _sent_until_closed(endless)
        again = _opened(stack, port, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in again.recv(4096)
        again.sendall(b"GET /livez HT")
        assert _closed(again)
        assert httpx.get(url + "livez").status_code == 200


def test_what_tls_agrees_on_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    monkeypatch.setattr(uvicorn.config, "create_ssl_context", lambda *_, **__: context)
    with listening(tmp_path, ssl_certfile="none") as (_, port, _, _), ExitStack() as stack:
        assert _closed(_opened(stack, port))


def test_what_the_system_lacks_stands_in_the_log_once_a_minute() -> None:
    now = [100.0]
    limited, lines = connections.RateLimitedErrors(lambda: now[0]), []
    for error in (OSError(24, "Too many open files"), OSError(24, "Too many open files"), ValueError()):
        for now[0] in (100.0, 100.0, 161.0):
            record = logging.LogRecord("asyncio", logging.ERROR, "", 0, "", (), (type(error), error, None))
            lines.append(limited.filter(record))
    assert lines == [True, False, True, False, False, False, True, True, True]


def test_an_answer_that_takes_long_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for a head is over when the head is there: streams and slow answers go on."""
    monkeypatch.setattr(connections, "HEAD_S", 0.1)
    with listening(tmp_path) as (_, port, live, _), ExitStack() as stack:
        one = _opened(stack, port, b"GET /v1/fleet HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stream = _opened(stack, port, b"GET /v1/events/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 0\r\n\r\n")
        with live._lock:
            time.sleep(0.5)
        assert b" 200 " in one.recv(4096)
        time.sleep(0.3)
        submit(live, "a").result(60)
        said = b""
        while b"Submitted" not in said:
            more = stream.recv(65_536)
            assert more, said
            said += more
        live.problem = "over"
        submit(live, "b")
        live.problem = ""


def _sent_until_closed(one: socket.socket, line: bytes = b"") -> None:
    for _ in range(1000):
        one.sendall(line + b"a" * 1024)
        time.sleep(0.0005)


def _closed(one: socket.socket) -> bool:
    one.settimeout(30)
    with suppress(ConnectionError):
        while one.recv(4096):
            pass
    return True


def test_a_chunked_body_has_a_limit_too(tmp_path: Path) -> None:
    with listening(tmp_path) as (url, _, _, _):

        def parts() -> Iterator[bytes]:
            for _ in range(9):
                yield b" " * 2**20

        answer = httpx.post(url + "v1/jobs", content=parts(), headers={"content-type": "application/json"})
        assert answer.status_code == 413


CHUNKED = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b'Transfer-Encoding: chunked\r\n\r\n9\r\n{"job":1}\r\n0\r\n'
)


def test_what_follows_a_chunked_body_is_no_header(tmp_path: Path) -> None:
    with listening(tmp_path) as (_, port, _, _), ExitStack() as stack:
        one = _opened(stack, port, CHUNKED + b"Host: evil.example\r\n\r\n")
        assert b" 422 " in one.recv(4096)  # else 421: two hosts


@pytest.mark.parametrize("line", [b"", b"\r\nX: "])
def test_what_follows_a_chunked_body_does_not_go_on_for_ever(tmp_path: Path, line: bytes) -> None:
    with listening(tmp_path) as (url, port, _, _), ExitStack() as stack:
        endless = _opened(stack, port, CHUNKED + b"X: ")
        with pytest.raises(ConnectionError):
            _sent_until_closed(endless, line)
        large = json.dumps({"job": "a" * 200_000}).encode()
        parts = iter([large[at : at + 999] for at in range(0, len(large), 999)])
        answer = httpx.post(url + "v1/jobs", content=parts, headers={"content-type": "application/json"})
        assert answer.status_code == 422  # a body may be larger than a head


def test_requests_that_wait_on_a_connection_have_a_limit(tmp_path: Path) -> None:
    one = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening(tmp_path) as (url, port, _, _), ExitStack() as stack:
        few = _opened(stack, port, one * connections.MOST_PIPELINED)
        until(lambda: few.recv(2**20, socket.MSG_PEEK).count(b" 200 ") == connections.MOST_PIPELINED)
        many = _opened(stack, port, one * 100 * connections.MOST_PIPELINED)
        said = b""
        with suppress(ConnectionError):
            while more := many.recv(2**20):
                said += more
        assert said.count(b" 200 ") < 100
        assert httpx.get(url + "livez").status_code == 200


def test_a_client_that_breaks_off_leaves_no_trace_in_the_log_of_errors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    with listening(tmp_path) as (url, port, _, _):
        for _ in range(5):
            with ExitStack() as stack:
                _opened(stack, port, head)
                httpx.get(url + "livez")
        until(lambda: 'method="POST",status="400"} 5.0' in httpx.get(url + "metrics").text)
    assert [one.getMessage() for one in caplog.records if one.name.startswith("uvicorn")] == []


def test_streams_of_one_client_leave_those_of_others(tmp_path: Path) -> None:
    access = Access(tmp_path / "tokens.json")
    tokens = {who: access.add(who, ["read"]) for who in ("ada", "eve")}
    headers = {who: {"Authorization": f"Bearer {token}"} for who, token in tokens.items()}
    with running(tmp_path / "state") as (live, store):
        from mast_opt.live.service.streams import Streams

        streams = Streams()
        streams._open["ada"] = MOST_OF_CLIENT
        client = web(build(live, store, access, streams=streams))
        assert client.get("/v1/events/stream", headers=headers["ada"]).status_code == 429
        streams.ended = True  # a stream says one thing, and ends
        assert client.get("/v1/events/stream", headers=headers["eve"] | {"Last-Event-ID": "0"}).status_code == 200
        assert streams._open["eve"] == 0
        for _ in range(MOST_READS):
            access.begin("ada")
        assert client.get("/v1/jobs", headers=headers["ada"]).status_code == 429
        for _ in range(2 * MOST_READS):
            assert client.get("/v1/jobs", headers=headers["eve"]).status_code == 200
            assert client.get("/v1/nothing", headers=headers["eve"]).status_code == 404
            assert client.get("/v1/jobs/none", headers=headers["eve"]).status_code == 404
        assert client.get("/livez").status_code == 200


def test_a_stream_ends_with_its_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    access = Access(path)
    tokens = {who: access.add(who, ["read"]) for who in ("ada", "eve")}
    with listening(tmp_path / "state", access) as (_, port, live, _), ExitStack() as stack:
        head = "GET /v1/events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
        ada, eve = (_opened(stack, port, f"{head}{tokens[who]}\r\n\r\n".encode()) for who in ("ada", "eve"))
        for number, one in enumerate((ada, eve)):
            assert b" 200 " in one.recv(4096)
            submit(live, f"before-{number}").result(60)
        stored = json.loads(path.read_text())
        stored["tokens"] = [one for one in stored["tokens"] if one["name"] == "eve"]
        (tmp_path / "new.json").write_text(json.dumps(stored))
        (tmp_path / "new.json").chmod(path.stat().st_mode)
        (tmp_path / "new.json").replace(path)  # a file that is half written would let nobody in
        submit(live, "after").result(60)
        assert (b"after" in _said(ada), b"after" in _said(eve, b"after")) == (False, True)
        live.problem = "over"
        submit(live, "b")
        live.problem = ""


def _said(one: socket.socket, until_this: bytes = b"\r\n0\r\n\r\n") -> bytes:
    """What a stream says up to this: unless given, its end."""
    said = b""
    while until_this not in said and (more := one.recv(65_536)):
        said += more
    return said


@pytest.mark.parametrize(("most", "seconds", "ended"), [(2, 60.0, 1), (100, 0.1, 3)])
def test_answers_that_are_not_read_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, seconds: float, ended: int
) -> None:
    lost: list[connections.LimitedConnection] = []
    forget = connections.LimitedConnection.connection_lost

    def noted(one: connections.LimitedConnection, error: Exception | None) -> None:
        lost.append(one)
        forget(one, error)

    monkeypatch.setattr(connections.LimitedConnection, "connection_lost", noted)
    monkeypatch.setattr(connections, "MOST_UNREAD", most)
    monkeypatch.setattr(connections, "UNREAD_S", seconds)
    asked = b"GET /v1/jobs?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening(tmp_path) as (url, port, live, _), ExitStack() as stack:
        submit(live, *(f"job-{number}" for number in range(1000))).result(60)
        for _ in range(3):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", port))
            one.sendall(20 * asked)  # more than the buffers of the system hold
        until(lambda: len(lost) == ended)
        assert httpx.get(url + "v1/fleet").status_code == 200
        assert len(lost[0].room._unread) == 3 - ended


def test_where_memory_is_short_no_job_comes_and_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None)))
        assert client.post("/v1/jobs", json={"job": "a"}).status_code == 201
        monkeypatch.setattr(loop_of_service, "WEIGH_S", 0.0)
        monkeypatch.setattr(loop_of_service, "available_bytes", lambda: loop_of_service.LEAST_BYTES - 1)
        assert client.delete("/v1/jobs/none").status_code == 404
        until(lambda: live._low)
        refused = client.post("/v1/jobs", json={"job": "b"})
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:mast-opt:memory")
        assert client.delete("/v1/jobs/a").status_code == 202
        monkeypatch.setattr(loop_of_service, "available_bytes", lambda: None)
        until(lambda: client.post("/v1/jobs", json={"job": "b"}).status_code == 201)


def test_bodies_of_one_client_together(tmp_path: Path) -> None:
    access = Access(None)
    with running(tmp_path) as (live, store):
        client = web(build(live, store, access))
        access.body_bytes["local"] = handlers.MOST_BODY_BYTES
        assert client.post("/v1/jobs", json={"job": "a"}).status_code == 429
        access.body_bytes["local"] = 0
        assert client.post("/v1/jobs", json={"job": "a"}).status_code == 201
        assert access.body_bytes["local"] == 0


def test_requests_of_one_client_that_wait_leave_room_for_others(tmp_path: Path) -> None:
    with running(tmp_path, most_waiting=8) as (live, _):
        with live._lock:
            until(lambda: not live._waiting)
            found = [submit(live, f"a{number}", by="ada local 1") for number in range(8)]
            refused = [one for one in found if one.done()]
            assert all(getattr(one.exception(), "status", 0) == 429 for one in refused)
            assert len(refused) == 6
            assert not submit(live, "b", by="eve local 1").done()
        until(lambda: all(one.done() for one in found))
        assert submit(live, "c", by="ada local 1").result(60)[0] == 201
        assert live._asking.total() == 0


def test_jobs_that_have_not_ended_have_a_limit(tmp_path: Path) -> None:
    with running(tmp_path, most_jobs=6, most_jobs_of_tenant=4) as (live, store):
        client = web(build(live, store, Access(None)))

        def post(tenant: str, *names: str) -> int:
            body = [{"job": name, "tenant": tenant, "duration_s": 999, "gpus": 8} for name in names]
            return int(client.post("/v1/jobs", json=body).status_code)

        assert post("x", *"abcd") == 201
        assert (post("x", "e"), post("y", *"efg"), post("y", *"ef")) == (429, 429, 201)
        assert post("z", "g") == 429
        assert client.delete("/v1/jobs/d").status_code == 202
        until(lambda: post("z", "g") == 201)
        assert [live._engine.state.jobs_of[tenant] for tenant in "xz"] == [3, 1]


def test_a_busy_loop_leaves_the_probes(tmp_path: Path) -> None:
    with listening(tmp_path) as (url, _, live, _):
        with live._lock:
            threads = [threading.Thread(target=_ask, args=(url + "v1/fleet",), daemon=True) for _ in range(MOST - 2)]
            for thread in threads:
                thread.start()
            assert httpx.get(url + "livez", timeout=30).status_code == 200
            assert httpx.get(url + "readyz", timeout=30).status_code == 200
        for thread in threads:
            thread.join()


def _ask(url: str) -> None:
    httpx.get(url, timeout=60)


def test_what_a_solve_may_ask_for() -> None:
    limits = SolveLimits(time_s=60, threads=2)
    limits.check(SolveRequest(path="data", time_limit_s=60, threads=2))
    for asked in (SolveRequest(path="data", time_limit_s=61), SolveRequest(path="data", time_limit_s=1, threads=3)):
        with pytest.raises(Problem, match="allows at most"):
            limits.check(asked)


def test_no_more_solves_run_than_may_at_once(tmp_path: Path) -> None:
    with running(tmp_path / "state") as (live, store):
        solves, asked = Solves(live, store, tmp_path / "plans"), SolveRequest(path="data", time_limit_s=1)
        for number in range(MOST_AT_ONCE):
            with pytest.raises(Problem, match="nothing to plan"):  # it gives its place back
                solves.prepare(asked, "ada")
            solves._solves[str(number)] = Solve(str(number), "data", "tetris", "ada", "", 0)
        with pytest.raises(Problem, match=f"{MOST_AT_ONCE} solves run already"):
            solves.prepare(asked, "ada")


@pytest.mark.second_tier
@needs("file size limits")
@pytest.mark.parametrize(("memory_mib", "file_mib", "words"), [(8192, 0, "OSError"), (300, 9, "MemoryError")])
def test_memory_and_files_of_a_solve_are_limited(memory_mib: int, file_mib: int, words: str, tmp_path: Path) -> None:
    program = (
        "import sys; from mast_opt.live.service.solve_child import _limit\n"
        f"_limit({memory_mib}, {file_mib})\n"
        "try:\n    bytearray(2**30) if sys.argv[1] == 'MemoryError' else open(sys.argv[2], 'wb', 0).write(b'x' * 99)\n"
        "except (MemoryError, OSError) as error: print(type(error).__name__)"
    )
    command = [sys.executable, "-c", program, words, str(tmp_path / "x")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
    assert said.strip() == words


def test_folders_of_old_solves_go(tmp_path: Path) -> None:
    folder = tmp_path / "plans"
    for number in range(MOST_KEPT + 3):
        own = folder / f"data-{number}"
        own.mkdir(parents=True)
        asked = {"id": own.name, "path": "data", "solver": "tetris", "by": "", "checksum": "", "asked_ms": number}
        (own / ASKED).write_text(json.dumps(asked))
    with running(tmp_path / "state") as (live, store):
        solves = Solves(live, store, folder)
        solves.resume()
        assert isinstance(solves.one("data-0"), Solve)
        solves._tidy(folder)
        assert {path.name for path in folder.iterdir()} == {f"data-{number}" for number in range(3, MOST_KEPT + 3)}
        assert len(solves.all()) == MOST_KEPT


def test_the_page_states_the_limits_of_the_code() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8").split())
    params, limits = LiveParams(), SolveLimits()
    mib, kib = 2**20, 2**10
    rows = (
        f"headers of a request | {door.MOST_HEADERS}, of {door.MOST_HEADER_BYTES // kib} KiB together",
        f"jobs of a list | {requests.MOST_BYTES // mib} MiB; {requests.MOST_JOBS:,}",
        f"what follows a chunked body | {connections.MOST_CONNECTIONS:,}, a new one",
        f"a whole request; {connections.MOST_HEAD_BYTES // kib} KiB, {connections.HEAD_S:g} s",
        f"bodies of a principal together | {handlers.BODY_S:g} s; {handlers.MOST_BODY_BYTES // mib} MiB",
        (
            f"requests that wait of a principal | {MOST_READS}, {MOST_OF_CLIENT} ({MOST_STREAMS} in all), "
            f"{params.most_waiting // 4:,} ({params.most_waiting:,} in all) at a time"
        ),
        f"requests of a connection before the first is answered | {connections.MOST_PIPELINED}",
        f"answers that are not read | {connections.MOST_UNREAD}, each for {connections.UNREAD_S:g} s",
        f"no jobs where less than {loop_of_service.LEAST_BYTES // mib} MiB of memory are left (503)",
        f"jobs that have not ended | {params.most_jobs:,}, and {params.most_jobs_of_tenant:,} of a tenant",
        (
            f"as many threads as there are cores, {limits.memory_mib // kib} GiB of memory, files of "
            f"{limits.file_mib // kib} GiB; {NUMBERS[MOST_AT_ONCE]} at once; {MOST_KEPT} folders are kept"
        ),
        f"`--rate` a second ({Access(None).rate:,.0f}), twice as many at once",
        f"(`--access-log`; {door.MOST_LOG_BYTES // mib} MiB, and the one before)",
    )
    assert [row for row in rows if row not in page] == []
    assert (limits.time_s, limits.threads) == (3600, os.cpu_count())
