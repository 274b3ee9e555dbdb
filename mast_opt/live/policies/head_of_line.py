"""First come, first served and its relatives: one queue, in which a job that does not fit blocks all others."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY, PARTS
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.problems.job_placement.live_fleet.answers import Bid

ARRIVALS = (ev.Submitted, ev.Stopped, ev.Queued)
"""Events after which a job is in the queue."""


def by_submission(record: JobRecord) -> int:
    """The order of ``fifo``."""
    return record.submitted_ms


def by_duration(record: JobRecord) -> int:
    """Key by which the policy ``sjf`` orders jobs: how long the job takes, as its submission says."""
    if record.spec.duration_ms is None:
        raise UsageError(f"job {record.name} has no duration; sjf needs the duration of every job")
    return record.spec.duration_ms


ORDERS: dict[str, Callable[[JobRecord], int]] = {"fifo": by_submission, "sjf": by_duration}
"""Policy → what it sorts the queue by, ascending; equal jobs in the order of submission."""


@dataclass
class Queue:
    """Waiting jobs in an order."""

    order: Callable[[JobRecord], int]

    def __post_init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []

    def push(self, record: JobRecord) -> None:
        """Queue a job that waits from now on."""
        heapq.heappush(self._heap, (self.order(record), record.number, record.name))

    def head(self, snapshot: Snapshot) -> str | None:
        """The first job of the queue that still waits; None if there is none."""
        while self._heap:
            name = self._heap[0][2]
            record = snapshot.jobs.get(name)
            if record is not None and record.waits:
                return name
            heapq.heappop(self._heap)
        return None

    def serve(self, snapshot: Snapshot, actions: Actions) -> None:
        """Place the first jobs of the queue until one fits nowhere."""
        while (name := self.head(snapshot)) is not None:
            bid = actions.place(name)
            if not isinstance(bid, Bid):
                return
            heapq.heappop(self._heap)
            actions.commit(bid)


class HeadOfLine:
    """One queue over all regions; jobs start in its order, and none passes a job that does not fit.

    Args:
        name: ``fifo`` or ``sjf``.
    """

    reacts_to: ClassVar[frozenset[type]] = CHANGES
    every_ms: int | None = None
    reads: frozenset[str] = EVERY_POLICY | {PARTS, "tenant", "preemptible"}

    def __init__(self, name: str = "fifo") -> None:
        if name not in ORDERS:
            raise UsageError(f"no head-of-line policy is called {name!r}; expected one of {sorted(ORDERS)}")
        self.name = name
        self._queue = Queue(ORDERS[name])

    def begin(self, snapshot: Snapshot) -> None:
        """Queue the jobs that wait."""
        self._queue = Queue(ORDERS[self.name])
        for record in snapshot.jobs.values():
            if record.waits:
                self._queue.push(record)

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Queue new jobs, and serve the queue in order."""
        for event in snapshot.news:
            if isinstance(event, ARRIVALS) and event.job in snapshot.jobs:
                self._queue.push(snapshot.jobs[event.job])
        self._queue.serve(snapshot, actions)
