"""Time limits of jobs: a host ends a job at its limit, and the checker of logs sees one that ran for longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.live.loop.events import Failed, Finished, Promised, Started, Submitted
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.simulation.host import AT_LIMIT
from mast_opt.live.simulation.run import run_trace
from tests.simulation.test_order_only import trace_of


def test_a_job_ends_at_its_limit_and_another_gets_its_servers() -> None:
    full = {"tasks": 2, "mgpu": 4000, "duration_ms": 100}
    log = list(run_trace(trace_of({**full, "limit_ms": 60}, full), "mast").events())
    ends = [(one.at_ms, one.event) for one in log if isinstance(one.event, (Failed, Finished))]
    assert ends == [(60, Failed("j0", 1, AT_LIMIT)), (160, Finished("j1", 1))]
    assert check_log(log, all_end=True, durations=True) == ()


def test_a_job_that_ends_within_its_grace_finishes() -> None:
    """j0 needs 1 s more than its limit, and j1 more than limit and grace; j2 is promised the end of both."""
    rows = [{"mgpu": 4000, "duration_ms": 1000 * s, "limit_ms": 1000 * limit} for s, limit in ((3, 2), (9, 2), (1, 1))]
    log = list(run_trace(trace_of(*rows[:2], rows[2] | {"tasks": 2}), "mast", {"limit_grace_s": "2"}).events())
    ends = [(one.at_ms, one.event) for one in log if isinstance(one.event, (Failed, Finished))]
    assert ends[:2] == [(3000, Finished("j0", 1)), (4001, Failed("j1", 1, AT_LIMIT))]
    assert next(one.event.by_ms for one in log if isinstance(one.event, Promised)) == 4001
    assert check_log(log, all_end=True, durations=True) == ()
    with pytest.raises(UsageError, match="limit_grace_s is -1; expected at least 0"):
        run_trace(trace_of(*rows), "mast", {"limit_grace_s": "-1"})


@pytest.mark.parametrize("limit_ms", [100, 101, -1])
def test_a_job_that_keeps_its_limit_finishes(limit_ms: int) -> None:
    log = run_trace(trace_of({"duration_ms": 100, "limit_ms": limit_ms}), "mast").events()
    assert [one.event for one in log][-1] == Finished("j0", 1)


def test_the_limit_counts_from_every_start() -> None:
    """j0 of tier 1 is stopped at 1 ms, and has its whole limit again when it goes on (3 ms after its restart)."""
    rows = ({"tasks": 2, "mgpu": 4000, "duration_ms": 50, "limit_ms": 54}, {"tier": 0, "duration_ms": 5})
    log = list(run_trace(trace_of(*rows), "mast").events())
    starts = [one.at_ms for one in log if isinstance(one.event, Started) and one.event.job == "j0"]
    assert len(starts) == 2
    assert log[-1].event == Finished("j0", 2)
    assert check_log(log, all_end=True, durations=True) == ()


def test_the_checker_sees_a_job_that_runs_past_its_limit() -> None:
    log = list(run_trace(trace_of({"duration_ms": 100}), "mast").events())
    changed = [
        replace(one, event=replace(one.event, spec=replace(one.event.spec, limit_ms=99)))
        if isinstance(one.event, Submitted)
        else one
        for one in log
    ]
    assert [str(found) for found in check_log(changed, durations=True)] == [
        f"event {len(log)}, work: job j0 ran for 100 ms; its limit and grace are 99"
    ]


def test_order_only_policies_say_that_they_end_nothing_at_a_limit() -> None:
    with pytest.raises(InstanceError, match=r"a limit that the job keeps \(job j0\)"):
        run_trace(trace_of({"duration_ms": 100, "limit_ms": 60}), "fifo")
