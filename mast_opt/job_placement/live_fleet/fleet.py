"""Live fleet (job placement): ask it where a job should go, report what happens, from any thread.

fleet = Fleet(servers, tiers=(0, 1, 2), replicas={"logs": {"eu-west"}})
answer = fleet.place(Job("train-1", tier=0, tasks=4, mgpu=8000, datasets=("logs",)))
if isinstance(answer, Bid):
    stop(fleet.commit(answer))      # the victims, to be checkpointed and stopped
…
fleet.release("train-1")
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np

from mast_opt.core.arguments import a, a_price, a_text, anything, checked, mapping_of, optional
from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.job_placement.engine.arrival_mix import ArrivalMix
from mast_opt.job_placement.engine.capacity_ledger import block, refresh_reclaim, settle
from mast_opt.job_placement.engine.feasibility import Request
from mast_opt.job_placement.engine.limits import DEFAULT_SAMPLING, FillSampling
from mast_opt.job_placement.engine.negative_cache import NegativeCache
from mast_opt.job_placement.engine.priced_bid import place_priced
from mast_opt.job_placement.engine.server_selection import LEAST_LOSS, TIGHT
from mast_opt.job_placement.engine.state import J_COST, N_ROUND, R_MGPU, R_USED
from mast_opt.job_placement.exhaustive.batch_state import mix_of
from mast_opt.job_placement.live_fleet.bid_versions import BidVersions
from mast_opt.job_placement.live_fleet.booking import are_named, booking_of
from mast_opt.job_placement.live_fleet.conversion import (
    Limits,
    bid_of,
    books_of,
    over_quota,
    quotas_of,
)
from mast_opt.job_placement.live_fleet.diagnosis import explain, why_not
from mast_opt.job_placement.live_fleet.inventory import FleetInventory, Running, cost_of, price_of
from mast_opt.job_placement.live_fleet.types import (
    Bid,
    ClusterReport,
    Drained,
    Job,
    Refused,
    Server,
    Share,
    amount,
    by_loss,
    jobs_in,
    servers_in,
    sound_sampling,
    tiers_in,
    whole,
)
from mast_opt.job_placement.problem import JobPlacement


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a fleet at some time; opaque."""

    _books: FleetInventory
    _quotas: Limits


class Fleet:
    """Servers, what runs on them, and the search for the best place for a job.

    Every method is atomic; ``place``, ``bids`` and ``explain`` change nothing. A bid is good until something changes
    that it touches: its servers, those of its victims, or its tenant's quota.

    The first call that needs a kernel compiles it, for seconds and under the fleet's lock. Call
    ``mast_opt.warm_up("job-placement")`` once in the process before the first request: it compiles every kernel that a
    fleet can reach, or loads it from the cache of the installation, so that no later operation waits.
    """

    def __init__(
        self,
        servers: Iterable[Server],
        *,
        tiers: Iterable[int] = (0, 1, 2, 3),
        replicas: Mapping[str, Collection[str]] | None = None,
        residency: Mapping[str, Collection[str]] | None = None,
        quotas: Mapping[str, int] | None = None,
        type_quotas: Mapping[str, Mapping[str, int]] | None = None,
        remote_mb_price: float | None = None,
        placement: str = "fragmentation",
        expected: Iterable[Job] = (),
        sampling: FillSampling = DEFAULT_SAMPLING,
    ) -> None:
        """An empty fleet.

        Args:
            tiers: all that jobs may have; the lowest number is the most important.
            replicas: dataset → regions that hold it.
            residency: dataset → the only regions where jobs that read it may run, whatever ``replicas`` says; a
                dataset that is not listed may be read anywhere.
            quotas: tenant → milli-GPUs; work beyond that has the lowest tier and may be stopped.
            type_quotas: tenant → GPU type → milli-GPUs, likewise; a job is within its quotas if it is on any type that
                it accepts.
            remote_mb_price: price of a MB a day that a job reads from another region, in the unit of ``Job.costs``;
                None if jobs run only where all their data is.
            placement: ``fragmentation``: of places that are equally close and equally priced, the one by which the
                free capacity loses the least value to jobs like those that have started so far; ``best-fit``: the one
                in the least loaded region, on the servers with the fewest free GPUs.
            expected: jobs that count as if they had started before; what is typical of those that will come.
            sampling: how that value is estimated.

        Raises:
            UsageError: servers that contradict one another, a quota that is no number of milli-GPUs, another
                placement, or a sampling with a number out of range.
        """
        for name, value in (("replicas", replicas), ("residency", residency), ("quotas", quotas)):
            optional(mapping_of(anything))(name, value)
        optional(mapping_of(mapping_of(anything)))("type_quotas", type_quotas)
        servers = servers_in(servers)
        limits = Limits(
            {tenant: whole(f"tenant {tenant}", "quota", mgpu) for tenant, mgpu in (quotas or {}).items()},
            {
                tenant: {kind: whole(f"tenant {tenant}", f"quota of {kind}", mgpu) for kind, mgpu in typed.items()}
                for tenant, typed in (type_quotas or {}).items()
            },
        )
        price = None if remote_mb_price is None else amount("the fleet", "remote_mb_price", remote_mb_price)
        mix = ArrivalMix(sound_sampling(sampling)) if by_loss(placement) else None
        books = FleetInventory(servers, tiers_in(tiers), replicas or {}, residency or {}, price, mix)
        books.expect(jobs_in(expected))
        self._begin(books, limits)

    @classmethod
    @checked(problem=a(JobPlacement))
    def of(
        cls,
        problem: JobPlacement,
        tiers: Iterable[int] = (),
        *,
        placement: str = "fragmentation",
        sampling: FillSampling = DEFAULT_SAMPLING,
    ) -> Fleet:
        """The fleet of an instance with its running jobs; its pending jobs, which are ``Job.of(problem, j)``, are
        expected.

        Args:
            tiers: that later jobs may have, in addition to those of the instance.
            placement, sampling: as in the constructor.
        """
        fleet = cls.__new__(cls)
        mix = mix_of(problem, sound_sampling(sampling)) if by_loss(placement) else None
        fleet._begin(books_of(problem, tiers_in(tiers), mix), quotas_of(problem))
        return fleet

    @property
    def _style(self) -> int:
        return TIGHT if self._books.mix is None else LEAST_LOSS

    def _begin(self, books: FleetInventory, quotas: Limits) -> None:
        self._books = books
        self._quotas = quotas
        self._failures = NegativeCache()
        self._lock = threading.RLock()
        self._versions = BidVersions()
        self._name = uuid4().hex
        self._in_round = False
        self._asked: tuple[Job, int, bool, Request] | None = None

    @checked(job=a(Job))
    def place(self, job: Job, *, regions: Collection[str] | None = None) -> Bid | Refused:
        """The best bid over all clusters of all regions that hold the job's data, or why there is none.

        Args:
            regions: the only ones that are asked; None for all.

        Raises:
            UsageError: the job's tier is none of the fleet's, a job of that name runs already, or the fleet has no such
                region.
        """
        with self._lock:
            over, request = self._request(job)
            if regions is not None:
                asked = request.open & self._books.regions_in(regions)
                if request.open.any() and not asked.any():
                    return Refused(job, "none of the regions that are asked holds all of its data", code="regions")
                request = request._replace(open=asked)
            stamp = self._stamp(request)
            if self._failures.known(request, stamp):
                return Refused(job, *why_not(self._books, job, request), remembered=True)
            price = price_of(self._books, job)
            offer = place_priced(self._books.state, request, self._books.everywhere, self._style, price)
            if offer is None:
                self._failures.remember(request, stamp)
                return Refused(job, *why_not(self._books, job, request))
            return bid_of(offer, job, over, price, self._books, self._versions.now, self._name)

    @checked(job=a(Job))
    def place_and_commit(self, job: Job, *, regions: Collection[str] | None = None) -> Bid | Refused:
        """As ``place``, and the bid, if there is one, is committed before another thread can change anything. Its
        ``victims`` have to be stopped."""
        with self._lock:
            answer = self.place(job, regions=regions)
            if isinstance(answer, Bid):
                self.commit(answer)
            return answer

    @checked(job=a(Job))
    def bids(self, job: Job) -> tuple[Bid, ...]:
        """The best bid of every region that has one, the best of all first (it is the one that ``place`` gives)."""
        with self._lock:
            over, request = self._request(job)
            found, price = [], price_of(self._books, job)
            for region in np.flatnonzero(request.open).tolist():
                only = np.zeros_like(request.open)
                only[region] = True
                here = request._replace(open=only)
                offer = place_priced(self._books.state, here, self._books.everywhere, self._style, price)
                if offer is not None:
                    found.append(bid_of(offer, job, over, price, self._books, self._versions.now, self._name))
            return tuple(sorted(found, key=lambda bid: bid.key))

    def commit(self, bid: Bid) -> tuple[str, ...]:
        """Start the bid's job; returns the victims, which no longer hold anything and have to be stopped.

        Raises:
            StaleBid: something that the bid touches has changed since it was made.
            UsageError: another fleet made the bid, or it was changed and does not fit the fleet.
        """
        if not isinstance(bid, Bid):
            raise UsageError(f"commit takes a Bid of place or bids, not a {type(bid).__name__}")
        a(Job)("job of the bid", bid.job)
        if bid.fleet != self._name:
            raise UsageError(f"the bid for {bid.job.name} is another fleet's; ask this one for a bid")
        with self._lock:
            if bid.version == self._versions.now:
                return self._commit(bid)
            if not are_named(bid) or self._versions.is_stale(bid, self._books.running):
                raise StaleBid(f"the bid for {bid.job.name} is for an older state of the fleet; ask for a new one")
            try:
                return self._commit(bid)
            except UsageError as error:
                raise StaleBid(str(error)) from error

    def _commit(self, bid: Bid) -> tuple[str, ...]:
        over, request = self._request(bid.job)
        if (bid.over_quota, bid.tier) != (over, self._books.tiers[request.tier]):
            raise UsageError(f"the bid for {bid.job.name} does not have the job's tier; ask for a new bid")
        placed = booking_of(bid, request, self._books)
        job = replace(bid.job, preemptible=True) if over else bid.job
        running = Running(job, request.tier, bid.shares, over)
        touched = [share.server for share in bid.shares]
        touched += [share.server for name in bid.victims for share in self._books.running[name].shares]
        self._books.start(running, request, placed, bid.victims, self._in_round)
        self._versions.servers_changed(touched)
        return bid.victims

    @checked(name=a_text)
    def release(self, name: str) -> None:
        """A job has ended. Raises UsageError if no job of that name runs."""
        with self._lock:
            servers = [share.server for share in self._known(name).shares]
            self._books.end(name)
            self._versions.servers_changed(servers)

    @checked(name=a_text, gpu_hours=a_price)
    def set_at_risk(self, name: str, gpu_hours: float) -> None:
        """What would be lost if a running job were stopped now: it grows with time and falls at a checkpoint."""
        with self._lock:
            running = self._known(name)
            job = replace(running.job, gpu_hours_at_risk=gpu_hours)
            self._books.running[name] = replace(running, job=job)
            self._books.state.job[J_COST, self._books.place[name]] = cost_of(job)
            for position in self._books.positions_of(name):
                refresh_reclaim(self._books.state, position)
            self._versions.servers_changed(share.server for share in running.shares)

    @checked(server=a_text)
    def fail(self, server: str) -> tuple[str, ...]:
        """A server is gone, and with it every gang that had a task there; returns these jobs. The server takes no
        work until ``uncordon``."""
        with self._lock:
            lost = self._jobs_on(server)
            self._stop_taking(server, lost)
            return lost

    @checked(server=a_text)
    def cordon(self, server: str) -> None:
        """A server takes no new work; what runs there goes on."""
        with self._lock:
            self._jobs_on(server)
            self._stop_taking(server, ())

    @checked(server=a_text)
    def uncordon(self, server: str) -> None:
        """A server takes work again."""
        with self._lock:
            self._jobs_on(server)
            block(self._books.state, self._books.position[server], 0)
            self._books.blocked.discard(server)
            self._books.capacity_appeared(self._books.position[server])
            self._versions.servers_changed((server,))

    @checked(server=a_text)
    def drain(self, server: str) -> Drained:
        """Cordon a server and stop the jobs on it that may be stopped."""
        with self._lock:
            there = self._jobs_on(server)
            stopped = tuple(name for name in there if self._books.running[name].job.preemptible)
            self._stop_taking(server, stopped)
            return Drained(stopped, tuple(name for name in there if name not in stopped))

    def add_servers(self, servers: Iterable[Server]) -> None:
        """Raises UsageError, with nothing changed, for a name that is taken or a cluster in two regions."""
        with self._lock:
            self._outside_round("servers are added")
            self._books.change_servers(servers_in(servers), ())
            self._failures = NegativeCache()
            self._versions.all_changed()

    @checked(server=a_text)
    def remove_server(self, server: str) -> None:
        """Raises UsageError, with nothing changed, if something still runs there."""
        with self._lock:
            self._outside_round("a server is removed")
            there = self._jobs_on(server)
            if there:
                raise UsageError(f"{server} still runs {', '.join(there[:5])}; drain it and wait, or let it fail")
            self._books.change_servers((), (server,))
            self._books.blocked.discard(server)
            self._failures = NegativeCache()
            self._versions.all_changed()

    @checked(dataset=a_text)
    def set_replicas(self, dataset: str, regions: Collection[str]) -> None:
        """The regions that hold a dataset from now on. Raises UsageError for a string instead of a collection."""
        with self._lock:
            self._books.set_replicas(dataset, regions)
            self._versions.rules_changed()

    @checked(tenant=a_text, gpu_type=optional(a_text))
    def set_quota(self, tenant: str, mgpu: int | None, gpu_type: str | None = None) -> None:
        """The milli-GPUs that a tenant may use from now on, of one GPU type or (None) of all together; ``mgpu`` None
        for no limit. Jobs that run keep their tier. Raises UsageError for what is no number of milli-GPUs."""
        amount = None if mgpu is None else whole(f"tenant {tenant}", "quota", mgpu)
        with self._lock:
            self._quotas.set(tenant, gpu_type, amount)
            self._versions.rules_changed()

    @contextmanager
    def round(self) -> Iterator[None]:
        """A pass over a queue: until it ends, what victims free serves only work that is more important than they.

        A victim that started in this round frees what it took for the same work as before, its own tier included, as
        if it had never started; a batch treats its jobs the same way. Outside a round, what is left over of a victim
        is free for all at once.
        """
        with self._lock:
            self._outside_round("a round begins")
            self._in_round = True
            self._books.state.free_places[N_ROUND] = 1
        try:
            yield
        finally:
            with self._lock:
                self._in_round = False
                self._books.state.free_places[N_ROUND] = 0
                settle(self._books.state)
                self._books.freed += 1
                self._versions.all_changed()

    def snapshot(self) -> Snapshot:
        """The state of the fleet, to come back to with ``restore``."""
        with self._lock:
            self._outside_round("a snapshot is taken")
            return Snapshot(self._books.copy(), self._quotas.copy())

    @checked(snapshot=a(Snapshot))
    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, quotas included; bids made before are stale."""
        with self._lock:
            self._outside_round("a snapshot is restored")
            self._books, self._quotas = snapshot._books.copy(), snapshot._quotas.copy()
            self._failures = NegativeCache()
            self._versions.all_changed()

    @checked(job=a(Job))
    def explain(self, job: Job) -> tuple[ClusterReport, ...]:
        """For each cluster, the first constraint that rules it out, or what admitting the job there takes."""
        with self._lock:
            _, request = self._request(job)
            return explain(self._books, job, request)

    def running(self) -> tuple[str, ...]:
        """The jobs that run, in the order in which they started."""
        with self._lock:
            return tuple(self._books.place)

    @checked(name=a_text)
    def shares(self, name: str) -> tuple[Share, ...]:
        """Where a running job runs. Raises UsageError if no job of that name runs."""
        with self._lock:
            return self._known(name).shares

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

    def gpus(self) -> tuple[int, int]:
        """Milli-GPUs in use, and all there are."""
        with self._lock:
            state = self._books.state
            return int(state.region[R_USED].sum()), int(state.region[R_MGPU].sum())

    def _request(self, job: Job) -> tuple[bool, Request]:
        """Whether the job is over its tenant's quota, and the job as the kernels see it. The last answer is kept: a bid
        is often committed next."""
        if self._asked is not None and self._asked[0] is job and self._asked[1] == self._versions.now:
            return self._asked[2:]
        if job.tier not in self._books.tiers:
            raise UsageError(f"job {job.name} has tier {job.tier}; the fleet's tiers are {self._books.tiers}")
        if job.name in self._books.running:
            raise UsageError(f"a job called {job.name} runs already; release it first, or choose another name")
        over = over_quota(job, self._books, self._quotas)
        tiers = self._books.tiers
        request = self._books.request(job, len(tiers) - 1 if over else tiers.index(job.tier))
        self._asked = job, self._versions.now, over, request
        return over, request

    def _stamp(self, request: Request) -> int:
        """Changes whenever capacity appears that the request could use."""
        return int(request.open @ self._books.freed @ (request.mgpu >= 0))

    def _known(self, name: str) -> Running:
        if name not in self._books.running:
            raise UsageError(f"no job called {name} runs here")
        return self._books.running[name]

    def _jobs_on(self, server: str) -> tuple[str, ...]:
        if server not in self._books.servers:
            raise UsageError(f"the fleet has no server called {server}")
        return self._books.jobs_on(server)

    def _stop_taking(self, server: str, ended: tuple[str, ...]) -> None:
        """End these jobs and let the server take no more."""
        touched = {share.server for name in ended for share in self._books.running[name].shares}
        for name in ended:
            self._books.end(name)
        block(self._books.state, self._books.position[server], 1)
        self._books.blocked.add(server)
        self._versions.servers_changed({server, *touched})

    def _outside_round(self, what: str) -> None:
        if self._in_round:
            raise UsageError(f"{what} only between rounds; this one has not ended")
