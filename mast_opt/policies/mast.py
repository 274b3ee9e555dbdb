"""MAST's decisions at run time (OSDI'24, sections 4 and 5): one global queue, bids of all regions, late binding.

Waiting jobs form classes of jobs that fit in the same places. A class that was refused is not searched for again before
something that it can use becomes free, so that a turn costs what has changed and not what waits.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import ClassVar

from mast_opt.core.errors import UsageError
from mast_opt.job_placement.live_fleet.types import Bid
from mast_opt.loop import events as ev
from mast_opt.loop.jobs import JobRecord
from mast_opt.loop.policy import Desk, View
from mast_opt.policies.head_of_line import ARRIVALS, CHANGES

SCOPES = ("global", "region")
NO_DATA = "no region holds all of its data"


@dataclass(frozen=True)
class MastParams:
    """Parameters of ``mast``.

    Args:
        scope: ``global``: one queue, and the best bid of all regions; ``region``: jobs run in their home region only.
        runner_up: record the key of the best bid of another region with every placement; it takes a search of each
            region.
    """

    scope: str = "global"
    runner_up: bool = False

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise UsageError(f"scope is {self.scope!r}; expected one of {', '.join(SCOPES)}")


_Head = tuple[tuple[int, int, int, int], str, tuple[object, ...]]
"""Rank and name of the oldest job of a class, and the key of the class."""


@dataclass(eq=False)
class _Class:
    """Waiting jobs that fit in the same places: tier, shape, regions."""

    regions: tuple[str, ...]
    queue: list[tuple[int, int, str]] = field(default_factory=list)
    """(submission, number, name), a heap."""
    refused: int | None = None
    """Stamp of its regions when its head was refused; None if it has not been since it changed."""

    def head(self, view: View) -> tuple[int, int, str] | None:
        """The oldest job that still waits."""
        while self.queue:
            record = view.jobs.get(self.queue[0][2])
            if record is not None and record.waits:
                return self.queue[0]
            heapq.heappop(self.queue)
        return None


class Mast:
    """Order: tier after quotas, then most credit, then the oldest. Whoever fits may pass whoever does not."""

    name: str = "mast"
    reacts_to: ClassVar[frozenset[type]] = CHANGES | {ev.ReplicaDropped}
    every_ms: int | None = None

    def __init__(self, params: MastParams | None = None) -> None:
        self.params = params or MastParams()
        self._classes: dict[tuple[object, ...], _Class] = {}

    def begin(self, view: View) -> None:
        """See ``Policy.begin``."""
        self._classes = {}
        for record in view.jobs.values():
            if record.waits:
                self._join(record, view)

    def decide(self, view: View, desk: Desk) -> None:
        """See ``Policy.decide``."""
        if any(isinstance(event, (ev.CopyEnded, ev.ReplicaDropped)) for event in view.news):
            for name in [record.name for record in view.jobs.values() if record.held]:
                desk.let_go(name)
            self.begin(view)
        else:
            for event in view.news:
                if isinstance(event, ARRIVALS) and event.job in view.jobs and view.jobs[event.job].waits:
                    self._join(view.jobs[event.job], view)
        heads: list[_Head] = []
        for key in list(self._classes):
            self._offer(key, view, desk, heads)
        while heads:
            rank, name, key = heapq.heappop(heads)
            waiting = self._classes[key]
            if rank != (now := _rank(view.jobs[name], view)):  # its tenant has got something since
                heapq.heappush(heads, (now, name, key))
                continue
            best, second = self._best(name, waiting.regions, desk)
            if best is None:
                waiting.refused = view.stamp(waiting.regions)
                continue
            heapq.heappop(waiting.queue)
            desk.commit(best, second)
            self._offer(key, view, desk, heads)

    def _offer(
        self,
        key: tuple[object, ...],
        view: View,
        desk: Desk,
        heads: list[_Head],
    ) -> None:
        """Let the head of a class take its turn, unless nothing has become free since it was refused."""
        waiting = self._classes[key]
        head = waiting.head(view)
        if head is None:
            del self._classes[key]
        elif not waiting.regions:
            for _, _, name in sorted(waiting.queue):
                if view.jobs[name].waits:
                    desk.hold(name, NO_DATA, "data")
            del self._classes[key]
        elif waiting.refused is None or waiting.refused != view.stamp(waiting.regions):
            heapq.heappush(heads, (_rank(view.jobs[head[2]], view), head[2], key))

    def _join(self, record: JobRecord, view: View) -> None:
        spec = record.spec
        regions = view.admissible(record)
        if self.params.scope == "region":
            regions = tuple(region for region in regions if region == spec.home_region)
        kinds = None if spec.gpu_types is None else tuple(sorted(spec.gpu_types.items()))
        shape = spec.tasks, spec.mgpu, kinds, spec.cpu_mcores, spec.memory_mib, spec.within, spec.prefer
        key = spec.tier, shape, regions, spec.tenant
        waiting = self._classes.setdefault(key, _Class(regions))
        heapq.heappush(waiting.queue, (record.submitted_ms, record.number, record.name))

    def _best(self, name: str, regions: tuple[str, ...], desk: Desk) -> tuple[Bid | None, Bid | None]:
        """The best bid for a job, and the best one of another region where that is recorded."""
        if not self.params.runner_up:
            answer = desk.place(name, regions if self.params.scope == "region" else None)
            return (answer, None) if isinstance(answer, Bid) else (None, None)
        found = [bid for bid in desk.bids(name) if bid.region in regions]
        return (found[0] if found else None), (found[1] if len(found) > 1 else None)


def _rank(record: JobRecord, view: View) -> tuple[int, int, int, int]:
    credit = view.credit_milli(record.spec.tenant)
    return view.tier(record), -credit, record.submitted_ms, record.number
