"""Waiting jobs in classes of those that fit in the same places: the refusal of one holds for its class."""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator

from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.group_room import EVERYWHERE, GroupRoom, Size
from mast_opt.live.policies.size_order import Key, SizeOrder, WaitingClass
from mast_opt.problems.job_placement.live_fleet.types import gangs_of


class WaitingClasses:
    """All waiting jobs.

    Args:
        home: jobs run in their home region only.
        limits: jobs of different time limits are in different classes.
        promote_ms: see ``JobRecord.queue_tier``.
    """

    def __init__(self, snapshot: Snapshot, *, home: bool, limits: bool, promote_ms: int = 0) -> None:
        self._home, self._limits, self._promote_ms = home, limits, promote_ms
        self._room = GroupRoom(snapshot)
        self.classes: dict[Key, WaitingClass] = {}
        self._count = 0
        self._of: dict[str, WaitingClass] = {}
        """Job → the class in whose queue it is."""
        self._in_region: dict[str, dict[Key, WaitingClass]] = {region: {} for region in snapshot.supply_mgpu}
        self._orders: list[SizeOrder] = []
        """Classes by size."""
        self._region_groups: dict[str, int] = {}
        self._due: dict[str, tuple[int, int]] = {}
        """Region where something is promised → when, and its groups."""
        self._readers: dict[str, dict[str, None]] = {}
        """Dataset → the jobs that read it, in the order in which they came; some may not wait."""
        self._ageing: list[tuple[int, int, str]] = []
        """(time when it gets its next tier, number, name), a heap; some may not wait."""

    def follow(self, snapshot: Snapshot) -> bool:
        """Take in how much room servers have; False if all has to be counted again."""
        return self._room.follow(snapshot)

    def join(self, record: JobRecord, snapshot: Snapshot) -> WaitingClass | None:
        """Let a job wait, perhaps already and for other regions or as of another tier than before; returns its class
        if that is a new one."""
        spec, tier = record.spec, record.queue_tier(snapshot.now_ms, self._promote_ms)
        regions = snapshot.admissible(record)
        if self._home:
            regions = tuple(region for region in regions if region == spec.home_region)
        limit_ms = spec.longest_ms if self._limits else None
        key = tier, spec.tier, spec.shape, regions, spec.tenant, limit_ms
        known = self.classes.get(key)
        waiting = known
        if waiting is None:
            places = tuple(self._places(record, spec.tier, tier, regions, snapshot))
            waiting = WaitingClass(
                key, spec.shape, spec.tier, tier, regions, spec.tenant, places, limit_ms, self._count
            )
            self.classes[key] = waiting
            self._count += 1
            for region in regions:
                self._in_region[region][key] = waiting
        if self._of.get(record.name) is waiting:
            return None
        self._of[record.name] = waiting
        for dataset in spec.datasets:
            self._readers.setdefault(dataset, {})[record.name] = None
        heapq.heappush(waiting.queue, (record.submitted_ms, record.number, record.name))
        self._rank(waiting)
        if self._promote_ms and tier:
            due_ms = record.since_ms + (spec.tier - tier + 1) * self._promote_ms
            heapq.heappush(self._ageing, (due_ms, record.number, record.name))
        return waiting if known is None else None

    def promoted(self, snapshot: Snapshot) -> Iterator[JobRecord]:
        """The waiting jobs that may have got another tier since they joined; they are to join again."""
        while self._ageing and self._ageing[0][0] <= snapshot.now_ms:
            record = snapshot.jobs.get(heapq.heappop(self._ageing)[2])
            if record is not None and record.waits:
                yield record

    def readers(self, datasets: Iterable[str], snapshot: Snapshot) -> list[JobRecord]:
        """The waiting jobs that read one of these datasets."""
        found: dict[str, JobRecord] = {}
        for dataset in datasets:
            names = self._readers.get(dataset, {})
            for name in list(names):
                record = snapshot.jobs.get(name)
                if record is not None and record.waits:
                    found[name] = record
                else:
                    del names[name]
        return list(found.values())

    def head(self, waiting: WaitingClass, snapshot: Snapshot) -> str | None:
        """The oldest job of a class that still waits there."""
        queue = waiting.queue
        while queue:
            name = queue[0][2]
            record = snapshot.jobs.get(name)
            if record is not None and record.waits and self._of.get(name) is waiting:
                return name
            self.take_head(waiting)
        return None

    def heads(self, snapshot: Snapshot) -> list[JobRecord]:
        """The oldest job of each class that has waiting ones."""
        names = [self.head(waiting, snapshot) for waiting in list(self.classes.values())]
        return [snapshot.jobs[name] for name in names if name is not None]

    def take_head(self, waiting: WaitingClass) -> None:
        """Take the oldest job out of a waiting class."""
        name = heapq.heappop(waiting.queue)[2]
        if self._of.get(name) is waiting:
            del self._of[name]
        self._rank(waiting)

    def members(self, waiting: WaitingClass, snapshot: Snapshot) -> list[str]:
        """The jobs of a class that still wait there, the oldest first."""
        names = dict.fromkeys(name for _, _, name in sorted(waiting.queue) if self._of.get(name) is waiting)
        return [name for name in names if name in snapshot.jobs and snapshot.jobs[name].waits]

    def forget(self, waiting: WaitingClass) -> None:
        """Forget a waiting class that has no jobs any more that may be placed."""
        waiting.queue.clear()
        self._rank(waiting)
        del self.classes[waiting.key]
        for region in waiting.regions:
            del self._in_region[region][waiting.key]

    def may_fit(self, waiting: WaitingClass) -> bool:
        """Whether a group could have room for one of the jobs of a class."""
        return any(self._room.able[size] & groups for size, groups in waiting.places)

    def may_fit_by_right(self, waiting: WaitingClass) -> bool:
        """Whether a group could have room for the head of a class by the right that it had when it was last ranked."""
        places = waiting.borrowing if waiting.helper else waiting.places
        return any(self._room.able[size] & groups for size, groups in places)

    def borrow(self, waiting: WaitingClass, head: JobRecord, snapshot: Snapshot) -> None:
        """Find the places of the head of a class as work that borrows."""
        if not waiting.borrowing:
            importance = snapshot.borrowing(head.spec.tier)
            waiting.borrowing = tuple(self._places(head, importance, waiting.tier, waiting.regions, snapshot))

    def first_that_may_fit(self, snapshot: Snapshot) -> WaitingClass | None:
        """The class whose head goes first by tier and submission, of those that could have room in a group that has
        grown since their size was refused there; None if there is none."""
        while True:
            first: tuple[int, int, int, WaitingClass] | None = None
            brief = [(due_ms - snapshot.now_ms, groups) for due_ms, groups in self._due.values()]
            for able, order in zip(self._room.able, self._orders):
                found = None if first is not None and order.tier > first[0] else order.first(able, brief)
                if found is not None and (first is None or (order.tier, *found[:2]) < first[:3]):
                    first = order.tier, *found
            if first is None or self._still_heads(first[3], snapshot):
                return None if first is None else first[3]

    def _still_heads(self, waiting: WaitingClass, snapshot: Snapshot) -> bool:
        """Whether the class is where its head belongs; if not, it goes there, or away if it has no jobs any more."""
        ranked = waiting.ranked
        if self.head(waiting, snapshot) is None:
            self.forget(waiting)
        return ranked == waiting.ranked

    def refuse(self, waiting: WaitingClass, kept: Iterable[str] = ()) -> None:
        """The groups of a class, all of which were searched, cannot hold its head until they grow.

        Args:
            kept: regions in which that holds for jobs that do not end before what is promised there.
        """
        there = 0
        for region in kept:
            there |= self._groups_in(region)
        for size, groups in waiting.places:
            self._orders[size].full |= groups & ~there
            self._orders[size].kept |= groups & there

    def keep(self, region: str, due_ms: int | None) -> None:
        """Note that something else is promised in a region, and falls due then, or (None) at no known time."""
        groups = self._groups_in(region)
        self._due.pop(region, None)
        if due_ms is not None:
            self._due[region] = due_ms, groups
        for order in self._orders:
            if order.kept & groups:
                order.keep_again(groups)

    def oldest(
        self, region: str, but: Collection[str], never: Collection[object], below: int, snapshot: Snapshot
    ) -> str:
        """The first waiting job of a region by tier and submission, but for these, those of the shapes that ``never``
        fit, and those whose own tier is not below that; empty if there is none."""
        there, first, found = self._groups_in(region), (0, 0, 0), ""
        for order in self._orders:
            if order.own_tier >= below:
                continue
            at = 0
            while at < len(order.classes) and (not found or (order.tier, *order.classes[at][:2]) < first):
                *ranked, _, waiting, groups = order.classes[at]
                asked = groups & there and waiting.shape not in never
                name = self.head(waiting, snapshot) if asked else None
                if asked and waiting.ranked != tuple(ranked):
                    continue  # it has gone where its head belongs
                if name in but:
                    name = next((one for one in self.members(waiting, snapshot) if one not in but), None)
                if name is not None:
                    rank = order.tier, snapshot.jobs[name].submitted_ms, snapshot.jobs[name].number
                    if not found or rank < first:
                        first, found = rank, name
                at += 1
        return found

    def first_by(
        self,
        region: str,
        rank: Callable[[JobRecord], tuple[int, ...]],
        below: int,
        but: Collection[str],
        never: Collection[object],
        snapshot: Snapshot,
    ) -> str:
        """The first waiting job of a region by rank, but for these, those of the shapes that ``never`` fit, and those
        whose importance is known not to be under ``below``; empty if there is none. A rank begins with 0 or more and
        the tier in the queue, which is not under that of the class."""
        first: tuple[tuple[int, ...], str] | None = None
        there = self._groups_in(region)
        for waiting in list(self._in_region[region].values()):
            least = waiting.right_tier if waiting.refused else waiting.tier
            importance = waiting.right_tier if waiting.refused and waiting.helper else waiting.own_tier
            if importance >= below or (first is not None and (0, least) > first[0][:2]):
                continue
            asked = waiting.shape not in never and any(groups & there for _, groups in waiting.places)
            name = self.head(waiting, snapshot) if asked else None
            if name is not None and name in but:
                name = next((one for one in self.members(waiting, snapshot) if one not in but), None)
            if name is not None:
                ranked = rank(snapshot.jobs[name]), name
                first = ranked if first is None else min(first, ranked)
        return "" if first is None else first[1]

    def _groups_in(self, region: str) -> int:
        """Groups of servers, as bits, of a region."""
        known = self._region_groups.get(region)
        if known is None:
            known = self._region_groups[region] = self._room.groups((region,), None)
        return known

    def groups_of(self, waiting: WaitingClass) -> int:
        """Groups of servers, as bits, that may hold the head of a class once they have grown."""
        found = 0
        for size, groups in waiting.places:
            found |= EVERYWHERE if self._orders[size].of_parts else groups
        return found

    def grow(self, grown: Iterable[str] | None) -> int:
        """The groups of these servers, or (None) all, may hold what they were refused for; returns them as bits."""
        there = EVERYWHERE if grown is None else 0
        for server in grown or ():
            there |= self._room.group_of(server)
        for order in self._orders:
            order.grow(there)
        return there

    def _rank(self, waiting: WaitingClass) -> None:
        """Put a class where its head belongs."""
        head = waiting.queue[0][:2] if waiting.queue else None
        if head != waiting.ranked:
            for size, groups in waiting.places:
                self._orders[size].move(waiting, head, groups)
            waiting.ranked = head

    def _places(
        self, record: JobRecord, importance: int, tier: int, regions: tuple[str, ...], snapshot: Snapshot
    ) -> Iterable[tuple[int, int]]:
        """(number of its size, groups of servers) for each amount of GPUs that a task of a waiting job, or of its
        largest part, may need."""
        spec = record.spec
        gang = max(gangs_of(record.job), key=lambda one: one.tasks * one.mgpu)
        kinds_of: dict[int, set[str] | None] = {}
        if gang.gpu_types is None:
            kinds_of[gang.mgpu] = None
        else:
            for kind, mgpu in gang.gpu_types.items():
                kinds = kinds_of.setdefault(mgpu, set())
                assert kinds is not None
                kinds.add(kind)
        for mgpu, accepted in kinds_of.items():
            whole_job = spec.shape if spec.parts else ()
            size = Size(importance, mgpu, gang.tasks, gang.within, gang.cpu_mcores, gang.memory_mib, tier, whole_job)
            number = self._room.watch(size, snapshot)
            if number == len(self._orders):
                self._orders.append(SizeOrder(size))
            yield number, self._room.groups(regions, accepted)
