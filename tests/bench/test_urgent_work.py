"""Waits of the most important work by size, and the ratio that no policy can go below, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.headline_runs import UrgentWaits, least_ratio, urgent_waits
from benchmarks.headline_structure import OrganisationParams
from benchmarks.headline_trace import organisation_trace
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec

HOUR_MS = 3_600_000
PARAMS = OrganisationParams(days=3, gpus=150, regions=3, datasets=100, median_hours=6.0, ramp_days=0)


def timed(*events: tuple[float, ev.Event]) -> list[ev.Stored]:
    return [ev.Stored(seq + 1, round(hour * HOUR_MS), event) for seq, (hour, event) in enumerate(events)]


def job(name: str, gpus: int, tier: int = 0) -> ev.Submitted:
    return ev.Submitted(name, JobSpec(tier=tier, mgpu=gpus * 1000))


def test_waits_of_all_attempts_count_until_the_end_of_the_window() -> None:
    log = timed(
        (0, job("early", 8)),
        (1, job("whole", 8)),
        (1, job("part", 4)),
        (1, job("other", 8, tier=1)),
        (2, ev.Started("part", 1)),
        (4, ev.Started("whole", 1)),
        (5, ev.Stopped("whole", 1, 0, 0)),
        (6, job("stays", 8)),
        (40, ev.Started("whole", 2)),
    )
    assert urgent_waits(log, 8, HOUR_MS, 10 * HOUR_MS) == UrgentWaits((3 + 5 + 4) / 2, 1.0, 0)
    assert urgent_waits(log, 8, HOUR_MS, 41 * HOUR_MS) == UrgentWaits((3 + 35 + 35) / 2, 1.0, 2)
    assert urgent_waits(log, 8, 41 * HOUR_MS, 42 * HOUR_MS) == UrgentWaits(None, None, 0)


def test_the_least_ratio_is_the_demand_over_the_supply() -> None:
    trace = organisation_trace(PARAMS)
    jobs = trace.submissions
    found = least_ratio(trace, 0, 3 * 24 * HOUR_MS)
    assert found is not None
    of_all = []
    supply = sum(server.gpus for server in trace.servers)
    for at in range(0, 3 * 24 * HOUR_MS + 1, HOUR_MS):
        there = (jobs.tier == 0) & (jobs.submitted_ms <= at) & (jobs.submitted_ms + jobs.duration_ms > at)
        of_all.append(jobs.gang_mgpu[there].sum() / 1000 / supply)
    assert found >= sum(of_all) / len(of_all)  # types only add to it
    assert found < 1.3 * sum(of_all) / len(of_all)
    nobody = replace(trace, submissions=replace(jobs, tier=jobs.tier + 1))
    assert least_ratio(nobody, 0, HOUR_MS) == 0
    assert least_ratio(trace, HOUR_MS, 0) is None


def test_the_least_ratio_of_one_look() -> None:
    trace = organisation_trace(PARAMS)
    ends = int((trace.submissions.submitted_ms + trace.submissions.duration_ms).max())
    assert least_ratio(trace, ends, ends) == pytest.approx(0.0)
