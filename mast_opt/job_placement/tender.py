"""Between offers of the search, in positions, and bids, in names; and what quotas make of a job."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mast_opt.job_placement.books import MILLI, Books
from mast_opt.job_placement.heuristics.pack import Placed
from mast_opt.job_placement.heuristics.place import Offer
from mast_opt.job_placement.heuristics.search import load_of
from mast_opt.job_placement.heuristics.state import J_COST, VICTIM
from mast_opt.job_placement.offers import Bid, Job, Share
from mast_opt.job_placement.units import LEVELS


def over_quota(job: Job, books: Books, quotas: Mapping[str, int]) -> bool:
    """Whether the job would take its tenant over the quota, on whatever type it needs the fewest GPUs."""
    quota = quotas.get(job.tenant)
    if quota is None:
        return False
    needs = [job.mgpu] if job.gpu_types is None else list(job.gpu_types.values())
    return books.used_by(job.tenant) + job.tasks * min(needs, default=0) > quota


def bid_of(offer: Offer, job: Job, over: bool, books: Books, version: int, fleet: str) -> Bid:
    """An offer in names. ``over``: the job is over its tenant's quota."""
    layout = books.layout
    region = int(layout.group_region[offer.group])
    cost = sum(int(books.state.job[J_COST, at]) // VICTIM for at in offer.victims.tolist())
    rows = zip(offer.placed.server.tolist(), offer.placed.tasks.tolist(), offer.placed.device.tolist())
    return Bid(
        job=job,
        tier=books.tiers[-1] if over else job.tier,
        over_quota=over,
        region=books.region_names[region],
        cluster=books.cluster_names[int(layout.group_cluster[offer.group])],
        gpu_type=books.type_names[int(layout.group_type[offer.group])],
        shares=tuple(
            Share(books.server_at(at), tasks, {d: mgpu for d, mgpu in enumerate(device) if mgpu})
            for at, tasks, device in rows
        ),
        level=LEVELS[offer.level],
        victims=tuple(sorted(books.name[at] for at in offer.victims.tolist())),
        victim_tier=None if offer.threshold is None else books.tiers[offer.threshold],
        gpu_hours_lost=cost / MILLI,
        load=load_of(books.state, region),
        proven=offer.proven,
        version=version,
        fleet=fleet,
    )


def placed_of(bid: Bid, books: Books) -> Placed:
    """A bid in positions."""
    device = np.zeros((len(bid.shares), books.state.row_device.shape[1]), np.int32)
    for row, share in zip(device, bid.shares):
        for d, mgpu in share.gpus.items():
            row[d] = mgpu
    server = np.array([books.position[share.server] for share in bid.shares], np.int64)
    tasks = np.array([share.tasks for share in bid.shares], np.int64)
    return Placed(server, tasks, device, np.array([LEVELS.index(bid.level)]))
