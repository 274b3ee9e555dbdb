"""MAST's decisions at run time (OSDI'24, sections 4 and 5): one global queue, bids of all regions, late binding.

Waiting jobs form classes of jobs that fit in the same places. A class that was refused is not searched for again before
something that it can use becomes free, so that a turn costs what has changed and not what waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from mast_opt.core.errors import UsageError
from mast_opt.job_placement.live_fleet.answers import Bid
from mast_opt.loop import events as ev
from mast_opt.loop.jobs import JobRecord
from mast_opt.loop.policy import Desk, View
from mast_opt.policies.copies_on_submission import bind_with_copies
from mast_opt.policies.head_of_line import ARRIVALS, CHANGES
from mast_opt.policies.region_loads import RegionLoads
from mast_opt.policies.whole_servers import NEVER, PACKINGS, packed_bid

SCOPES = ("global", "region")
BINDINGS = (LATE, FREE, SHARE, HOME, COPY) = ("late", "free", "share", "home", "copy")
SECOND_MS = 1000
NO_DATA = "no region holds all of its data"
RULES = (ev.CopyEnded, ev.ReplicaDropped, ev.DatasetCreated, ev.QuotaSet)
"""Events that change where jobs may run, or with which tier."""


@dataclass(frozen=True)
class MastParams:
    """Parameters of ``mast``.

    Args:
        scope: ``global``: one queue, and the best bid of all regions; ``region``: jobs run in their home region only.
        runner_up: record the key of the best bid of another region with every placement; it takes a search of each
            region.
        bind: ``late``: a job runs where it first fits; ``free`` or ``share``: when it comes, it is bound to the region,
            of those that hold its data and are large enough, with the most GPUs that nobody has asked for, or the
            largest share of them; ``home``: to its home region; ``copy``: to that with the largest share left, and what
            it lacks of the job's data is copied there.
        age_s: how old the loads are by which jobs are bound; 0 for those of now.
        pack: when a job that takes a part of a server leaves those alone that gangs could have whole: ``never``,
            ``same-tier`` (if another one has room, at the expense of no more important work) or ``always`` (if another
            one has room).
    """

    scope: str = "global"
    runner_up: bool = False
    bind: str = "late"
    age_s: int = 0
    pack: str = NEVER

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise UsageError(f"scope is {self.scope!r}; expected one of {', '.join(SCOPES)}")
        if self.bind not in BINDINGS:
            raise UsageError(f"bind is {self.bind!r}; expected one of {', '.join(BINDINGS)}")
        if self.age_s < 0:
            raise UsageError(f"age_s is {self.age_s}; expected at least 0")
        if self.pack not in PACKINGS:
            raise UsageError(f"pack is {self.pack!r}; expected one of {', '.join(PACKINGS)}")
        if self.runner_up and self.pack != NEVER:
            raise UsageError(f"pack is {self.pack!r}; expected {NEVER} with runner_up, which takes the best bid")


_Key = tuple[object, ...]
_Head = tuple[tuple[int, int, int, int], str, _Key]
"""Rank and name of the oldest job of a class, and the key of the class."""


@dataclass(eq=False)
class _Class:
    """Waiting jobs that fit in the same places: tier, shape, regions, tenant."""

    tier: int
    """Before quotas."""
    task_mgpu: int
    """What a task takes at least."""
    regions: tuple[str, ...]
    tenant: str
    queue: list[tuple[int, int, str]] = field(default_factory=list)
    """(submission, number, name), a heap."""
    refused: int | None = None
    """The tier after quotas with which its head was refused; None if it has not been since something became free."""

    def head(self, view: View) -> str | None:
        """The oldest job that still waits."""
        while self.queue:
            record = view.jobs.get(self.queue[0][2])
            if record is not None and record.waits:
                return record.name
            heapq.heappop(self.queue)
        return None


class Mast:
    """Order: tier after quotas, then most credit, then the oldest. Whoever fits may pass whoever does not."""

    name: str = "mast"
    reacts_to: ClassVar[frozenset[type]] = CHANGES | {ev.ReplicaDropped}
    every_ms: int | None = None

    def __init__(self, params: MastParams | None = None) -> None:
        self.params = params or MastParams()
        self._classes: dict[_Key, _Class] = {}
        self._in_region: dict[str, dict[_Key, _Class]] = {}
        self._due: dict[_Key, _Class] = {}
        """Classes whose head may fit."""
        self._seen_growth = 0
        self._loads = RegionLoads(self.params.age_s * SECOND_MS)

    def begin(self, view: View) -> None:
        """See ``Policy.begin``."""
        self._loads.begin(view)
        self._classes, self._due = {}, {}
        self._in_region = {region: {} for region in view.supply_mgpu}
        self._seen_growth = view.reclaimable.count
        for record in view.jobs.values():
            if record.waits:
                self._join(record, view)

    def decide(self, view: View, desk: Desk) -> None:
        """See ``Policy.decide``."""
        self._loads.take_in(view)
        if any(isinstance(event, RULES) for event in view.news) or set(view.supply_mgpu) != set(self._in_region):
            for name in [record.name for record in view.jobs.values() if record.held]:
                desk.let_go(name)
            self._bind_all(view.jobs.values(), view, desk)
            self.begin(view)
        else:
            for event in view.news:
                if isinstance(event, ARRIVALS) and event.job in view.jobs and view.jobs[event.job].waits:
                    self._bind_all((view.jobs[event.job],), view, desk)
                    self._join(view.jobs[event.job], view)
            self._wake(view)
        heads: list[_Head] = []
        before_round = self._seen_growth
        self._offer_due(view, desk, heads)
        while heads:
            rank, name, key = heapq.heappop(heads)
            waiting = self._classes[key]
            if rank != (now := _rank(view.jobs[name], view)):  # its tenant has got something since
                heapq.heappush(heads, (now, name, key))
                continue
            best, second = self._best(name, waiting.regions, view, desk)
            if best is None:
                waiting.refused = rank[0]
                continue
            heapq.heappop(waiting.queue)
            self._due[key] = waiting
            if desk.commit(best, second):  # what victims leave over is for more important work, at once
                self._wake(view)
            self._offer_due(view, desk, heads)
        self._seen_growth = before_round  # in the next turn it is for everybody

    def _wake(self, view: View) -> None:
        """Find the classes for which something has become free since they were refused."""
        grown = view.reclaimable.grown(self._seen_growth)
        self._seen_growth = view.reclaimable.count
        if grown is None:
            self._due.update(self._classes)
            return
        for region, server in grown:
            for key, waiting in self._in_region[region].items():
                if key not in self._due and view.reclaimable.most(server, waiting.tier) >= waiting.task_mgpu:
                    self._due[key] = waiting
        if not grown:
            return
        for key, waiting in self._classes.items():  # a tenant that uses less may have a better tier than before
            if waiting.refused is not None and waiting.tenant in view.quotas:
                name = waiting.head(view)
                if name is not None and view.tier(view.jobs[name]) < waiting.refused:
                    self._due[key] = waiting

    def _offer_due(self, view: View, desk: Desk, heads: list[_Head]) -> None:
        due, self._due = self._due, {}
        waiting_already = {key for _, _, key in heads} if len(due) > 1 else ()
        for key, waiting in due.items():
            if key not in waiting_already:
                self._offer(key, waiting, view, desk, heads)

    def _offer(self, key: _Key, waiting: _Class, view: View, desk: Desk, heads: list[_Head]) -> None:
        """Let the head of a class take its turn."""
        waiting.refused = None
        name = waiting.head(view)
        if name is not None and waiting.regions:
            heapq.heappush(heads, (_rank(view.jobs[name], view), name, key))
            return
        for _, _, each in sorted(waiting.queue):
            if view.jobs[each].waits:
                desk.hold(each, NO_DATA, "data")
        del self._classes[key]
        for region in waiting.regions:
            del self._in_region[region][key]

    def _join(self, record: JobRecord, view: View) -> None:
        spec = record.spec
        regions = view.admissible(record)
        if self.params.scope == "region":
            regions = tuple(region for region in regions if region == spec.home_region)
        kinds = None if spec.gpu_types is None else tuple(sorted(spec.gpu_types.items()))
        shape = spec.tasks, spec.mgpu, kinds, spec.cpu_mcores, spec.memory_mib, spec.within, spec.prefer
        key = spec.tier, shape, regions, spec.tenant
        waiting = self._classes.get(key)
        if waiting is None:
            waiting = _Class(spec.tier, record.asked_mgpu // spec.tasks, regions, spec.tenant)
            self._classes[key] = self._due[key] = waiting
            for region in regions:
                self._in_region[region][key] = waiting
        heapq.heappush(waiting.queue, (record.submitted_ms, record.number, record.name))

    def _bind_all(self, records: Iterable[JobRecord], view: View, desk: Desk) -> None:
        """Bind the jobs that wait and are not bound, unless binding is late."""
        if self.params.bind == LATE:
            return
        for record in [record for record in records if record.waits and not record.bound]:
            if self.params.bind == COPY:
                region = bind_with_copies(record, view, desk, self._loads)
            else:
                home = record.spec.home_region if record.spec.home_region in view.supply_mgpu else None
                at_home = self.params.bind == HOME
                region = home if at_home else self._loads.freest(record, view, share=self.params.bind == SHARE)
                if region is not None:
                    desk.bind(record.name, region)
            if region is not None:
                self._loads.add(record.name, region, record.asked_mgpu)

    def _best(self, name: str, regions: tuple[str, ...], view: View, desk: Desk) -> tuple[Bid | None, Bid | None]:
        """The best bid for a job, and the best one of another region where that is recorded."""
        if not self.params.runner_up:
            asked = regions if self.params.scope == "region" else None
            return packed_bid(view.jobs[name], asked, self.params.pack, view, desk), None
        found = [bid for bid in desk.bids(name) if bid.region in regions]
        return (found[0] if found else None), (found[1] if len(found) > 1 else None)


def _rank(record: JobRecord, view: View) -> tuple[int, int, int, int]:
    credit = view.credit_milli(record.spec.tenant)
    return view.tier(record), -credit, record.submitted_ms, record.number
