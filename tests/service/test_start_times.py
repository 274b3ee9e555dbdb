"""Starts of waiting jobs over HTTP: promised, predicted by a child process, sooner, and how far they were off."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from time import monotonic
from typing import IO, Any

import pytest
from starlette.testclient import TestClient

from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.service import forecast_child
from mast_opt.live.service.access import Access
from mast_opt.live.service.app import build
from mast_opt.live.service.live import Live, LiveParams
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.start_times import StartTimes, fits_by_ms, sooner
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.problems.job_placement.live_fleet.types import Part, Server, Share
from tests.narrowing import some
from tests.service.loops import SERVERS, web
from tests.service.test_live import until
from tests.service.test_snapshots import Child

JOB = {"gpus": 8, "tier": 1, "duration_s": 999, "preemptible": False}


@pytest.mark.second_tier
def test_a_waiting_job_says_when_it_starts(tmp_path: Path) -> None:
    """Three servers run jobs with limits of 1,000, 2,000 and 3,000 s; a gang of two and a single job wait."""
    store = open_sqlite(tmp_path)
    live = Live(store, opening_of(store, SERVERS), Mast, SimulatedLiveHost)
    live.start()
    try:
        client = web(build(live, store, Access(None)))
        client.post("/v1/jobs", json=[{"job": f"r{at}", "limit_s": 1000 * (at + 1), **JOB} for at in range(3)])
        until(lambda: client.get("/v1/jobs").json()["states"]["running"] == 3)
        client.post("/v1/jobs", json=[{"job": "gang", "tasks": 2, "limit_s": 5000, **JOB}, {"job": "one", **JOB}])
        live.starts = StartTimes(partial(forecast_child.begin, str(tmp_path), MastParams(promote_after_s=3600)))
        with live.state() as state:
            live.starts.take([ev.Stored(1, state.now_ms, some(state.jobs["gang"].promise))])
            live.starts.keep(monotonic(), state.now_ms, state)
            assert live.starts._asking is not None
            assert live.starts._asking[0].wait() == 0
            live.starts.keep(monotonic(), state.now_ms, state)
        ends = {one.name: one.ends_by_ms(0) for one in live._engine.state.jobs.values() if one.shares}
        gang, one = (_job(client, name) for name in ("gang", "one"))
        east = [end for name, end in ends.items() if live._engine.state.jobs[name].region == "east"]
        west = [end for name, end in ends.items() if live._engine.state.jobs[name].region == "west"]
        assert gang["promised_by_ms"] == gang["usually_by_ms"] == gang["expected_ms"] == max(map(int, map(str, east)))
        assert gang["fits_by_ms"] == gang["usually_by_ms"]
        assert one["usually_by_ms"] == west[0]
        assert one["fits_by_ms"] == min(filter(None, ends.values()))
        assert gang["sooner"] == [{"change": "1 tasks instead of 2", "fits_by_ms": min(filter(None, ends.values()))}]
        assert {"promised_by_ms", "expected_ms"} <= client.get("/v1/jobs/one/explain").json().keys()
        assert client.get("/v1/jobs", params={"state": "waiting"}).json()["jobs"][0]["expected_ms"] is not None
        assert "sooner" not in _job(client, "r0")
        with live.state() as state:
            live.starts.errors.take(state.now_ms, ev.Placed("gang", 1, "east", "east-1", ()))
        text = client.get("/metrics").text
        assert 'mast_opt_longest_wait_seconds{gpus="8"}' in text
        assert 'mast_opt_longest_wait_seconds{gpus="16"}' in text
        for kind in ("promised", "usually_by", "expected"):
            assert f'mast_opt_starts_jobs{{said="{kind}"}} 1.0' in text
            assert f'mast_opt_starts_started_by_then{{said="{kind}"}} 1.0' in text
    finally:
        live.close()
        store.close()


def _job(client: TestClient, name: str) -> dict[str, object]:
    found: dict[str, object] = client.get(f"/v1/jobs/{name}").json()
    return found


def test_what_would_make_it_sooner() -> None:
    servers = (Server("a", "r", "c", "k", "h100", 8, 0, 0), Server("b", "q", "d", "k", "v100", 4, 0, 0))
    state = State(servers, tiers=(0, 1), replicas={"d": {"r"}})
    coming: list[ev.Event] = [*state.opening(), ev.QuotaSet("t", 1000)]
    coming += [ev.Submitted("runs", JobSpec(tier=1, mgpu=8000))]
    for event in coming:
        state.apply(state.seq + 1, 5, event)
    bid = state.fleet.place(state.jobs["runs"].job)
    state.apply(state.seq + 1, 5, ev.Placed("runs", 1, "r", "c", bid.shares), bid)  # type: ignore[union-attr,arg-type]
    spec = JobSpec(tier=1, mgpu=2000, tasks=2, gpu_types={"h100": 2000}, datasets=("d",), tenant="t")
    state.apply(state.seq + 1, 5, ev.Submitted("w", spec))
    assert sooner(state.jobs["w"], state) == []  # each change alone does nothing
    state.apply(state.seq + 1, 5, ev.Submitted("x", JobSpec(tier=1, mgpu=2000, gpu_types={"h100": 2000})))
    assert sooner(state.jobs["x"], state) == [{"change": "GPUs of type v100", "fits_by_ms": 5}]
    state.apply(state.seq + 1, 5, ev.Submitted("y", JobSpec(tier=1, mgpu=2000, datasets=("d",))))
    assert sooner(state.jobs["y"], state) == [{"change": "its data in every region", "fits_by_ms": 5}]
    state.apply(state.seq + 1, 5, ev.Submitted("z", JobSpec(tier=1, mgpu=2000)))
    state.apply(state.seq + 1, 5, ev.Bound("z", "r"))
    assert sooner(state.jobs["z"], state) == [{"change": "any region", "fits_by_ms": 5}]


def test_what_would_make_parts_sooner() -> None:
    """A job of 8 + 1 GPUs in one region waits for one that ends by its limit; half of its trainers would fit now, and
    so would readers on GPUs of another type."""
    servers = (Server("a", "r", "c", "k", "h100", 8, 0, 0), Server("b", "r", "d", "k", "v100", 1, 0, 0))
    state = State(servers, tiers=(0, 1), replicas={})
    coming: list[ev.Event] = [*state.opening(), ev.QuotaSet("t", 4000)]
    coming += [ev.Submitted("runs", JobSpec(tier=1, limit_ms=1000, gpu_types={"h100": 1000}))]
    for event in coming:
        state.apply(state.seq + 1, 5, event)
    state.apply(state.seq + 1, 5, ev.Placed("runs", 1, "r", "c", (Share("a", 1, {0: 1000}),)))
    state.apply(state.seq + 1, 5, ev.Started("runs", 1))
    parts = (Part("t", 7, 1000), Part("r", gpu_types={"h100": 1000}))
    spec = JobSpec(tier=1, parts=parts, within="region", tenant="t")
    state.apply(state.seq + 1, 5, ev.Submitted("w", spec))
    assert fits_by_ms(state.jobs["w"], state) == 1005
    assert sooner(state.jobs["w"], state) == [
        {"change": "GPUs of any type", "fits_by_ms": 5},
        {"change": "half of the tasks of each part", "fits_by_ms": 5},
    ]


@pytest.mark.second_tier
def test_a_child_that_fails_predicts_nothing(tmp_path: Path) -> None:
    def begin(now_ms: int, out: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", "import sys; print('[', end=''); sys.exit(1)"], stdout=out)

    state = State(SERVERS, tiers=(1,))
    for event in (*state.opening(), ev.Submitted("w", JobSpec(tier=1))):
        state.apply(state.seq + 1, 5, event)
    starts = StartTimes(begin)
    starts.keep(0.0, 5, state)
    assert starts._asking is not None
    starts._asking[0].wait()
    starts.keep(1.0, 6, state)
    assert starts.of_jobs([state.jobs["w"]], state)[0] == {
        "promised_by_ms": None,
        "limits_enforced": None,
        "usually_by_ms": None,
        "expected_ms": None,
        "predicted_at_ms": None,
    }
    starts.keep(61.0, 7, state)
    starts.close()


def test_a_child_that_hangs_is_ended(tmp_path: Path) -> None:
    begun = list[Child]()

    def begin(now_ms: int, out: IO[bytes]) -> Any:
        begun.append(Child())
        return begun[-1]

    state = State(SERVERS, tiers=(1,))
    for event in (*state.opening(), ev.Submitted("w", JobSpec(tier=1))):
        state.apply(state.seq + 1, 5, event)
    starts = StartTimes(begin)
    for now_s in (0.0, 600.0):
        starts.keep(now_s, 5, state)
        assert begun[0].returncode is None
    for now_s in (601.0, 602.0, 603.0):
        starts.keep(now_s, 5, state)
    assert begun[0].returncode == -9
    assert len(begun) == 2
    starts.close()


def test_places_count_promotions(tmp_path: Path) -> None:
    """A job of tier 1 that has waited for two hours goes before those of tier 0 that came after it."""
    clock = [0]
    params = LiveParams(promote_ms=3_600_000)
    store = open_sqlite(tmp_path)
    live = Live(
        store,
        opening_of(store, SERVERS),
        lambda: Mast(MastParams(promote_after_s=3600)),
        SimulatedLiveHost,
        params,
        clock=lambda: clock[0],
    )
    live.start()
    try:
        client = web(build(live, store, Access(None)))
        for hour, tier in enumerate((0, 1, 0, 0)):
            clock[0] = hour * 3_600_000
            client.post("/v1/jobs", json=[{"job": f"j{hour}", **JOB, "tier": tier, "tasks": 3}])
        listed = client.get("/v1/jobs", params={"state": "waiting", "order": "place"}).json()["jobs"]
        longest = client.get("/v1/overview").json()["longest"]
        assert [(one["gpus_up_to"], one["job"]) for one in longest] == [(32, "j0")]
        assert "it needs 24 GPUs of one type in one cluster" in longest[0]["why"]
        assert [(one["job"], one["place"]) for one in listed] == [("j0", 1), ("j1", 2), ("j2", 3), ("j3", 4)]
    finally:
        live.close()
        store.close()
