"""Usage by tenant and month: GPU-hours by hand, and those of a run against its metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.core.errors import InputError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.history import history
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.reports.usage import DAYS, Usage, months, usage_of, write_usage
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import read_trace
from mast_opt.problems.job_placement.live_fleet.types import Share

SMALL = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"
HOUR_MS = 3_600_000
MONTH_MS = DAYS * 24 * HOUR_MS
SPEC = JobSpec(tier=0, tasks=2, mgpu=1000, tenant="a", duration_ms=9 * HOUR_MS)
ON_S = (Share("s", 2, {0: 1000, 1: 1000}),)
HAPPENS: list[tuple[float, ev.Event]] = [
    (-10, ev.ServerUp("s", "r", "c", "b", "h100", 4)),
    (-6, ev.Submitted("j", SPEC)),
    (-5, ev.Placed("j", 1, "r", "c", ON_S)),
    (-4, ev.Started("j", 1)),
    (2, ev.StopAsked("j", 1, "more-important")),
    (3, ev.Stopped("j", 1, 5 * HOUR_MS, HOUR_MS)),
    (3, ev.Submitted("other", JobSpec(tier=0, tasks=1, mgpu=500, tenant="b"))),
    (5, ev.Placed("j", 2, "r", "c", ON_S, at_once=True)),
    (9, ev.Finished("j", 2)),
    (10, ev.Cancelled("other")),
    (20, ev.ServerDown("s")),
]
"""Hours from the end of the first month."""
LOG = [ev.Stored(n + 1, MONTH_MS + int(hour * HOUR_MS), event) for n, (hour, event) in enumerate(HAPPENS)]
TABLE = (
    Usage("days 0 to 30", "a", 12, 10, 2, 0, 20),
    Usage("days 30 to 60", "a", 18, 14, 2, 2, 28),
    Usage("days 30 to 60", "b", 3.5, 0, 0, 0, 0),
)


def test_what_a_tenant_asks_holds_leaves_idle_and_loses_in_each_month() -> None:
    assert usage_of(history(LOG), {"h100": 2.0}) == TABLE
    assert [row.cost for row in usage_of(history(LOG), {"a100": 2.0})] == [None, None, 0]


def test_months_of_a_clock_are_those_of_the_calendar() -> None:
    first = 1_798_761_600_000  # 1 January 2027
    assert months(first - 1, first + 40 * 24 * HOUR_MS)[1] == ["2026-12", "2027-01", "2027-02"]
    assert months(first - 1, first)[0][1] == first
    assert months(0, 0) == ([0, MONTH_MS], ["days 0 to 30"])
    assert len(months(0, MONTH_MS)[1]) == 1


def test_usage_of_a_run_adds_up_to_its_metrics(tmp_path: Path) -> None:
    run = run_trace(read_trace(SMALL), "mast")
    found = history(run.events())
    rows = usage_of(found)
    held = sum(series.amount[:-1] @ (series.at_ms[1:] - series.at_ms[:-1]) for series in found.held_mgpu.values())
    assert sum(row.held for row in rows) == pytest.approx(held / HOUR_MS / 1000)
    waits = sum((wait.end_ms - wait.begin_ms) * gpus(found.jobs[wait.job][0]) for wait in found.waits)
    assert sum(row.asked - row.held for row in rows) == pytest.approx(waits / HOUR_MS)
    write_usage(rows, tmp_path / "usage.csv")
    lines = (tmp_path / "usage.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("month,tenant,asked_gpu_h,held_gpu_h,idle_gpu_h,lost_gpu_h,cost", len(rows) + 1)
    with pytest.raises(InputError):
        write_usage(rows, tmp_path / "usage.csv")


def gpus(spec: JobSpec) -> float:
    return spec.tasks * spec.mgpu / 1000
