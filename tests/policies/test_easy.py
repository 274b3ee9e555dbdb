"""EASY backfilling against a reference on a pool of equal processors.

``python -m tests.policies.test_easy 1000`` compares a thousand traces in each order.
"""

from __future__ import annotations

import heapq
import random
import sys
from dataclasses import replace
from typing import NamedTuple

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.events import Placed
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.policies.easy import BACKFILLS, BY_SUBMISSION, SHORTEST_FIRST, EasyParams
from mast_opt.live.simulation.run import run_trace
from mast_opt.problems.job_placement.live_fleet.types import Part, Server
from tests.simulation.test_order_only import trace_of


class Asked(NamedTuple):
    submitted: int
    size: int
    duration: int
    limit: int


class Pool:
    """A pool of processors under EASY, job by job and moment by moment."""

    def __init__(self, jobs: list[Asked], size: int, backfill: str) -> None:
        self.jobs, self.size, self.backfill = jobs, size, backfill
        self.starts: dict[int, int] = {}
        self.running: list[tuple[int, int, int]] = []
        self.moments = [job.submitted for job in jobs]
        heapq.heapify(self.moments)
        while self.moments:
            self.turn(heapq.heappop(self.moments))

    def free(self, at: int | None = None) -> int:
        """Processors that are free now, or at a time if jobs run up to their limits."""
        return self.size - sum(size for _, limit, size in self.running if at is None or limit > at)

    def start(self, now: int, j: int) -> None:
        job = self.jobs[j]
        self.starts[j] = now
        self.running.append((now + min(job.duration, job.limit), now + job.limit, job.size))
        heapq.heappush(self.moments, self.running[-1][0])

    def turn(self, now: int) -> None:
        self.running = [one for one in self.running if one[0] > now]
        queue = [j for j, job in enumerate(self.jobs) if job.submitted <= now and j not in self.starts]
        while queue and self.jobs[queue[0]].size <= self.free():
            self.start(now, queue.pop(0))
        if not queue:
            return
        head = self.jobs[queue.pop(0)]
        shadow = min(limit for _, limit, _ in self.running if self.free(limit) >= head.size)
        extra = self.free(shadow) - head.size
        if self.backfill == SHORTEST_FIRST:
            queue.sort(key=lambda j: self.jobs[j].limit)
        for j in queue:
            job = self.jobs[j]
            if job.size > self.free():
                continue
            if now + job.limit <= shadow:
                self.start(now, j)
            elif job.size <= extra:
                extra -= job.size
                self.start(now, j)


def ours(jobs: list[Asked], size: int, backfill: str = BY_SUBMISSION) -> dict[int, int]:
    """When each job starts; the log passes its checks."""
    rows = [
        {"submitted_ms": job.submitted, "tasks": job.size, "duration_ms": job.duration, "limit_ms": job.limit}
        for job in jobs
    ]
    servers = tuple(Server(f"n{at}", "r", "c-r", "k", "h100", 1, 0, 0) for at in range(size))
    log = list(run_trace(trace_of(*rows, servers=servers), "easy", {"backfill": backfill}).events())
    assert check_log(log, all_end=True, durations=True) == ()
    return {int(one.event.job[1:]): one.at_ms for one in log if isinstance(one.event, Placed)}


def drawn(seed: int) -> tuple[list[Asked], int]:
    rng = random.Random(seed)
    size, at, jobs = rng.randint(2, 10), 0, []
    for _ in range(rng.randint(2, 25)):
        at += rng.choice([0, 0, 1, 3, 10])
        duration = rng.randint(1, 40)
        limit = rng.choice([duration, duration + rng.randint(0, 30), 5 * duration, max(1, duration - 2)])
        jobs.append(Asked(at, rng.randint(1, size), duration, limit))
    return jobs, size


@pytest.mark.parametrize("backfill", BACKFILLS)
def test_starts_are_those_of_the_reference(backfill: str) -> None:
    for seed in range(25):
        jobs, size = drawn(seed)
        assert ours(jobs, size, backfill) == Pool(jobs, size, backfill).starts, seed


def test_a_shorter_job_may_make_all_but_the_head_later() -> None:
    """The anomaly of backfilling: with a first job of 1 s instead of 12 s, job 1 starts sooner and four jobs later."""
    jobs = [Asked(at, size, time, time) for at, size, time in ((0, 1, 12), (0, 6, 8), (1, 1, 10), (2, 3, 2), (3, 2, 3))]
    jobs.append(Asked(4, 2, 3, 3))
    before = ours(jobs, 6)
    after = ours([Asked(0, 1, 1, 1), *jobs[1:]], 6)
    assert (before[1], after[1]) == (12, 1)
    assert all(after[j] > before[j] for j in (2, 3, 4, 5))


def test_nobody_passes_a_head_that_waits_for_a_job_without_a_limit() -> None:
    jobs = [Asked(0, 2, 50, -1), Asked(1, 3, 5, 5), Asked(2, 1, 1, 1)]
    assert ours(jobs, 3) == {0: 0, 1: 50, 2: 55}


def test_a_head_of_several_parts_has_a_shadow_time() -> None:
    """On servers of 4 and 2 GPUs it needs 4 + 1: job 2 may pass it, since it ends by then or takes a GPU that is
    left; job 3 may not."""
    servers = tuple(Server(f"n{at}", "r", "c-r", "k", "h100", gpus, 0, 0) for at, gpus in enumerate((4, 2)))
    rows = [{"submitted_ms": at, "duration_ms": ms, "limit_ms": ms} for at, ms in ((0, 50), (1, 20), (2, 90), (3, 90))]
    trace = trace_of(rows[0] | {"mgpu": 4000}, *rows[1:], servers=servers)
    parts = (Part("t", 1, 4000), Part("r", 1, 1000))
    trace = replace(trace, submissions=replace(trace.submissions, parts={1: parts}))
    log = list(run_trace(trace, "easy", {}).events())
    assert check_log(log, all_end=True, durations=True) == ()
    assert {one.event.job: one.at_ms for one in log if isinstance(one.event, Placed)} == {
        "j0": 0,
        "j1": 50,
        "j2": 2,
        "j3": 70,
    }


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(UsageError, match="backfill is 'longest'; expected one of submission, shortest-limit"):
        EasyParams("longest")


if __name__ == "__main__":
    for order in BACKFILLS:
        cases = [(*drawn(seed), order) for seed in range(int(sys.argv[1]))]
        wrong = [at for at, case in enumerate(cases) if ours(*case) != Pool(*case).starts]
        print(f"{order}: {len(cases)} traces, {len(wrong)} differ {wrong[:5]}")
