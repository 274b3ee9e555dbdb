"""First come, first served and its relatives: one queue, in which a job that does not fit blocks all others."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.problems.job_placement.live_fleet.answers import Bid

ARRIVALS = (ev.Submitted, ev.Stopped, ev.Queued)
"""Events after which a job is in the queue."""


def by_submission(record: JobRecord) -> int:
    """The order of first come, first served."""
    return record.submitted_ms


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
