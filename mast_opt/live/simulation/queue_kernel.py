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

    wait_key: Ints
    """Heap of the keys of the jobs that wait: the number of the job under FIFO, its duration under SJF."""
    wait_job: Ints
    """The jobs of that heap."""
    run_end: Ints
    """Heap of the times when jobs end."""
    run_job: Ints
    """The jobs of that heap."""


@kernel
def _push(keys: Ints, jobs: Ints, size: int, key: int, job: int) -> None:
    """Put a job on a heap of that size; of those with the same key, the first job comes first."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] < key or (keys[above] == key and jobs[above] < job):
            break
        keys[at], jobs[at] = keys[above], jobs[above]
        at = above
    keys[at], jobs[at] = key, job


@kernel
def _pop(keys: Ints, jobs: Ints, size: int) -> None:
    """Remove the job with the least key from a heap; ``size`` counts what is left."""
    key, job, at, child = keys[size], jobs[size], 0, 1
    while child < size:
        other = child + 1
        if other < size and (keys[other] < keys[child] or (keys[other] == keys[child] and jobs[other] < jobs[child])):
            child = other
        if keys[child] > key or (keys[child] == key and jobs[child] > job):
            break
        keys[at], jobs[at] = keys[child], jobs[child]
        at, child = child, 2 * child + 1
    keys[at], jobs[at] = key, job


@entry
def replay_queue(
    jobs: rs.QueueJobs, attempts: rs.Attempts, heaps: Heaps, servers: Servers, log: rs.Log, at: Ints, until: int,
    most_rows: int, shortest: bool,
) -> bool:  # fmt: skip
    """Go on with a replay until it ends, until the time is up, or until the log has ``most_rows`` rows.

    Args:
        shortest: the shortest job goes first; else the one that came first.

    Returns:
        Whether it has ended, or the time is up.
    """
    wait_key, wait_job, run_end, run_job = heaps.wait_key, heaps.wait_job, heaps.run_end, heaps.run_job
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
            _pop(run_end, run_job, at[rs.RUNNING])
            rs.free_up(servers, jobs, attempts, log, at, job)
            rs.write(log, at, now, FINISHED, job)
        while at[rs.COME] < jobs.submitted.size and jobs.submitted[at[rs.COME]] == now:
            job = at[rs.COME]
            _push(wait_key, wait_job, at[rs.WAITING], jobs.duration[job] if shortest else job, job)
            rs.write(log, at, now, SUBMITTED, job)
            at[rs.WAITING] += 1
            at[rs.COME] += 1
        while at[rs.WAITING] > 0:
            job = wait_job[0]
            if jobs.need[job] > at[rs.FREE] or not rs.hold(servers, jobs, attempts, log, at, job):
                break
            rs.write_placed(attempts, log, at, now, job)
            at[rs.WAITING] -= 1
            _pop(wait_key, wait_job, at[rs.WAITING])
            _push(run_end, run_job, at[rs.RUNNING], now + jobs.duration[job], job)
            at[rs.RUNNING] += 1
    return True
