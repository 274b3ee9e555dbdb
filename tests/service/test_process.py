"""``mast-opt serve`` as a process: killed, paused, waiting, compiling."""

from __future__ import annotations

import json
import signal
import socket
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.platforms import needs
from tests.service.kills import run
from tests.service.outages import pauses, restarts, status_of, until
from tests.service.processes import Service
from tests.store.postgres_server import postgres_server


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


pytestmark = pytest.mark.second_tier


@needs("signals")
def test_a_service_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    assert "none lost, none twice" in run(3, 1, tmp_path / "state")


@needs("signals")
@pytest.mark.parametrize("reclaim", ["any", "never"])
def test_a_service_takes_parameters_of_mast(tmp_path: Path, reclaim: str) -> None:
    """shop borrows the GPU of lab, whose job then comes: it stops that of shop where it may reclaim."""
    fair = [part for text in ("sharing=fair", "half_life_s=60", "weights=lab:2,shop:1") for part in ("--param", text)]
    service = Service(tmp_path / "state", "--param", f"reclaim={reclaim}", *fair, waits=True)

    def sent(method: str, path: str, body: object = None) -> dict[str, object]:
        headers = {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(service.url + path, data, headers, method=method)) as answer:
            found: dict[str, object] = json.load(answer)
        return found

    try:
        assert service.announced("weights names ").startswith("lab,")
        service.announced("Serving on ")
        sent("PUT", "v1/quotas/all", {"gpus": 0, "borrowing_limit": 0})
        for tenant in ("lab", "shop"):
            sent("PUT", f"v1/quotas/{tenant}", {"gpus": 1, "parent": "all"})
        job = {"duration_s": 900, "preemptible": False, "tier": 1}
        sent("POST", "v1/jobs", [{"job": "borrows", "gpus": 2, "tenant": "shop", **job}])
        until(lambda: sent("GET", "v1/jobs/borrows")["state"] == "running")
        sent("POST", "v1/jobs", [{"job": "own", "gpus": 1, "tenant": "lab", **job}, {"job": "next", "gpus": 1, **job}])
        until(lambda: sent("GET", "v1/jobs/next")["state"] == "running")
        if reclaim == "any":
            until(lambda: sent("GET", "v1/jobs/own")["state"] == "running")
        states = [sent("GET", f"v1/jobs/{name}")["state"] for name in ("borrows", "own")]
        assert states == (["queued", "running"] if reclaim == "any" else ["running", "submitted"])
    finally:
        service.end(signal.SIGKILL)


@needs("signals")
def test_a_leader_that_hangs_is_followed_and_writes_no_more(tmp_path: Path) -> None:
    assert "1 pauses of the leader" in pauses(1, 1, tmp_path / "state")


@needs("signals")
@needs("PostgreSQL")
def test_a_database_that_restarts_loses_nothing() -> None:
    with postgres_server() as server:
        assert "2 restarts of PostgreSQL" in restarts(2, 1, server)


@needs("signals")
def test_kernels_are_compiled_before_it_is_ready(tmp_path: Path) -> None:
    port = free_port()
    service = Service(tmp_path / "state", waits=True, port=port, kernels=tmp_path / "kernels")
    try:
        service.announced("Compiling, ")
        url = f"http://127.0.0.1:{port}/"
        until(lambda: status_of(url + "livez") == 200)
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(url + "readyz", timeout=5)
        assert answer.value.code == 503
        assert "compiling" in answer.value.read().decode()
        assert service.end(signal.SIGTERM) == 0
    finally:
        service.process.kill()


@needs("signals")
def test_a_process_that_waits_says_so(tmp_path: Path) -> None:
    first = Service(tmp_path / "state")
    port = free_port()
    second = Service(tmp_path / "state", waits=True, port=port)
    try:
        assert second.announced("Waiting: ")
        url = f"http://127.0.0.1:{port}/"
        until(lambda: status_of(url + "livez") == 200)
        for path in ("readyz", "metrics", "v1/jobs", "v1/fleet"):
            assert status_of(url + path) == 503, path
        assert status_of(first.url + "readyz") == 200
        assert first.end(signal.SIGTERM) == 0
        second.announced()
        assert status_of(second.url + "readyz") == 200
        assert second.end(signal.SIGTERM) == 0
    finally:
        for one in (first, second):
            one.process.kill()


@needs("signals")
def test_few_descriptors_keep_nobody_out_and_fill_no_log(tmp_path: Path) -> None:
    import resource

    service = Service(tmp_path, waits=True)
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (40, 200))
    try:
        service.announced()
        address = urlsplit(service.url)
        with ExitStack() as stack:
            for _ in range(600):
                stack.enter_context(socket.create_connection((address.hostname, address.port), timeout=60))
            assert status_of(service.url + "livez") == 200
        service.process.kill()
        assert len(service.process.communicate()[1].splitlines()) < 50
    finally:
        service.process.kill()
