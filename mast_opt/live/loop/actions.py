"""Actions of policies: every decision becomes an event of the turn."""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused
from mast_opt.problems.job_placement.live_fleet.types import Share
from mast_opt.problems.job_placement.units import WHOLE


class Actions:
    """Actions of a policy: the only way to decide. Every decision becomes an event of the turn.

    Args:
        record: applies an event of this turn, and keeps it for the log.
        stack: in which a round of the fleet lasts as long as the turn.
        most: jobs that are placed before it is ``full``; None for any number.
    """

    def __init__(self, state: State, record: Callable[..., None], stack: ExitStack, most: int | None = None) -> None:
        self._state = state
        self._take = record
        self._stack = stack
        self._left = most
        self._in_round = False
        self._at_risk_known: set[str] = set()
        """Regions of whose running jobs the fleet knows what they would lose now."""
        self.refreshed = 0
        """Number of times that costs of victims have changed; bids from before may be stale."""

    @property
    def full(self) -> bool:
        """Whether the jobs that are placed already are enough for this turn; the policy is asked again at once."""
        return self._left is not None and self._left <= 0

    def place(
        self,
        name: str,
        regions: Collection[str] | None = None,
        gpu_type: str | None = None,
        avoid: Collection[str] = (),
        preempt: bool = True,
        tasks: int | None = None,
    ) -> Bid | Refused:
        """The best bid for a waiting job in these regions and on this GPU type (None: all of them), on none of the
        servers to ``avoid``, and without ``preempt`` with no victims; changes nothing. An elastic job may be placed
        with another number of ``tasks`` than it asks for."""
        record = self._record(name)
        if record.bound:
            regions = (record.bound,)
        job = record.job if gpu_type is None else record.job.on(gpu_type)
        if tasks is not None and tasks != job.tasks:
            job = replace(job, tasks=_allowed(record, tasks))
        answer = self._state.fleet.place(job, regions=regions, avoid=avoid, preempt=preempt)
        if isinstance(answer, Bid) and answer.victims and self._refresh_at_risk(self._regions(record, regions)):
            answer = self._state.fleet.place(job, regions=regions, avoid=avoid)
        return answer

    def place_on(self, name: str, shares: tuple[Share, ...], victims: tuple[str, ...]) -> Bid | None:
        """The bid for a waiting job of several parts on these very GPUs, with these victims; None if it may not start
        there."""
        record = self._record(name)
        if victims:
            self._refresh_at_risk({self._state.jobs[victim].region for victim in victims})
        return self._state.fleet.bid_on(record.job, shares, victims)

    def bids(self, name: str) -> tuple[Bid, ...]:
        """The best bid of every region that has one, the best of all first; changes nothing."""
        record = self._record(name)
        found = self._state.fleet.bids(record.job)
        if any(bid.victims for bid in found) and self._refresh_at_risk(self._regions(record, None)):
            found = self._state.fleet.bids(record.job)
        return tuple(bid for bid in found if not record.bound or bid.region == record.bound)

    def commit(self, bid: Bid, runner_up: Bid | None = None) -> tuple[str, ...]:
        """Place the job of a bid; returns the victims, which stop."""
        record = self._record(bid.job.name)
        placed = ev.Placed(
            record.name,
            record.attempt + 1,
            bid.region,
            bid.cluster,
            bid.shares,
            bid.victims,
            ev.bid_key(bid.key),
            None if runner_up is None else ev.bid_key(runner_up.key),
        )
        for victim in bid.victims:  # who shares GPUs with a victim stops first
            if partner := self._state.jobs[victim].partner:
                self.preempt(partner, f"for {record.name}")
        if bid.victims and not self._in_round:  # a round costs as much as the fleet is large
            self._in_round = True
            self._stack.enter_context(self._state.fleet.round())
        self._take(placed, bid)
        if self._left is not None:
            self._left -= 1
        for victim in bid.victims:
            stopped = self._state.jobs[victim]
            self._take(ev.StopAsked(victim, stopped.attempt, f"for {record.name}"))
        return bid.victims

    def share(self, name: str, other: str) -> None:
        """Place a waiting job on the GPUs of another one, which goes on. Both take whole GPUs, have as many tasks, and
        need no cores and no memory; the data of the waiting job is in that region.

        Raises:
            UsageError: they cannot share GPUs.
        """
        record, holder = self._record(name), self._state.jobs[other]
        if holder.state not in (JobState.STARTING, JobState.RUNNING) or holder.partner:
            raise UsageError(f"job {other} has no GPUs to share: it holds none, or shares them already")
        kind = self._state.inventory.server_of[holder.shares[0].server].gpu_type
        if not _alike(record.spec, holder.spec, kind):
            raise UsageError(
                f"jobs {name} and {other} cannot share GPUs; expected whole GPUs, as many tasks, and no cores or memory"
            )
        if holder.region not in Snapshot(self._state, ()).admissible(record):
            raise UsageError(f"job {name} cannot run in {holder.region}, where job {other} does")
        cluster = self._state.inventory.server_of[holder.shares[0].server].cluster
        self._take(ev.Shared((other, name), holder.region, cluster, holder.shares))
        self._take(ev.Placed(name, record.attempt + 1, holder.region, cluster, holder.shares))

    def resize(self, name: str, tasks: int) -> bool:
        """Give a running job other tasks; those that go on stay where they are. It restarts with what it has done, see
        ``events.Resized``. A job that grows takes free GPUs of its cluster and type, see ``Fleet.resize``.

        Returns:
            Whether there is room, also on servers where others still stop: if not, nothing changes.

        Raises:
            UsageError: it does not run, has its GPUs in common with another job, or may not have so many tasks.
        """
        record, state = self._state.jobs[name], self._state
        if record.state is not JobState.RUNNING or record.partner:
            raise UsageError(f"job {name} is {record.state.value}, or shares its GPUs; it cannot be resized")
        with state.fleet.trial():
            shares = state.fleet.resize(name, _allowed(record, tasks))
        if isinstance(shares, Refused) or state.waits_for_others(record, shares):
            return False
        self._take(ev.Resized(name, record.attempt, tasks, shares))
        return True

    def preempt(self, name: str, why: str) -> None:
        """Ask a job that starts or runs to stop. It returns to the queue when it has."""
        self._take(ev.StopAsked(name, self._state.jobs[name].attempt, why))

    def bind(self, name: str, region: str) -> None:
        """Bind a job to a region: from now on it may run in no other."""
        if region not in self._state.inventory.supply_mgpu:
            raise UsageError(
                f"job {name} cannot be bound to {region}; expected one of {sorted(self._state.inventory.supply_mgpu)}"
            )
        self._take(ev.Bound(name, region))

    def copy(self, dataset: str, region: str) -> None:
        """Ask for a replica of a dataset in a region, from one that holds it whole."""
        data = self._state.datasets
        sources = data.whole_in(dataset)
        if not sources or dataset not in data.size_mb:
            raise UsageError(f"dataset {dataset} cannot be copied; no region holds it whole, or its size is not known")
        if region in sources or (dataset, region) in data.copying:
            raise UsageError(f"dataset {dataset} is in {region} already, or on its way")
        if not data.may_be_in(dataset, region):
            raise UsageError(f"dataset {dataset} cannot be copied to {region}, which is outside its residency")
        if not data.has_room(region, data.size_mb[dataset]):
            raise UsageError(f"dataset {dataset} cannot be copied to {region}, which has no room for it")
        source = next(one for one in self._state.inventory.supply_mgpu if one in sources)
        self._take(ev.CopyAsked(dataset, source, region, data.size_mb[dataset]))

    def drop(self, dataset: str, region: str) -> None:
        """Delete the replica of a dataset in a region."""
        whole = self._state.datasets.whole_in(dataset)
        if region not in whole or len(whole) < 2:
            raise UsageError(f"dataset {dataset} cannot be deleted in {region}; it is not there, or nowhere else")
        self._take(ev.ReplicaDropped(dataset, region))

    def promise(self, name: str, region: str, by_ms: int | None, servers: tuple[str, ...]) -> None:
        """Give a waiting job a reservation, or a better one; see ``events.Promised``. That it is kept is up to the
        policy."""
        self._take(ev.Promised(name, region, by_ms, servers))

    def end_promise(self, name: str, why: str) -> None:
        """End the reservation of a waiting job for one of ``events.PROMISES_END``."""
        self._take(ev.PromiseEnded(name, why))

    def mark_inadmissible(self, name: str, why: str, code: str) -> None:
        """Take a waiting job out of the queue until ``requeue``. ``code`` is that of ``Refused``."""
        self._take(ev.Refused(name, why, code))

    def requeue(self, name: str) -> None:
        """Queue a held job again, which a policy had taken out of the queue."""
        self._take(ev.Queued(name))

    def _record(self, name: str) -> JobRecord:
        """Record of a job that a policy may place: one that waits. Raises UsageError."""
        record = self._state.jobs[name]
        if not record.waits:
            raise UsageError(f"job {name} is {record.state.value}; only a queued job can be placed")
        return record

    def _regions(self, record: JobRecord, asked: Collection[str] | None) -> Collection[str]:
        """The regions in which a job may have victims."""
        return Snapshot(self._state, ()).admissible(record) if asked is None else asked

    def _refresh_at_risk(self, regions: Collection[str]) -> bool:
        """Give the fleet what every job in these regions that may be stopped would lose now, once in a turn. False if
        it has that."""
        unknown = set(regions) - self._at_risk_known
        if unknown:
            self._at_risk_known |= unknown
            self._state.fleet.look_at_work(unknown, self._state.now_ms)
            self.refreshed += 1
        return bool(unknown)


def _allowed(record: JobRecord, tasks: int) -> int:
    """A number of tasks that an elastic job may have. Raises UsageError."""
    least, most = record.spec.sizes
    if not least <= tasks <= most:
        raise UsageError(f"job {record.name} cannot have {tasks} tasks; expected {least} to {most}")
    return tasks


def _alike(one: JobSpec, other: JobSpec, gpu_type: str) -> bool:
    """Whether two jobs could share the same GPUs. Cores and memory are not shared, and would have to be found."""
    return (
        not one.parts
        and not other.parts
        and one.tasks == other.tasks
        and all(
            (spec.mgpu if spec.gpu_types is None else spec.gpu_types.get(gpu_type)) == WHOLE
            and not spec.cpu_mcores
            and not spec.memory_mib
            for spec in (one, other)
        )
    )
