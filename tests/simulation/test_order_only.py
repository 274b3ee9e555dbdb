"""Traces under order-only policies: events, several regions, and what such policies cannot do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop.event_log import log_lines, read_log
from mast_opt.live.loop.events import Finished, Placed, ServerUp, Stopped, Submitted
from mast_opt.live.loop.job_log import job_log
from mast_opt.live.simulation.order_only import replay_trace
from mast_opt.live.simulation.traces.trace import JobTrace, Submissions
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

BASE = {"duration_ms": 10, "tier": 1, "tasks": 1, "mgpu": 1000, "cpu_mcores": 0, "memory_mib": 0, "within": 2}
BASE |= {"prefer": 0, "checkpoint_ms": 0, "restart_ms": 3, "min_tasks": -1, "max_tasks": -1, "limit_ms": -1}


def trace_of(*rows: dict[str, Any], regions: tuple[str, ...] = ("r",), **given: Any) -> JobTrace:
    """A trace of jobs that are handed in one ms after another, on two servers of 4 GPUs in each region."""
    number = len(rows)
    columns: dict[str, Any] = {
        name: np.array([row.get(name, value) for row in rows], np.int64) for name, value in BASE.items()
    }
    texts: dict[str, Any] = {
        name: tuple(row.get(name, "") for row in rows) for name in ("tenant", "workload", "namespace", "home_region")
    }
    submissions = Submissions(
        labels=tuple(f"j{at}" for at in range(number)),
        submitted_ms=np.array([row.get("submitted_ms", at) for at, row in enumerate(rows)], np.int64),
        preemptible=np.ones(number, np.bool_),
        gpu_types={at: row["gpu_types"] for at, row in enumerate(rows) if "gpu_types" in row},
        datasets={at: row["datasets"] for at, row in enumerate(rows) if "datasets" in row},
        **columns,
        **texts,
    )
    servers = tuple(
        Server(f"{region}{at}", region, f"c-{region}", "k", "h100", 4, 0, 0) for region in regions for at in range(2)
    )
    return JobTrace(
        **{
            "name": "t",
            "regions": regions,
            "servers": servers,
            "submissions": submissions,
            "replicas": {},
            "quotas": Quotas(),
            **given,
        }
    )


def test_events() -> None:
    trace = trace_of(
        {"tasks": 2, "mgpu": 4000, "duration_ms": 20}, {"mgpu": 2000, "duration_ms": 5}, {"tasks": 3, "mgpu": 2000}
    )
    log = list(replay_trace(trace, "fifo").events())
    assert [stored.seq for stored in log] == list(range(1, 12))
    assert [type(stored.event) for stored in log[:3]] == [ServerUp, ServerUp, Submitted]
    placed = [(stored.at_ms, stored.event) for stored in log if isinstance(stored.event, Placed)]
    assert placed == [
        (0, Placed("j0", 1, "r", "c-r", (Share("r0", 1, {}), Share("r1", 1, {})), at_once=True)),
        (20, Placed("j1", 1, "r", "c-r", (Share("r0", 1, {}),), at_once=True)),
        (20, Placed("j2", 1, "r", "c-r", (Share("r1", 2, {}), Share("r0", 1, {})), at_once=True)),
    ]
    assert isinstance(log[-1].event, Finished)
    assert list(read_log(log_lines(log, len(log)))) == log


def test_attempts_are_counted() -> None:
    log = replay_trace(trace_of({"tasks": 2, "mgpu": 4000, "duration_ms": 50}, {"duration_ms": 5}), "srtf")
    decisions = [stored.event for stored in log.events() if isinstance(stored.event, (Placed, Stopped, Finished))]
    assert [(type(event).__name__, event.job, event.attempt) for event in decisions] == [
        ("Placed", "j0", 1),
        ("Stopped", "j0", 1),
        ("Placed", "j1", 1),
        ("Finished", "j1", 1),
        ("Placed", "j0", 2),
        ("Finished", "j0", 2),
    ]
    assert decisions[1] == Stopped("j0", 1, 1, 0)


def test_each_region_has_its_own_queue() -> None:
    full = {"tasks": 2, "mgpu": 4000, "submitted_ms": 0}
    rows = [{**full, "home_region": region} for region in ("b", "a", "b")]
    log = replay_trace(trace_of(*rows, regions=("a", "b")), "fifo")
    placed = [(stored.at_ms, stored.event) for stored in log.events() if isinstance(stored.event, Placed)]
    assert [(at, event.job, event.shares[0].server) for at, event in placed] == [
        (0, "j1", "a0"),
        (0, "j0", "b0"),
        (10, "j2", "b0"),
    ]


def test_rows_of_the_events_are_the_rows_of_the_log() -> None:
    rows = [{"mgpu": 1000 * (1 + at % 4), "duration_ms": 30 - at, "home_region": "ab"[at % 2]} for at in range(25)]
    log = replay_trace(trace_of(*rows, regions=("a", "b")), "srtf")
    again, starts = job_log(log.events()), log.rows.started
    kept = again.kind != 2
    assert np.array_equal(again.at_ms[kept], log.rows.at_ms)
    assert np.array_equal(again.kind[kept], log.rows.kind)
    assert np.array_equal(again.job[kept], log.rows.job)
    assert again.started.sum() == starts.sum()
    assert np.array_equal(again.stop_work_ms, log.rows.stop_work_ms)
    assert again.supply_mgpu[-1] == log.rows.supply_mgpu[-1] == 16_000


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "several regions": ({}, "column home_region: expected a region, since the trace has several (job j0)"),
    "duration": ({"duration_ms": -1, "home_region": "a"}, "column duration_s: expected how long the job runs"),
    "share of a GPU": ({"mgpu": 500, "home_region": "a"}, "column gpus: expected whole GPUs"),
    "too large": ({"tasks": 9, "home_region": "a"}, "expected no more GPUs in all tasks than its region has (job j0)"),
    "split": ({"tasks": 2, "mgpu": 3000, "home_region": "a"}, "expected tasks that fill a server"),
    "within": ({"tasks": 8, "within": 0, "home_region": "a"}, "column within: expected cluster"),
    "cores": ({"cpu_mcores": 1, "home_region": "a"}, "column cpu_cores: expected 0"),
    "memory": ({"memory_mib": 1, "home_region": "a"}, "column memory_gb: expected 0"),
    "type": (
        {"gpu_types": {"a100": 1000}, "home_region": "a"},
        "column gpu_types: expected the type of its home region",
    ),
    "data": ({"datasets": ("d",), "home_region": "a"}, "column datasets: expected no datasets"),
}


@pytest.mark.parametrize(("row", "words"), FAULTS.values(), ids=list(FAULTS))
def test_what_order_only_policies_cannot_do(row: dict[str, Any], words: str) -> None:
    with pytest.raises(InstanceError) as caught:
        replay_trace(trace_of(row, regions=("a", "b")), "fifo")
    assert len(caught.value.faults) == 1
    assert words in str(caught.value)


def test_servers_have_to_be_equal() -> None:
    trace = trace_of({})
    for changed, words in (
        ({"gpus": 8}, "column gpus: found '4, 8'"),
        ({"gpu_type": "a100"}, "column gpu_type: found 'a100, h100'"),
        ({"cluster": "other"}, "column cluster: found 'c-r, other'"),
    ):
        unequal = replace(trace, servers=(trace.servers[0], replace(trace.servers[1], **changed)))
        with pytest.raises(InstanceError, match=words):
            replay_trace(unequal, "fifo")


def test_many_faults_are_counted() -> None:
    with pytest.raises(InstanceError) as caught:
        replay_trace(trace_of(*({"cpu_mcores": 1} for _ in range(50))), "sjf")
    assert (len(caught.value.faults), caught.value.faults[-1].count) == (21, 30)


@pytest.mark.parametrize(
    ("policy", "thresholds", "words"),
    [
        ("fifoo", None, "did you mean 'fifo'"),
        ("sjf", (5,), "sjf has no thresholds; las has"),
        ("las", (5, 5), "expected ascending whole numbers"),
        ("las", (0,), "expected ascending whole numbers"),
    ],
)
def test_wrong_arguments(policy: str, thresholds: tuple[int, ...] | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        replay_trace(trace_of({}), policy, thresholds_gpu_s=thresholds)


def test_thresholds_are_gpu_seconds() -> None:
    jobs = ({"duration_ms": 9000, "tasks": 2, "mgpu": 4000}, {"submitted_ms": 1000, "duration_ms": 10})
    waits = {}
    for thresholds in ((20,), None):
        log = replay_trace(trace_of(*jobs), "las", thresholds_gpu_s=thresholds)
        waits[thresholds] = [stored.at_ms for stored in log.events() if isinstance(stored.event, Placed)][1]
    assert waits == {(20,): 2500, None: 9000}


def test_equal_jobs_keep_their_order_and_the_log_ends_when_told() -> None:
    def stop(rows: int, at_ms: int) -> None:
        raise KeyboardInterrupt

    rows = [{"submitted_ms": 0, "mgpu": 4000} for _ in range(6)]
    order = [
        stored.event.job for stored in replay_trace(trace_of(*rows), "sjf").events() if isinstance(stored.event, Placed)
    ]
    assert order == [f"j{at}" for at in range(6)]
    assert len(replay_trace(trace_of(*rows), "sjf", until_ms=10, on_progress=stop)) == 6 + 2 + 2 + 2
