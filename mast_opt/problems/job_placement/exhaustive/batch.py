"""Batch admission of a job queue (exhaustive): in order, each job is placed for good, or found to fit nowhere."""

from collections.abc import Callable, Iterable

import numpy as np

from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, place_priced
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.limits import DEFAULT_LIMITS, SearchLimits
from mast_opt.problems.job_placement.engine.negative_cache import NegativeCache
from mast_opt.problems.job_placement.engine.part_search import PartsBid, PartSearch
from mast_opt.problems.job_placement.engine.server_selection import TIGHT
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState
from mast_opt.problems.job_placement.units import Bools
from mast_opt.problems.search.interface import SearchMonitor

Place = Callable[[BatchState, int, Request], BestBid | None]
"""The offer for a job or part of the problem in the groups ``batch.all_groups``; None if it is refused."""


def exhaustively(limits: SearchLimits = DEFAULT_LIMITS, style: int = TIGHT) -> Place:
    """Place in a batch by the best bid of all groups. ``style``: see ``server_selection``."""

    def place(batch: BatchState, j: int, job: Request) -> BestBid | None:
        return place_priced(batch.state, job, batch.all_groups, style, batch.price(j), limits)

    return place


def admit_in_order(
    batch: BatchState, order: Iterable[int], watch: SearchMonitor, how: Place, remember: bool = True
) -> int:
    """Place the jobs one after another until all are seen or the watch says stop; all parts of a job with its first.

    Args:
        remember: skip what is like a job that fitted nowhere; only right for a ``how`` that tries everything.

    Returns:
        How many were placed with victims that are not proven to be the cheapest.
    """
    unproven, failures = 0, NegativeCache()
    is_part = np.zeros(len(batch.problem.jobs), np.bool_)
    is_part[batch.problem.parts.job] = True
    for j in order:
        if watch.limit() is not None:
            break
        if is_part[j]:
            found = place_parts(batch, int(j), how) if batch.problem.counts_once[j] else None
            if found is not None:
                admit_parts(batch, int(j), found)
                unproven += sum(not offer.proven for _, offer in found.offers)
            continue
        job = batch.request(int(j))
        if remember and failures.known(job):
            continue
        offer = how(batch, int(j), job)
        if offer is None:
            failures.remember(job)
        else:
            batch.admit(int(j), job, offer.placed, offer.victims)
            unproven += not offer.proven
    return unproven


def admit_parts(batch: BatchState, first: int, found: PartsBid, limit: int = 0, cost: int = 0) -> list[int]:
    """Admit all parts of a job as a bid says; returns the pending jobs that wait again for them.

    Args:
        first: the first part of the job.
        limit, cost: what stopping a part would take, see ``state``.
    """
    ejected = batch.evict(found.victims)
    for part, offer in found.offers:
        j = first + part
        batch.admit(j, batch.request(j), offer.placed, NOBODY, limit, cost)
    return ejected


def place_parts(batch: BatchState, first: int, how: Place) -> PartsBid | None:
    """The best of all places for all parts of a job, see ``PartSearch``; None if none takes them. The batch is as
    before.

    Args:
        first: the first part of the job; the others stand behind it.
    """
    p = batch.problem
    whole = int(p.multipart_jobs.within[p.parts.whole[p.parts.job == first][0]])
    requests = [batch.request(j) for j in batch.parts_of(first)]
    requests = [request._replace(within=min(request.within, whole)) for request in requests]

    def offer(part: int, groups: Bools) -> BestBid | None:
        every, batch.all_groups = batch.all_groups, groups
        try:
            return how(batch, first + part, requests[part])
        finally:
            batch.all_groups = every

    return PartSearch(batch.state, batch.layout, requests, whole, batch.price(first), offer, True).best()
