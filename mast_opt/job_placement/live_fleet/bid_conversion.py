"""Between offers of the search, in positions, and bids, in names; and what quotas make of a job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.job_placement.engine.best_bid import Offer
from mast_opt.job_placement.engine.free_capacity_search import load_of
from mast_opt.job_placement.engine.state import J_COST, VICTIM
from mast_opt.job_placement.live_fleet.inventory import MILLI, Books
from mast_opt.job_placement.live_fleet.types import Bid, Job, Share
from mast_opt.job_placement.units import LEVELS


@dataclass(frozen=True)
class Limits:
    """Quotas of tenants, in milli-GPUs."""

    total: dict[str, int]
    """Tenant → limit for all types together."""
    typed: dict[str, dict[str, int]]
    """Tenant → GPU type → limit for that type."""


def over_quota(job: Job, books: Books, quotas: Limits) -> bool:
    """Whether the job would take its tenant over its quotas on every type of the fleet that it accepts."""
    total, typed = quotas.total.get(job.tenant), quotas.typed.get(job.tenant)
    if total is None and typed is None:
        return False
    needs = dict.fromkeys(books.types, job.mgpu) if job.gpu_types is None else job.gpu_types
    asked = {kind: job.tasks * mgpu for kind, mgpu in needs.items() if kind in books.types}
    return bool(asked) and not any(
        (total is None or books.used_by(job.tenant) + mgpu <= total)
        and (not typed or kind not in typed or books.used_by(job.tenant, kind) + mgpu <= typed[kind])
        for kind, mgpu in asked.items()
    )


def bid_of(
    offer: Offer, job: Job, over: bool, price: NDArray[np.float64] | None, books: Books, version: int, fleet: str
) -> Bid:
    """An offer in names. ``over``: the job is over its tenant's quota. ``price`` [G]: see ``price_of``."""
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
        price=0.0 if price is None else float(price[offer.group]),
        load=load_of(books.state, region),
        proven=offer.proven,
        version=version,
        fleet=fleet,
    )
