"""Servers reserved for gangs that have waited long (policy ``mast``), with backfill by what the gang may stop.

A gang whose tasks fill servers may wait for ever while small jobs of its own tier follow one another on every server.
After some time it reserves the servers with the least work that it may not stop. Jobs that it could not stop keep away
from there; all others may use them until it begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.job_placement.units import WHOLE
from mast_opt.loop.jobs import JobRecord
from mast_opt.loop.policy import View


@dataclass(frozen=True)
class _Reservation:
    servers: frozenset[str]
    tier: int


class Reservations:
    """Who has which servers reserved.

    Args:
        after_ms: wait after which a gang reserves servers; 0: none ever does.
        least_tier: gangs of less important tiers reserve nothing.
    """

    def __init__(self, after_ms: int, least_tier: int) -> None:
        self._after_ms, self._least_tier = after_ms, least_tier
        self._of: dict[str, _Reservation] = {}

    def clear(self) -> None:
        """Forget all of them."""
        self._of = {}

    def renew(self, view: View) -> bool:
        """End those whose gang waits no longer or whose servers are gone, and make new ones, the longest wait first.

        Returns:
            Whether one has ended, so that its servers are open to everybody again.
        """
        if not self._after_ms:
            return False
        up, over = view.inventory.up, []
        for name, reservation in self._of.items():
            record = view.jobs.get(name)
            if record is None or not record.waits or not reservation.servers <= set(up):
                over.append(name)
        for name in over:
            del self._of[name]
        for record in self._waiting(view):
            servers = _least_blocked(record, view, self._taken())
            if servers:
                self._of[record.name] = _Reservation(servers, view.tier(record))
        return bool(over)

    def closed_to(self, record: JobRecord, view: View) -> frozenset[str]:
        """Servers that a job has to keep away from: their gang could not stop it."""
        tier = view.tier(record)
        stoppable = record.spec.preemptible
        return frozenset().union(
            *(
                one.servers
                for name, one in self._of.items()
                if name != record.name and (tier == one.tier or (tier > one.tier and not stoppable))
            )
        )

    def _waiting(self, view: View) -> list[JobRecord]:
        found = [
            record
            for record in view.jobs.values()
            if record.waits
            and record.spec.tier <= self._least_tier
            and record.name not in self._of
            and view.now_ms - record.since_ms > self._after_ms
        ]
        return sorted(found, key=lambda record: (record.spec.tier, record.since_ms, record.number))

    def _taken(self) -> frozenset[str]:
        return frozenset().union(*(one.servers for one in self._of.values()))


def _least_blocked(record: JobRecord, view: View, taken: frozenset[str]) -> frozenset[str]:
    """As many whole servers of one cluster (of one rack, for a job that has to be in one) as a gang has tasks, on which
    the least runs that it may not stop; empty if it needs no whole servers, or no cluster has so many."""
    spec, tier, regions = record.spec, view.tier(record), view.admissible(record)
    blocked: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for name in view.inventory.up:
        server = view.inventory.server_of[name]
        need = spec.gpu_types.get(server.gpu_type) if spec.gpu_types else spec.mgpu
        most = server.gpus * WHOLE
        if need is None or need < most or need > most or server.region not in regions or name in taken:
            continue
        group = (server.cluster, server.rack) if spec.within else (server.cluster,)
        blocked.setdefault(group, []).append((most - view.reclaimable.most(name, tier), name))
    best: tuple[int, frozenset[str]] | None = None
    for _, servers in sorted(blocked.items()):
        chosen = sorted(servers)[: spec.tasks]
        total = sum(mgpu for mgpu, _ in chosen)
        if len(chosen) == spec.tasks and (best is None or total < best[0]):
            best = total, frozenset(name for _, name in chosen)
    return frozenset() if best is None else best[1]
