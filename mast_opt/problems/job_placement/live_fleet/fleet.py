"""Live fleet (job placement): ask it where a job should go, report what happens, from any thread.

fleet = Fleet(servers, tiers=(0, 1, 2), replicas={"logs": {"eu-west"}})
answer = fleet.place(Job("train-1", tier=0, tasks=4, mgpu=8000, datasets=("logs",)))
if isinstance(answer, Bid):
    stop(fleet.commit(answer))      # the victims, to be checkpointed and stopped
…
fleet.release("train-1")
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from mast_opt.core.arguments import a, a_flag, a_text, anything, checked, mapping_of, optional, prices
from mast_opt.core.errors import UnsupportedOption, UsageError
from mast_opt.core.ledger import Right
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.problems.job_placement.engine.arrival_mix import ArrivalMix
from mast_opt.problems.job_placement.engine.limits import DEFAULT_SAMPLING, FillSampling, SearchLimits
from mast_opt.problems.job_placement.engine.negative_cache import NegativeCache
from mast_opt.problems.job_placement.exhaustive.batch_state import mix_of
from mast_opt.problems.job_placement.live_fleet.adoption import (
    check_in_use,
    holdings_of,
    merged,
    need_is_unknown,
    shares_of,
)
from mast_opt.problems.job_placement.live_fleet.answers import Drained, Refused
from mast_opt.problems.job_placement.live_fleet.conversion import books_of
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.placing_fleet import BORROWS_TOO_MUCH, PlacingFleet
from mast_opt.problems.job_placement.live_fleet.resizing import enlarged, need_of, shrunk
from mast_opt.problems.job_placement.live_fleet.settings import by_loss, sound_limits, sound_sampling
from mast_opt.problems.job_placement.live_fleet.snapshot_format import decoded
from mast_opt.problems.job_placement.live_fleet.types import (
    Job,
    Server,
    Share,
    amount,
    jobs_in,
    servers_in,
    tiers_in,
    whole,
)
from mast_opt.problems.job_placement.problem import JobPlacement


class Fleet(PlacingFleet):
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
            optional(mapping_of(anything))(name, value)
        optional(mapping_of(mapping_of(anything)))("type_quotas", type_quotas)
        servers = servers_in(servers)
        rights = quotas.copy() if isinstance(quotas, Quotas) else Quotas()
        for tenant, mgpu in (flat or {}).items():
            rights.set(tenant, None, Quota(whole(f"tenant {tenant}", "quota", mgpu)))
        for tenant, typed in (type_quotas or {}).items():
            for kind, mgpu in typed.items():
                rights.set(tenant, kind, Quota(whole(f"tenant {tenant}", f"quota of {kind}", mgpu)))
        price = None if remote_mb_price is None else amount("the fleet", "remote_mb_price", remote_mb_price)
        mix = ArrivalMix(sound_sampling(sampling)) if by_loss(placement) else None
        books = FleetInventory(servers, tiers_in(tiers), replicas or {}, residency or {}, price, mix, quotas=rights)
        books.expect(jobs_in(expected))
        self._begin(books)

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
    def from_bytes(cls, data: bytes) -> Fleet:
        """A fleet as it was when ``snapshot_bytes`` gave these bytes. Raises UsageError if they are no snapshot, of
        another version of the format, or damaged."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise UsageError(f"from_bytes takes bytes, not a {type(data).__name__}")
        fleet = cls.__new__(cls)
        fleet._begin(decoded(bytes(data)))
        return fleet

    @checked(job=a(Job), arrives=a_flag)
    def adopt(self, job: Job, shares: tuple[Share, ...], *, arrives: bool = True) -> tuple[str, ...]:
        """A job runs where its host says, whatever the fleet knew of it and even where there is no room. So a fleet
        learns of work that it did not place, and of work that is elsewhere than it thought. What it knows already
        changes nothing.

        Where it runs, how far apart and at whose expense is not judged; whether it is over its tenant's quota is. A job
        of a new name counts as an arrival in the mix.

        Args:
            arrives: False for a job that ``count_arrival`` has counted.

        Returns:
            The servers of the job on which more runs now than they have, see ``over_booked``. They take no work until
            enough of it has ended; the fleet stops nothing by itself.

        Raises:
            UsageError: the fleet has no such tier, server or GPU, or the shares are not all tasks of the job; nothing
                has changed then.
        """
        with self._lock:
            self._outside_round("a job is adopted")
            books, old = self._books, self._books.running.get(job.name)
            self._tier_of(job)
            held = holdings_of(job, shares, books)
            running = books.starting(job, shares_of(job, shares, held))
            if old is None or replace(running, number=old.number) != old or need_is_unknown(old, books):
                if old is not None:
                    books.end(job.name)
                books.hold(running, merged(held))
                if old is None and arrives:
                    books.count_arrival(job)
                touched = (*running.shares, *(() if old is None else old.shares))
                self._changed(share.server for share in touched)
            return tuple(server for server in running.servers if server in books.over_booked)

    @checked(job=a(Job))
    def count_arrival(self, job: Job) -> None:
        """Count a job in the mix of arrivals, as if it had come and ended."""
        with self._lock:
            self._books.count_arrival(job)

    @checked(name=a_text)
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
        with self._lock:
            books, old = self._books, self._known(name)
            if old.job.parts:
                raise UnsupportedOption(
                    f"{name} has parts and is not resized; release it, and place it as it should be"
                )
            job = replace(old.job, tasks=tasks)
            if job.tasks == old.job.tasks:
                return old.shares
            mgpu = need_of(old, books)
            kind = books.servers[old.shares[0].server].gpu_type
            right = books.right_of(job, {kind: job.tasks * mgpu})
            if right is Right.OVER and job.tasks > old.job.tasks:
                return Refused(job, BORROWS_TOO_MUCH, code="quota")
            level = books.level_of(job, right)
            leaving = books.blocked | books.over_booked
            shares = (
                shrunk(old, job.tasks, mgpu, leaving)
                if job.tasks < old.job.tasks
                else enlarged(replace(old, tier=max(level, old.tier)), job.tasks, mgpu, books)
            )
            if shares is None:
                words = f"the servers near it have no room for {job.tasks - old.job.tasks} further tasks"
                return Refused(job, words, code="no-room")
            books.swap(books.starting(job, shares, old.number), holdings_of(job, shares, books), self._in_round)
            self._changed({share.server: None for share in (*old.shares, *shares)})
            return shares

    @checked(name=a_text)
    def release(self, name: str) -> None:
        """A job has ended. Raises NotRunning if no job of that name runs: it may have been stopped for another one."""
        with self._lock:
            servers = [share.server for share in self._shares_of(name)]
            self._books.end(name)
            self._changed(servers)

    @checked(gpu_hours=prices)
    def set_at_risk(self, gpu_hours: Mapping[str, float]) -> None:
        """Set the GPU-hours that would be lost if running jobs were stopped now: they grow with time and fall at a
        checkpoint.

        Args:
            gpu_hours: of each of these jobs.

        Raises:
            UsageError: one of them does not run; nothing has changed then.
        """
        with self._lock:
            servers = [share.server for name in gpu_hours for share in self._shares_of(name)]
            self._books.set_at_risk(gpu_hours)
            self._changed(servers)

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
            self._books.take_again(server)
            self._changed((server,))

    @checked(server=a_text)
    def drain(self, server: str) -> Drained:
        """Cordon a server and stop the jobs on it that may be stopped."""
        with self._lock:
            there = self._jobs_on(server)
            stopped = tuple(name for name in there if self._books.running[name].stoppable)
            self._stop_taking(server, stopped)
            return Drained(stopped, tuple(name for name in there if name not in stopped))

    def add_servers(self, servers: Iterable[Server]) -> None:
        """Raises UsageError, with nothing changed, for a name that is taken or a cluster in two regions."""
        with self._lock:
            self._outside_round("servers are added")
            self._books.change_servers(servers_in(servers), ())
            self._failures = NegativeCache(self._freed)
            self._versions.all_changed()

    @checked(server=a_text)
    def set_capacity(
        self, server: str, *, gpus: int | None = None, cpu_mcores: int | None = None, memory_mib: int | None = None
    ) -> None:
        """A server has other amounts from now on; None leaves one as it is. GPUs are added after the last one, and
        taken away from there.

        Raises:
            UsageError: less than what runs there holds, or a GPU that is in use would go; nothing has changed then.
        """
        with self._lock:
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
            check_in_use(self._books, old, new)
            if self._books.set_supply(new):
                self._versions.all_changed()
                self._failures = NegativeCache(self._freed)
            else:
                self._changed((server,))

    @checked(server=a_text)
    def remove_server(self, server: str) -> None:
        """Raises UsageError, with nothing changed, if something still runs there."""
        with self._lock:
            self._outside_round("a server is removed")
            there = self._jobs_on(server)
            if there:
                raise UsageError(f"{server} still runs {', '.join(there[:5])}; drain it and wait, or let it fail")
            self._books.change_servers((), (server,))
            self._failures = NegativeCache(self._freed)
            self._versions.all_changed()

    def set_search_limits(self, limits: SearchLimits) -> None:
        """Limit the search for the victims of one job from now on, while other threads wait. With smaller limits, fewer
        bids are proven to be the best, and those that are not may stop more than needed. Raises UsageError for a number
        out of range."""
        sound_limits(limits)
        with self._lock:
            self._books.limits = limits

    @checked(dataset=a_text)
    def set_replicas(self, dataset: str, regions: Collection[str]) -> None:
        """The regions that hold a dataset from now on. Raises UsageError for a string instead of a collection."""
        with self._lock:
            self._books.set_replicas(dataset, regions)
            self._versions.rules_changed()

    @checked(tenant=a_text, gpu_type=optional(a_text))
    def set_quota(self, tenant: str, mgpu: int | None, gpu_type: str | None = None) -> None:
        """The milli-GPUs that a tenant may use from now on, of one GPU type or (None) of all together; ``mgpu`` None
        for no limit. Jobs that run come within or beyond it at once.

        Raises:
            UsageError: it is no number of milli-GPUs, or a round has not ended yet.
        """
        amount = None if mgpu is None else Quota(whole(f"tenant {tenant}", "quota", mgpu))
        with self._lock:
            self._outside_round("a quota is changed")
            quotas = self._books.ledger.quotas.copy()
            quotas.set(tenant, gpu_type, amount)
            self._books.set_quotas(quotas)
            self._changed(())

    def _stop_taking(self, server: str, ended: tuple[str, ...]) -> None:
        """End these jobs and let the server take no more."""
        touched = {share.server for name in ended for share in self._books.running[name].shares}
        for name in ended:
            self._books.end(name)
        self._books.stop_taking(server)
        self._changed({server, *touched})
