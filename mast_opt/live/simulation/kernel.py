"""Order-only policies on equal servers, replayed by compiled code: FIFO, SJF, SRTF and LAS.

``replay`` gives the log of one queue as columns; ``mast_opt.live.simulation.order_only`` replays a trace.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.live.simulation import replay_state as rs
from mast_opt.live.simulation.preemptive_kernel import Order, replay_preemptive
from mast_opt.live.simulation.queue_kernel import Heaps, replay_queue
from mast_opt.live.simulation.server_levels import Ints, empty_servers

POLICIES = ("fifo", "sjf", "srtf", "las")
FOREVER = 2**61
ROWS_AT_ONCE = 1_000_000
"""Rows after which a replay says how far it is."""
TIRESIAS_THRESHOLDS_GPU_MS = (8 * 3600 * 1000,)
"""GPU-ms after which LAS lets a job fall: 8 GPU-hours."""


@dataclass(frozen=True)
class Habits:
    """Habits in which simulators differ where jobs are stopped."""

    tick_ms: int = 0
    """Milliseconds that it takes to notice that a job has ended."""
    carried: bool = False
    """A restart that was cut short is finished by the next attempt, in addition to that one's own."""
    in_vain: bool = False
    """Jobs are stopped for one that then finds no servers."""


OURS = Habits()
HELIOS = Habits(tick_ms=1000, carried=True, in_vain=True)
"""Those of Helios's simulator, which looks at its jobs once a second."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """The log of one queue. Jobs are numbered as they were given, servers from 0."""

    at_ms: Ints
    kind: NDArray[np.int8]
    """SUBMITTED, PLACED, STOPPED or FINISHED of ``mast_opt.live.loop.job_log``."""
    job: NDArray[np.int32]
    placed_shares: NDArray[np.int32]
    """[placement]: on how many servers the job is."""
    share_server: NDArray[np.int32]
    """Servers of the shares of all placements, one after another."""
    share_gpus: NDArray[np.int32]
    stop_work: Ints
    """[stop]: ms of work that is kept."""
    stop_lost: Ints
    """[stop]: ms of work that is lost."""


def replay(
    jobs: rs.QueueJobs,
    servers: int,
    gpus: int,
    policy: str,
    *,
    thresholds: tuple[int, ...] = TIRESIAS_THRESHOLDS_GPU_MS,
    habits: Habits = OURS,
    until_ms: int = FOREVER,
    on_progress: Callable[[int, int], None] | None = None,
) -> Replayed:
    """The log of a queue of jobs on equal servers.

    Args:
        jobs: in the order of their submission. Each fits on the empty servers, and its times are below 2^61 ms.
        servers: how many there are.
        gpus: of one server.
        policy: one of ``POLICIES``.
        thresholds: for LAS, ascending GPU-ms after which a job falls to the next level; within a level the earlier
            submission goes first.
        habits: of SRTF and LAS.
        until_ms: the last ms that is replayed.
        on_progress: called with rows and time of the log from time to time; it may raise, which ends the replay.
    """
    queue = _Queue(jobs, servers, gpus)
    step = queue.preemptive(policy == "las", thresholds, habits) if policy in ("srtf", "las") else queue.fixed(policy)
    while not step(until_ms):
        if on_progress is not None:
            on_progress(int(queue.at[rs.ROWS]), int(queue.at[rs.NOW]))
    return queue.replayed()


class _Queue:
    """A replay that has begun."""

    def __init__(self, jobs: rs.QueueJobs, servers: int, gpus: int) -> None:
        size = len(jobs.submitted)
        self.jobs, self.servers, self.gpus = jobs, empty_servers(servers, gpus), servers * gpus
        self.attempts = rs.Attempts(*(np.zeros(size, np.int64) for _ in rs.Attempts._fields))
        self.at = np.zeros(rs.COUNTERS, np.int64)
        self.at[rs.FREE] = self.gpus
        self.log = _log(0, 0, 0)

    def fixed(self, policy: str) -> Callable[[int], bool]:
        """Steps of a replay in which no job is stopped."""
        size = len(self.jobs.submitted)
        heaps = Heaps(*(np.zeros(size, np.int64) for _ in Heaps._fields))
        whole = len(self.servers.counts) - 1
        self.log = _log(3 * size, size, int((-(-self.jobs.need // whole)).sum()))

        def step(until: int) -> bool:
            most = int(self.at[rs.ROWS]) + ROWS_AT_ONCE
            state = (self.jobs, self.attempts, heaps, self.servers, self.log, self.at)
            return replay_queue(*state, until, most, policy == "sjf")

        return step

    def preemptive(self, las: bool, thresholds: tuple[int, ...], habits: Habits) -> Callable[[int], bool]:
        """Steps of a replay in which jobs are stopped."""
        size = len(self.jobs.submitted)
        lists = {name: np.zeros(size, np.int64) for name in Order._fields}
        order = Order(**{**lists, "thresholds": np.array(thresholds if las else (), np.int64)})

        def step(until: int) -> bool:
            rows, shares = int(self.at[rs.ROWS]) + 2 * size, int(self.at[rs.SHARES]) + self.gpus
            if rows > len(self.log.at_ms) or shares > len(self.log.share_gpus):
                self.log = _grown(self.log, 2 * rows + 2 * size, 2 * shares + size)
            most = int(self.at[rs.ROWS]) + ROWS_AT_ONCE
            state = (self.jobs, self.attempts, order, self.servers, self.log, self.at)
            return replay_preemptive(*state, until, most, las, habits.tick_ms, habits.carried, habits.in_vain)

        return step

    def replayed(self) -> Replayed:
        """The replayed log, without the room that was left in it."""
        rows, placements, shares, stops = (int(self.at[what]) for what in (rs.ROWS, rs.PLACEMENTS, rs.SHARES, rs.STOPS))
        log = self.log
        return Replayed(
            log.at_ms[:rows],
            log.kind[:rows],
            log.job[:rows],
            log.placed_shares[:placements],
            log.share_server[:shares],
            log.share_gpus[:shares],
            log.stop_work[:stops],
            log.stop_lost[:stops],
        )


def _log(rows: int, placements: int, shares: int, stops: int = 0) -> rs.Log:
    """Empty log of a replay with room for that many events and shares."""
    return rs.Log(
        at_ms=np.empty(rows, np.int64),
        kind=np.empty(rows, np.int8),
        job=np.empty(rows, np.int32),
        share_server=np.empty(shares, np.int32),
        share_gpus=np.empty(shares, np.int32),
        placed_shares=np.empty(placements, np.int32),
        stop_work=np.empty(stops, np.int64),
        stop_lost=np.empty(stops, np.int64),
    )


def _grown(log: rs.Log, rows: int, shares: int) -> rs.Log:
    """The log of a replay with room for more."""
    larger = _log(rows, rows, shares, rows)
    for name in rs.Log._fields:
        old = getattr(log, name)
        getattr(larger, name)[: len(old)] = old
    return larger
