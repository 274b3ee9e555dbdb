"""Figures worked out by hand, and what has to hold on every log."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.events import (
    Adopted,
    Cancelled,
    Event,
    Failed,
    Finished,
    Placed,
    ServerDown,
    ServerUp,
    Started,
    Stopped,
    Stored,
    Submitted,
)
from mast_opt.live.loop.job_log import JobLog, job_log
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.metrics import Spread, metrics
from mast_opt.problems.job_placement.live_fleet.types import Share


def stored(*events: tuple[int, Event]) -> list[Stored]:
    return [Stored(seq, at, event) for seq, (at, event) in enumerate(events, start=1)]


def up(server: str, gpus: int = 8) -> Event:
    return ServerUp(server, "r", "c", "k", "h100", gpus)


def submitted(job: str, gpus: int = 1, **spec: Any) -> Event:
    return Submitted(job, JobSpec(mgpu=gpus * 1000, **spec))


def placed(job: str, attempt: int = 1) -> Event:
    return Placed(job, attempt, "r", "c", (Share("s", 1, {}),))


SECONDS = 1000
LOG = stored(
    (0, up("s")),
    (0, submitted("a", 4, duration_ms=20 * SECONDS, tier=2)),
    (0, placed("a")),
    (1 * SECONDS, Started("a", 1)),
    (2 * SECONDS, submitted("b", 8, duration_ms=10 * SECONDS)),
    (11 * SECONDS, Stopped("a", 1, 7 * SECONDS, 3 * SECONDS)),
    (11 * SECONDS, placed("b")),
    (12 * SECONDS, Started("b", 1)),
    (20 * SECONDS, submitted("c", 2)),
    (22 * SECONDS, Finished("b", 1)),
    (22 * SECONDS, placed("a", 2)),
    (23 * SECONDS, Started("a", 2)),
    (24 * SECONDS, Cancelled("c")),
    (40 * SECONDS, Finished("a", 2)),
)


def test_by_hand() -> None:
    found = metrics(job_log(LOG))
    assert (found.jobs, found.finished, found.failed, found.cancelled, found.waiting, found.running) == (
        3,
        2,
        0,
        1,
        0,
        0,
    )
    assert found.sum_queue_s == (1 + 12) + 10 + 4
    assert found.queue_s == Spread(9.0, 10.0, 12.7, 12.94, 13.0)
    assert found.gpu_weighted_queue_s == (13 * 4 + 10 * 8 + 4 * 2) / 14
    assert found.queue_s_by_tier == {0: 7.0, 2: 13.0}
    assert (found.jct_s.mean, found.jct_s.max) == (30.0, 40.0)
    assert found.slowdown.mean == (40 / 20 + 20 / 10) / 2
    assert found.makespan_s == 40
    held = 4 * 11 + 8 * 11 + 4 * 18
    assert found.allocation == held / (8 * 40)
    assert found.offered is None
    assert (found.preemptions, found.lost_gpu_h, found.starved) == (1, 4 * 3 / 3600, 0)
    parts = found.held_gpu_s
    assert (parts.all, parts.useful, parts.lost, parts.restarting, parts.unfinished) == (
        held,
        4 * 20 + 8 * 10,
        12,
        4 * (1 + 5) + 8 * 1,
        0,
    )


def test_a_window_counts_jobs_by_their_submission_and_those_that_have_not_ended() -> None:
    found = metrics(job_log(LOG), since_ms=1 * SECONDS, until_ms=21 * SECONDS)
    assert (found.jobs, found.finished, found.waiting, found.running) == (2, 0, 1, 1)
    assert found.sum_queue_s == 10 + 1
    assert found.makespan_s is None
    assert found.jct_s == Spread(None, None, None, None, None)
    assert found.allocation == (4 * 10 + 8 * 10) / (8 * 20)
    assert found.held_gpu_s.unfinished == found.held_gpu_s.all == 8 * 10


def test_servers_that_come_and_go() -> None:
    events = stored(
        (0, up("s", 4)),
        (0, submitted("a", 4, duration_ms=10 * SECONDS)),
        (0, placed("a")),
        (0, Started("a", 1)),
        (5 * SECONDS, up("t", 4)),
        (8 * SECONDS, ServerDown("t")),
        (10 * SECONDS, Failed("a", 1)),
    )
    found = metrics(job_log(events))
    assert found.allocation == 40 / (4 * 10 + 4 * 3)
    assert found.offered == found.allocation
    assert (found.failed, found.held_gpu_s.unfinished, found.jct_s.mean) == (1, 40, None)


def test_starved_is_a_wait_of_more_than_a_day_in_one_go() -> None:
    day = 24 * 3600 * SECONDS
    for wait, starved in ((day, 0), (day + 1, 1)):
        events = stored((0, submitted("a")), (wait, placed("a")), (wait, Started("a", 1)))
        assert metrics(job_log(events)).starved == starved


def test_a_start_that_never_came_is_one_wait() -> None:
    events = stored(
        (0, submitted("a")), (5, placed("a")), (7, Stopped("a", 1, 0, 0)), (9, placed("a", 2)), (10, Started("a", 2))
    )
    found = metrics(job_log(events))
    assert found.sum_queue_s == 0.010
    assert (found.waiting, found.running) == (0, 1)


def test_nothing_to_measure() -> None:
    with pytest.raises(UsageError, match="the log has no job"):
        metrics(job_log([]))
    with pytest.raises(UsageError, match="before it begins"):
        metrics(job_log(LOG), since_ms=5, until_ms=4)


def test_rows_cannot_tell_of_adopted_jobs() -> None:
    with pytest.raises(ValueError, match="event 2 is Adopted"):
        job_log(stored((0, submitted("a")), (0, Adopted("a", 1, "r", "c", ()))))


def test_a_log_that_starts_at_once_measures_the_same() -> None:
    rows = job_log(LOG)
    late = {"STARTED": rows.kind == 2}
    once = JobLog(
        **{
            **{name: getattr(rows, name) for name in JobLog.__dataclass_fields__},
            "at_ms": rows.at_ms[~late["STARTED"]],
            "kind": rows.kind[~late["STARTED"]],
            "job": rows.job[~late["STARTED"]],
            "at_once": True,
        }
    )
    found = metrics(once)
    assert found.sum_queue_s == 11 + 9 + 4
    assert np.isclose(found.held_gpu_s.all, metrics(rows).held_gpu_s.all)


def test_jobs_that_can_never_run_improve_no_figure() -> None:
    never = stored(*((one.at_ms, one.event) for one in LOG[:6]), (2 * SECONDS, submitted("huge", 24)))
    log = [*never, *(Stored(one.seq + 1, one.at_ms, one.event) for one in LOG[6:])]
    found, alone = metrics(job_log(log), impossible={"huge"}), metrics(job_log(LOG))
    assert (found.jobs, found.waiting, found.impossible) == (alone.jobs + 1, 1, 1)
    for figure in ("queue_s", "sum_queue_s", "gpu_weighted_queue_s", "queue_s_by_tier", "starved", "still_waiting_s"):
        assert getattr(found, figure) == getattr(alone, figure), figure
    assert metrics(job_log(log)).sum_queue_s == alone.sum_queue_s + 38


def test_jobs_that_still_wait_have_a_figure_of_their_own() -> None:
    log = [*LOG, *stored((39 * SECONDS, submitted("late")), (40 * SECONDS, submitted("last")))]
    log = [Stored(seq, one.at_ms, one.event) for seq, one in enumerate(sorted(log, key=lambda one: one.at_ms), start=1)]
    found, before = metrics(job_log(log)), metrics(job_log(LOG))
    assert found.waiting == 2
    assert found.still_waiting_s == Spread(1.0, 1.0, 1.0, 1.0, 1.0)
    assert found.sum_queue_s == before.sum_queue_s + 1
    assert found.queue_s.mean == found.sum_queue_s / 4
    assert before.still_waiting_s == Spread(None, None, None, None, None)
