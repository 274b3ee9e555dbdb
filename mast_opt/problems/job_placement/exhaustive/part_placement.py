"""Placement of a job of several parts in a batch (exhaustive): all parts together, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.part_search import PartsBid, PartSearch
from mast_opt.problems.job_placement.exhaustive.batch_state import BatchState
from mast_opt.problems.job_placement.units import Bools

Place = Callable[[BatchState, int, Request], BestBid | None]
"""The offer for a job or part of the problem in the groups ``batch.all_groups``; None if it is refused."""


@dataclass(frozen=True, eq=False)
class PartPlacement:
    """The bid for all parts of a job."""

    first: int
    """The first part of the job."""
    bid: PartsBid

    @property
    def unproven(self) -> int:
        """Parts with victims that are not proven to be the cheapest."""
        return sum(not offer.proven for _, offer in self.bid.offers)

    def carry_out(self, batch: BatchState, limit: int = 0, cost: int = 0) -> list[int]:
        """Admit the parts; returns the pending jobs that wait again for them.

        Args:
            limit, cost: what stopping a part would take, see ``state``.
        """
        ejected = batch.evict(self.bid.victims)
        for part, offer in self.bid.offers:
            j = self.first + part
            batch.admit(j, batch.request(j), offer.placed, NOBODY, limit, cost)
        return ejected


def place_parts(batch: BatchState, first: int, how: Place) -> PartPlacement | None:
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

    found = PartSearch(batch.state, batch.layout, requests, whole, batch.price(first), offer, True).best()
    return None if found is None else PartPlacement(first, found)
