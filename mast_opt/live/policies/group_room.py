"""Bounds on the groups of servers, those of one cluster and GPU type, that could have room for so many tasks of some
size at most: a bound from above, kept up to date server by server, by which searches that must fail are left out."""

from collections.abc import Iterable
from typing import NamedTuple

from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.problems.job_placement.live_fleet.types import Server

EVERYWHERE = -1
"""All bits: a task that needs no GPU."""


class Size(NamedTuple):
    """Request of a job to the servers of a group."""

    tier: int
    """Its importance, see ``Snapshot.importance``."""
    mgpu: int
    """Milli-GPUs of a task."""
    tasks: int
    within: str = "cluster"
    cpu_mcores: int = 0
    """Millicores of a task, like its memory; only GPUs are counted here."""
    memory_mib: int = 0
    queue_tier: int = 0
    """Tier for their place in the queue; nothing is counted by it."""
    whole_job: tuple[object, ...] = ()
    """Shape of the job of which they are the largest part; empty where they are all of it. Nothing is counted by it."""

    @property
    def counted(self) -> tuple[int, int]:
        """Milli-GPUs of a piece that has to be on one server, and how many of these."""
        return (self.mgpu * self.tasks, 1) if self.within == "server" else (self.mgpu, self.tasks)


class GroupRoom:
    """Sets of groups are the bits of a number."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._group: dict[tuple[str, str, str], int] = {}
        """(region, cluster, GPU type) → number of the group."""
        self._of: dict[str, int] = {}
        """Server → its group."""
        self._most: dict[int, dict[str, int]] = {}
        """Tier → server → what it could give."""
        self._fit: dict[int, dict[int, list[int]]] = {}
        """Tier → milli-GPUs of a piece → pieces that fit at most, by group."""
        self._wanted: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """Tier, milli-GPUs of a piece → numbers of the sizes of such pieces, and of how many."""
        self._sizes: dict[Size, int] = {}
        self.able: list[int] = []
        """Number of a size → the groups that could have room for it."""
        self._seen = snapshot.reclaimable.changes
        for name, server in snapshot.inventory.server_of.items():
            self._of[name] = self._number(server)

    def follow(self, snapshot: Snapshot) -> bool:
        """Take in the servers that have changed since the last snapshot; False if there is a new group, or if that is
        not known, and all has to be counted again.
        """
        changed = snapshot.reclaimable.changed(self._seen)
        if changed is None:
            return False
        self._seen = snapshot.reclaimable.changes
        return all(self._take_in(name, snapshot) for name in changed)

    def groups(self, regions: Iterable[str], kinds: Iterable[str] | None) -> int:
        """The groups of servers, as bits, in these regions and of these GPU types, or (None) of all types."""
        found = 0
        for (region, _, kind), number in self._group.items():
            if region in regions and (kinds is None or kind in kinds):
                found |= 1 << number
        return found

    def group_of(self, server: str) -> int:
        """Number of a server's group: the servers of one cluster and GPU type."""
        return 1 << self._of[server]

    def watch(self, size: Size, snapshot: Snapshot) -> int:
        """Keep count of a size from now on; returns its number, counted from 0."""
        known = self._sizes.get(size)
        if known is None:
            known = self._sizes[size] = len(self.able)
            self.able.append(self._counted(size, known, snapshot))
        return known

    def _counted(self, size: Size, number: int, snapshot: Snapshot) -> int:
        """Groups of servers, as bits, that could have room for tasks of a size; counted from all servers."""
        mgpu, tasks = size.counted
        if mgpu == 0:
            return EVERYWHERE
        most = self._most.get(size.tier)
        if most is None:
            most = self._most[size.tier] = {name: snapshot.reclaimable.most_of(name, size.tier) for name in self._of}
        fit = self._fit.setdefault(size.tier, {}).setdefault(mgpu, [])
        if not fit:
            fit += [0] * len(self._group)
            for name, there in most.items():
                fit[self._of[name]] += there // mgpu
        self._wanted.setdefault((size.tier, mgpu), []).append((number, tasks))
        return sum(1 << group for group, fits in enumerate(fit) if fits >= tasks)

    def _take_in(self, name: str, snapshot: Snapshot) -> bool:
        """Take in what a server can give to waiting work now; False if its group is new."""
        server = snapshot.inventory.server_of[name]
        number = self._group.get((server.region, server.cluster, server.gpu_type))
        if number is None:
            return False
        before = self._of.get(name, number)
        self._of[name] = number
        for tier, most in self._most.items():
            now, then = snapshot.reclaimable.most_of(name, tier), most.get(name, 0)
            most[name] = now
            if before != number:
                self._change(tier, before, then, 0)
                self._change(tier, number, 0, now)
            elif now != then:
                self._change(tier, number, then, now)
        return True

    def _change(self, tier: int, number: int, then: int, now: int) -> None:
        """Note that a server of a group could give another amount of milli-GPUs to work of a tier than before."""
        for mgpu, fit in self._fit[tier].items():
            more = now // mgpu - then // mgpu
            if more == 0:
                continue
            fit[number] += more
            for size, pieces in self._wanted[tier, mgpu]:
                if fit[number] >= pieces:
                    self.able[size] |= 1 << number
                else:
                    self.able[size] &= ~(1 << number)

    def _number(self, server: Server) -> int:
        """Number of a server's group; a group that is not known yet gets the next one."""
        return self._group.setdefault((server.region, server.cluster, server.gpu_type), len(self._group))
