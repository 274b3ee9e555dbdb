"""One reservation a region, for the oldest waiting job of the most important tier that does not fit there.

Whoever is not more important starts in the region only if the holder still fits at its promised time: because it ends
before, by its limit, or because it leaves the holder enough. What has been promised then never moves later, but for the
reasons of ``events.PROMISES_END``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.events import ADOPTED, BOUND, DATA, OVERRUN, QUOTA, SERVER, TIER
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.fit_times import Held
from mast_opt.live.policies.making_room import MakingRoom
from mast_opt.live.policies.part_times import PartTimes, Times, times_of
from mast_opt.problems.job_placement.fit_times import FOREVER, NOW
from mast_opt.problems.job_placement.live_fleet.answers import Bid

MOST_KEPT = 256
"""Sizes by region of which the times are kept up to date."""
Place = Callable[[frozenset[str]], Bid | None]
"""The best bid that avoids these servers."""
_SERVERS = (ev.ServerDown, ev.ServerClosed, ev.CapacitySet, ev.MoveAsked)
_CAPACITY = (ev.ServerUp, ev.ServerOpened, ev.CapacitySet, ev.ServerMoved)
_DATA = (ev.ReplicaDropped, ev.DatasetCreated)


@dataclass(eq=False)
class Reservation:
    """Reservation of a holder: the first job in the order of its region that does not fit."""

    job: str
    tier: int
    """Importance of its holder."""
    rank: int
    """Tier by which it binds: that for its holder's place in the queue."""
    region: str
    times: Times
    by_ms: int = FOREVER
    """Time when it fits at the latest; ``FOREVER`` where limits do not say, and ``NOW`` before it is tried."""
    servers: tuple[str, ...] = ()
    """Servers that others leave alone if they do not end before; empty where nobody has to."""
    version: int = -1
    """Version of the times to which it was brought."""
    tried: bool = False
    """Whether its holder was searched for in this turn."""


class Reservations:
    """All reservations.

    Args:
        hold_after_ms: how long a job waits before servers are kept for it although limits do not say when it fits;
            None for ever.
        promote_ms: see ``JobRecord.queue_tier``.
        room: when holders have smaller jobs stopped.
    """

    def __init__(self, hold_after_ms: int | None, promote_ms: int, room: MakingRoom) -> None:
        self._hold_after_ms, self._promote_ms, self._room = hold_after_ms, promote_ms, room
        self.active = False
        """Whether any job has had a limit, or waits long enough to have servers kept; nothing is done before."""
        self.of_region: dict[str, Reservation] = {}
        self.changed: list[str] = []
        """Regions whose reservation has changed, so that jobs that were refused for it may fit."""
        self.never: dict[str, set[object]] = {}
        """Region → shapes of jobs that do not fit there even when all work has ended."""
        self._times: dict[tuple[object, ...], Times] = {}
        self._held = Held()
        self._shrinks = False
        """Whether a server waited to be smaller in the last turn, and may have taken no work."""
        self._to_publish: set[str] = set()
        """Regions whose reservation may be better than what is promised."""

    def begin(self, snapshot: Snapshot) -> None:
        """Forget everything but the promises that are open."""
        tiers = {one.job: one.tier for one in self.of_region.values()}
        self._times.clear()
        self._held = Held()
        self.of_region.clear()
        self.never.clear()
        self.active = False
        for record in snapshot.jobs.values():
            self.active = self.active or record.spec.limit_ms is not None
            if record.promise is not None and record.waits and record.promise.region in snapshot.supply_mgpu:
                tier = tiers.get(record.name, snapshot.importance(record))
                one = self._reserve(record, tier, record.promise.region, snapshot)
                one.by_ms = FOREVER if record.promise.by_ms is None else record.promise.by_ms
                one.servers = record.promise.servers
        self.changed = list(snapshot.supply_mgpu)

    def note(self, record: JobRecord) -> None:
        """Note that a job has come."""
        waits_for_servers = self._hold_after_ms is not None or self._room.on
        self.active = self.active or record.spec.limit_ms is not None or waits_for_servers

    def look_at(self, record: JobRecord, snapshot: Snapshot) -> list[str]:
        """The regions where a job that has come may be the first."""
        tier, held = record.spec.tier, self.of_region
        full = len(held) == len(snapshot.supply_mgpu) and not snapshot.has_quotas
        if not self.active or (full and all(tier >= one.rank for one in held.values())):
            return []
        tier = snapshot.importance(record)
        return [region for region in snapshot.admissible(record) if region not in held or tier < held[region].rank]

    def due(self, tier: int | None) -> Iterator[Reservation]:
        """The reservations of work as important as this, or (None) of all, that fit by now, the most important first;
        each is given once a turn."""
        least = FOREVER if tier is None else tier
        found = [one for one in self.of_region.values() if one.by_ms == NOW and not one.tried and one.rank <= least]
        for one in sorted(found, key=lambda one: one.rank):
            if not one.tried and one.by_ms == NOW:
                one.tried = True
                yield one

    def review(self, news: Sequence[ev.Event], snapshot: Snapshot, actions: Actions) -> None:
        """End the promises that cannot be kept since there were these news, and bring all to now."""
        kinds = {type(event) for event in news}
        shrank, self._shrinks = self._shrinks, bool(snapshot.inventory.shrinking)
        if shrank or not kinds.isdisjoint(_CAPACITY):
            self.never.clear()
        for one in list(self.of_region.values()):
            one.tried = False
            record = snapshot.jobs.get(one.job)
            why = self._lost(one, record, kinds, snapshot)
            if record is not None and why is None:
                if snapshot.has_quotas or self._promote_ms:
                    one.rank = queue_tier(record, self._promote_ms, snapshot)
                self._renew(one, snapshot, actions, news)
                continue
            self._drop(one)
            if record is not None and why and record.promise is not None:
                actions.end_promise(one.job, why)

    def _lost(self, one: Reservation, record: JobRecord | None, kinds: set[type], snapshot: Snapshot) -> str | None:
        """Reason for which a job holds a reservation no longer; empty if it does not wait, and None if it holds it."""
        if record is None or not (record.waits or record.held):
            return ""
        if record.bound and record.bound != one.region:
            return BOUND
        if record.held or (not kinds.isdisjoint(_DATA) and one.region not in snapshot.admissible(record)):
            return DATA
        return QUOTA if snapshot.importance(record) != one.tier else None

    def _renew(self, one: Reservation, snapshot: Snapshot, actions: Actions, news: Iterable[ev.Event]) -> None:
        """Bring a reservation to now: earlier if it can be, and later if it must be."""
        record = snapshot.jobs[one.job]
        one.times.catch_up(snapshot)
        due_ms = None if record.promise is None else record.promise.by_ms
        if one.version == one.times.version and due_ms == one.by_ms and one.by_ms >= snapshot.now_ms:
            return
        self._to_publish.add(one.region)
        if due_ms is not None and (due_ms < snapshot.now_ms or not one.times.fits(due_ms)):
            why = _why_late(one, record, news, snapshot)
            if why == OVERRUN:
                self._times.clear()
                one.times = self._times_of(record, one.tier, one.region, snapshot)
            actions.end_promise(one.job, why)
        one.version = one.times.version
        by_ms = one.times.by()
        hold_ms = FOREVER if self._hold_after_ms is None else self._hold_after_ms
        if by_ms == FOREVER and not (one.times.ever and snapshot.now_ms - record.submitted_ms >= hold_ms):
            servers: tuple[str, ...] = ()
        elif by_ms == one.by_ms and by_ms != FOREVER and one.times.fit_on(one.servers, by_ms):
            return
        else:
            servers = one.times.servers(by_ms)
        if (by_ms, servers) != (one.by_ms, one.servers):
            one.by_ms, one.servers = by_ms, servers
            self.changed.append(one.region)

    def make_room(self, snapshot: Snapshot, actions: Actions) -> None:
        """Have smaller jobs stopped for the gangs that have waited long enough; they keep what becomes free."""
        for one in self.of_region.values() if self._room.on else ():
            if one.by_ms != NOW and self._room.make(snapshot.jobs[one.job], one.times, snapshot, actions):
                self._renew(one, snapshot, actions, ())

    def publish(self, snapshot: Snapshot, actions: Actions) -> None:
        """Promise the new reservations. A job that fits now is not promised that: it may have to wait for the end of a
        turn.
        """
        found = [one for one in self.of_region.values() if one.region in self._to_publish]
        self._to_publish.clear()
        for one in found:
            promise = snapshot.jobs[one.job].promise
            by_ms = None if one.by_ms == FOREVER else one.by_ms
            if not one.servers or (by_ms is not None and by_ms <= snapshot.now_ms):
                continue
            if promise is None or promise.by_ms != by_ms or promise.servers != one.servers:
                actions.promise(one.job, one.region, by_ms, one.servers)

    def next_ms(self, snapshot: Snapshot) -> int | None:
        """Next time at which a reservation is late or its holder has waited long enough for room to be made, if nothing
        happens before; None if there is none."""
        times = [one.by_ms + 1 for one in self.of_region.values()]
        if self._room.on:
            wait = [one.job for one in self.of_region.values() if one.by_ms != NOW]
            times += [self._room.first_ms(snapshot.jobs[job]) for job in wait]
        return min((at_ms for at_ms in times if snapshot.now_ms < at_ms < FOREVER), default=None)

    def give(self, record: JobRecord, region: str, snapshot: Snapshot, actions: Actions) -> Reservation | None:
        """Give a job that waits and does not fit a reservation: in a region, in place of a less important one, or where
        it fits first. None if it never fits in that region."""
        tier = snapshot.importance(record)
        if not self._times_of(record, tier, region, snapshot).ever:
            self.never.setdefault(region, set()).add(record.spec.shape)
            return None
        before = self.of_region.get(region)
        if before is not None:
            holder = snapshot.jobs[before.job]
            if holder.promise is not None:
                actions.end_promise(before.job, TIER if record.spec.tier < holder.spec.tier else QUOTA)
            self._drop(before)
        free = [other for other in snapshot.admissible(record) if other not in self.of_region] or [region]
        times = {other: self._times_of(record, tier, other, snapshot) for other in free}
        first = min((other for other in free if times[other].ever), key=lambda other: times[other].by())
        one = self._reserve(record, tier, first, snapshot)
        self._renew(one, snapshot, actions, ())
        return one

    def admit(self, record: JobRecord, bid: Bid | None, place: Place, snapshot: Snapshot) -> Bid | None:
        """The best bid for a job that keeps all promises, given the best of all."""
        avoid = frozenset[str]()
        while bid is not None and not self._keeps(record, bid, snapshot):
            kept = {*self.of_region[bid.region].servers}
            if kept <= avoid:
                return None
            for one in self.of_region.values():
                if self._binds(one, record, snapshot) and not self._ends_before(one, record, snapshot):
                    kept.update(one.servers)
            avoid |= kept
            bid = place(avoid)
        return bid

    def kept_for(self, one: Reservation, snapshot: Snapshot, actions: Actions) -> Bid | None:
        """Bid for the place that is kept for the parts of a holder which fits by now; None if nothing is kept so, or
        quotas do not let its tenant have that."""
        times = one.times
        if not isinstance(times, PartTimes):
            return None
        times.catch_up(snapshot)
        if times.place is None or times.by() != NOW:
            return None
        return actions.place_on(one.job, times.place.shares, times.victims(snapshot))

    def placed(self, record: JobRecord, bid: Bid, snapshot: Snapshot, actions: Actions) -> None:
        """Note that a job has been placed by this bid."""
        for one in list(self.of_region.values()):
            if one.job == record.name:
                self._drop(one)
            elif one.region == bid.region and one.servers and not set(one.servers).isdisjoint(_servers(bid)):
                placed = ev.Placed(record.name, record.attempt, bid.region, bid.cluster, bid.shares)
                self._renew(one, snapshot, actions, (placed,))

    def blocked_in(self, record: JobRecord, snapshot: Snapshot) -> list[str]:
        """The regions where a job may be refused for a promise."""
        return [
            one.region
            for one in self.of_region.values()
            if one.servers and self._binds(one, record, snapshot) and not self._ends_before(one, record, snapshot)
        ]

    def bind(self, record: JobRecord, snapshot: Snapshot) -> bool:
        """Whether any reservation keeps servers from a job, or from its victims."""
        return any(one.servers and self._binds(one, record, snapshot) for one in self.of_region.values())

    def _keeps(self, record: JobRecord, bid: Bid, snapshot: Snapshot) -> bool:
        """Whether a bid leaves to the reservation of its region what is promised to it."""
        one = self.of_region.get(bid.region)
        if one is None or not one.servers or not self._binds(one, record, snapshot):
            return True
        if not bid.victims and self._ends_before(one, record, snapshot):
            return True
        if set(one.servers).isdisjoint(_servers(bid)):
            return True
        if one.by_ms == FOREVER:
            return False
        longest_ms = record.spec.longest_ms
        end_ms = FOREVER if bid.victims or longest_ms is None else snapshot.now_ms + longest_ms
        one.times.catch_up(snapshot)
        return one.times.fits_beside(record, bid, one.by_ms, end_ms, snapshot)

    def _binds(self, one: Reservation, record: JobRecord, snapshot: Snapshot) -> bool:
        """Whether a reservation binds a job: it is another job's, and at least as important."""
        return one.job != record.name and snapshot.importance(record) >= one.rank

    def _ends_before(self, one: Reservation, record: JobRecord, snapshot: Snapshot) -> bool:
        """Whether a job that starts now ends, by its limit, before a reservation falls due."""
        longest_ms = record.spec.longest_ms
        return longest_ms is not None and one.by_ms != FOREVER and snapshot.now_ms + longest_ms <= one.by_ms

    def _reserve(self, record: JobRecord, tier: int, region: str, snapshot: Snapshot) -> Reservation:
        """Give a job the reservation of a region."""
        rank = queue_tier(record, self._promote_ms, snapshot)
        one = Reservation(record.name, tier, rank, region, self._times_of(record, tier, region, snapshot))
        self.of_region[region] = one
        self.changed.append(region)
        return one

    def _drop(self, one: Reservation) -> None:
        """End a reservation, so that its region has none."""
        del self.of_region[one.region]
        self.changed.append(one.region)

    def _times_of(self, record: JobRecord, tier: int, region: str, snapshot: Snapshot) -> Times:
        """Times at which a job of this tier fits into a region; jobs of one shape share them."""
        key = tier, region, record.spec.shape[:-1], tuple([part.name for part in record.spec.parts])
        known = self._times.pop(key, None)
        if known is None:
            known = times_of(record, tier, region, snapshot, self._held)
            if len(self._times) >= MOST_KEPT:
                del self._times[next(iter(self._times))]
        self._times[key] = known
        known.catch_up(snapshot)
        return known


def queue_tier(record: JobRecord, promote_ms: int, snapshot: Snapshot) -> int:
    """The tier of a waiting job for its place in the queue: after quotas, and promoted where they cover it."""
    tier = snapshot.importance(record)
    return tier if tier != record.spec.tier else record.queue_tier(snapshot.now_ms, promote_ms)


def _servers(bid: Bid) -> list[str]:
    """Servers of a bid, one for each of its shares."""
    return [share.server for share in bid.shares]


def _why_late(one: Reservation, record: JobRecord, news: Iterable[ev.Event], snapshot: Snapshot) -> str:
    """Reason for which a job does not fit at its promised time: what has happened since it was promised."""
    why = without_news = OVERRUN if not snapshot.has_quotas or _overran(one.region, snapshot) else QUOTA
    if any(name not in snapshot.inventory.up for name in one.servers):
        why = SERVER
    for event in news:
        if isinstance(event, ev.Promised) and event.job == one.job:
            why = without_news
        elif isinstance(event, _SERVERS) and snapshot.inventory.server_of[event.server].region == one.region:
            why = SERVER
        elif isinstance(event, ev.Adopted) and event.region == one.region:
            why = ADOPTED
        elif isinstance(event, ev.Placed) and event.region == one.region and event.job in snapshot.jobs:
            if snapshot.jobs[event.job].spec.tier < record.spec.tier:
                why = TIER
            elif one.tier != record.spec.tier:
                why = QUOTA
    return why


def _overran(region: str, snapshot: Snapshot) -> bool:
    """Whether a job in a region runs beyond its limit."""
    ends = (job.ends_by_ms(snapshot.now_ms) for job in snapshot.jobs.values() if job.shares and job.region == region)
    return any(end_ms is not None and end_ms < snapshot.now_ms for end_ms in ends)
