"""EASY backfilling: the first job that does not fit has a reservation, and others may pass it if they keep that.

Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001: a job may pass the
head if the head can still start at its shadow time, the first moment at which it fits when every running job ends at
its limit.
"""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.core.errors import UsageError
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY, PARTS
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.part_times import times_of
from mast_opt.problems.job_placement.fit_times import FOREVER
from mast_opt.problems.job_placement.live_fleet.answers import Bid

BACKFILLS = (BY_SUBMISSION, SHORTEST_FIRST) = ("submission", "shortest-limit")


@dataclass(frozen=True)
class EasyParams:
    """Parameters of ``easy``.

    Args:
        backfill: order in which jobs may pass the head: ``submission`` or ``shortest-limit``.
    """

    backfill: str = BY_SUBMISSION

    def __post_init__(self) -> None:
        if self.backfill not in BACKFILLS:
            raise UsageError(f"backfill is {self.backfill!r}; expected one of {', '.join(BACKFILLS)}")


class Easy:
    """One queue over all regions, by submission; tiers and quotas order nothing, and nobody is stopped. A job that no
    region has all data for is not in the queue.

    A job without a limit may run for ever: it is never expected to end, and it passes the head only if it leaves the
    head's place alone. Where no shadow time is known, because what runs has no limits, nobody passes the head. That of
    a head of several parts is one at which a trial places it.
    """

    name: str = "easy"
    reacts_to: ClassVar[frozenset[type]] = CHANGES
    every_ms: int | None = None
    reads: frozenset[str] = EVERY_POLICY | {PARTS}

    def __init__(self, params: EasyParams | None = None) -> None:
        self.params = params or EasyParams()

    def begin(self, snapshot: Snapshot) -> None:
        """Nothing is kept: each decision goes by the jobs of its snapshot."""

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Start jobs in the order of submission up to the first that does not fit, then those that do not delay it."""
        waiting = sorted(
            (record for record in snapshot.jobs.values() if record.waits and snapshot.admissible(record)),
            key=lambda record: (record.submitted_ms, record.number),
        )
        for at, head in enumerate(waiting):
            bid = actions.place(head.name, preempt=False)
            if isinstance(bid, Bid):
                actions.commit(bid)
                continue
            self._backfill(head, waiting[at + 1 :], snapshot, actions)
            return

    def _backfill(self, head: JobRecord, others: list[JobRecord], snapshot: Snapshot, actions: Actions) -> None:
        """Start the jobs that leave the head its place at the shadow time."""
        times = {region: times_of(head, None, region, snapshot) for region in snapshot.admissible(head)}
        shadow_ms = min((one.by() for one in times.values()), default=FOREVER)
        if shadow_ms == FOREVER:
            return
        if self.params.backfill == SHORTEST_FIRST:
            others = sorted(others, key=lambda record: (record.spec.limit_ms is None, record.spec.limit_ms or 0))
        refused: set[tuple[object, ...]] = set()
        for record in others:
            limit = record.spec.longest_ms
            end_ms = FOREVER if limit is None else snapshot.now_ms + limit
            shape = record.spec.shape, snapshot.admissible(record), end_ms <= shadow_ms
            if shape in refused:
                continue
            bid = actions.place(record.name, preempt=False)
            if isinstance(bid, Bid) and (
                end_ms <= shadow_ms
                or any(one.fits_beside(record, bid, shadow_ms, end_ms, snapshot) for one in times.values())
            ):
                actions.commit(bid)
                for one in times.values():
                    one.catch_up(snapshot)
            else:
                refused.add(shape)
