"""Bids of the live fleet (job placement) in names, those for jobs of several parts, and why there is none."""

from collections.abc import Sequence

import numpy as np

from mast_opt.core.ranks import Right
from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, Prices, place_free, place_priced
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.part_search import PartsBid, PartSearch
from mast_opt.problems.job_placement.engine.server_selection import Placement
from mast_opt.problems.job_placement.engine.state import VICTIM
from mast_opt.problems.job_placement.live_fleet.answers import Bid, ClusterReport, PartPlace
from mast_opt.problems.job_placement.live_fleet.booking import level_of, placement_of, shares_by_part
from mast_opt.problems.job_placement.live_fleet.diagnosis import Coded, explain, why_not
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.running_job import Holding
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Share, gangs_of
from mast_opt.problems.job_placement.units import CLUSTER, LEVELS, WHOLE_JOB_LEVELS, Bools, Ints


def best_bid_for_parts(
    books: FleetInventory,
    job: Job,
    requests: Sequence[Request],
    price: Prices,
    style: int,
    fresh: bool,
    *,
    preempt: bool,
) -> PartsBid | None:
    """The best place for all parts that the search finds; None if it finds none. ``preempt``: whether it may have
    victims."""
    books.make_room(len(requests), sum(min(request.tasks, len(books.servers)) for request in requests))

    def offer(part: int, groups: Bools) -> BestBid | None:
        own = price if part == 0 else None
        if not preempt:
            return place_free(books.state, requests[part], groups, style, own)
        return place_priced(books.state, requests[part], groups, style, own, books.limits)

    within = WHOLE_JOB_LEVELS.index(job.within)
    return PartSearch(books.state, books.layout, requests, within, price, offer, fresh, books.log).best()


def offers_on(books: FleetInventory, job: Job, requests: Sequence[Request], shares: tuple[Share, ...]) -> list[BestBid]:
    """Offers, part by part, of these shares. Raises UsageError where the job may not have them."""
    owner, found = f"the bid for {job.name}", list[BestBid]()
    for request, own in zip(requests, shares_by_part(owner, job, shares)):
        placed = placement_of(owner, own, request, books)
        group, level = books.layout.group.item(placed.server.item(0)), level_of(placed.server, books.layout)
        found.append(BestBid(group, level, placed, NOBODY, None, False))
    return found


def bid_of(
    job: Job,
    right: Right,
    offers: Sequence[BestBid],
    victims: Ints,
    price: Prices,
    books: FleetInventory,
    version: int,
    fleet: str,
    stops: Sequence[str] = (),
) -> Bid:
    """A bid of the live fleet in names.

    Args:
        right: by which the job would hold it.
        offers: for the job, or for each of its parts.
        victims: of all offers; places in the state.
        price: [G] see ``price_of``.
        stops: further victims.
    """
    layout, first = books.layout, offers[0]
    group = int(first.group)
    region = layout.group_region.item(group)
    level, threshold, places, parts = LEVELS[first.level], first.threshold, victims.tolist(), tuple[PartPlace, ...]()
    if job.parts:
        level = WHOLE_JOB_LEVELS[level_of(np.concatenate([offer.placed.server for offer in offers]), layout)]
        parts = tuple([_part_place(books, *one) for one in zip(job.parts, offers)])
    if job.parts or stops:
        levels = [offer.threshold for offer in offers if offer.threshold is not None]
        threshold = min([*levels, *[books.current(name).tier for name in stops]], default=None)
        places += [books.place[name] for name in stops]
    cost = sum([books.state.job.item(col.J_COST, at) // VICTIM for at in places])
    return Bid(
        job=job,
        tier=job.tier if right is Right.WITHIN else books.tiers[-1],
        over_quota=right is not Right.WITHIN,
        region=books.region_names[region],
        cluster=books.cluster_names[layout.group_cluster.item(group)],
        gpu_type=books.type_names[layout.group_type.item(group)],
        shares=shares_in(books, job, offers),
        level=level,
        victims=books.names_of(places),
        victim_tier=None if threshold is None else books.tier_of(threshold),
        victim_rank=None if threshold is None else books.importance_of(threshold),
        gpu_hours_lost=cost / MILLI,
        price=0.0 if price is None else float(price[first.group]),
        load=books.load_of(region),
        proven=len(offers) == 1 and first.proven,
        version=version,
        fleet=fleet,
        parts=parts,
    )


def _part_place(books: FleetInventory, part: Part, offer: BestBid) -> PartPlace:
    """Place of a part of a job in names."""
    cluster, kind = books.layout.group_cluster.item(offer.group), books.layout.group_type.item(offer.group)
    return PartPlace(part.name, books.cluster_names[cluster], books.type_names[kind], LEVELS[offer.level])


def shares_in(books: FleetInventory, job: Job, offers: Sequence[BestBid]) -> tuple[Share, ...]:
    """Servers and GPUs of a job, part by part, in names."""
    names = [part.name for part in job.parts] or [""]
    return tuple(
        [
            Share(books.server_at(at), tasks, _used_devices(device), name)
            for name, offer in zip(names, offers)
            for at, tasks, device in zip(*[column.tolist() for column in offer.placed[:3]])
        ]
    )


def _used_devices(device: list[int]) -> dict[int, int]:
    """GPU → milli-GPUs, of those of which something is taken."""
    return dict(enumerate(device)) if all(device) else {d: mgpu for d, mgpu in enumerate(device) if mgpu}


def holdings_in(books: FleetInventory, placed: Sequence[Placement], requests: Sequence[Request]) -> tuple[Holding, ...]:
    """Holdings of each part of a job on each of its servers."""
    return tuple(
        Holding(books.server_at(at), tasks * request.cpu, tasks * request.memory, device)
        for request, one in zip(requests, placed)
        for at, tasks, device in zip(one.server.tolist(), one.tasks.tolist(), one.device)
    )


def explain_parts(books: FleetInventory, job: Job, requests: Sequence[Request]) -> tuple[ClusterReport, ...]:
    """Reports for each part and cluster: what ``explain`` says of the part alone, or that another part fits nowhere
    near."""
    layout = books.layout
    where = layout.group_cluster if WHOLE_JOB_LEVELS.index(job.within) <= CLUSTER else layout.group_region
    place_of = dict(zip((books.cluster_names[c] for c in layout.group_cluster.tolist()), where.tolist()))
    alone = [explain(books, *gang) for gang in zip(gangs_of(job), requests)]
    fits = [{place_of[report.cluster] for report in reports if report.fits} for reports in alone]
    found = []
    for part, reports in zip(job.parts, alone):
        for report in reports:
            others = [other.name for at, other in enumerate(job.parts) if place_of[report.cluster] not in fits[at]]
            fits_here, words, code = report.fits, report.words, report.code
            if report.fits and others:
                near = "region" if where is layout.group_region else "cluster"
                words = f"it fits, but {others[0]}, another part of the job, fits nowhere in the {near}"
                fits_here, code = False, "together"
            found.append(ClusterReport(report.cluster, fits_here, words, code, part.name))
    return tuple(found)


def why_no_part(
    books: FleetInventory, job: Job, requests: Sequence[Request], alone: Sequence[bool]
) -> tuple[Coded, str]:
    """One sentence for a job of several parts that fits nowhere, its code, and the part that it is about.

    Args:
        alone: whether each part fits by itself.
    """
    for fits, gang, request, part in zip(alone, gangs_of(job), requests, job.parts):
        if not fits:
            words, code = why_not(books, gang, request)
            return (f"part {part.name}: {words}", code), part.name
    words = f"each part fits somewhere, but no {job.within} was found for all of them; see explain"
    return (words, "together"), ""
