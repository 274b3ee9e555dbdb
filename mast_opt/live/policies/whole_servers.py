"""Whole servers for gangs (policy ``mast``): jobs that need a part of a server are packed together.

A gang whose tasks fill servers waits until servers are wholly free, or held by what it may stop alone. Jobs that it may
not stop keep it waiting, however small they are, when they are spread over all servers.
"""

from bisect import bisect_right
from collections.abc import Iterable

from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.types import Part
from mast_opt.problems.job_placement.units import WHOLE

PACKINGS = (NEVER, SAME_TIER, ALWAYS) = ("never", "same-tier", "always")
"""Rules for when a job keeps away from whole servers if there is room elsewhere: never; if that stops no more important
work than it would otherwise; always."""


class WholeServers:
    """Servers of which a job could have all: they are free, or held by what the job may stop.

    They are kept by region, GPU type and size, and follow what changes, so that a question does not cost a look at
    every server.
    """

    def __init__(self) -> None:
        self._seen: int | None = None
        self._of: dict[tuple[str, str, int], list[set[str]]] = {}
        """(region, GPU type, milli-GPUs) → number of tiers, from the most important one, that could have all of a
        server → those servers."""
        self._at: dict[str, set[str]] = {}
        """Server → the set that it is in."""

    def breaks(self, task_mgpu: int, tier: int, servers: Iterable[str], snapshot: Snapshot) -> bool:
        """Whether a task leaves a part of one of these servers of which a job of this tier could have all."""
        sizes = ((name, snapshot.inventory.server_of[name].gpus * WHOLE) for name in servers)
        return any(task_mgpu < size == snapshot.reclaimable.most(name, tier) for name, size in sizes)

    def broken_by(
        self, task_mgpu: int, tier: int, regions: Iterable[str], kinds: Iterable[str] | None, snapshot: Snapshot
    ) -> frozenset[str]:
        """The servers in these regions and of these GPU types (None: of all) that such a task would break."""
        self._follow(snapshot)
        able, regions = bisect_right(snapshot.reclaimable.tiers, tier), frozenset(regions)
        return frozenset[str]().union(
            *(
                servers
                for (region, kind, size), by_tiers in self._of.items()
                if region in regions and (kinds is None or kind in kinds) and task_mgpu < size
                for servers in by_tiers[able:]
            )
        )

    def _follow(self, snapshot: Snapshot) -> None:
        """Take in the servers whose reclaimable GPUs have changed since the last call."""
        reclaimable = snapshot.reclaimable
        changed = None if self._seen is None else reclaimable.changed(self._seen)
        self._seen = reclaimable.changes
        for name in snapshot.inventory.server_of if changed is None else changed:
            server = snapshot.inventory.server_of[name]
            size = server.gpus * WHOLE
            place = server.region, server.gpu_type, size
            if place not in self._of:
                self._of[place] = [set() for _ in range(len(reclaimable.tiers) + 1)]
            now = self._of[place][reclaimable.tiers_with(name, size)]
            if (before := self._at.get(name)) is not now:
                if before is not None:
                    before.discard(name)
                now.add(name)
                self._at[name] = now


def packed_bid(
    record: JobRecord,
    regions: tuple[str, ...] | None,
    avoid: frozenset[str],
    packing: str,
    whole: WholeServers,
    snapshot: Snapshot,
    actions: Actions,
) -> Bid | None:
    """The best bid for a job that avoids these servers; None if it has none. If it breaks a whole server, one that is
    free or held by what the job may stop, the best one that breaks none takes its place as ``packing`` says. All parts
    of a job keep off the servers that any of them would break."""
    bid = _bid(actions, record, regions, avoid)
    if bid is None or packing == NEVER:
        return bid
    tier, broken = snapshot.importance(record), frozenset[str]()
    asked, refreshed = (snapshot.admissible(record) if regions is None else regions), actions.refreshed
    for gang in record.spec.gangs:
        part = gang.name if isinstance(gang, Part) else ""
        task_mgpu = min(gang.gpu_types.values()) if gang.gpu_types else gang.mgpu
        if whole.breaks(task_mgpu, tier, (share.server for share in bid.shares if share.part == part), snapshot):
            broken |= whole.broken_by(task_mgpu, tier, asked, gang.gpu_types, snapshot)
    if not broken:
        return bid
    packed = _bid(actions, record, regions, avoid | broken)
    if packed is not None and (packing == ALWAYS or packed.key[0] <= bid.key[0]):
        return packed
    return bid if refreshed == actions.refreshed else _bid(actions, record, regions, avoid)


def _bid(actions: Actions, record: JobRecord, regions: tuple[str, ...] | None, avoid: frozenset[str]) -> Bid | None:
    """The best bid for a job that avoids these servers; None if it has none."""
    found = actions.place(record.name, regions, avoid=avoid)
    return found if isinstance(found, Bid) else None
