"""Live fleet (job placement): ask it where a job should go, report what happens, from any thread.

fleet = Fleet(servers, tiers=(0, 1, 2), replicas={"logs": {"eu-west"}})
answer = fleet.place(Job("train-1", tier=0, tasks=4, mgpu=8000, datasets=("logs",)))
if isinstance(answer, Bid):
    stop(fleet.commit(answer))      # the victims, to be checkpointed and stopped
…
fleet.release("train-1")
"""

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import groupby, repeat

import numpy as np
from numpy.typing import NDArray

from mast_opt.core import arguments as arg
from mast_opt.core.errors import NotRunning, StaleBid, UnsupportedOption, UsageError
from mast_opt.core.ledger import Ledger
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.core.ranks import Reclaim, Right
from mast_opt.problems.job_placement.engine import columns as col
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix
from mast_opt.problems.job_placement.engine.best_bid import NOBODY, BestBid, place_free, place_priced
from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.engine.limits import (
    DEFAULT_SAMPLING,
    FillSampling,
    SearchLimits,
    by_loss,
    sound_limits,
    sound_sampling,
)
from mast_opt.problems.job_placement.engine.negative_cache import NegativeCache
from mast_opt.problems.job_placement.engine.part_search import PartsBid, close_servers
from mast_opt.problems.job_placement.engine.server_selection import LEAST_LOSS, TIGHT, Placement
from mast_opt.problems.job_placement.exhaustive.batch_state import mix_of
from mast_opt.problems.job_placement.live_fleet import adoption
from mast_opt.problems.job_placement.live_fleet.answers import Bid, ClusterReport, Drained, Refused
from mast_opt.problems.job_placement.live_fleet.bid_versions import BidVersions
from mast_opt.problems.job_placement.live_fleet.bids import (
    best_bid_for_parts,
    bid_of,
    explain_parts,
    holdings_in,
    offers_on,
    shares_in,
    why_no_part,
)
from mast_opt.problems.job_placement.live_fleet.booking import are_named, booking_of, check_need, devices_of, servers_of
from mast_opt.problems.job_placement.live_fleet.conversion import books_of
from mast_opt.problems.job_placement.live_fleet.defragmentation import Defragmentation
from mast_opt.problems.job_placement.live_fleet.diagnosis import explain, why_not
from mast_opt.problems.job_placement.live_fleet.fits_by import FitsBy, fits_by, parts_fit_by
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory, Option
from mast_opt.problems.job_placement.live_fleet.movable_work import movable_work, moved_holdings, task_of
from mast_opt.problems.job_placement.live_fleet.move_plan import JobMove, MoveBudget, MovePlan
from mast_opt.problems.job_placement.live_fleet.running_job import Running
from mast_opt.problems.job_placement.live_fleet.snapshot_format import decoded, encoded
from mast_opt.problems.job_placement.live_fleet.types import (
    Job,
    Server,
    Share,
    amount,
    names_in,
    objects_in,
    tiers_in,
    whole,
)
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.job_placement.units import GPU, Bools, Ints

NOTHING = nullcontext()
BORROWS_TOO_MUCH = "its tenant may not borrow so much beyond its quota"


def _other_tier(bid: Bid) -> UsageError:
    """The error of a bid whose job stands elsewhere now."""
    return UsageError(f"the bid for {bid.job.name} does not have the job's tier; ask for a new bid")


class _Operation:
    """An operation of a fleet, which changes all or, when it is interrupted, nothing."""

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet

    def __enter__(self) -> None:
        books = self._fleet._books
        if not books.trials:
            books.log.clear()
        self._mark = len(books.log)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        books = self._fleet._books
        if kind is not None:
            books.roll_back(self._mark)
        elif not books.trials:
            books.log.clear()


class Fleet:
    """Servers, what runs on them, and the search for the best place for a job.

    Every method is atomic: one that an exception interrupts, whatever it is, has done all or nothing. ``place``,
    ``bids`` and ``explain`` change nothing. A bid is good until something changes that it touches: its servers, those
    of its victims, or its tenant's quota.

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
        quotas: Mapping[str, int] | Quotas | None = None,
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
            quotas: tenant → milli-GPUs; work beyond that counts less than all work within quotas, which may stop it.
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
        flat = None if isinstance(quotas, Quotas) else quotas
        for name, value in (("replicas", replicas), ("residency", residency), ("quotas", flat)):
            arg.optional(arg.mapping_of(arg.anything))(name, value)
        arg.optional(arg.mapping_of(arg.mapping_of(arg.anything)))("type_quotas", type_quotas)
        servers = objects_in("servers", servers, Server)
        rights = quotas.copy() if isinstance(quotas, Quotas) else Quotas()
        for tenant, mgpu in (flat or {}).items():
            rights.set(tenant, None, Quota(whole(f"tenant {tenant}", "quota", mgpu)))
        for tenant, typed in (type_quotas or {}).items():
            for kind, mgpu in typed.items():
                rights.set(tenant, kind, Quota(whole(f"tenant {tenant}", f"quota of {kind}", mgpu)))
        price = None if remote_mb_price is None else amount("the fleet", "remote_mb_price", remote_mb_price)
        mix = ArrivalMix(sound_sampling(sampling)) if by_loss(placement) else None
        books = FleetInventory(servers, tiers_in(tiers), replicas or {}, residency or {}, price, mix, quotas=rights)
        books.expect(objects_in("jobs", expected, Job))
        self._begin(books)

    def _begin(self, books: FleetInventory) -> None:
        """Begin a live fleet over an inventory: its lock, cache of failures, versions of bids."""
        self._books = books
        self._failures = NegativeCache(self._freed)
        self._lock = threading.RLock()
        self._operation = _Operation(self)
        self._versions = BidVersions()
        self._in_round = False
        self._asked: tuple[Job, int, tuple[Option, ...]] | None = None
        self._offered: tuple[Bid | None, Sequence[Placement] | None] = None, None
        """The last bid of ``place``, and where it is in positions: it is often committed next."""

    @classmethod
    @arg.checked(problem=arg.a(JobPlacement))
    def of(
        cls,
        problem: JobPlacement,
        tiers: Iterable[int] = (),
        *,
        placement: str = "fragmentation",
        sampling: FillSampling = DEFAULT_SAMPLING,
    ) -> "Fleet":
        """The fleet of an instance with its running jobs; its pending jobs, which are ``Job.of(problem, j)``, are
        expected. Which parts of running jobs its allocations are of is not kept: they are stopped as a whole.

        Args:
            tiers: that later jobs may have, in addition to those of the instance.
            placement, sampling: as in the constructor.
        """
        fleet = cls.__new__(cls)
        mix = mix_of(problem, sound_sampling(sampling)) if by_loss(placement) else None
        fleet._begin(books_of(problem, tiers_in(tiers), mix))
        return fleet

    @classmethod
    def from_bytes(cls, data: bytes) -> "Fleet":
        """A fleet as it was when ``snapshot_bytes`` gave these bytes. Raises UsageError if they are no snapshot, of
        another version of the format, or damaged."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise UsageError(f"from_bytes takes bytes, not a {type(data).__name__}")
        fleet = cls.__new__(cls)
        fleet._begin(decoded(bytes(data)))
        return fleet

    @arg.checked(job=arg.a(Job), arrives=arg.a_flag, started_ms=arg.optional(arg.a_whole(0)))
    def adopt(
        self, job: Job, shares: tuple[Share, ...], *, arrives: bool = True, started_ms: int | None = None
    ) -> tuple[str, ...]:
        """A job runs where its host says, whatever the fleet knew of it and even where there is no room. So a fleet
        learns of work that it did not place, and of work that is elsewhere than it thought. What it knows already
        changes nothing.

        Where it runs, how far apart and at whose expense is not judged; whether it is over its tenant's quota is. A job
        of a new name counts as an arrival in the mix.

        Args:
            arrives: False for a job that ``count_arrival`` has counted.
            started_ms: see ``commit``.

        Returns:
            The servers of the job on which more runs now than they have, see ``over_booked``. They take no work until
            enough of it has ended; the fleet stops nothing by itself.

        Raises:
            UsageError: the fleet has no such tier, server or GPU, or the shares are not all tasks of the job; nothing
                has changed then.
        """
        with self._lock, self._operation:
            self._outside_round("a job is adopted")
            books, old = self._books, self._books.running.get(job.name)
            self._tier_of(job)
            held = adoption.holdings_of(job, shares, books)
            if started_ms is None and old is not None:
                started_ms = old.started_ms
            running = books.starting(job, adoption.shares_of(job, shares, held), started_ms=started_ms)
            if old is None or replace(running, number=old.number) != old or adoption.need_is_unknown(old, books):
                if old is not None:
                    books.end(job.name)
                books.hold(running, adoption.merged(held))
                if old is None and arrives:
                    books.count_arrival(job)
                touched = (*running.shares, *(() if old is None else old.shares))
                self._changed(share.server for share in touched)
            return tuple(server for server in running.servers if server in books.over_booked)

    @arg.checked(job=arg.a(Job))
    def count_arrival(self, job: Job) -> None:
        """Count a job in the fleet's mix of arrivals, as if it had come and ended."""
        with self._lock, self._operation:
            self._books.count_arrival(job)

    @arg.checked(name=arg.a_text)
    def resize(self, name: str, tasks: int) -> tuple[Share, ...] | Refused:
        """A running job has so many tasks from now on: more, on free capacity of the same cluster and GPU type and as
        near as its ``within`` asks, or fewer. The tasks that go on stay where they are.

        A job that shrinks leaves servers that are over-booked or take no work first, then those on which it has the
        fewest tasks. A job that grows takes the servers where it runs first, then their racks, then the rest of the
        cluster; it stops nobody. Its tenant's quota is looked at again, for all of its tasks.

        Returns:
            Where it runs now, or why there is no room for more tasks, with nothing changed.

        Raises:
            UsageError: no job of that name runs, or what a task of it needs is unknown (jobs of ``Fleet.of``: adopt
                them with their needs first).
            UnsupportedOption: the job has several parts.
        """
        with self._lock, self._operation:
            books, old = self._books, self._known(name)
            if old.job.parts:
                raise UnsupportedOption(
                    f"{name} has parts and is not resized; release it, and place it as it should be"
                )
            job = replace(old.job, tasks=tasks)
            if job.tasks == old.job.tasks:
                return old.shares
            mgpu = adoption.need_of(old, books)
            kind = books.servers[old.shares[0].server].gpu_type
            right = books.right_of(job, {kind: job.tasks * mgpu})
            more = (job.tasks - old.job.tasks) * mgpu
            if more > 0 and not books.ledger.may_hold(job.tenant, {kind: more}):
                return Refused(job, BORROWS_TOO_MUCH, code="quota")
            level = books.level_of(job, right)
            leaving = books.blocked | books.over_booked
            shares = (
                adoption.shrunk(old, job.tasks, mgpu, leaving)
                if job.tasks < old.job.tasks
                else adoption.enlarged(replace(old, tier=max(level, old.tier)), job.tasks, mgpu, books)
            )
            if shares is None:
                words = f"the servers near it have no room for {job.tasks - old.job.tasks} further tasks"
                return Refused(job, words, code="no-room")
            books.swap(
                books.starting(job, shares, old.number, old.started_ms),
                adoption.holdings_of(job, shares, books),
                self._in_round,
            )
            self._changed({share.server: None for share in (*old.shares, *shares)})
            return shares

    @arg.checked(name=arg.a_text)
    def release(self, name: str) -> None:
        """Report to the fleet that a job has ended. Raises NotRunning if no job of that name runs: it may have been
        stopped for another one.
        """
        with self._lock, self._operation:
            servers = [share.server for share in self._shares_of(name)]
            self._books.end(name)
            self._changed(servers)

    @arg.checked(gpu_hours=arg.prices)
    def set_at_risk(self, gpu_hours: Mapping[str, float]) -> None:
        """Set the GPU-hours that would be lost if running jobs were stopped now: they grow with time and fall at a
        checkpoint.

        Args:
            gpu_hours: of each of these jobs.

        Raises:
            UsageError: one of them does not run; nothing has changed then.
        """
        with self._lock, self._operation:
            servers = [share.server for name in gpu_hours for share in self._shares_of(name)]
            self._books.set_at_risk(gpu_hours)
            self._changed(servers)

    @arg.checked(name=arg.a_text, began_ms=arg.a_whole(-1), checkpoint_ms=arg.a_whole(0))
    def set_work(self, name: str, began_ms: int, checkpoint_ms: int) -> None:
        """Set since when a running job works, and how often it saves that, for ``look_at_work``.

        Args:
            began_ms: −1 if nobody knows; what it has at risk stays then.
            checkpoint_ms: time between two checkpoints from then on; 0 for a job that loses nothing.

        Raises:
            NotRunning: no job of that name runs.
        """
        with self._lock, self._operation:
            self._shares_of(name)
            self._books.set_work(name, began_ms, checkpoint_ms)

    @arg.checked(now_ms=arg.a_whole(0))
    def look_at_work(self, regions: Collection[str], now_ms: int) -> None:
        """Let what each running job of these regions did since its last checkpoint be what it has at risk, see
        ``set_work``. It costs a fraction of ``set_at_risk``. Bids there with victims are stale. Regions without servers
        have no jobs."""
        with self._lock, self._operation:
            there = names_in("regions", regions).intersection(self._books.regions)
            self._books.look_at_work(self._books.regions_in(there), now_ms)
            self._versions.costs_changed(there)

    @arg.checked(server=arg.a_text)
    def fail(self, server: str) -> tuple[str, ...]:
        """Report to the fleet that a server is gone, and with it every gang that had a task there; returns these jobs.
        The server takes no work until ``uncordon``.
        """
        with self._lock, self._operation:
            lost = self._jobs_on(server)
            self._stop_taking(server, lost)
            return lost

    @arg.checked(server=arg.a_text)
    def cordon(self, server: str) -> None:
        """Let a server of the fleet take no new work; what runs there goes on."""
        with self._lock, self._operation:
            self._jobs_on(server)
            self._stop_taking(server, ())

    @arg.checked(server=arg.a_text)
    def uncordon(self, server: str) -> None:
        """Let a server of the fleet take work again."""
        with self._lock, self._operation:
            self._jobs_on(server)
            self._books.take_again(server)
            self._changed((server,))

    @arg.checked(server=arg.a_text)
    def drain(self, server: str) -> Drained:
        """Cordon a server of the fleet and stop the jobs on it that may be stopped."""
        with self._lock, self._operation:
            there = self._jobs_on(server)
            stopped = tuple(name for name in there if self._books.current(name).stoppable)
            self._stop_taking(server, stopped)
            return Drained(stopped, tuple(name for name in there if name not in stopped))

    def add_servers(self, servers: Iterable[Server]) -> None:
        """Add servers to the fleet. Raises UsageError, with nothing changed, for a name that is taken or a cluster in
        two regions.
        """
        self._change_servers(objects_in("servers", servers, Server), ())

    @arg.checked(server=arg.a_text)
    def set_capacity(
        self, server: str, *, gpus: int | None = None, cpu_mcores: int | None = None, memory_mib: int | None = None
    ) -> None:
        """Let a server of the fleet have other amounts from now on; None leaves one as it is. GPUs are added after the
        last one, and taken away from there.

        Raises:
            UsageError: less than what runs there holds, or a GPU that is in use would go; nothing has changed then.
        """
        with self._lock, self._operation:
            self._outside_round("a capacity is changed")
            self._jobs_on(server)
            old = self._books.servers[server]
            new = replace(
                old,
                gpus=old.gpus if gpus is None else gpus,
                cpu_mcores=old.cpu_mcores if cpu_mcores is None else cpu_mcores,
                memory_mib=old.memory_mib if memory_mib is None else memory_mib,
            )
            if new == old:
                return
            adoption.check_in_use(self._books, old, new)
            if self._books.set_supply(new):
                self._versions.all_changed()
                self._failures = NegativeCache(self._freed)
            else:
                self._changed((server,))

    @arg.checked(server=arg.a_text)
    def remove_server(self, server: str) -> None:
        """Remove a server from the fleet. Raises UsageError, with nothing changed, if something still runs there."""
        self._change_servers((), (server,))

    def replace_server(self, server: Server) -> None:
        """A server is another one from now on, even the only one of the fleet. Raises UsageError, with nothing changed,
        if something still runs there, or for a cluster in two regions."""
        self.replace_servers((server,))

    def replace_servers(self, servers: Iterable[Server]) -> None:
        """Servers are others from now on; it costs as much for many as for one. See ``replace_server``."""
        found = objects_in("servers", servers, Server)
        self._change_servers(found, [one.name for one in found])

    def _change_servers(self, added: Iterable[Server], removed: Collection[str]) -> None:
        """Change the servers of the fleet while nothing else does. Raises UsageError where a job runs on a
        removed one.
        """
        with self._lock, self._operation:
            self._outside_round("servers come or go")
            for server in removed:
                if there := self._jobs_on(server):
                    raise UsageError(f"{server} still runs {', '.join(there[:5])}; drain it and wait, or let it fail")
            self._books.change_servers(added, removed)
            self._failures = NegativeCache(self._freed)
            self._versions.all_changed()

    @arg.checked(reclaim=arg.a_text)
    def set_reclaim(self, reclaim: str) -> None:
        """Set which work may stop, from now on, what borrows beyond its quota. Raises UsageError for another rule.

        Args:
            reclaim: ``any`` work within its quota, as after the constructor; ``lower-priority``: only work that is more
                important, too; ``never``: only work that could stop it within its quota.
        """
        if reclaim not in tuple(Reclaim):
            raise arg.refuse("reclaim", reclaim, f"one of {', '.join(Reclaim)}")
        if reclaim == self._books.ranks.reclaim:
            return
        with self._lock, self._operation:
            self._outside_round("a rule of reclaim is changed")
            self._books.set_reclaim(Reclaim(reclaim))
            self._versions.all_changed()
            self._failures = NegativeCache(self._freed)

    def set_search_limits(self, limits: SearchLimits) -> None:
        """Limit the search for the victims of one job from now on, while other threads wait. With smaller limits, fewer
        bids are proven to be the best, and those that are not may stop more than needed. Raises UsageError for a number
        out of range."""
        sound_limits(limits)
        with self._lock:
            self._books.limits = limits

    @arg.checked(dataset=arg.a_text)
    def set_replicas(self, dataset: str, regions: Collection[str], residency: Collection[str] | None = None) -> None:
        """Set, in the fleet, the regions that hold a dataset from now on, and, unless None, the only regions where jobs
        may read it; empty: all. Raises UsageError for a string instead of a collection.
        """
        with self._lock, self._operation:
            self._books.set_replicas(dataset, regions, residency)
            self._versions.rules_changed()

    @arg.checked(tenant=arg.a_text, gpu_type=arg.optional(arg.a_text), parent=arg.optional(arg.a_text))
    def set_quota(
        self,
        tenant: str,
        mgpu: int | None,
        gpu_type: str | None = None,
        *,
        borrowing: int | None = None,
        lending: int | None = None,
        parent: str | None = None,
    ) -> None:
        """The milli-GPUs that a tenant, or a group of tenants, may use from now on, of one GPU type or (None) of all
        together; ``mgpu`` None for no limit. Jobs that run come within or beyond it at once.

        Args:
            borrowing: the most milli-GPUs beyond the quota; None for whatever is free.
            lending: the most milli-GPUs of the quota that others below the same group may use; None for all.
            parent: the group above it from now on, which has a quota too; none if it is empty, None as it is.

        Raises:
            UsageError: it is no number of milli-GPUs, more is lent than there is, a group is above itself or has no
                quota, or a round has not ended yet; nothing has changed then.
        """
        given = {"quota": mgpu, "borrowing": borrowing, "lending": lending}
        most, *limits = (None if one is None else whole(f"tenant {tenant}", what, one) for what, one in given.items())
        with self._lock, self._operation:
            self._outside_round("a quota is changed")
            quotas = self._books.ledger.quotas.copy()
            quotas.set(tenant, gpu_type, None if most is None else Quota(most, *limits))
            if parent is not None:
                quotas.put_below(tenant, parent)
            self._books.set_quotas(quotas)
            self._changed(())

    def _stop_taking(self, server: str, ended: tuple[str, ...]) -> None:
        """End these jobs of the fleet and let the server take no more."""
        touched = {share.server for name in ended for share in self._books.current(name).shares}
        for name in ended:
            self._books.end(name)
        self._books.stop_taking(server)
        self._changed({server, *touched})

    @property
    def _style(self) -> int:
        """Style by which the fleet chooses servers: the tightest, or with a mix of arrivals the least loss."""
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
        began = ended = False
        try:
            try:
                with self._lock, self._operation:
                    self._outside_round("a round begins")
                    self._books.begin_round()
                    began = self._in_round = True
                yield
            finally:
                if began:
                    self._end_round()
                    ended = True
        finally:  # the end itself may have been interrupted, at its first step too
            if began and not ended:
                self._end_round()

    def _end_round(self) -> None:
        """End a round of the fleet. To be called again if it was interrupted."""
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
            try:
                self._failures = NegativeCache(self._freed)
                self._versions = self._versions.trial()
                with self._books.undoing():
                    yield
            finally:
                self._books, self._failures, self._versions, self._in_round = before
                self._asked = None

    def snapshot_bytes(self) -> bytes:
        """The state of the fleet, to be stored: servers with their capacities, running jobs and what they hold, quotas,
        replicas, the mix of arrivals with its samples, and the orders that decide between equal victims.

        ``Fleet.from_bytes`` takes it. The same calls give the same bids afterwards as without. It begins
        with the version of its format and a digest, and holds numbers and texts only, no code.
        """
        with self._lock:
            self._outside_round("a snapshot is taken")
            books = self._books.copy()
        return encoded(books)

    def running(self) -> tuple[str, ...]:
        """The jobs that run in the fleet, in the order in which they started."""
        with self._lock:
            return self._books.names()

    @arg.checked(name=arg.a_text)
    def shares(self, name: str) -> tuple[Share, ...]:
        """Shares of a running job on its servers. Raises UsageError if no job of that name runs."""
        with self._lock:
            return self._shares_of(name)

    @arg.checked(name=arg.a_text)
    def job(self, name: str) -> Job:
        """A running job. Raises UsageError if no job of that name runs."""
        with self._lock:
            return self._known(name).job

    @arg.checked(server=arg.a_text)
    def jobs_on(self, server: str) -> tuple[str, ...]:
        """The jobs that hold something on a server, in the order in which they started. Raises UsageError if the fleet
        has no such server."""
        with self._lock:
            return self._jobs_on(server)

    def used_mgpu(self) -> dict[str, int]:
        """Region of the fleet → milli-GPUs that jobs hold there."""
        with self._lock:
            return dict(zip(self._books.region_names, self._books.state.region[col.R_USED].tolist()))

    @arg.checked(server=arg.a_text)
    def most_mgpu(self, server: str) -> list[int]:
        """Most milli-GPUs that a job could get on a server of the fleet if it may stop no work of the first p levels,
        for each p: what is free, and what stoppable work behind them holds; 0 where no work is taken.

        Raises:
            UsageError: there is no such server.
        """
        with self._lock:
            at, state = self._position(server), self._books.state
            free = state.room.item(col.A_FREE, 0, at)
            return [free + held for held in state.reclaim[col.C_MGPU, :, at].tolist()]

    def over_booked(self) -> tuple[str, ...]:
        """The servers on which more runs than they have (see ``Fleet.adopt``), by name. They take no work."""
        with self._lock:
            return tuple(sorted(self._books.over_booked))

    def gpus(self) -> tuple[int, int]:
        """Milli-GPUs of the fleet in use, and all there are."""
        with self._lock:
            state = self._books.state
            return int(state.region[col.R_USED].sum()), int(state.region[col.R_MGPU].sum())

    def _known(self, name: str) -> Running:
        """A running job of the fleet. Raises NotRunning."""
        self._shares_of(name)
        return self._books.current(name)

    def _shares_of(self, name: str) -> tuple[Share, ...]:
        """Shares of a running job of the fleet. Raises NotRunning."""
        shares = self._books.shares_of(name)
        if shares is None:
            raise NotRunning(name)
        return shares

    def _jobs_on(self, server: str) -> tuple[str, ...]:
        """Jobs on a server of the fleet. Raises UsageError if there is no such server."""
        self._position(server)
        return self._books.jobs_on(server)

    def _position(self, server: str) -> int:
        """Position of a server in the fleet's layout. Raises UsageError if there is no such server."""
        at = self._books.position.get(server)
        if at is None:
            raise UsageError(f"the fleet has no server called {server}")
        return at

    def _outside_round(self, what: str) -> None:
        """Raise UsageError for what may not be done during a round of the fleet."""
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
        """Count a change of these servers of the fleet, and of those of jobs whose right has changed with it."""
        self._versions.servers_changed((*servers, *self._books.take_touched()))

    @property
    def ledger(self) -> Ledger:
        """The fleet's ledger of holdings and quotas, to be asked only."""
        return self._books.ledger

    @property
    def quotas(self) -> Quotas:
        """The fleet's quotas of tenants, to be changed by ``set_quota`` only."""
        return self._books.ledger.quotas

    @arg.checked(name=arg.a_text)
    def is_over_quota(self, name: str) -> bool:
        """Whether a running job is beyond the quotas of its tenant now."""
        return self._known(name).over_quota

    @arg.checked(job=arg.a(Job))
    def importance_of(self, job: Job) -> int:
        """The tier in the fleet of a waiting job, or a number beyond all tiers if it would take its tenant over the
        quotas.
        """
        return self._books.importance_of(self._books.level_of(job, self._books.best_right(job)))

    @arg.checked(job=arg.a(Job))
    def short_of_quota(self, job: Job) -> int:
        """Milli-GPUs that quotas lack to cover a waiting job without parts; 0 or less if they cover it."""
        tier, asked = self._books.tiers.index(job.tier), self._books.asked_by_type(job).items()
        return min((self.ledger.short(job.tenant, tier, {kind: mgpu}) for kind, mgpu in asked), default=0)

    def take_restood(self) -> tuple[str, ...]:
        """The running jobs that have come within or beyond their tenant's quotas since the last call."""
        if not self._books.restood:
            return ()
        with self._lock:
            names = tuple(self._books.restood)
            self._books.restood = {}
            return names

    def _freed(self, request: Request) -> int:
        """Number of times that capacity has appeared that the request could use."""
        return int(request.open @ self._books.freed @ (request.mgpu >= 0))

    def _tier_of(self, job: Job) -> int:
        """Position of a job's tier among the fleet's. Raises UsageError if it is none of them."""
        if job.tier not in self._books.tiers:
            raise UsageError(f"job {job.name} has tier {job.tier}; the fleet's tiers are {self._books.tiers}")
        return self._books.tiers.index(job.tier)

    def _commit(
        self, bid: Bid, placed: Sequence[Placement] | None = None, started_ms: int | None = None
    ) -> tuple[str, ...]:
        """``placed``: the bid in positions, by part; None where it comes from outside and has to be checked."""
        books, claimed = self._books, Right.BORROWED if bid.over_quota else Right.WITHIN
        kind = None if len(bid.job.parts) > 1 else books.types.get(bid.gpu_type)
        for right, requests, stops in self._options(bid.job):
            may = right is claimed or (right > claimed and bool(bid.job.parts))
            if may and (kind is None or requests[0].mgpu.item(kind) >= 0) and self._leaves(bid, stops, requests, kind):
                break
        else:
            raise _other_tier(bid)
        if bid.tier != (books.tiers[-1] if bid.over_quota else bid.job.tier):
            raise _other_tier(bid)
        if placed is None:
            placed = booking_of(bid, requests, books)
        running = books.starting(bid.job, bid.shares, started_ms=started_ms)
        if running.over_quota != bid.over_quota:
            raise _other_tier(bid)
        touched = [share.server for share in bid.shares]
        for name in bid.victims:
            touched += [share.server for share in self._shares_of(name)]
        if bid.job.parts:
            held = adoption.merged(holdings_in(self._books, placed, requests))
            self._books.start_parts(running, held, bid.victims, self._in_round)
        else:
            self._books.start(running, requests[0], placed[0], bid.victims, self._in_round)
        self._changed(touched)
        return bid.victims

    def _leaves(self, bid: Bid, stops: Sequence[str], requests: Sequence[Request], kind: int | None) -> bool:
        """Whether the victims of a bid leave its tenant and the fleet's groups as much as these jobs would that have
        to stop. ``kind``: the GPU type of the bid; None for several parts.
        """
        if all(one in bid.victims for one in stops):
            return True
        amounts = {} if kind is None else {bid.gpu_type: requests[0].tasks * requests[0].mgpu.item(kind)}
        return bool(amounts) and self._books.ledger.may_hold_without(bid.job.tenant, amounts, bid.victims)

    @arg.checked(job=arg.a(Job), avoid=arg.texts, preempt=arg.a_flag)
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
        with self._lock, self._operation, self._closed(avoid) if avoid else NOTHING:
            answer, placed = self._answer(job, regions, some=bool(avoid) or not preempt, preempt=preempt)
            if isinstance(answer, Bid):
                self._offered = answer, placed
            return answer

    @contextmanager
    def _closed(self, servers: Collection[str]) -> Iterator[None]:
        """A block in which these servers of the fleet take no work."""
        books = self._books
        places = np.fromiter(map(books.position.get, servers, repeat(-1)), np.int64, len(servers))
        if (places < 0).any():
            unknown = next(server for server in servers if server not in books.position)
            raise UsageError(f"avoid names server {unknown}; the fleet has none of that name")
        places = places[books.state.server[col.S_BLOCKED, places] == 0]
        books.log.append((close_servers, books.state, places, 0))
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
        best: tuple[Bid | Refused, Sequence[Placement] | None] | None = None
        for option in options:
            found = self._answer_by(option, job, open_to, some=some, preempt=preempt)
            if isinstance(found[0], Bid) and not found[0].victims:  # nobody stops for work that could start without
                return found
            if best is None or (isinstance(found[0], Bid) and isinstance(best[0], Refused)):
                best = found
        return best or (Refused(job, BORROWS_TOO_MUCH, code="quota"), None)

    def _answer_by(
        self, option: Option, job: Job, open_to: Bools | None, *, some: bool, preempt: bool
    ) -> tuple[Bid | Refused, Sequence[Placement] | None]:
        """The answer by one of the rights by which a job could start. ``open_to`` [R]: the only regions asked."""
        books, requests = self._books, option.requests
        if open_to is not None:
            asked = requests[0].open & open_to
            if requests[0].open.any() and not asked.any():
                return Refused(job, "none of the regions that are asked holds all of its data", code="regions"), None
            requests = tuple(request._replace(open=asked) for request in requests)
            option = option._replace(requests=requests)
        alone = [not self._failures.known(request) for request in requests]
        remembered = not all(alone)
        if not remembered:
            found = self._bid(job, option, preempt=preempt)
            if found is not None:
                return found
            for at, request in enumerate(requests):
                alone[at] = bool(job.parts) and self._search(request, None, preempt=preempt) is not None
                if not alone[at] and not some:
                    self._failures.remember(request)
        reason, part = why_no_part(books, job, requests, alone) if job.parts else (why_not(books, job, requests[0]), "")
        if reason[1] == "in-use" and not (preempt or remembered):
            reason = "no cluster has room for it without stopping other work", "in-use"
        return Refused(job, *reason, remembered=remembered, part=part), None

    @arg.checked(job=arg.a(Job), started_ms=arg.optional(arg.a_whole(0)))
    def place_and_commit(
        self, job: Job, *, regions: Collection[str] | None = None, started_ms: int | None = None
    ) -> Bid | Refused:
        """Place a job like ``place``, and commit the bid before another thread can change anything. Its ``victims``
        have to be stopped. ``started_ms``: see ``commit``."""
        with self._lock, self._operation:
            answer, placed = self._answer(job, regions)
            if isinstance(answer, Bid):
                self._commit(answer, placed, started_ms)
            return answer

    @arg.checked(job=arg.a(Job), shares=arg.each(arg.a(Share)), victims=arg.texts)
    def bid_on(self, job: Job, shares: tuple[Share, ...], victims: Collection[str] = ()) -> Bid | None:
        """The bid for a job on these very servers and GPUs, with these victims; None if there is no room for it, or it
        may not start there.

        Raises:
            UsageError: see ``place``.
        """
        with self._lock:
            for option in self._options(job):
                stops = tuple(dict.fromkeys((*option.stops, *victims)))
                try:
                    with self._operation:
                        offers = offers_on(self._books, job, option.requests, tuple(shares))
                        bid = self._parts_bid(job, option, offers, NOBODY, stops)
                    if bid is not None:
                        with self.trial():
                            self.commit(bid)
                        return bid
                except UsageError:
                    continue
            return None

    @arg.checked(job=arg.a(Job))
    def bids(self, job: Job) -> tuple[Bid, ...]:
        """The best bid of every region that has one: first the one that ``place`` gives, then the others by
        ``Bid.key``, in which the loss of value does not count."""
        with self._lock, self._operation:
            found, options = list[Bid](), self._options(job)
            for region in np.flatnonzero(options[0].requests[0].open if options else ()).tolist():
                only = np.zeros(len(self._books.regions), np.bool_)
                only[region] = True
                asked = [
                    one._replace(requests=tuple(part._replace(open=only) for part in one.requests)) for one in options
                ]
                here = [bid[0] for option in asked if (bid := self._bid(job, option)) is not None]
                found += [next((bid for bid in here if not bid.victims), here[0])] if here else []
            if len(found) > 1:
                best, _ = self._answer(job, None)
                found.sort(key=lambda bid: (bid != best, bid.key))
            return tuple(found)

    def commit(self, bid: Bid, *, started_ms: int | None = None) -> tuple[str, ...]:
        """Start the bid's job; returns the victims, which no longer hold anything and have to be stopped.

        Args:
            started_ms: time when it starts, by a clock of the caller's; ``fits_by`` needs it of jobs with limits.

        Raises:
            StaleBid: something that the bid touches has changed since it was made.
            UsageError: another fleet made the bid, or it was changed and does not fit the fleet.
        """
        if not isinstance(bid, Bid):
            raise UsageError(f"commit takes a Bid of place or bids, not a {type(bid).__name__}")
        if not isinstance(bid.job, Job):
            raise arg.refuse("job of the bid", bid.job, "a Job")
        if started_ms is not None:
            whole("commit", "started_ms", started_ms)
        with self._lock, self._operation:
            self._versions.check_maker(bid)
            if bid.version == self._versions.now:
                last, placed = self._offered
                return self._commit(bid, placed if bid is last else None, started_ms)
            if not are_named(bid) or self._versions.is_stale(bid, self._books.shares_of):
                raise StaleBid(f"the bid for {bid.job.name} is for an older state of the fleet; ask for a new one")
            try:
                return self._commit(bid, None, started_ms)
            except UsageError as error:
                raise StaleBid(str(error)) from error

    @arg.checked(job=arg.a(Job))
    def explain(self, job: Job) -> tuple[ClusterReport, ...]:
        """Explain, for each cluster, the first constraint that rules a job out, or what admitting it there takes."""
        with self._lock, self._operation:
            books = self._books
            reports = [self._explain(job, option) for option in self._options(job)]
            if not reports:
                return tuple(ClusterReport(name, False, BORROWS_TOO_MUCH, "quota") for name in books.cluster_names)
            return tuple(
                min(same, key=lambda one: (not one.fits, one.code == "victims", one.code == "gpu-type"))
                for same in zip(*reports, strict=True)
            )

    @arg.checked(job=arg.a(Job), now_ms=arg.a_whole(0))
    def fits_by(self, job: Job, now_ms: int, *, regions: Collection[str] | None = None) -> FitsBy | None:
        """Place and time at which a waiting job fits at the latest, whoever waits before it: what runs ends at its
        limit (``Job.limit_ms``), and what the job may stop is not waited for. None where limits do not say; work of
        which nobody said when it started has none. The time of a job of several parts is one at which a trial places
        it; it may fit before.

        Args:
            now_ms: the time, by the clock of ``commit``; jobs of ``Fleet.of`` started at 0.
            regions: the only ones that are asked; None for all.

        Raises:
            UsageError: see ``place``.
        """
        with self._lock:
            self._options(job)
            if job.parts:
                return parts_fit_by(self, self._books, job, now_ms, regions)
            with self._operation:
                return fits_by(self._books, job, now_ms, regions)

    def _explain(self, job: Job, option: Option) -> tuple[ClusterReport, ...]:
        """Reports of each cluster of the fleet for a job by one of its rights."""
        books, stops = self._books, ", ".join(option.stops)
        with books.without(option.stops, fresh=self._in_round):
            asked = option.requests
            found = explain_parts(books, job, asked) if job.parts else explain(books, job, asked[0])
        words = f"it fits if {stops} stop{'' if option.stops[1:] else 's'}, lest its tenant or its group holds too much"
        return tuple(replace(one, words=words, code="victims") if stops and one.fits else one for one in found)

    def _bid(self, job: Job, option: Option, *, preempt: bool = True) -> tuple[Bid, Sequence[Placement] | None] | None:
        """The best bid that holds what it takes by this right, or by a better one, and where that is in positions; None
        for one with parts, which has to be checked."""
        books, (right, requests, stops) = self._books, option
        if stops and not preempt:
            return None
        price, version = books.price_of(job), (self._versions.now, self._versions.name)
        found: PartsBid | BestBid | None
        with books.without(stops, fresh=self._in_round) if stops else NOTHING:
            if job.parts:
                found = best_bid_for_parts(books, job, requests, price, self._style, self._in_round, preempt=preempt)
            else:
                found = self._search(requests[0], price, preempt=preempt)
        if isinstance(found, BestBid):
            if stops and len(found.victims):
                stops, found = self._with_fewer_stops(job, option, found, price)
            return bid_of(job, right, (found,), found.victims, price, books, *version, stops), (found.placed,)
        bid = None if found is None else self._parts_bid(job, option, found.by_part, found.victims, stops)
        return None if bid is None else (bid, None)

    def _parts_bid(
        self, job: Job, option: Option, offers: Sequence[BestBid], victims: Ints, stops: Sequence[str]
    ) -> Bid | None:
        """The bid that holds these offers for a job of several parts by a right, or by a better one. ``stops``: further
        victims."""
        books = self._books
        amounts = books.amounts(shares_in(books, job, offers))
        held = books.right_of(job, amounts)
        lacks = books.stops_for(job, amounts, held)
        if held > option.right or lacks is None or not set(stops).issuperset(lacks):
            return None
        price, version = books.price_of(job), (self._versions.now, self._versions.name)
        return bid_of(job, held, offers, victims, price, books, *version, stops)

    def _with_fewer_stops(
        self, job: Job, option: Option, found: BestBid, price: NDArray[np.float64] | None
    ) -> tuple[tuple[str, ...], BestBid]:
        """Stops of a bid, and the bid, without those stops of its option that are needless, as the victims that make
        room leave its tenant or its group enough, too.
        """
        books, stops, group_type = self._books, option.stops, self._books.layout.group_type
        kind = group_type.item(found.group)
        amounts = {books.type_names[kind]: option.requests[0].tasks * option.requests[0].mgpu.item(kind)}
        for name in reversed(stops):
            others = (*[one for one in stops if one != name], *books.names_of(found.victims.tolist()))
            if books.ledger.may_hold_without(job.tenant, amounts, others):
                with books.without(others, fresh=self._in_round):
                    again = self._search(option.requests[0], price, preempt=False)
                if again is not None and group_type.item(again.group) == kind:
                    stops, found = others, again
        return stops, found

    def _search(self, request: Request, price: NDArray[np.float64] | None, *, preempt: bool = True) -> BestBid | None:
        """Best bid of the engine for a request, with victims only if it may preempt."""
        books = self._books
        if not preempt:
            return place_free(books.state, request, books.everywhere, self._style, price)
        return place_priced(books.state, request, books.everywhere, self._style, price, books.limits)

    @arg.checked(budget=arg.a(MoveBudget), movable=arg.optional(arg.mapping_of(arg.a_price)))
    def defragment(
        self, budget: MoveBudget, waiting: Iterable[Job] = (), *, movable: Mapping[str, float] | None = None
    ) -> MovePlan:
        """A plan to move running jobs (checkpoint, and restart elsewhere) so that waiting jobs fit, or, if none waits,
        so that free capacity is less scattered. It changes nothing; other threads go on while it is made.

        A job that is moved stays in its region, on its GPU type and as close together as it is, and is moved once. It
        takes free capacity only, its own place included, and nobody is stopped. Each waiting job, by tier and then as
        listed, gets the moves that use up the smallest part of the budget, among those that were tried.

        Args:
            waiting: jobs that do not run; those that fit without moves are part of the plan too.
            movable: running job → GPU-hours that its move loses; None for those that may be stopped
                (``Job.preemptible``), at their GPU-hours at risk, without those of several parts.

        Raises:
            UsageError: a waiting job runs already, occurs twice or has a tier that the fleet does not have, or a
                movable one does not run.
            UnsupportedOption: a waiting or movable job has several parts.
        """
        jobs = objects_in("jobs", waiting, Job)
        with self._lock:
            self._outside_round("a plan of moves is made")
            for job in jobs:
                self._tier_of(job)
                if job.parts:
                    raise UnsupportedOption(f"no moves are planned for jobs of several parts, and {job.name} is one")
                if job.name in self._books.running:
                    raise UsageError(f"a job called {job.name} runs already; it cannot wait as well")
            if len({job.name for job in jobs}) < len(jobs):
                raise UsageError("waiting: expected each job once")
            books, versions = self._books.copy(), self._versions
            version, fleet = versions.now, versions.name
        return Defragmentation(books, movable_work(books, movable), budget).plan(jobs, version, fleet)

    @arg.checked(plan=arg.a(MovePlan))
    def apply(self, plan: MovePlan) -> None:
        """Make the moves of a plan, and start the waiting jobs that fit. The hosts have to make the moves step by
        step, as listed, before these jobs start.

        Raises:
            StaleBid: what the plan touches has changed since it was made; nothing has changed then.
            UsageError: another fleet made the plan, or it was changed and does not fit the fleet; likewise.
        """
        with self._lock, self._operation:
            self._outside_round("moves are made")
            self._versions.check_maker(plan)
            arg.each(arg.a(JobMove))("moves of the plan", plan.moves)
            arg.each(arg.a(Bid))("starts of the plan", plan.starts)
            stale = StaleBid("the plan of moves is for an older state of the fleet; ask for a new one")
            if plan.version != self._versions.now and self._touched_since(plan):
                raise stale
            try:
                with self.trial():
                    self._carry_out(plan)
            except UsageError as error:
                if plan.version != self._versions.now:
                    raise stale from error
                raise
            self._carry_out(plan)

    def _touched_since(self, plan: MovePlan) -> bool:
        """Whether a server of a plan of moves has changed since the plan was made."""
        shares = [share for move in plan.moves for share in (*move.source, *move.target)]
        shares += [share for bid in plan.starts for share in bid.shares]
        return self._versions.changed_since(plan.version, (share.server for share in shares))

    def _carry_out(self, plan: MovePlan) -> None:
        """Carry out a plan of moves in the fleet step by step, then start its waiting jobs."""
        for _, step in groupby(plan.moves, key=lambda move: move.step):
            moves = tuple(step)
            for move in moves:
                self._move(move)
            for move in moves:
                if any(share.server in self._books.over_booked for share in move.target):
                    raise UsageError(f"the move of {move.job}: its target has no room")
        for bid in plan.starts:
            self._commit(bid)

    def _move(self, move: JobMove) -> None:
        """Carry out one move of a running job. Raises UsageError where the fleet has it elsewhere or has no room."""
        owner, books = f"the move of {move.job}", self._books
        running = self._known(move.job)
        if running.job.parts:
            raise UsageError(f"{owner}: a job of several parts is not moved")
        if running.shares != move.source:
            raise UsageError(f"{owner}: it is not where the plan has it")
        servers_of(owner, move.target, books)
        if sum(share.tasks for share in move.target) != running.job.tasks:
            raise UsageError(f"{owner}: the target has not all of its {running.job.tasks} tasks")
        width, task = books.state.row_device.shape[1], task_of(running, books)
        for share in move.target:
            check_need(
                owner, share, share.tasks, task[GPU], devices_of(owner, share, books.servers[share.server], width)
            )
        held = moved_holdings(running, move.target, books)
        if any(share.server in books.blocked for share in move.target):
            raise UsageError(f"{owner}: its target takes no work")
        books.swap(replace(running, shares=move.target), held, False)
        self._changed(share.server for share in (*move.source, *move.target))
