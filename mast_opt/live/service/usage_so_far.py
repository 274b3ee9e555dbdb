"""Usage of GPUs by tenant and month, from the events of the service's store.

It is read when somebody asks, outside of the loop's turn, from where the last reading ended: no turn takes longer for
it. In memory are a sum for each tenant and month, and the jobs that have not ended.
"""

from collections.abc import Mapping
from threading import Lock

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.history import HistoryBuilder
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.reports.usage import Usage, UsageSums
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.state_format import OtherState, state_from

MOST_READ = 100_000
"""Events that are read for one request."""


class UsageSoFar:
    """Usage of each tenant in each month since the oldest event or snapshot that the store keeps."""

    def __init__(self, store: SqlStore) -> None:
        self._store, self._lock = store, Lock()
        self._fold, self._sums, self._seq = HistoryBuilder(), UsageSums(), 0

    def read(self, prices: Mapping[str, float] | None) -> tuple[tuple[Usage, ...], dict[str, int]]:
        """Rows by month and tenant, and the events that they cover: ``first_ms``, ``last_ms``, ``event`` (the number
        of the last one), and ``last``, that of the log, which is larger where more are left for the next request.
        Raises StoreError.
        """
        with self._lock:
            last = self._store.last_seq()
            try:
                if self._seq + 1 < self._store.first_seq():
                    self._begin()
                before_ms, upto = self._fold.last_ms, min(last, self._seq + MOST_READ)
                for stored in self._store.read(self._seq, upto):
                    self._fold.take(stored.at_ms, stored.event)
            except BaseException:  # half of them are taken in
                self._fold, self._sums, self._seq = HistoryBuilder(), UsageSums(), 0
                raise
            fold, self._seq = self._fold, upto
            first_ms = fold.first_ms or 0
            self._sums.add(fold.take_usage(), max(before_ms, first_ms), fold.last_ms)
            covers = {"first_ms": first_ms, "last_ms": fold.last_ms, "event": upto, "last": last}
            return self._sums.table(prices), covers

    def _begin(self) -> None:
        """Begin with the jobs and servers of the oldest snapshot: older events are deleted."""
        states = []
        for snapshot in self._store.snapshots():
            try:
                states = [state_from(snapshot.blob)]
            except OtherState:
                break
        if not states:
            raise StoreError("the first events are not kept any more, and no snapshot can be read")
        (state,) = states
        self._fold, self._sums, self._seq = HistoryBuilder(), UsageSums(), state.seq
        jobs = state.jobs.values()
        events: list[ev.Event] = [ev.ServerUp.of(one) for one in state.inventory.server_of.values()]
        events += [ev.Submitted(job.name, job.spec) for job in jobs]
        events += [ev.Shared((job.partner, job.name), job.region, "", job.shares) for job in jobs if job.is_guest]
        for job in jobs:
            if job.shares:
                at_once = job.state is not JobState.STARTING
                events.append(ev.Placed(job.name, job.attempt, job.region, "", job.shares, at_once=at_once))
            if job.state is JobState.STOPPING:
                events.append(ev.StopAsked(job.name, job.attempt, ""))
        for event in events:
            self._fold.take(state.now_ms, event)
        self._fold.first_ms, self._fold.last_ms = state.now_ms, state.now_ms
