"""Specs of Armada's simulator: what they become, and the events that Armada's own tests expect of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mast_opt.core.errors import SourceError
from mast_opt.live.loop import events as ev
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.trace import JobTrace, trace_from_tables
from tests.simulation.traces import samples

NODE = {"cpu": "32", "memory": "1024Gi"}
EXACT = {"become": "gpus", "tail": "none"}


def cluster(number: int) -> dict[str, Any]:
    nodes = [{"number": number, "totalResources": {"resources": NODE}}]
    return {"name": "nodes", "clusters": [{"name": "c", "pool": "cpu", "nodeTemplates": nodes}]}


def template(number: int, asks: dict[str, Any], minutes: int, **others: str) -> dict[str, Any]:
    return {
        "number": number,
        "priorityClassName": "armada-preemptible",
        "requirements": {"resourceRequirements": {"requests": asks}},
        "runtimeDistribution": {"minimum": f"{minutes}m", "tailMean": "6m"},
        **others,
    }


def workload(**queues: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "w",
        "queues": [{"name": name, "weight": 1.0, "jobTemplates": [one]} for name, one in queues.items()],
    }


def imported(folder: Path, nodes: dict[str, Any], jobs: dict[str, Any], given: dict[str, str]) -> JobTrace:
    paths = [folder / "nodes.json", folder / "jobs.json"]
    for path, spec in zip(paths, (nodes, jobs), strict=True):
        path.write_text(json.dumps(spec))
    found = TRACE_IMPORTERS["armada"].run(paths, given, 0)
    return trace_from_tables(found.name, found.provenance, found.tables)


def stops_and_starts(trace: JobTrace, **params: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """(second, first letter of the job) of each stop, and of each placement."""
    log = list(run_trace(trace, "mast", {"placement": "best-fit", **params}).events())
    stops = [(one.at_ms // 1000, one.event.job[0]) for one in log if isinstance(one.event, ev.StopAsked)]
    starts = [(one.at_ms // 1000, one.event.job[0]) for one in log if isinstance(one.event, ev.Placed)]
    return stops, starts


def test_a_queue_below_its_share_gets_a_node(tmp_path: Path) -> None:
    jobs = workload(A=template(2, NODE, 60), B=template(1, NODE, 60, earliestSubmitTime="30s"))
    stops, starts = stops_and_starts(imported(tmp_path, cluster(2), jobs, EXACT))
    assert stops == [(30, "A")]
    assert starts == [(0, "A"), (0, "A"), (30, "B"), (3600, "A")]


def test_only_work_beyond_its_share_is_stopped(tmp_path: Path) -> None:
    late = template(1, NODE, 60, earliestSubmitTime="30s")
    jobs = workload(A=late, B=template(1, NODE, 60), C=template(2, NODE, 60))
    stops, starts = stops_and_starts(imported(tmp_path, cluster(3), jobs, EXACT))
    assert stops == [(30, "C")]
    assert (30, "A") in starts


@pytest.mark.parametrize(("reclaim", "begins_s"), [("any", [1800, 5400]), ("never", [3600, 3600])])
def test_small_work_leaves_a_node_to_a_large_job(tmp_path: Path, reclaim: str, begins_s: list[int]) -> None:
    """The specs ``small-long_big-long``: ``preemptible`` gives B a node at 30 min, ``non-preemptible`` when one is
    empty."""
    small = template(64, {"cpu": 1, "memory": "32Gi"}, 60)
    jobs = workload(A=small, B=template(2, NODE, 60, earliestSubmitTime="30m"))
    stops, starts = stops_and_starts(imported(tmp_path, cluster(2), jobs, EXACT), reclaim=reclaim)
    assert [at for at, name in starts if name == "B"] == begins_s
    assert stops == [(1800, "A")] * (32 if reclaim == "any" else 0)


def test_tables_of_a_spec(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(samples.content("nodes.json").decode())
    (tmp_path / "jobs.json").write_text(samples.content("jobs.json").decode())
    found = TRACE_IMPORTERS["armada"].run([tmp_path / "nodes.json", tmp_path / "jobs.json"], {}, 0)
    trace = trace_from_tables(found.name, found.provenance, found.tables)
    assert [(one.region, one.cluster, one.gpus, one.cpu_mcores) for one in trace.servers] == [
        ("cpu", "pool1", 0, 32_000),
        ("gpu", "pool2", 8, 128_000),
    ]
    quotas = [(name, quota.nominal, parent) for name, _, quota, parent in trace.quotas.rows()]
    assert quotas[1:] == [("ann", 6000, "all queues"), ("bob", 2000, "all queues")]
    jobs = trace.submissions
    assert jobs.labels == ("ann-0-0", "ann-0-1", "bob-0-0")
    assert (jobs.submitted_ms.tolist(), jobs.mgpu.tolist()) == ([0, 0, 5_430_000], [0, 0, 2000])
    assert jobs.preemptible.tolist() == [True, True, False]
    assert jobs.memory_mib.tolist() == [512, 512, 0]
    assert (jobs.duration_ms[:2] > 60_000).all(), "a draw of the tail's mean is added"
    assert jobs.duration_ms[2] == 3_600_000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dependencies": ["other"]}, "no queues[].jobTemplates[].dependencies"),
        ({"number": -1}, "number is '-1'; expected 0 to"),
        ({"earliestSubmitTime": "soon"}, "earliestSubmitTime is 'soon'; expected a duration"),
        ({"requirements": [1]}, "requirements is '[1]'; expected an object"),
        ({"requirements": {"resourceRequirements": {"requests": {"cpu": "500m"}}}}, "expected whole CPUs"),
    ],
)
def test_what_a_trace_cannot_state_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    jobs = workload(A={**template(1, NODE, 60), **change})
    with pytest.raises(SourceError) as caught:
        imported(tmp_path, cluster(1), jobs, EXACT)
    assert words in str(caught.value)


def test_specs_without_nodes_or_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there are no nodes"):
        imported(tmp_path, cluster(0), workload(A=template(1, NODE, 1)), EXACT)
    with pytest.raises(SourceError, match="there are no jobs"):
        imported(tmp_path, cluster(1), workload(), EXACT)
    with pytest.raises(SourceError, match="each name once"):
        imported(tmp_path, cluster(1), workload(**{"all queues": template(1, NODE, 1)}), EXACT)
