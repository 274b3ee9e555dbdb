"""Times at which tasks of one size fit on the servers of a region if all work ends at its limit, server by server."""

import bisect
import operator
from collections.abc import Sequence
from typing import NamedTuple

from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.problems.job_placement.fit_times import NOW, Group, GroupTimes, Room, Task, Use, end_by_limit
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.types import Server, Share
from mast_opt.problems.job_placement.units import WHOLE

_FIRST = operator.itemgetter(0)
Working = tuple[int | None, JobRecord, Use]
"""(end of a running job at its limit, if that is known; the job; what it holds of a server)."""


class Stops(NamedTuple):
    """Rule of which work a waiting job may stop."""

    tier: int | None
    """Importance of the job; None if nobody is stopped."""
    own_tier: int
    """Its tier before quotas."""
    last_tier: int
    """The least important of all tiers."""

    def may_stop(self, record: JobRecord) -> bool:
        """Whether the job may stop another one whose tier is known for sure."""
        spec = record.spec
        if self.tier is None:
            return False
        if record.shares and record.over_quota:
            return self.tier <= self.last_tier or spec.tier > self.own_tier
        return spec.preemptible and spec.tier > self.tier


class FitTimes(GroupTimes):
    """Times for jobs with the needs of one job. They are exact: a gang stays in one cluster and on one GPU type, and
    in one rack or server where it has to.

    Args:
        tier: importance of the job; less important work that may be stopped is not waited for. None if nobody is
            stopped.
        held: what jobs hold on servers, for all times of a policy; None to look it up for these alone.
    """

    def __init__(
        self, record: JobRecord, tier: int | None, region: str, snapshot: Snapshot, held: "Held | None" = None
    ) -> None:
        spec = record.spec
        self._held = held or Held()
        self._spec, self._tier, self._region = spec, tier, region
        self._may_stop = Stops(tier, spec.tier, snapshot.reclaimable.tiers[-1]).may_stop
        self._together = spec.within == "server"
        super().__init__(1 if self._together else spec.tasks)
        self._seen = -1
        self.version = 0
        """Number of times that a server has changed."""
        self.catch_up(snapshot)

    def catch_up(self, snapshot: Snapshot) -> None:
        """Take in what has changed on servers."""
        if self._seen == snapshot.reclaimable.changes:
            return
        changed = snapshot.reclaimable.changed(self._seen) if self._seen >= 0 else None
        again = changed is None
        if changed is None:
            self.clear()
            changed = snapshot.inventory.server_of
        self._held.follow(snapshot)
        self._seen = snapshot.reclaimable.changes
        for name in changed:
            server = snapshot.inventory.server_of[name]
            if server.region == self._region or name in self._times:
                self.version += 1
                self._update(server, snapshot, again=again)
        if again:
            self.sort()

    def fits_beside(self, other: JobRecord, bid: Bid, by_ms: int, end_ms: int, snapshot: Snapshot) -> bool:
        """Whether the job fits at a time at which it does now, if another one gets this bid and ends at ``end_ms``."""
        if self._may_stop(other):
            return True
        counts = {group: bisect.bisect_right(times, by_ms) for group, times in self._groups.items()}
        for name in {share.server: None for share in bid.shares}:
            group = self._group_of.get(name)
            if group is not None:
                more = [(end_ms, use_of(share, other.spec)) for share in bid.shares if share.server == name]
                after = self._times_of(snapshot.inventory.server_of[name], snapshot, more)
                before = self._times.get(name, ())
                counts[group] += bisect.bisect_right(after, by_ms) - bisect.bisect_right(before, by_ms)
        return max(counts.values(), default=0) >= self._slots

    def room(self, most_mgpu: int, preemptible: bool, snapshot: Snapshot) -> list[JobRecord]:
        """Jobs (or only ``preemptible`` ones) to stop so that the job fits in one group: smaller than one of its tasks,
        as important, on one server each, and those that hold the least together; empty where they would hold more than
        ``most_mgpu``."""
        groups: dict[Group, list[tuple[int, str, int, list[JobRecord]]]] = {}
        for name, times in self._times.items():
            smaller = self._smaller(name, preemptible, snapshot) if times else None
            if smaller is not None:
                held_mgpu = sum(record.mgpu for record in smaller)
                groups.setdefault(self._group_of[name], []).append((held_mgpu, name, len(times), smaller))
        best, least_mgpu = list[JobRecord](), most_mgpu + 1
        for servers in groups.values():
            found, needed, held_mgpu = list[JobRecord](), self._slots, 0
            for own_mgpu, _, places, smaller in sorted(servers, key=operator.itemgetter(0, 1)):
                if needed > 0:
                    found, needed, held_mgpu = [*found, *smaller], needed - places, held_mgpu + own_mgpu
            if needed <= 0 and held_mgpu < least_mgpu:
                best, least_mgpu = found, held_mgpu
        return best

    def _smaller(self, server: str, preemptible: bool, snapshot: Snapshot) -> list[JobRecord] | None:
        """The jobs on a server that the job may not stop as it is; None if one of them may not make room either."""
        there = [record for record in snapshot.working_on(server) if not self._may_stop(record)]
        task_mgpu = self._spec.asked_mgpu // self._spec.tasks
        able = all(
            record.state is JobState.RUNNING
            and (record.spec.preemptible or not preemptible)
            and len(record.shares) == 1
            and record.mgpu < task_mgpu
            and not record.partner
            and snapshot.importance(record) == self._tier
            for record in there
        )
        return there if able else None

    def _update(self, server: Server, snapshot: Snapshot, *, again: bool) -> None:
        """Replace the times of a server among those of its group: its cluster and GPU type, or its rack; where all are
        found ``again``, nothing is there, and they are sorted afterwards."""
        place: tuple[str, ...] = (server.cluster, server.gpu_type)
        if self._spec.within == "rack":
            place = (*place, server.rack)
        self.put(server.name, place, self._times_of(server, snapshot), last=again)

    def _times_of(self, server: Server, snapshot: Snapshot, more: Sequence[tuple[int, Use]] = ()) -> list[int]:
        """Times of a server, where another job may be there too, given by its end and what its tasks hold."""
        spec, inventory, name = self._spec, snapshot.inventory, server.name
        mgpu = spec.mgpu if spec.gpu_types is None else spec.gpu_types.get(server.gpu_type, -1)
        if mgpu < 0 or server.region != self._region or name not in inventory.up:
            return []
        if name in inventory.moving or name in inventory.shrinking or name in inventory.closed:
            return []
        whole, working = self._held.on(server, snapshot)
        now_ms, gpus = snapshot.now_ms, mgpu // WHOLE
        ends = [
            (end_ms if end_ms is not None and end_ms >= now_ms else end_of(record, now_ms), use)
            for end_ms, record, use in working
            if not (record.spec.preemptible or record.over_quota) or not self._may_stop(record)
        ]
        ends += more
        if len(ends) > 1:
            ends.sort(key=_FIRST)
        if whole and not more and gpus * WHOLE == mgpu > 0 and not (spec.cpu_mcores or spec.memory_mib):
            free = server.gpus
            for _, use in ends:
                free -= len(use.mgpu_of)
            times = [NOW] * (free // gpus)
            for end_ms, use in ends:
                free += len(use.mgpu_of)
                if free // gpus > len(times):
                    times += [end_ms] * (free // gpus - len(times))
        else:
            room = Room(server.gpus, server.cpu_mcores, server.memory_mib, pool=server.pool)
            times = room.times(ends, Task(mgpu, spec.cpu_mcores, spec.memory_mib), spec.tasks)
        return times[spec.tasks - 1 : spec.tasks] if self._together else times[: spec.tasks]


class Held:
    """Jobs that start or run on servers and were not asked to stop, looked up once for all times of fit."""

    def __init__(self) -> None:
        self._seen = -1
        self._known: dict[str, tuple[bool, list[Working]]] = {}

    def follow(self, snapshot: Snapshot) -> None:
        """Take in what has changed on servers."""
        if self._seen == snapshot.reclaimable.changes:
            return
        changed = snapshot.reclaimable.changed(self._seen) if self._seen >= 0 else None
        if changed is None:
            self._known.clear()
        for name in changed or ():
            self._known.pop(name, None)
        self._seen = snapshot.reclaimable.changes

    def on(self, server: Server, snapshot: Snapshot) -> tuple[bool, list[Working]]:
        """(whether every GPU of a server is held by one job, whole, or by none; the jobs on it)."""
        known = self._known.get(server.name)
        if known is None:
            working = snapshot.working_on(server.name)
            there = [
                (job.ends_by_ms(0) if job.state is JobState.RUNNING else None, job, use_of(share, job.spec))
                for job in working
                for share in job.shares
                if share.server == server.name
            ]
            gpus = [gpu for _, _, use in there for gpu in use.mgpu_of]
            amounts = {mgpu for _, _, use in there for mgpu in use.mgpu_of.values()}
            whole = not server.pool and amounts <= {WHOLE} and len(set(gpus)) == len(gpus)
            known = self._known[server.name] = whole, there
        return known


def use_of(share: Share, spec: JobSpec) -> Use:
    """Capacity that a share of a job holds."""
    gang = spec.gang_of(share.part)
    return Use(share.gpus, share.tasks * gang.cpu_mcores, share.tasks * gang.memory_mib)


def end_of(record: JobRecord, now_ms: int) -> int:
    """Time when a job ends by its limit, see ``end_by_limit``."""
    end_ms, limit_ms = record.ends_by_ms(now_ms), record.spec.longest_ms
    return end_by_limit(None if end_ms is None else end_ms - (limit_ms or 1), limit_ms or 1, now_ms)
