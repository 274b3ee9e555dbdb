"""Servers, datasets and amounts over HTTP: what is accepted is used, anything else is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.live import Live
from tests.service.loops import running, web

SERVER: dict[str, Any] = {
    "state": "up",
    "region": "west",
    "cluster": "west-1",
    "rack": "west-r",
    "gpu_type": "H100",
    "gpus": 8,
}
ONE = SERVER | {"gpu_type": "A100", "gpus": 1, "cpu_cores": 64, "memory_gb": 512}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[TestClient, Live]]:
    with running(tmp_path) as (live, store), web(build(live, store, Access(None))) as client:
        yield client, live
        found = check_log(store.read(0, store.last_seq()))
        assert not [one for one in found if one.what != "work"]  # the log has the times of turns, the host its own


@pytest.fixture
def client(served: tuple[TestClient, Live]) -> TestClient:
    return served[0]


def put(client: TestClient, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = client.put(f"/v1/{path}", json=body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def post(client: TestClient, name: str, **body: Any) -> dict[str, Any]:
    asked = {"job": name, "gpus": 0, "duration_s": 3600, "gpu_types": {"A100": body.get("gpus", 0)}, **body}
    assert client.post("/v1/jobs", json=asked).status_code == 201
    found: dict[str, Any] = client.get(f"/v1/jobs/{name}").json()
    return found


def server_of(client: TestClient, name: str) -> dict[str, Any]:
    return next(one for one in client.get("/v1/fleet").json()["servers"] if one["server"] == name)


def test_memory_is_in_gib(client: TestClient) -> None:
    put(client, "servers/s9", **ONE)
    assert post(client, "m1", memory_gb=274)["servers"] == {"s9": 1}
    second = post(client, "m2", memory_gb=274)
    assert second["servers"] == {}
    assert "memory" in second["why"]
    assert post(client, "m3", memory_gb=238)["servers"] == {"s9": 1}


def test_needs_round_up_and_supplies_down(served: tuple[TestClient, Live]) -> None:
    client, live = served
    put(client, "servers/s9", **ONE | {"cpu_cores": 1.9999, "memory_gb": 0.9999})
    put(client, "quotas/team", gpus=1.9999)
    put(client, "regions/west", storage_tb=1e-7)
    put(client, "datasets/d", regions=["west"], size_tb=1e-7)
    with live.state() as state:
        assert state.inventory.server_of["s9"].amounts == (1000, 1999, 1023)
        assert state.quotas == Quotas({"team": {None: Quota(1999)}})
        assert (state.datasets.storage_mb["west"], state.datasets.size_mb["d"]) == (0, 1)
    assert post(client, "a", gpus=0.5004)["servers"] == {"s9": 1}
    assert post(client, "b", gpus=0.5004)["servers"] == {}
    assert post(client, "c", gpus=0.0004, duration_s=0.0001)["state"] != "submitted"
    with live.state() as state:
        assert [state.jobs[name].spec.gpu_types for name in "ab"] == [{"A100": 501}] * 2


def test_a_server_comes_back_as_another_one(client: TestClient) -> None:
    put(client, "servers/s0", state="down")
    put(client, "servers/s0", **SERVER | {"region": "east", "cluster": "east-1", "rack": "east-r", "gpus": 4})
    assert server_of(client, "s0")["gpus"] == 4
    client.post("/v1/jobs", json={"job": "big", "tasks": 2, "gpus": 8, "within": "cluster", "tier": 0})
    assert client.get("/v1/jobs/big").json()["servers"] == {}
    client.delete("/v1/jobs/big")
    put(client, "servers/s0", state="down")
    put(client, "servers/s0", **SERVER | {"gpus": 16})
    found = server_of(client, "s0")
    assert (found["region"], found["cluster"], found["gpus"]) == ("west", "west-1", 16)
    client.post("/v1/jobs", json={"job": "wide", "gpus": 16})
    assert client.get("/v1/jobs/wide").json()["servers"] == {"s0": 1}
    with_place = client.get("/metrics").text
    assert 'mast_opt_gpus{region="west"} 24.0' in with_place
    assert 'mast_opt_gpus{region="east"} 8.0' in with_place


def test_a_server_in_service_gets_other_amounts(client: TestClient) -> None:
    put(client, "servers/s2", state="up", gpus=16)
    assert server_of(client, "s2")["gpus"] == 16
    client.post("/v1/jobs", json={"job": "a", "gpus": 16, "duration_s": 3600})
    assert client.get("/v1/jobs/a").json()["servers"] == {"s2": 1}
    answer = put(client, "servers/s2", state="up", gpus=4)
    assert answer["waits_for"] == ["a"]
    assert put(client, "servers/s2", state="up", gpus=4) == {"server": "s2", "state": "up"}
    client.delete("/v1/jobs/a")
    for _ in range(300):
        if server_of(client, "s2")["gpus"] == 4:
            break
    assert server_of(client, "s2")["gpus"] == 4


def test_what_a_server_cannot_become_is_refused(client: TestClient) -> None:
    for change in ({"cluster": "west-2"}, {"gpu_type": "A100"}, {"rack": "other"}, {"region": "east"}):
        put(client, "servers/s2", 409, state="up", **change)
    put(client, "servers/s2", 422, state="down", gpus=4)
    put(client, "servers/s2", state="down", gpus=8, region="west")
    put(client, "servers/s2", 422, state="up", cluster="east-1")
    put(client, "servers/s9", 422, **SERVER | {"gpus": 1.5})
    put(client, "servers/s9", 422, **SERVER | {"gpus": 3_000_000})
    put(client, "servers/s9", 422, state="up", region="west")


def test_a_dataset_gets_another_size(served: tuple[TestClient, Live]) -> None:
    client, live = served
    put(client, "datasets/d", regions=["west"], size_tb=10, namespace="n")
    put(client, "datasets/d", regions=["west", "east"], size_tb=20)
    put(client, "datasets/d", regions=["east"])
    put(client, "datasets/d", regions=["east"], size_tb=20)
    with live.state() as state:
        assert (state.datasets.size_mb, state.datasets.namespace) == ({"d": 20_000_000}, {"d": "n"})
        assert state.datasets.stored_mb == {"west": 0, "east": 20_000_000}
    events = [one["event"] for one in client.get("/v1/events?after=4").json()["events"]]
    assert events == ["DatasetCreated", "DatasetCreated", "CopyEnded", "ReplicaDropped"]
    put(client, "datasets/d", 422, regions=["nowhere"])
    put(client, "datasets/e", 422, regions=["east", "nowhere"], size_tb=1)


def test_a_dataset_is_read_only_within_its_residency(served: tuple[TestClient, Live]) -> None:
    client, live = served
    put(client, "datasets/d", regions=["west", "east"], size_tb=10, residency=["east"])
    put(client, "datasets/d", regions=["west", "east"], size_tb=20)
    client.post("/v1/jobs", json={"job": "a", "gpus": 8, "datasets": ["d"]})
    assert client.get("/v1/jobs/a").json()["region"] == "east"
    with live.state() as state:
        assert (state.datasets.size_mb, state.datasets.residency) == ({"d": 20_000_000}, {"d": frozenset({"east"})})
    put(client, "datasets/d", regions=["west", "east"], residency=[])
    with live.state() as state:
        assert state.datasets.residency == {}
    put(client, "datasets/d", 422, regions=["west"], residency=["nowhere"])


def test_a_job_that_residency_keeps_out_says_so(client: TestClient) -> None:
    put(client, "datasets/d", regions=["west", "east"], size_tb=1, residency=["east"])
    put(client, "datasets/e", regions=["west", "east"], size_tb=1, residency=["west"])
    put(client, "datasets/f", regions=["west"], size_tb=1, residency=["east"])
    parts = [{"part": "t", "gpus": 1}, {"part": "r", "gpus": 0}]
    client.post("/v1/jobs", json={"job": "a", "within": "region", "parts": parts, "datasets": ["d"]})
    assert client.get("/v1/jobs/a").json()["region"] == "east"
    client.post("/v1/jobs", json={"job": "b", "within": "region", "parts": parts, "datasets": ["d", "e"]})
    why = client.get("/v1/jobs/b").json()
    assert (why["state"], why["never"]) == ("held", True)
    assert "east is outside the residency of e; west is outside the residency of d" in why["why"]
    clusters = client.post("/v1/whatif", json={"job": "c", "gpus": 1, "datasets": ["d", "e"]}).json()["clusters"]
    assert {one["code"] for one in clusters} == {"residency"}
    client.post("/v1/jobs", json={"job": "c", "gpus": 1, "datasets": ["f"]})
    why = client.get("/v1/jobs/c").json()
    assert (why["state"], why["never"]) == ("held", False)
    assert "within the residency of that data; a copy of it would have to be made where there is room" in why["why"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "jobs", '{"job": "a", "gpus": 1, "gpus": 8}'),
        ("POST", "jobs", '[{"job": "a", "gpu_types": {"H100": 1, "H100": 8}}]'),
        ("PUT", "servers/s0", '{"state": "up", "state": "down"}'),
        ("PUT", "datasets/d", '{"regions": [], "size_tb": 1, "size_tb": 2}'),
        ("POST", "solves", '{"path": "data", "ingress_tb_per_day": {"a": 1, "a": 2}}'),
    ],
)
def test_a_key_given_twice_is_refused(client: TestClient, method: str, path: str, body: str) -> None:
    answer = client.request(method, f"/v1/{path}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "each key once" in str(answer.json())


def test_a_job_says_why_it_waits(client: TestClient) -> None:
    client.post("/v1/jobs", json={"job": "big", "gpus": 9})
    assert "no server holds one of its tasks, not even an empty one" in client.get("/v1/jobs/big").json()["why"]


def test_a_tree_of_quotas(client: TestClient) -> None:
    put(client, "quotas/lab", gpus=0)
    put(client, "quotas/team", gpus=4, gpu_type="A100", parent="lab", borrowing_limit=2, lending_limit=1)
    answer = put(client, "quotas/team", 422, gpus=4, gpu_type="A100", lending_limit=5)
    assert "lending_limit is 5 GPUs, more than its quota of 4" in answer["detail"]
    assert (
        "lab is above itself: lab below team below lab"
        in put(client, "quotas/lab", 422, gpus=0, parent="team")["detail"]
    )
    assert "which has no quota" in put(client, "quotas/other", 422, gpus=1, parent="nobody")["detail"]
    assert "which has no quota" in put(client, "quotas/lab", 422, gpus=None)["detail"]
    assert client.get("/v1/quotas").json()["quotas"] == [
        {"tenant": "lab", "gpu_type": "", "gpus": 0, "borrowing_limit": None, "lending_limit": None, "parent": ""}
        | {"used": 0, "left": None},
        {"tenant": "team", "gpu_type": "A100", "gpus": 4, "borrowing_limit": 2, "lending_limit": 1, "parent": "lab"}
        | {"used": 0, "left": 6},
    ]
    metrics = client.get("/metrics").text
    for name, gpus in (("gpus", 4), ("gpus_used", 0), ("borrowing_limit_gpus", 2), ("lending_limit_gpus", 1)):
        assert f'mast_opt_quota_{name}{{gpu_type="A100",parent="lab",tenant="team"}} {gpus}.0' in metrics
    assert 'mast_opt_quota_gpus_left{gpu_type="A100",parent="lab",tenant="team"}' in metrics
    assert 'mast_opt_quota_lending_limit_gpus{gpu_type="",parent="",tenant="lab"}' not in metrics
    put(client, "quotas/team", gpus=None, gpu_type="A100")
    put(client, "quotas/lab", gpus=None)
    assert client.get("/v1/quotas").json()["quotas"] == []
