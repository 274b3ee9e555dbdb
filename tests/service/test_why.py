"""Every waiting job says why, what would have to happen, where it stands, and when it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from tests.service.loops import running, web
from tests.service.test_live import until


def _jobs(client: TestClient, **query: Any) -> dict[str, dict[str, Any]]:
    return {one["job"]: one for one in client.get("/v1/jobs", params=query).json()["jobs"]}


def test_each_job_says_what_keeps_it(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None)))
        client.put("/v1/quotas/team", json={"gpus": 4})
        client.put("/v1/datasets/far", json={"regions": []})
        client.post("/v1/jobs", json=[{"job": f"r{at}", "gpus": 8, "tier": 0, "duration_s": 999} for at in range(3)])
        waiting: list[dict[str, Any]] = [
            {"job": "full", "gpus": 8, "tier": 0},
            {"job": "huge", "gpus": 8, "tasks": 1000, "tier": 1},
            {"job": "wide", "gpus": 9, "tier": 1},
            {"job": "type", "gpus": 1, "gpu_types": {"none": 1}, "tier": 1},
            {"job": "data", "gpus": 1, "datasets": ["far"], "tier": 1},
            {"job": "over", "gpus": 8, "tenant": "team", "tier": 1},
            {"job": "next", "gpus": 8, "tier": 0},
        ]
        client.post("/v1/jobs", json=waiting)
        found = _jobs(client, state="waiting")
        assert set(found) == {one["job"] for one in waiting}
        assert all(one["why"] for one in found.values())
        assert "no cluster has 8 GPUs free for it; east-1: 8 GPUs asked for; 0 free" in found["full"]["why"]
        assert "needs 8000 GPUs of one type in one cluster; the largest that it may use has 16" in found["huge"]["why"]
        assert "no server has a GPU type that it accepts (none)" in found["type"]["why"]
        assert "no region holds all of its data (far)" in found["data"]["why"]
        assert "over the quota of team by 4 GPUs, so it stops no work within quotas" in found["over"]["why"]
        assert {name for name, one in found.items() if one["never"]} == {"huge", "wide", "type"}
        order = sorted(found, key=lambda name: found[name]["place"])
        assert order == ["full", "next", "over", "huge", "wide", "type", "data"]  # team has left of its quota
        assert [found[name]["place"] for name in order] == [1, 2, 3, 4, 5, 6, 7]
        assert _jobs(client, search="ull")["full"]["place"] == 1
        assert all(_jobs(client, state="running")[f"r{at}"]["why"] == "" for at in range(3))
        one = client.get("/v1/jobs/huge").json()
        assert (one["place"], one["never"], one["fits_by_ms"]) == (4, True, None)


def test_who_left_of_a_quota_comes_first_in_a_tier(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None)))
        client.put("/v1/quotas/thrifty", json={"gpus": 8})
        client.post("/v1/jobs", json=[{"job": f"r{at}", "gpus": 8, "tier": 0, "duration_s": 999} for at in range(3)])
        jobs = [
            {"job": f"{who}-{at}", "gpus": 8, "tier": 0, "tenant": who} for at in (0, 1) for who in ("any", "thrifty")
        ]
        client.post("/v1/jobs", json=[{"job": "late", "gpus": 8, "tier": 1, "tenant": "thrifty"}, *jobs])
        found = client.get("/v1/jobs", params={"state": "waiting", "order": "place"}).json()["jobs"]
        order = ["thrifty-0", "thrifty-1", "any-0", "any-1", "late"]
        assert [(one["place"], one["job"]) for one in found] == [*enumerate(order, start=1)]
        rest = client.get("/v1/jobs", params={"state": "waiting", "order": "place", "after": "thrifty-1"}).json()
        assert [one["job"] for one in rest["jobs"]] == order[2:]


def test_with_limits_of_run_time_it_says_when(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None)))
        job = {"gpus": 8, "tier": 0, "duration_s": 999}
        client.post("/v1/jobs", json=[{"job": f"r{at}", "limit_s": 1000 * (at + 1), **job} for at in range(3)])
        until(lambda: sum(one.state.value == "running" for one in live._engine.state.jobs.values()) == 3)
        client.post("/v1/jobs", json=[{"job": "w", **job}])
        since = {name: one.since_ms for name, one in live._engine.state.jobs.items()}
        assert client.get("/v1/jobs/w").json()["fits_by_ms"] == since["r0"] + 1_000_000


def test_lists_are_counted_searched_and_paged(tmp_path: Path) -> None:
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None)))
        names = [f"team/{at}" for at in range(7)]
        client.post(
            "/v1/jobs", json=[{"job": one, "gpus": 8, "tenant": f"t{one[-1]}", "duration_s": 999} for one in names]
        )
        until(lambda: client.get("/v1/jobs").json()["states"]["running"] == 3)
        found = client.get("/v1/jobs", params={"limit": 2}).json()
        assert (found["count"], found["matching"], len(found["jobs"])) == (7, 7, 2)
        assert sum(found["states"].values()) == 7
        assert client.get("/v1/jobs", params={"tenant": "t3"}).json()["matching"] == 1
        assert client.get("/v1/jobs", params={"search": "team/5"}).json()["jobs"][0]["job"] == "team/5"
        waits = client.get("/v1/jobs", params={"state": "waiting", "limit": 3}).json()
        assert waits["matching"] == 4
        rest = client.get("/v1/jobs", params={"state": "waiting", "after": waits["jobs"][-1]["job"]}).json()
        assert len(rest["jobs"]) == 1


@pytest.mark.parametrize("query", [{"state": "none"}, {"search": "x" * 300}])
def test_nothing_is_found(tmp_path: Path, query: dict[str, str]) -> None:
    with running(tmp_path) as (live, store):
        client = web(build(live, store, Access(None)))
        client.post("/v1/jobs", json={"job": "a"})
        assert client.get("/v1/jobs", params=query).json()["matching"] == 0
