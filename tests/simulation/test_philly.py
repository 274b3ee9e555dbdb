"""Replays of the Philly trace, equal to what Helios's simulator gave, to the last digit of every figure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mast_opt.live.loop.job_log import FINISHED, PLACED, STOPPED, SUBMITTED
from mast_opt.live.simulation.kernel import HELIOS
from mast_opt.live.simulation.order_only import OrderOnlyLog, replay_trace
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace

TRACES = Path(__file__).parents[2] / "instances" / "traces"
MEAN_QUEUE_S = {
    "6214e9": (5.757, 5.757, None),
    "7f04ca": (0.0, 0.0, 0.0),
    "11cb48": (240.983, 189.386, 150.889),
    "b436b2": (22.764, 21.559, 19.935),
    "ee9e8c": (0.0, 0.0, 0.0),
    "e13805": (0.0, 0.0, 0.0),
    "6c71a0": (0.501, 0.501, None),
    "2869ce": (11343.368, 5144.505, 4219.660),
    "ed69ec": (4.0757, 4.0757, 4.0858),
    "103959": (246.208, 44.367, 35.528),
    "0e4a51": (0.0, 0.0, 0.0),
}
"""Virtual cluster → FIFO, SJF, SRTF; None where nobody ran it."""
SRTF_STOPS = {"11cb48": 166, "2869ce": 86, "103959": 19, "b436b2": 278, "ed69ec": 4}


@pytest.fixture(scope="module")
def philly() -> JobTrace:
    return read_trace(TRACES / "philly")


@pytest.fixture(scope="module")
def logs(philly: JobTrace) -> dict[str, OrderOnlyLog]:
    return {policy: replay_trace(philly, policy, habits=HELIOS) for policy in ("fifo", "sjf", "srtf")}


def waits_s(log: OrderOnlyLog) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Region and seconds that each of its jobs waited."""
    rows, signs = log.rows, {SUBMITTED: -1, STOPPED: -1, PLACED: 1, FINISHED: 0}
    weight = np.vectorize(signs.get)(rows.kind)
    waits = np.zeros(len(rows.jobs), np.int64)
    np.add.at(waits, rows.job, weight * rows.at_ms)
    home = np.array(log.trace.submissions.home_region)
    for region in log.trace.regions:
        yield region, waits[home == region] / 1000


def test_sizes(philly: JobTrace) -> None:
    assert len(philly.submissions) == 68_503
    assert sum(server.gpus for server in philly.servers) == 2_816


@pytest.mark.parametrize(("policy", "total"), [("fifo", 7_166_165), ("sjf", 4_298_305)])
def test_sum_of_all_waits(logs: dict[str, OrderOnlyLog], policy: str, total: int) -> None:
    assert sum(waits.sum() for _, waits in waits_s(logs[policy])) == total
    assert len(logs[policy]) == 205_509


@pytest.mark.parametrize(("policy", "column"), [("fifo", 0), ("sjf", 1), ("srtf", 2)])
def test_mean_waits(logs: dict[str, OrderOnlyLog], policy: str, column: int) -> None:
    for region, waits in waits_s(logs[policy]):
        expected = MEAN_QUEUE_S[region][column]
        if expected is not None:
            assert waits.mean() == pytest.approx(expected, abs=0.00051 if expected > 5 else 0.000051), region


def test_srtf_stops_and_ends(logs: dict[str, OrderOnlyLog]) -> None:
    rows, home = logs["srtf"].rows, np.array(logs["srtf"].trace.submissions.home_region)
    stopped = home[rows.job[rows.kind == STOPPED]]
    assert {region: int((stopped == region).sum()) for region in SRTF_STOPS} == SRTF_STOPS
    ends = np.zeros(len(rows.jobs), np.int64)
    ends[rows.job[rows.kind == FINISHED]] = rows.at_ms[rows.kind == FINISHED]
    completion = (ends - logs["srtf"].trace.submissions.submitted_ms) / 1000
    assert completion[home == "7f04ca"].mean() == pytest.approx(111_148.604305, abs=5e-7)
    assert completion[home == "ed69ec"].mean() == pytest.approx(25_464.105839416057, abs=1e-9)


def test_shortest_first_waits_least(philly: JobTrace, logs: dict[str, OrderOnlyLog]) -> None:
    waits = {policy: sum(float(found.sum()) for _, found in waits_s(log)) for policy, log in logs.items()}
    assert waits["srtf"] < waits["sjf"] < waits["fifo"]
    assert sum(found.sum() for _, found in waits_s(replay_trace(philly, "las"))) < waits["fifo"]


def test_time(philly: JobTrace, logs: dict[str, OrderOnlyLog]) -> None:
    """At least a million rows a second of CPU time; 0.03 s for all 205,509 where nothing else runs."""
    spent = []
    for _ in range(5):
        began = time.process_time()
        replay_trace(philly, "fifo")
        spent.append(time.process_time() - began)
    assert min(spent) < 0.2


def test_jobs_are_five_times_as_frequent(philly: JobTrace) -> None:
    jobs = philly.submissions
    dense = replace(philly, submissions=replace(jobs, submitted_ms=jobs.submitted_ms // 1000 // 5 * 1000))
    for policy, expected in (("fifo", 32067.08), ("sjf", 4851.77)):
        waits = np.concatenate([found for _, found in waits_s(replay_trace(dense, policy))])
        assert waits.mean() == pytest.approx(expected, abs=0.0051)
