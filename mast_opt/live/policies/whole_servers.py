"""Whole servers for gangs (policy ``mast``): jobs that need a part of a server are packed together.

A gang whose tasks fill servers waits until servers are wholly free, or held by what it may stop alone. Jobs that it may
not stop keep it waiting, however small they are, when they are spread over all servers.
"""

from __future__ import annotations

from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.types import Server
from mast_opt.problems.job_placement.units import WHOLE

PACKINGS = (NEVER, SAME_TIER, ALWAYS) = ("never", "same-tier", "always")
"""Rules for when a job keeps away from whole servers if there is room elsewhere: never; if that stops no more important
work than it would otherwise; always."""


def packed_bid(
    record: JobRecord, regions: tuple[str, ...] | None, packing: str, snapshot: Snapshot, actions: Actions
) -> Bid | None:
    """The best bid for a job; None if it has none. If it breaks a whole server, one that is free or held by what the
    job may stop, the best one that breaks none takes its place as ``packing`` says."""
    bid = _bid(actions, record, regions, frozenset())
    if bid is None or packing == NEVER:
        return bid
    task_mgpu, tier, server_of = (
        record.asked_mgpu // record.spec.tasks,
        snapshot.tier(record),
        snapshot.inventory.server_of,
    )

    def breaks(name: str) -> bool:
        return _breaks(server_of[name], task_mgpu, tier, snapshot)

    if not any(breaks(share.server) for share in bid.shares):
        return bid
    packed = _bid(actions, record, regions, frozenset(filter(breaks, snapshot.inventory.up)))
    if packed is not None and (packing == ALWAYS or packed.key[0] <= bid.key[0]):
        return packed
    return _bid(actions, record, regions, frozenset())  # the first bid is stale if costs of victims have been refreshed


def _bid(actions: Actions, record: JobRecord, regions: tuple[str, ...] | None, avoid: frozenset[str]) -> Bid | None:
    found = actions.place(record.name, regions, avoid=avoid)
    return found if isinstance(found, Bid) else None


def _breaks(server: Server, task_mgpu: int, tier: int, snapshot: Snapshot) -> bool:
    """Whether a task leaves a part of a server of which a job of this tier could have all."""
    most = server.gpus * WHOLE
    return task_mgpu < most and snapshot.reclaimable.most(server.name, tier) == most
