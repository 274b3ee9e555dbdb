"""Placement of a job of several parts in a batch (exhaustive): all parts together, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mast_opt.job_placement.engine.best_bid import BestBid
from mast_opt.job_placement.engine.feasibility import Request
from mast_opt.job_placement.engine.part_search import PartsBid, PartSearch
from mast_opt.job_placement.exhaustive.batch_state import BatchState
from mast_opt.job_placement.units import Bools

Place = Callable[[BatchState, int, Request], BestBid | None]
"""The offer for a job or part of the problem in the groups ``batch.all_groups``; None if it is refused."""


@dataclass(frozen=True, eq=False)
class PartPlacement:
    """The bid for all parts of a job."""

    first: int
    """The first part of the job."""
    bid: PartsBid

    def carry_out(self, batch: BatchState) -> int:
        """Admit the parts; returns how many have victims that are not proven to be the cheapest."""
        for part, offer in self.bid.offers:
            j = self.first + part
            batch.admit(j, batch.request(j), offer.placed, offer.victims)
        return sum(not offer.proven for _, offer in self.bid.offers)


def place_parts(batch: BatchState, first: int, how: Place) -> PartPlacement | None:
    """The best of all places for all parts of a job, see ``PartSearch``; None if none takes them. The batch is as
    before.

    Args:
        first: the first part of the job; the others stand behind it.
    """
    p = batch.problem
    parts = np.flatnonzero(p.first_part == first)
    whole = int(p.multipart_jobs.within[p.parts.whole[p.parts.job == first][0]])
    requests = [batch.request(j) for j in parts.tolist()]
    requests = [request._replace(within=min(request.within, whole)) for request in requests]

    def offer(part: int, groups: Bools) -> BestBid | None:
        every, batch.all_groups = batch.all_groups, groups
        try:
            return how(batch, first + part, requests[part])
        finally:
            batch.all_groups = every

    found = PartSearch(batch.state, batch.layout, requests, whole, batch.price(first), offer, True).best()
    return None if found is None else PartPlacement(first, found)
