"""Compiled replay of one queue whose order never changes and in which no job is stopped: FIFO, SJF.

The head of the line blocks. At one instant jobs end first (in the order of their submission), then jobs come, then the
head of the line is placed as long as it fits.
"""

from __future__ import annotations

from typing import NamedTuple

from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import entry, kernel
from mast_opt.live.loop.job_log import FINISHED, SUBMITTED
from mast_opt.live.simulation import replay_state as rs
from mast_opt.live.simulation.server_levels import Ints, Servers


@by_reference
class Heaps(NamedTuple):
    """Heaps of the jobs that wait and that run."""

    rank: Ints
    """[job]: its place in the order of the queue."""
    by_rank: Ints
    """[place]: the job."""
    waiting: Ints
    """Heap of ranks."""
    run_end: Ints
    """Heap of the times when jobs end."""
    run_job: Ints
    """The jobs of that heap."""


@kernel
def _push(heap: Ints, size: int, value: int) -> None:
    """Put a value on a heap of that size."""
    at = size
    while at > 0 and heap[(at - 1) >> 1] > value:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = value


@kernel
def _pop(heap: Ints, size: int) -> None:
    """Remove the least value of a heap; ``size`` counts what is left."""
    value, at, child = heap[size], 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = value


@kernel
def _push_end(ends: Ints, jobs: Ints, size: int, end: int, job: int) -> None:
    """Put a job on the heap of those that run; of those that end at the same time, the first job comes first."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if ends[above] < end or (ends[above] == end and jobs[above] < job):
            break
        ends[at], jobs[at] = ends[above], jobs[above]
        at = above
    ends[at], jobs[at] = end, job


@kernel
def _pop_end(ends: Ints, jobs: Ints, size: int) -> None:
    """Remove the job that ends first; ``size`` counts what is left."""
    end, job, at, child = ends[size], jobs[size], 0, 1
    while child < size:
        other = child + 1
        if other < size and (ends[other] < ends[child] or (ends[other] == ends[child] and jobs[other] < jobs[child])):
            child = other
        if ends[child] > end or (ends[child] == end and jobs[child] > job):
            break
        ends[at], jobs[at] = ends[child], jobs[child]
        at, child = child, 2 * child + 1
    ends[at], jobs[at] = end, job


@entry
def replay_queue(
    jobs: rs.QueueJobs,
    attempts: rs.Attempts,
    heaps: Heaps,
    servers: Servers,
    log: rs.Log,
    at: Ints,
    until: int,
    most_rows: int,
) -> bool:
    """Go on with a replay until it ends, until the time is up, or until the log has ``most_rows`` rows.

    Returns:
        Whether it has ended, or the time is up.
    """
    run_end, run_job = heaps.run_end, heaps.run_job
    while at[rs.COME] < jobs.submitted.size or at[rs.RUNNING] > 0:
        now = jobs.submitted[at[rs.COME]] if at[rs.COME] < jobs.submitted.size else run_end[0]
        if at[rs.RUNNING] > 0 and run_end[0] < now:
            now = run_end[0]
        if now > until:
            break
        if at[rs.ROWS] >= most_rows:
            return False
        at[rs.NOW] = now
        while at[rs.RUNNING] > 0 and run_end[0] == now:
            job = run_job[0]
            at[rs.RUNNING] -= 1
            _pop_end(run_end, run_job, at[rs.RUNNING])
            rs.free_up(servers, jobs, attempts, log, at, job)
            rs.write(log, at, now, FINISHED, job)
        while at[rs.COME] < jobs.submitted.size and jobs.submitted[at[rs.COME]] == now:
            _push(heaps.waiting, at[rs.WAITING], heaps.rank[at[rs.COME]])
            rs.write(log, at, now, SUBMITTED, at[rs.COME])
            at[rs.WAITING] += 1
            at[rs.COME] += 1
        while at[rs.WAITING] > 0:
            job = heaps.by_rank[heaps.waiting[0]]
            if jobs.need[job] > at[rs.FREE] or not rs.hold(servers, jobs, attempts, log, at, job):
                break
            rs.write_placed(attempts, log, at, now, job)
            at[rs.WAITING] -= 1
            _pop(heaps.waiting, at[rs.WAITING])
            _push_end(run_end, run_job, at[rs.RUNNING], now + jobs.duration[job], job)
            at[rs.RUNNING] += 1
    return True
