"""First come, first served and shortest first, as policies of the engine: what the kernel of ``simulate`` does for
``fifo`` and ``sjf``, to compare the two with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY, PARTS
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.head_of_line import ARRIVALS, Queue, by_submission


def by_duration(record: JobRecord) -> int:
    """Key by which the policy ``sjf`` orders jobs: how long the job takes, as its submission says."""
    if record.spec.duration_ms is None:
        raise UsageError(f"job {record.name} has no duration; sjf needs the duration of every job")
    return record.spec.duration_ms


ORDERS: dict[str, Callable[[JobRecord], int]] = {"fifo": by_submission, "sjf": by_duration}
"""Policy → what it sorts the queue by, ascending; equal jobs in the order of submission."""


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
