"""Placement in a live fleet (job placement): bids for a job or why there is none, and what they start."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arguments import a, a_flag, checked, texts
from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.core.ledger import Right
from mast_opt.problems.job_placement.engine.best_bid import BestBid
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.part_search import close_servers
from mast_opt.problems.job_placement.engine.priced_bid import place_free, place_priced
from mast_opt.problems.job_placement.engine.server_selection import Placement
from mast_opt.problems.job_placement.engine.state import S_BLOCKED
from mast_opt.problems.job_placement.live_fleet.answers import Bid, ClusterReport, Refused
from mast_opt.problems.job_placement.live_fleet.booking import are_named
from mast_opt.problems.job_placement.live_fleet.conversion import bid_of
from mast_opt.problems.job_placement.live_fleet.diagnosis import Coded, explain, why_not
from mast_opt.problems.job_placement.live_fleet.moving_fleet import MovingFleet
from mast_opt.problems.job_placement.live_fleet.multipart_bid import (
    best_bid_for_parts,
    explain_parts,
    multipart_bid,
    why_no_part,
)
from mast_opt.problems.job_placement.live_fleet.running_jobs import Option
from mast_opt.problems.job_placement.live_fleet.types import Job
from mast_opt.problems.job_placement.units import Bools

BORROWS_TOO_MUCH = "its tenant may not borrow so much beyond its quota"


class PlacingFleet(MovingFleet):
    """A fleet that is asked where jobs should go."""

    @checked(job=a(Job), avoid=texts, preempt=a_flag)
    def place(
        self, job: Job, *, regions: Collection[str] | None = None, avoid: Collection[str] = (), preempt: bool = True
    ) -> Bid | Refused:
        """The best bid over all clusters of all regions that hold the job's data, or why there is none.

        Args:
            regions: the only ones that are asked; None for all.
            avoid: servers that are not asked. The call costs more the more there are.
            preempt: whether the bid may have victims. Without, a job that does not fit is refused sooner.

        Raises:
            UsageError: the job's tier is none of the fleet's, a job of that name runs already, or the fleet has no such
                region or server.
        """
        with self._lock, self._closed(avoid):
            answer, placed = self._answer(job, regions, some=bool(avoid) or not preempt, preempt=preempt)
            if isinstance(answer, Bid):
                self._offered = answer, placed
            return answer

    @contextmanager
    def _closed(self, servers: Collection[str]) -> Iterator[None]:
        """A time in which these servers take no work."""
        if not servers:
            yield
            return
        books = self._books
        for server in servers:
            if server not in books.position:
                raise UsageError(f"avoid names server {server}; the fleet has none of that name")
        places = np.array([books.position[server] for server in servers], np.int64)
        places = places[books.state.server[S_BLOCKED, places] == 0]
        close_servers(books.state, places, 1)
        try:
            yield
        finally:
            close_servers(books.state, places, 0)

    def _answer(
        self, job: Job, regions: Collection[str] | None, *, some: bool = False, preempt: bool = True
    ) -> tuple[Bid | Refused, Sequence[Placement] | None]:
        """Answer of ``place``, and the bid in positions; None for one that has to be checked.

        Args:
            some: not every place is asked, so that a refusal says nothing about the next call.
        """
        options = self._options(job)
        open_to = None if regions is None else self._books.regions_in(regions)
        best: tuple[Bid | Refused, Sequence[Placement] | None] = Refused(job, BORROWS_TOO_MUCH, code="quota"), None
        for number, option in enumerate(options):
            found = self._answer_by(option, job, open_to, some=some, preempt=preempt)
            if isinstance(found[0], Bid) and not found[0].victims:  # nobody stops for work that could start without
                return found
            if number == 0 or (isinstance(found[0], Bid) and isinstance(best[0], Refused)):
                best = found
        return best

    def _answer_by(
        self, option: Option, job: Job, open_to: Bools | None, *, some: bool, preempt: bool
    ) -> tuple[Bid | Refused, Sequence[Placement] | None]:
        """The answer by one of the rights by which a job could start. ``open_to`` [R]: the only regions asked."""
        requests = option.requests
        if open_to is not None:
            asked = requests[0].open & open_to
            if requests[0].open.any() and not asked.any():
                return Refused(job, "none of the regions that are asked holds all of its data", code="regions"), None
            requests = tuple(request._replace(open=asked) for request in requests)
        if job.parts:
            return self._place_parts(job, option.right, requests, some=some, preempt=preempt), None
        (request,) = requests
        if self._failures.known(request):
            return Refused(job, *why_not(self._books, job, request), remembered=True), None
        price = self._books.price_of(job)
        offer = self._search(request, price, preempt=preempt)
        if offer is None:
            if not some:
                self._failures.remember(request)
            return Refused(job, *_without_stops(why_not(self._books, job, request), preempt=preempt)), None
        bid = bid_of(offer, job, option.right, price, self._books, self._versions.now, self._versions.name)
        return bid, (offer.placed,)

    @checked(job=a(Job))
    def place_and_commit(self, job: Job, *, regions: Collection[str] | None = None) -> Bid | Refused:
        """Place a job like ``place``, and commit the bid before another thread can change anything. Its ``victims``
        have to be stopped."""
        with self._lock:
            answer, placed = self._answer(job, regions)
            if isinstance(answer, Bid):
                self._commit(answer, placed)
            return answer

    @checked(job=a(Job))
    def bids(self, job: Job) -> tuple[Bid, ...]:
        """The best bid of every region that has one: first the one that ``place`` gives, then the others by
        ``Bid.key``, in which the loss of value does not count."""
        with self._lock:
            found, options = list[Bid](), self._options(job)
            for region in np.flatnonzero(options[0].requests[0].open if options else ()).tolist():
                only = np.zeros(len(self._books.regions), np.bool_)
                only[region] = True
                here = [bid for option in options if (bid := self._bid_by(option, job, only)) is not None]
                found += [next((bid for bid in here if not bid.victims), here[0])] if here else []
            if len(found) > 1:
                best, _ = self._answer(job, None)
                found.sort(key=lambda bid: (bid != best, bid.key))
            return tuple(found)

    def commit(self, bid: Bid) -> tuple[str, ...]:
        """Start the bid's job; returns the victims, which no longer hold anything and have to be stopped.

        Raises:
            StaleBid: something that the bid touches has changed since it was made.
            UsageError: another fleet made the bid, or it was changed and does not fit the fleet.
        """
        if not isinstance(bid, Bid):
            raise UsageError(f"commit takes a Bid of place or bids, not a {type(bid).__name__}")
        a(Job)("job of the bid", bid.job)
        with self._lock:
            self._versions.check_maker(bid)
            if bid.version == self._versions.now:
                last, placed = self._offered
                return self._commit(bid, placed if bid is last else None)
            if not are_named(bid) or self._versions.is_stale(bid, self._books.running):
                raise StaleBid(f"the bid for {bid.job.name} is for an older state of the fleet; ask for a new one")
            try:
                return self._commit(bid)
            except UsageError as error:
                raise StaleBid(str(error)) from error

    @checked(job=a(Job))
    def explain(self, job: Job) -> tuple[ClusterReport, ...]:
        """Explain, for each cluster, the first constraint that rules a job out, or what admitting it there takes."""
        with self._lock:
            books = self._books
            reports = [
                explain_parts(books, job, option.requests) if job.parts else explain(books, job, option.requests[0])
                for option in self._options(job)
            ]
            if not reports:
                return tuple(ClusterReport(name, False, BORROWS_TOO_MUCH, "quota") for name in books.cluster_names)
            return tuple(
                min(same, key=lambda one: (not one.fits, one.code == "victims", one.code == "gpu-type"))
                for same in zip(*reports, strict=True)
            )

    def _bid_by(self, option: Option, job: Job, only: Bools) -> Bid | None:
        """The best bid in the regions ``only`` [R] by one of the rights by which a job could start."""
        here = tuple(request._replace(open=only) for request in option.requests)
        if job.parts:
            return self._bid_for_parts(job, option.right, here)
        price = self._books.price_of(job)
        offer = self._search(here[0], price)
        if offer is None:
            return None
        return bid_of(offer, job, option.right, price, self._books, self._versions.now, self._versions.name)

    def _place_parts(
        self, job: Job, right: Right, requests: tuple[Request, ...], *, some: bool, preempt: bool
    ) -> Bid | Refused:
        alone = [not self._failures.known(request) for request in requests]
        remembered = not all(alone)
        if not remembered:
            bid = self._bid_for_parts(job, right, requests, preempt=preempt)
            if bid is not None:
                return bid
            for at, request in enumerate(requests):
                alone[at] = self._search(request, None, preempt=preempt) is not None
                if not alone[at] and not some:
                    self._failures.remember(request)
        reason, part = why_no_part(self._books, job, requests, alone)
        reason = _without_stops(reason, preempt=preempt or remembered)
        return Refused(job, *reason, remembered=remembered, part=part)

    def _bid_for_parts(
        self, job: Job, right: Right, requests: tuple[Request, ...], *, preempt: bool = True
    ) -> Bid | None:
        """The best bid that holds what it takes by this right, or by a better one."""
        books, versions = self._books, self._versions
        found = best_bid_for_parts(books, job, requests, self._style, self._in_round, preempt=preempt)
        if found is None:
            return None
        bid = multipart_bid(found, job, books, versions.now, versions.name)
        return bid if books.right_of(job, books.amounts(bid.shares)) <= right else None

    def _search(self, request: Request, price: NDArray[np.float64] | None, *, preempt: bool = True) -> BestBid | None:
        books = self._books
        if not preempt:
            return place_free(books.state, request, books.everywhere, self._style, price)
        return place_priced(books.state, request, books.everywhere, self._style, price, books.limits)


def _without_stops(reason: Coded, *, preempt: bool) -> Coded:
    """The reason of a search that may have stopped work, as that of one that may not."""
    if preempt or reason[1] != "in-use":
        return reason
    return "no cluster has room for it without stopping other work", "in-use"
