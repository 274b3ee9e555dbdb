"""Times at which a job of several parts fits if all work ends at its limit, by trials on the live fleet.

The fleet's search for parts is a heuristic: it may fail later where it did not before. So a place that it has found is
kept, with the GPUs of each part, until it is lost or a trial finds one that is free before.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.fit_times import FitTimes, Held, Stops, end_of, use_of
from mast_opt.problems.job_placement.fit_times import FOREVER, NOW, Use
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.types import Server, Share
from mast_opt.problems.job_placement.units import WHOLE

_WORKING = (JobState.STARTING, JobState.RUNNING)
Times: TypeAlias = "FitTimes | PartTimes"


@dataclass(frozen=True)
class Place:
    """Place of the parts of a job."""

    shares: tuple[Share, ...]
    servers: Mapping[str, Server]
    """Its servers as they were when it was found."""
    needs: Mapping[str, Sequence[Use]]
    """Server → what the parts take of it."""

    @classmethod
    def of(cls, bid: Bid, spec: JobSpec, snapshot: Snapshot) -> "Place":
        """Place of a bid that was made in a trial."""
        needs = dict[str, list[Use]]()
        for share in bid.shares:
            needs.setdefault(share.server, []).append(use_of(share, spec))
        return cls(bid.shares, {name: snapshot.inventory.server_of[name] for name in needs}, needs)


class PartTimes:
    """Times in a region for jobs with the parts of one job; the first one is that of a trial, and perhaps not the first
    at which they fit.

    Args:
        tier, held: see ``FitTimes``.
    """

    def __init__(
        self, record: JobRecord, tier: int | None, region: str, snapshot: Snapshot, held: Held | None = None
    ) -> None:
        self._job = replace(record.job, name="\0", tenant="", datasets=())  # no other job has that name
        self._spec, self._region, self._held = record.spec, region, held or Held()
        self._may_stop = Stops(tier, record.spec.tier, snapshot.reclaimable.tiers[-1]).may_stop
        self._seen, self._grown, self.version = -1, 0, 0
        self.place: Place | None = None
        """The place that was found; None if there is none even when all work has ended."""
        self._beside: Place | None = None
        """Place that was found next to a job that may have been placed since."""
        self._by_ms = FOREVER
        self.catch_up(snapshot)

    def catch_up(self, snapshot: Snapshot) -> None:
        """Take in what has changed on servers."""
        reclaimable, server_of = snapshot.reclaimable, snapshot.inventory.server_of
        if self._seen == reclaimable.changes:
            return
        changed = reclaimable.changed(self._seen) if self._seen >= 0 else None
        grown = reclaimable.grown(self._grown) if self._seen >= 0 else None
        self._held.follow(snapshot)
        self._seen, self._grown = reclaimable.changes, reclaimable.count

        def concern(names: Iterable[str] | None) -> bool:
            mine = self.servers(FOREVER)
            return names is None or any(server_of[one].region == self._region or one in mine for one in names)

        if not concern(changed):
            return
        self.version += 1
        before_ms, known = self._by_ms, (self.place, self._beside)
        self.place, self._beside, self._by_ms = None, None, FOREVER
        for place in known:
            self._take(place, snapshot)
        if self.place is None or self._by_ms > before_ms or concern(grown):
            self._look_for_better(snapshot)

    def by(self) -> int:
        """The time at which the parts fit, ``NOW`` or ``FOREVER``."""
        return self._by_ms

    @property
    def ever(self) -> bool:
        """Whether the parts fit when all work has ended."""
        return self.place is not None

    def fits(self, by_ms: int) -> bool:
        """Whether the parts fit at that time, if all work ends at its limit."""
        return self.place is not None and self._by_ms <= by_ms

    def fit_on(self, servers: tuple[str, ...], by_ms: int) -> bool:
        """Whether the parts fit on these servers at that time."""
        return self.fits(by_ms) and servers == self.servers(by_ms)

    def servers(self, by_ms: int) -> tuple[str, ...]:
        """Servers on which the parts fit at a time at which they do."""
        return () if self.place is None else tuple(self.place.servers)

    def fits_beside(self, other: JobRecord, bid: Bid, by_ms: int, end_ms: int, snapshot: Snapshot) -> bool:
        """Whether the parts fit at a time at which they do now, if another job gets this bid and ends at ``end_ms``."""
        if self._may_stop(other):
            return True
        more = [(share.server, end_ms, use_of(share, other.spec)) for share in bid.shares]
        kept_ms = None if self.place is None else self._time(self.place, snapshot, more)
        if kept_ms is not None and kept_ms <= by_ms:
            return True
        ended = [name for names in self._ends(by_ms, snapshot).values() for name in names]
        found = snapshot.first_trial(self._job, self._region, {by_ms: ended}, bid)
        self._beside = None if found is None else Place.of(found[1], self._spec, snapshot)
        return found is not None

    def room(self, most_mgpu: int, preemptible: bool, snapshot: Snapshot) -> list[JobRecord]:
        """No jobs: nobody as important makes room for a job of several parts."""
        return []

    def victims(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The jobs that have to stop for the parts to have their place now, the less important ones rather."""
        assert self.place is not None
        servers = self.place.servers
        there = {one.name: one for name in servers for one in snapshot.working_on(name) if self._may_stop(one)}
        for record in sorted(there.values(), key=lambda one: (one.over_quota, one.spec.tier, one.number)):
            others = there.keys() - {record.name}
            if self._time(self.place, snapshot, stopped=others) == NOW:
                del there[record.name]
        return tuple(there)

    def _look_for_better(self, snapshot: Snapshot) -> None:
        """Try whether the parts fit sooner than they do."""
        if self._by_ms == NOW:
            return
        latest_ms = FOREVER if self.place is None else self._by_ms - 1
        found = snapshot.first_trial(self._job, self._region, self._ends(latest_ms, snapshot))
        if found is not None:
            self._take(Place.of(found[1], self._spec, snapshot), snapshot)

    def _ends(self, latest_ms: int, snapshot: Snapshot) -> dict[int, list[str]]:
        """Times up to the latest one → jobs of the region that end then, or (``NOW``) may be stopped."""
        ends = dict[int, list[str]]()
        for record in snapshot.jobs.values():
            if record.region == self._region and record.state in _WORKING and not record.is_guest:
                end_ms = NOW if self._may_stop(record) else end_of(record, snapshot.now_ms)
                if end_ms <= latest_ms:
                    ends.setdefault(end_ms, []).append(record.name)
        return ends

    def _take(self, place: "Place | None", snapshot: Snapshot) -> None:
        """Keep a place if it is not lost and is free before the one that is kept."""
        by_ms = None if place is None else self._time(place, snapshot)
        if by_ms is not None and (self.place is None or by_ms < self._by_ms):
            self.place, self._by_ms = place, by_ms

    def _time(
        self,
        place: "Place",
        snapshot: Snapshot,
        more: Sequence[tuple[str, int, Use]] = (),
        stopped: Collection[str] | None = None,
    ) -> int | None:
        """Time at which a place is free; None if it is lost.

        Args:
            more: (server, end, what it holds) of further work.
            stopped: jobs that are not waited for; None for all that may be stopped.
        """
        by_ms, inventory = NOW, snapshot.inventory
        for name, server in place.servers.items():
            closed = name in inventory.moving or name in inventory.shrinking or name in inventory.closed
            if closed or name not in inventory.up or inventory.server_of[name] != server:
                return None
            uses = [(end_ms, use) for there, end_ms, use in more if there == name]
            for _, record, use in self._held.on(server, snapshot)[1]:
                if not (self._may_stop(record) if stopped is None else record.name in stopped):
                    uses.append((end_of(record, snapshot.now_ms), use))
            by_ms = max(by_ms, _free_from(server, place.needs[name], uses))
        return by_ms


def times_of(record: JobRecord, tier: int | None, region: str, snapshot: Snapshot, held: Held | None = None) -> Times:
    """Times at which a job fits into a region, see ``FitTimes``."""
    return (PartTimes if record.spec.parts else FitTimes)(record, tier, region, snapshot, held)


def _free_from(server: Server, needs: Sequence[Use], uses: Sequence[tuple[int, Use]]) -> int:
    """Time from which a server has what is needed in addition to this work, (end, what it holds) each."""
    capacity = server.gpus * WHOLE if server.pool else WHOLE
    left: dict[object, int] = dict.fromkeys((gpu for use in needs for gpu in use.mgpu_of), capacity)
    left |= {"cpu": server.cpu_mcores, "memory": server.memory_mib}
    needed = {key for use in needs for key, amount in _amounts(use) if amount}
    for use in needs:
        for key, amount in _amounts(use):
            left[key] -= amount
    for end_ms, use in sorted(uses, key=lambda one: -one[0]):
        for key, amount in _amounts(use):
            if key in needed:
                left[key] -= amount
                if left[key] < 0:
                    return end_ms
    return NOW


def _amounts(use: Use) -> Iterator[tuple[object, int]]:
    """Amounts that work holds of each GPU of a server, of its cores and of its memory."""
    yield from use.mgpu_of.items()
    yield from (("cpu", use.cpu_mcores), ("memory", use.memory_mib))
