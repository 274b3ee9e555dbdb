"""State of a live fleet (job placement): questions about it, rounds, trials, and snapshots to come back to."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mast_opt.core.arguments import a, a_text, checked
from mast_opt.core.errors import NotRunning, UsageError
from mast_opt.core.ledger import Right
from mast_opt.core.quotas import Quotas
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.negative_cache import NegativeCache
from mast_opt.problems.job_placement.engine.server_selection import LEAST_LOSS, TIGHT, Placement
from mast_opt.problems.job_placement.engine.state import R_MGPU, R_USED
from mast_opt.problems.job_placement.live_fleet.adoption import merged
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.bid_versions import BidVersions
from mast_opt.problems.job_placement.live_fleet.booking import booking_of
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.multipart_bid import holdings_in
from mast_opt.problems.job_placement.live_fleet.running_job import Running
from mast_opt.problems.job_placement.live_fleet.running_jobs import Option
from mast_opt.problems.job_placement.live_fleet.snapshot_format import decoded, difference, encoded
from mast_opt.problems.job_placement.live_fleet.types import Job, Share


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a fleet at some time; opaque."""

    _books: FleetInventory
    _fleet: object


class FleetState:
    """State of a fleet, under one lock."""

    def _begin(self, books: FleetInventory) -> None:
        self._books = books
        self._failures = NegativeCache(self._freed)
        self._lock = threading.RLock()
        self._versions = BidVersions()
        self._origin = object()
        """Snapshots of this fleet have it too."""
        self._in_round = False
        self._asked: tuple[Job, int, tuple[Option, ...]] | None = None
        self._offered: tuple[Bid | None, Sequence[Placement] | None] = None, None
        """The last bid of ``place``, and where it is in positions: it is often committed next."""

    @property
    def _style(self) -> int:
        return TIGHT if self._books.mix is None else LEAST_LOSS

    @contextmanager
    def round(self) -> Iterator[None]:
        """A pass over a queue: until it ends, what victims free serves only work that is more important than they.

        A victim that started in this round frees what it took for the same work as before, its own tier included, as
        if it had never started; a batch treats its jobs the same way. Outside a round, what is left over of a victim
        is free for all at once. A round is of the whole fleet: other threads may place and commit in it.

        Raises:
            UsageError: a round has not ended yet.
        """
        with self._lock:
            self._outside_round("a round begins")
            self._in_round = True
            self._books.begin_round()
        try:
            yield
        finally:
            with self._lock:
                self._in_round = False
                self._books.end_round()
                self._versions.all_changed()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """A time in which everything may be tried out: when it ends, the fleet is as it was before, with its mix of
        arrivals, quotas and replicas, and bids that were good before are good again.

        It costs what the operations in it cost, and again as much to undo them, whatever the size of the fleet; only a
        round, and changes that rebuild the layout (``add_servers``, ``remove_server``), cost as much as the fleet is
        large. Other threads wait until it ends. Trials may be nested. Bids that are made in a trial are stale
        afterwards.
        """
        with self._lock:
            before = self._books, self._failures, self._versions, self._in_round
            self._failures = NegativeCache(self._freed)
            self._versions = self._versions.trial()
            try:
                with self._books.undoing():
                    yield
            finally:
                self._books, self._failures, self._versions, self._in_round = before
                self._asked = None

    def snapshot(self) -> Snapshot:
        """The state of the fleet, to come back to with ``restore``."""
        with self._lock:
            self._outside_round("a snapshot is taken")
            return Snapshot(self._books.copy(), self._origin)

    def snapshot_bytes(self) -> bytes:
        """The state of the fleet, to be stored: servers with their capacities, running jobs and what they hold, quotas,
        replicas, the mix of arrivals with its samples, and the orders that decide between equal victims.

        ``restore`` and ``Fleet.from_bytes`` take it. The same calls give the same bids afterwards as without. It begins
        with the version of its format and a digest, and holds numbers and texts only, no code.
        """
        snapshot = self.snapshot()
        return encoded(snapshot._books)

    def restore(self, snapshot: Snapshot | bytes, *, other_fleet: bool = False) -> None:
        """Go back to a snapshot, quotas included; bids made before are stale.

        Args:
            other_fleet: also accept the snapshot of a fleet with other tiers, rules or servers, which this one becomes.
                Servers are the same if they have the same names, places and GPU types; their capacities are part of the
                state.

        Raises:
            UsageError: the snapshot is another fleet's, of a version that this one cannot read, or damaged; nothing
                has changed then.
        """
        if isinstance(snapshot, (bytes, bytearray, memoryview)):
            snapshot = Snapshot(decoded(bytes(snapshot)), None)
        if not isinstance(snapshot, Snapshot):
            raise UsageError(f"restore takes a snapshot, not a {type(snapshot).__name__}")
        with self._lock:
            self._outside_round("a snapshot is restored")
            if snapshot._fleet is not self._origin and not other_fleet:
                words = difference(self._books, snapshot._books)
                if words:
                    raise UsageError(f"the snapshot is another fleet's: {words}; other_fleet=True takes it anyway")
            self._books = snapshot._books.copy()
            self._failures = NegativeCache(self._freed)
            self._versions.all_changed()

    def running(self) -> tuple[str, ...]:
        """The jobs that run, in the order in which they started."""
        with self._lock:
            return self._books.names()

    @checked(name=a_text)
    def shares(self, name: str) -> tuple[Share, ...]:
        """Shares of a running job on its servers. Raises UsageError if no job of that name runs."""
        with self._lock:
            return self._shares_of(name)

    @checked(name=a_text)
    def job(self, name: str) -> Job:
        """A running job. Raises UsageError if no job of that name runs."""
        with self._lock:
            return self._known(name).job

    @checked(server=a_text)
    def jobs_on(self, server: str) -> tuple[str, ...]:
        """The jobs that hold something on a server, in the order in which they started. Raises UsageError if the fleet
        has no such server."""
        with self._lock:
            return self._jobs_on(server)

    def over_booked(self) -> tuple[str, ...]:
        """The servers on which more runs than they have (see ``Fleet.adopt``), by name. They take no work."""
        with self._lock:
            return tuple(sorted(self._books.over_booked))

    def gpus(self) -> tuple[int, int]:
        """Milli-GPUs in use, and all there are."""
        with self._lock:
            state = self._books.state
            return int(state.region[R_USED].sum()), int(state.region[R_MGPU].sum())

    def _known(self, name: str) -> Running:
        self._shares_of(name)
        return self._books.running[name]

    def _shares_of(self, name: str) -> tuple[Share, ...]:
        shares = self._books.shares_of(name)
        if shares is None:
            raise NotRunning(name)
        return shares

    def _jobs_on(self, server: str) -> tuple[str, ...]:
        if server not in self._books.servers:
            raise UsageError(f"the fleet has no server called {server}")
        return self._books.jobs_on(server)

    def _outside_round(self, what: str) -> None:
        if self._in_round:
            raise UsageError(f"{what} only between rounds; this one has not ended")

    def _options(self, job: Job) -> tuple[Option, ...]:
        """Options of a job, see ``FleetInventory.options``. The last answer is kept: a bid is often committed next."""
        if self._asked is not None and self._asked[0] is job and self._asked[1] == self._versions.now:
            return self._asked[2]
        self._tier_of(job)
        if job.name in self._books.place:
            raise UsageError(f"a job called {job.name} runs already; release it first, or choose another name")
        options = self._books.options(job)
        self._asked = job, self._versions.now, options
        return options

    def _changed(self, servers: Iterable[str]) -> None:
        """Count a change of these servers, and of those of jobs whose right has changed with it."""
        self._versions.servers_changed((*servers, *self._books.take_touched()))

    @property
    def quotas(self) -> Quotas:
        """The quotas of tenants, to be changed by ``set_quota`` only."""
        return self._books.ledger.quotas

    @checked(name=a_text)
    def is_over_quota(self, name: str) -> bool:
        """Whether a running job is beyond the quotas of its tenant now."""
        self._shares_of(name)
        return self._books.is_over_quota(name)

    @checked(job=a(Job))
    def importance_of(self, job: Job) -> int:
        """The tier of a waiting job, or a number beyond all tiers if it would take its tenant over the quotas."""
        return self._books.importance_of(self._books.level_of(job, self._books.best_right(job)))

    def take_restood(self) -> tuple[str, ...]:
        """The running jobs that have come within or beyond their tenant's quotas since the last call."""
        if not self._books.restood:
            return ()
        with self._lock:
            names, self._books.restood = self._books.restood, {}
            return tuple(names)

    def _freed(self, request: Request) -> int:
        """Number of times that capacity has appeared that the request could use."""
        return int(request.open @ self._books.freed @ (request.mgpu >= 0))

    def _tier_of(self, job: Job) -> int:
        if job.tier not in self._books.tiers:
            raise UsageError(f"job {job.name} has tier {job.tier}; the fleet's tiers are {self._books.tiers}")
        return self._books.tiers.index(job.tier)

    def _commit(self, bid: Bid, placed: Sequence[Placement] | None = None) -> tuple[str, ...]:
        """``placed``: the bid in positions, by part; None where it comes from outside and has to be checked."""
        books, claimed = self._books, Right.BORROWED if bid.over_quota else Right.WITHIN
        option = next((one for one in self._options(bid.job) if one.right is claimed), None)
        other_tier = UsageError(f"the bid for {bid.job.name} does not have the job's tier; ask for a new bid")
        if option is None or bid.tier != (books.tiers[-1] if bid.over_quota else bid.job.tier):
            raise other_tier
        requests = option.requests
        if placed is None:
            placed = booking_of(bid, requests, books)
        running = books.starting(bid.job, bid.shares)
        if running.over_quota != bid.over_quota:
            raise other_tier
        touched = [share.server for share in bid.shares]
        touched += [share.server for name in bid.victims for share in self._shares_of(name)]
        if bid.job.parts:
            held = merged(holdings_in(self._books, placed, requests))
            self._books.start_parts(running, held, bid.victims, self._in_round)
        else:
            self._books.start(running, requests[0], placed[0], bid.victims, self._in_round)
        self._changed(touched)
        return bid.victims
