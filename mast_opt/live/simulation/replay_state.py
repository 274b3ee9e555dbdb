"""State of a compiled replay: jobs, attempts, queues and the log, as arrays that kernels get by reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.by_reference import by_reference
from mast_opt.core.jit import kernel
from mast_opt.live.loop.job_log import PLACED
from mast_opt.live.simulation.server_levels import Ints, Servers, give_back, take, take_again

COME, WAITING, RUNNING, ROWS, SHARES, PLACEMENTS, STOPS, FREE, DEMAND, NOW = range(10)
"""Places of ``at``, how far a replay is: jobs that have come, that wait, and that run; rows, shares, placements and
stops in the log; free GPUs, GPUs that all who wait and run ask for; ms."""
COUNTERS = 10


@by_reference
class QueueJobs(NamedTuple):
    """The jobs of one queue, in the order of their submission."""

    submitted: Ints
    """Time of submission, in ms."""
    duration: Ints
    """Duration, in ms."""
    need: Ints
    """Number of GPUs."""
    checkpoint: Ints
    """ms between two checkpoints; 0: work is saved whenever the job is stopped."""
    restart: Ints
    """ms that an attempt after the first one takes to get going again."""


@by_reference
class Attempts(NamedTuple):
    """The last attempt of every job."""

    first_share: Ints
    """Position in the log where its shares begin."""
    next_share: Ints
    """Position in the log where its shares end."""
    started: Ints
    """Time of the start, in ms."""
    ends: Ints
    """ms, if it is not stopped."""
    falls: Ints
    """ms when the job falls to the next level."""
    left: Ints
    """ms of work, when the attempt began or after it was stopped."""
    delay: Ints
    """ms that the attempt takes to get going."""
    attained: Ints
    """GPU-ms held in earlier attempts."""


@by_reference
class Log(NamedTuple):
    """Columns of a log that has room for more rows."""

    at_ms: Ints
    kind: NDArray[np.int8]
    job: NDArray[np.int32]
    share_server: NDArray[np.int32]
    """Servers of the shares of all placements, one after another."""
    share_gpus: NDArray[np.int32]
    placed_shares: NDArray[np.int32]
    """Number of shares of each placement."""
    stop_work: Ints
    """ms of work that each stop kept."""
    stop_lost: Ints
    """ms of work that each stop lost."""


@kernel
def write(log: Log, at: Ints, now: int, kind: int, job: int) -> None:
    """Add a row to the log."""
    row = at[ROWS]
    log.at_ms[row], log.kind[row], log.job[row] = now, kind, job
    at[ROWS] = row + 1


@kernel
def hold(servers: Servers, jobs: QueueJobs, attempts: Attempts, log: Log, at: Ints, job: int) -> bool:
    """Give a job its servers, if it fits. The shares are in the log; the row of the placement is not yet."""
    begin = at[SHARES]
    end = take(servers, jobs.need[job], log.share_server, log.share_gpus, begin)
    if end == begin:
        return False
    attempts.first_share[job], attempts.next_share[job] = begin, end
    at[SHARES] = end
    at[FREE] -= jobs.need[job]
    return True


@kernel
def write_placed(attempts: Attempts, log: Log, at: Ints, now: int, job: int) -> None:
    """Add the row of a placement to the log. Rows come in the order in which the jobs got their servers."""
    log.placed_shares[at[PLACEMENTS]] = attempts.next_share[job] - attempts.first_share[job]
    at[PLACEMENTS] += 1
    write(log, at, now, PLACED, job)


@kernel
def free_up(servers: Servers, jobs: QueueJobs, attempts: Attempts, log: Log, at: Ints, job: int) -> None:
    """Take back what a job holds."""
    give_back(servers, log.share_server, log.share_gpus, attempts.first_share[job], attempts.next_share[job])
    at[FREE] += jobs.need[job]


@kernel
def hold_again(servers: Servers, jobs: QueueJobs, attempts: Attempts, log: Log, at: Ints, job: int) -> bool:
    """Give a job back what was taken from it, if no other job holds it by now."""
    if not take_again(servers, log.share_server, log.share_gpus, attempts.first_share[job], attempts.next_share[job]):
        return False
    at[FREE] -= jobs.need[job]
    return True
