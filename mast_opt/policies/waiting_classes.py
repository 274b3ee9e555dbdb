"""Waiting jobs in classes of those that fit in the same places: whoever is refused speaks for its class."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from mast_opt.loop.jobs import JobRecord
from mast_opt.loop.policy import View
from mast_opt.policies.group_room import GroupRoom, Size

Key = tuple[object, ...]


@dataclass(eq=False)
class WaitingClass:
    """Jobs of one tier, shape, tenant and set of regions."""

    key: Key
    tier: int
    """Before quotas."""
    regions: tuple[str, ...]
    tenant: str
    task_mgpu: int
    """What a task takes at least."""
    places: tuple[tuple[int, int], ...]
    """Number of the size that it asks of groups, and these groups; several where tasks take more on some types."""
    queue: list[tuple[int, int, str]] = field(default_factory=list)
    """(submission, number, name), a heap; jobs that have gone to another class, or do not wait, are still there."""
    offered: bool = False
    """Whether its head has a place in the order of this turn."""
    refused: int | None = None
    """The tier after quotas with which its head was refused; None if it has not been since something became free."""


class WaitingClasses:
    """All waiting jobs.

    Args:
        home: jobs run in their home region only.
    """

    def __init__(self, view: View, *, home: bool) -> None:
        self._home = home
        self._room = GroupRoom(view)
        self.classes: dict[Key, WaitingClass] = {}
        self._of: dict[str, WaitingClass] = {}
        """Job → the class in whose queue it is."""
        self._in_region: dict[str, dict[Key, WaitingClass]] = {region: {} for region in view.supply_mgpu}
        self._asking: list[dict[Key, tuple[WaitingClass, int]]] = []
        """Size → the classes that ask for it, and of which groups."""
        self._full: list[int] = []
        """Size → groups in which it was searched for in vain since they last grew in this turn."""
        self._readers: dict[str, dict[str, None]] = {}
        """Dataset → the jobs that read it, in the order in which they came; some may not wait."""

    def follow(self, view: View) -> bool:
        """Take in how much room there is; False if all has to be counted again."""
        return self._room.follow(view)

    def begin_turn(self) -> None:
        """What victims left over in the last turn is free for all now."""
        self._full = [0] * len(self._full)

    def refuse(self, waiting: WaitingClass) -> None:
        """The groups of a class, all of which were searched, cannot hold its head until they grow."""
        for size, groups in waiting.places:
            self._full[size] |= groups

    def join(self, record: JobRecord, view: View) -> WaitingClass | None:
        """A job waits, perhaps already and for other regions than before; returns its class if that is a new one."""
        spec = record.spec
        regions = view.admissible(record)
        if self._home:
            regions = tuple(region for region in regions if region == spec.home_region)
        kinds = None if spec.gpu_types is None else tuple(sorted(spec.gpu_types.items()))
        shape = spec.tasks, spec.mgpu, kinds, spec.cpu_mcores, spec.memory_mib, spec.within, spec.prefer
        key = spec.tier, shape, regions, spec.tenant
        known = self.classes.get(key)
        waiting = known
        if waiting is None:
            places, task_mgpu = tuple(self._places(record, regions, view)), record.asked_mgpu // spec.tasks
            waiting = self.classes[key] = WaitingClass(key, spec.tier, regions, spec.tenant, task_mgpu, places)
            for region in regions:
                self._in_region[region][key] = waiting
            for size, groups in places:
                self._asking[size][key] = waiting, groups
        if self._of.get(record.name) is waiting:
            return None
        self._of[record.name] = waiting
        for dataset in spec.datasets:
            self._readers.setdefault(dataset, {})[record.name] = None
        heapq.heappush(waiting.queue, (record.submitted_ms, record.number, record.name))
        return waiting if known is None else None

    def readers(self, datasets: Iterable[str], view: View) -> list[JobRecord]:
        """The waiting jobs that read one of these datasets."""
        found: dict[str, JobRecord] = {}
        for dataset in datasets:
            names = self._readers.get(dataset, {})
            for name in list(names):
                record = view.jobs.get(name)
                if record is not None and record.waits:
                    found[name] = record
                else:
                    del names[name]
        return list(found.values())

    def head(self, waiting: WaitingClass, view: View) -> str | None:
        """The oldest job of a class that still waits there."""
        queue = waiting.queue
        while queue:
            name = queue[0][2]
            record = view.jobs.get(name)
            if record is not None and record.waits and self._of.get(name) is waiting:
                return name
            self.take_head(waiting)
        return None

    def take_head(self, waiting: WaitingClass) -> None:
        """The oldest job of a class waits there no more."""
        name = heapq.heappop(waiting.queue)[2]
        if self._of.get(name) is waiting:
            del self._of[name]

    def members(self, waiting: WaitingClass, view: View) -> list[str]:
        """The jobs of a class that still wait there, the oldest first."""
        names = dict.fromkeys(name for _, _, name in sorted(waiting.queue) if self._of.get(name) is waiting)
        return [name for name in names if name in view.jobs and view.jobs[name].waits]

    def forget(self, waiting: WaitingClass) -> None:
        """A class has no jobs any more."""
        del self.classes[waiting.key]
        for region in waiting.regions:
            del self._in_region[region][waiting.key]
        for size, _ in waiting.places:
            del self._asking[size][waiting.key]

    def may_fit(self, waiting: WaitingClass) -> bool:
        """Whether a group could have room for one of the jobs of a class."""
        able, full = self._room.able, self._full
        for size, groups in waiting.places:  # noqa: SIM110 - twice as fast as any()
            if able[size] & groups & ~full[size]:
                return True
        return False

    def that_may_fit(self, grown: Iterable[tuple[str, str]]) -> list[WaitingClass]:
        """The classes that could have room in the groups of these (region, server)."""
        there = 0
        for _, server in grown:
            there |= self._room.group_of(server)
        self._full = [groups & ~there for groups in self._full]
        found = []
        for able, asking in zip(self._room.able, self._asking):
            if able & there:
                found += [waiting for waiting, groups in asking.values() if groups & able & there]
        return found

    def with_a_task_that_fits(self, grown: Iterable[tuple[str, str]], view: View) -> list[WaitingClass]:
        """The classes of which one of these (region, server) could hold a task, were it of a type that they accept."""
        found: dict[Key, WaitingClass] = {}
        for region, server in grown:
            for key, waiting in self._in_region[region].items():
                if key not in found and view.reclaimable.most(server, waiting.tier) >= waiting.task_mgpu:
                    found[key] = waiting
        return list(found.values())

    def _places(self, record: JobRecord, regions: tuple[str, ...], view: View) -> Iterable[tuple[int, int]]:
        spec = record.spec
        kinds_of: dict[int, set[str] | None] = {}
        if spec.gpu_types is None:
            kinds_of[spec.mgpu] = None
        else:
            for kind, mgpu in spec.gpu_types.items():
                kinds = kinds_of.setdefault(mgpu, set())
                assert kinds is not None
                kinds.add(kind)
        for mgpu, accepted in kinds_of.items():
            size = Size(spec.tier, mgpu, spec.tasks, spec.within, spec.cpu_mcores, spec.memory_mib)
            number = self._room.watch(size, view)
            if number == len(self._full):
                self._full.append(0)
                self._asking.append({})
            yield number, self._room.groups(regions, accepted)
