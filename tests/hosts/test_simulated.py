"""What every host does, tried on the simulated one: twice is once, and what it observes is what runs."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.hosts.protocol import Can, Host
from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Drop, Resize, Start, Stop
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.problems.job_placement.live_fleet.types import Share

SPECS = {"short": JobSpec(duration_ms=10), "long": JobSpec(duration_ms=1000), "unknown": JobSpec()}
SPECS["elastic"] = JobSpec(duration_ms=1000, tasks=4, min_tasks=1, restart_ms=100)


@pytest.fixture
def host() -> Host:
    return SimulatedLiveHost(lambda job: SPECS.get(job, SPECS["long"]))


def start(job: str, attempt: int = 1) -> Start:
    return Start(job, attempt, (Share("s1", 1, {0: 1000}),))


def test_a_job_runs_as_long_as_it_says(host: Host) -> None:
    host.carry_out(5, start("short"))
    assert host.reports(5) == [ev.Started("short", 1)]
    assert host.next_ms() == 15
    assert host.reports(14) == []
    assert list(host.observe()) == [("short", 1)]
    assert host.reports(15) == [ev.Finished("short", 1)]
    assert list(host.observe()) == []


def test_a_job_that_says_nothing_runs_for_a_minute(host: Host) -> None:
    host.carry_out(0, start("unknown"))
    host.reports(0)
    assert host.next_ms() == 60_000


def test_twice_is_once(host: Host) -> None:
    for _ in range(2):
        host.carry_out(0, start("long"))
    assert host.reports(0) == [ev.Started("long", 1)]
    for _ in range(2):
        host.carry_out(7, Stop("long", 1, "for x"))
    stopped = host.reports(7)
    assert [type(event) for event in stopped] == [ev.Stopped]
    host.carry_out(8, start("long"))
    assert list(host.observe()) in ([], [("long", 1)])


def test_an_elastic_job_works_in_proportion_to_its_tasks(host: Host) -> None:
    host.carry_out(0, Start("elastic", 1, (Share("s1", 4, dict.fromkeys(range(4), 1000)),)))
    half = Resize(9, "elastic", 1, (Share("s1", 2, {0: 1000, 1: 1000}),))
    for _ in range(2):
        host.carry_out(600, half)
    assert host.reports(1399) == [ev.Started("elastic", 1)]
    assert host.next_ms() == 600 + 100 + 2 * 400  # a restart, and the rest at half of the speed
    assert host.reports(1500) == [ev.Finished("elastic", 1, 1400)]
    host.carry_out(1600, half)  # of an attempt that is over
    assert host.reports(10**9) == []


def test_what_is_not_there_has_stopped(host: Host) -> None:
    host.carry_out(0, Stop("never", 3, "x"))
    assert host.reports(0) == [ev.Stopped("never", 3, 0, 0)]


def test_it_says_what_it_cannot_do(host: Host) -> None:
    assert Can.COPY not in host.can
    with pytest.raises(UsageError, match="starts, stops and resizes"):
        host.carry_out(0, Drop(1, "logs", "east"))


@pytest.mark.parametrize("seed", range(5))
def test_random_operations_end_with_what_is_observed(host: Host, seed: int) -> None:
    rng, now = np.random.default_rng(seed), 0
    attempts, runs = dict.fromkeys("abcdef", 0), set[tuple[str, int]]()
    for _ in range(1000):
        now += int(rng.integers(0, 200))
        job = str(rng.choice(list(attempts)))
        holds = any(name == job for name, _ in runs)
        if rng.random() < 0.5 and not holds:
            attempts[job] += 1
        if rng.random() < 0.6 and attempts[job]:
            host.carry_out(now, start(job, attempts[job]) if not holds else Stop(job, attempts[job], "x"))
        for event in host.reports(now):
            if isinstance(event, ev.Started):
                runs.add((event.job, event.attempt))
            elif isinstance(event, (ev.Stopped, ev.Finished)):
                runs.discard((event.job, event.attempt))
        assert set(host.observe()) == runs
