"""The compiled replay of one queue against a slow one, and against queueing theory."""

from __future__ import annotations

import math
from dataclasses import replace as changed

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mast_opt.live.loop.job_log import FINISHED, PLACED, STOPPED, SUBMITTED
from mast_opt.live.simulation.kernel import POLICIES, Habits, Replayed, replay
from mast_opt.live.simulation.replay_state import QueueJobs
from tests.simulation import reference
from tests.simulation.reference import Job

NAMES = {SUBMITTED: "submitted", PLACED: "placed", STOPPED: "stopped", FINISHED: "finished"}


def queue_of(jobs: list[Job]) -> QueueJobs:
    columns = (
        [getattr(job, name) for job in jobs] for name in ("submitted", "duration", "gpus", "checkpoint", "restart")
    )
    return QueueJobs(*(np.array(column, np.int64) for column in columns))


def rows_of(log: Replayed) -> list[reference.Row]:
    shares = iter(zip(log.share_server.tolist(), log.share_gpus.tolist()))
    counts = iter(log.placed_shares.tolist())
    found = []
    for at, kind, job in zip(log.at_ms.tolist(), log.kind.tolist(), log.job.tolist()):
        held = tuple(next(shares) for _ in range(next(counts))) if kind == PLACED else ()
        found.append((at, NAMES[kind], job, held))
    return found


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[Job], int, int]:
    servers, size = draw(st.integers(1, 70)), draw(st.sampled_from([1, 2, 3, 8]))
    numbers = st.integers(0, 12)
    drawn = draw(
        st.lists(
            st.tuples(numbers, st.integers(1, 25), st.integers(1, 20), st.integers(0, 4), numbers),
            min_size=1,
            max_size=25,
        )
    )
    jobs, now = [], 0
    for number, (gap, duration, gpus, checkpoint, restart) in enumerate(drawn):
        now += gap // 3
        jobs.append(Job(number, now, duration, min(gpus, servers * size), checkpoint, restart))
    return jobs, servers if draw(st.booleans()) else min(servers, 4), size


def fitting(jobs: list[Job], servers: int, size: int) -> list[Job]:
    return [changed(job, gpus=min(job.gpus, servers * size)) for job in jobs]


@pytest.mark.parametrize("policy", POLICIES)
@given(drawn=queues(), tick=st.integers(0, 2), thresholds=st.sets(st.integers(1, 60), max_size=3))
@settings(max_examples=150, deadline=None)
def test_same_rows_as_the_slow_simulator(
    policy: str, drawn: tuple[list[Job], int, int], tick: int, thresholds: set[int]
) -> None:
    jobs, servers, size = drawn
    jobs, late = fitting(jobs, servers, size), tick if policy in ("srtf", "las") else 0
    levels = tuple(sorted(thresholds))
    log = replay(queue_of(jobs), servers, size, policy, thresholds=levels, habits=Habits(tick_ms=tick))
    assert rows_of(log) == reference.simulate(jobs, servers, size, policy, levels, late)


def test_a_job_in_the_way_blocks_those_behind_it_only_in_a_fixed_order() -> None:
    jobs = [Job(0, 0, 10, 1), Job(1, 1, 5, 2), Job(2, 2, 1, 1)]
    assert [row[:3] for row in rows_of(replay(queue_of(jobs), 1, 2, "fifo")) if row[1] == "placed"] == [
        (0, "placed", 0),
        (10, "placed", 1),
        (15, "placed", 2),
    ]
    shortest = rows_of(replay(queue_of(jobs), 1, 2, "srtf"))
    assert (1, "stopped", 0, ()) in shortest
    assert (1, "placed", 1, ((0, 2),)) in shortest


def test_no_job_is_stopped_for_one_that_takes_as_long() -> None:
    jobs = [Job(0, 0, 10, 1), Job(1, 4, 6, 1), Job(2, 4, 6, 1)]
    rows = rows_of(replay(queue_of(jobs), 1, 1, "srtf"))
    assert [row[:3] for row in rows if row[1] != "submitted"] == [
        (0, "placed", 0),
        (10, "finished", 0),
        (10, "placed", 1),
        (16, "finished", 1),
        (16, "placed", 2),
        (22, "finished", 2),
    ]


def test_no_job_is_stopped_for_one_that_finds_no_servers() -> None:
    """Two GPUs are free for job 3 once job 2 is stopped, but on different servers."""
    jobs = [Job(0, 0, 9, 2), Job(1, 0, 9, 2), Job(2, 1, 90, 1), Job(3, 2, 20, 2)]
    rows = rows_of(replay(queue_of(jobs), 2, 3, "srtf"))
    assert [row[2] for row in rows if row[1] == "stopped"] == []
    assert [row[:3] for row in rows if row[1] == "placed"][2:] == [(1, "placed", 2), (9, "placed", 3)]


@given(drawn=queues())
@settings(max_examples=100, deadline=None)
def test_srtf_stops_a_job_only_for_one_that_ends_sooner(drawn: tuple[list[Job], int, int]) -> None:
    jobs, servers, size = drawn
    jobs = fitting(jobs, servers, size)
    left, delay, began = [job.duration for job in jobs], [0] * len(jobs), [0] * len(jobs)
    stopped: dict[int, int] = {}
    now = -1
    for at, what, number, _ in [*rows_of(replay(queue_of(jobs), servers, size, "srtf")), (2**60, "end", 0, ())]:
        if at != now:
            assert not stopped, "stopped, and nobody that ends sooner started at that instant"
            now = at
        if what == "stopped":
            stopped[number] = began[number] + delay[number] + left[number] - now
            work, every = max(0, now - began[number] - delay[number]), jobs[number].checkpoint
            left[number] -= work // every * every if every else work
            delay[number] = jobs[number].restart
        elif what == "placed":
            began[number] = now
            needed = delay[number] + left[number]
            stopped = {job: rest for job, rest in stopped.items() if rest <= needed}


def test_lost_work_is_done_again() -> None:
    jobs = [Job(0, 0, 100, 1, checkpoint=30, restart=7), Job(1, 50, 10, 1)]
    log = replay(queue_of(jobs), 1, 1, "srtf")
    assert (log.stop_work.tolist(), log.stop_lost.tolist()) == ([30], [20])
    assert rows_of(log)[-1][:3] == (60 + 7 + 70, "finished", 0)


def test_a_restart_that_is_cut_short() -> None:
    jobs = [Job(0, 0, 100, 1, restart=10), Job(1, 1, 4, 1), Job(2, 8, 5, 1)]
    ends = {}
    for carried in (False, True):
        rows = rows_of(replay(queue_of(jobs), 1, 1, "srtf", habits=Habits(carried=carried)))
        assert [row[0] for row in rows if row[1] == "stopped"] == [1, 8]
        ends[carried] = rows[-1][0]
    assert ends == {False: 13 + 10 + 99, True: 13 + 10 + 7 + 99}


def test_the_time_is_up() -> None:
    jobs = [Job(0, 0, 10, 1), Job(1, 5, 10, 1)]
    log = replay(queue_of(jobs), 1, 1, "fifo", until_ms=10)
    assert [row[:3] for row in rows_of(log)] == [
        (0, "submitted", 0),
        (0, "placed", 0),
        (5, "submitted", 1),
        (10, "finished", 0),
        (10, "placed", 1),
    ]


def erlang_c(servers: int, load: float) -> float:
    """The probability that a job waits."""
    terms = [load**n / math.factorial(n) for n in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def drawn_jobs(jobs: int, servers: int, load: float, seed: int) -> QueueJobs:
    rng, second = np.random.default_rng(seed), 1_000_000
    submitted = np.cumsum(rng.exponential(second / (servers * load), jobs)).astype(np.int64)
    duration = np.maximum(rng.exponential(second, jobs), 1).astype(np.int64)
    zeros = np.zeros(jobs, np.int64)
    return QueueJobs(submitted, duration, np.ones(jobs, np.int64), zeros, zeros)


def waits_of(jobs: QueueJobs, log: Replayed) -> NDArray[np.int64]:
    placed = np.empty(len(jobs.submitted), np.int64)
    placed[log.job[log.kind == PLACED]] = log.at_ms[log.kind == PLACED]
    return placed - jobs.submitted


def test_mean_wait_is_erlangs() -> None:
    servers, load, batches = 16, 0.9, 20
    expected = erlang_c(servers, servers * load) / (servers * (1 - load))
    assert expected == pytest.approx(0.369590, abs=5e-7)
    jobs = drawn_jobs(1_000_000, servers, load, seed=33)
    waits = waits_of(jobs, replay(jobs, servers, 1, "fifo")) / 1e6
    means = waits.reshape(batches, -1).mean(axis=1)
    error = means.std(ddof=1) / math.sqrt(batches)
    assert abs(means.mean() - expected) < 4 * error < 0.1


@pytest.mark.parametrize("policy", POLICIES)
def test_littles_law_and_held_gpus(policy: str) -> None:
    jobs = drawn_jobs(3000, 8, 0.95, seed=5)
    rng = np.random.default_rng(6)
    jobs = jobs._replace(
        need=rng.choice([1, 2, 4, 8, 12], len(jobs.need)),
        restart=rng.integers(0, 50_000, len(jobs.need)),
        checkpoint=rng.integers(0, 3, len(jobs.need)) * 100_000,
    )
    log = replay(jobs, 8, 8, policy, thresholds=(500_000, 3_000_000))
    steps = {SUBMITTED: (1, 0), PLACED: (-1, 1), STOPPED: (1, -1), FINISHED: (0, -1)}
    gaps = np.diff(log.at_ms, append=log.at_ms[-1])
    waiting = np.cumsum([steps[kind][0] for kind in log.kind.tolist()])
    held = np.cumsum([steps[kind][1] * int(jobs.need[job]) for kind, job in zip(log.kind.tolist(), log.job.tolist())])
    times = {kind: log.at_ms[log.kind == kind].sum() for kind in steps}
    assert (waiting * gaps).sum() == times[PLACED] - times[SUBMITTED] - times[STOPPED] > 0
    assert held.max() <= 64
    assert (held * gaps).sum() == sum(ms * int(jobs.need[job]) for job, ms in attempts_of(jobs, log))


def attempts_of(jobs: QueueJobs, log: Replayed) -> list[tuple[int, int]]:
    """Job and ms of every attempt: what is left of a restart, and work, which is kept, lost or finished."""
    stops, left = iter(zip(log.stop_work.tolist(), log.stop_lost.tolist())), jobs.duration.copy()
    began, again, found = {}, set(), []
    for at, kind, job in zip(log.at_ms.tolist(), log.kind.tolist(), log.job.tolist()):
        restart = int(jobs.restart[job]) if job in again else 0
        if kind == PLACED:
            began[job] = at
        elif kind == FINISHED:
            assert at - began[job] == restart + left[job]
            found.append((job, restart + int(left[job])))
        elif kind == STOPPED:
            kept, lost = next(stops)
            assert at - began[job] == restart + kept + lost if kept + lost else at - began[job] <= restart
            left[job] -= kept
            found.append((job, at - began[job]))
            again.add(job)
    return found
