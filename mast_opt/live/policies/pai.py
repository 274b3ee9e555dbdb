"""Reserving and packing (PAI, NSDI'22): jobs of many GPUs keep the best servers, small ones are packed on the others.

Each job has a plan: GPU types in the order in which it tries them. Jobs whose tasks take many GPUs try the best types
first; the others the best last. Whoever fits may pass whoever does not. Nothing is stopped.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.head_of_line import ARRIVALS
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.units import WHOLE

NO_DATA = "no region holds all of its data"


@dataclass(frozen=True)
class PaiParams:
    """Parameters of ``pai``.

    Args:
        high_gpus: GPUs of a task from which a job is one of many GPUs.
        best: GPU types from the best to the least, with commas; empty for the types with the largest servers first,
            those of equal size in the order of servers.
    """

    high_gpus: float = 4.0
    best: str = ""

    def __post_init__(self) -> None:
        if not self.high_gpus > 0:
            raise UsageError(f"high_gpus is {self.high_gpus}; expected above 0")


class Pai:
    """One queue by submission, in which plans decide where a job may go."""

    name: str = "pai"
    reacts_to: ClassVar[frozenset[type]] = CHANGES
    every_ms: int | None = None
    reads: frozenset[str] = EVERY_POLICY

    def __init__(self, params: PaiParams | None = None) -> None:
        self.params = params or PaiParams()
        self._queue: list[tuple[int, int, str]] = []
        self._types: tuple[str, ...] = ()

    def begin(self, snapshot: Snapshot) -> None:
        """Queue the jobs that wait."""
        self._queue = []
        for record in snapshot.jobs.values():
            if record.waits:
                heapq.heappush(self._queue, (record.submitted_ms, record.number, record.name))

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Place jobs in order of submission. A job like one that was refused in this turn is not searched for again."""
        self._rank_types(snapshot)
        for event in snapshot.news:
            if isinstance(event, (ev.CopyEnded, ev.DatasetCreated)):
                for name in [record.name for record in snapshot.held]:
                    actions.requeue(name)
                    self._join(snapshot.jobs[name])
            elif isinstance(event, ARRIVALS) and event.job in snapshot.jobs:
                self._join(snapshot.jobs[event.job])
        refused: set[tuple[object, ...]] = set()
        waiting: list[tuple[int, int, str]] = []
        seen: set[str] = set()
        while self._queue:
            entry = heapq.heappop(self._queue)
            record = snapshot.jobs.get(entry[2])
            if record is None or not record.waits or entry[2] in seen:
                continue
            seen.add(entry[2])
            regions = snapshot.admissible(record)
            if not regions:
                actions.mark_inadmissible(record.name, NO_DATA, "data")
                continue
            shape = record.spec.shape, record.spec.tenant, record.spec.tier, regions
            if shape in refused or not self._place(record, regions, actions):
                refused.add(shape)
                waiting.append(entry)
        self._queue = waiting
        heapq.heapify(self._queue)

    def plan(self, record: JobRecord) -> Sequence[str]:
        """GPU types in the order in which a job tries them."""
        high = record.spec.mgpu >= self.params.high_gpus * WHOLE
        order = self._types if high else self._types[::-1]
        kinds = record.spec.gpu_types
        return [kind for kind in order if kinds is None or kind in kinds]

    def _place(self, record: JobRecord, regions: Sequence[str], actions: Actions) -> bool:
        """Start a job on the first of its GPU types that has room without preemption; False if none has."""
        for kind in self.plan(record):
            bid = actions.place(record.name, regions, kind, preempt=False)
            if isinstance(bid, Bid):
                actions.commit(bid)
                return True
        return False

    def _join(self, record: JobRecord) -> None:
        """Queue a job by its time of submission."""
        heapq.heappush(self._queue, (record.submitted_ms, record.number, record.name))

    def _rank_types(self, snapshot: Snapshot) -> None:
        """Rank the GPU types: those of the parameter ``best``, then those of the largest servers. Raises UsageError."""
        servers = [server for server in snapshot.inventory.server_of.values() if server.gpus]
        largest: dict[str, int] = {}
        for server in servers:
            largest[server.gpu_type] = max(largest.get(server.gpu_type, 0), server.gpus)
        given = [kind for kind in self.params.best.split(",") if kind]
        unknown = [kind for kind in given if kind not in largest]
        if unknown:
            raise UsageError(f"best names {unknown[0]!r}; expected some of {', '.join(sorted(largest))}")
        rest = sorted((kind for kind in largest if kind not in given), key=lambda kind: -largest[kind])
        self._types = (*given, *rest)
