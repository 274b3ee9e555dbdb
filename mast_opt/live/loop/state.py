"""State of the loop: a fold over the events of its log. No clock, no randomness, no I/O."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from mast_opt.core.errors import MastOptError
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.cluster_use import ClusterUse
from mast_opt.live.loop.datasets import Datasets
from mast_opt.live.loop.demand import Demand
from mast_opt.live.loop.fleet_work import FleetWork
from mast_opt.live.loop.handovers import Handovers
from mast_opt.live.loop.inventory import Inventory
from mast_opt.live.loop.job_states import HOLDING, WAITING, JobState
from mast_opt.live.loop.jobs import JobClasses, JobRecord
from mast_opt.live.loop.plans import Plans
from mast_opt.live.loop.state_digest import digest_of
from mast_opt.live.loop.tenants import Tenants
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Server, Share


class State:
    """State of a fleet and its jobs after so many events.

    The fleet holds what is promised: a server is free for the next job as soon as the last one has been asked to stop.
    The next job starts when every job that was there has stopped, which its ``blockers`` say.

    Args:
        servers: with which the fleet begins, empty; ``opening`` puts them in service.
        tiers, replicas, quotas, placement: as in ``Fleet``.
    """

    def __init__(
        self,
        servers: Iterable[Server],
        *,
        tiers: Iterable[int] = (0, 1, 2, 3),
        replicas: Mapping[str, Collection[str]] | None = None,
        quotas: Mapping[str, int] | Quotas | None = None,
        placement: str = "fragmentation",
    ) -> None:
        servers, tiers = tuple(servers), tuple(tiers)
        fleet = Fleet(servers, tiers=tiers, replicas=replicas, quotas=quotas, placement=placement)
        self.seq = 0
        """Number of the last event."""
        self.now_ms = 0
        self.jobs: dict[str, JobRecord] = {}
        """Every job whose end is not known, by the order of submission."""
        self.jobs_of: dict[str, int] = {}
        """Tenant → how many of these it has."""
        self.held: dict[str, JobRecord] = {}
        """The jobs that a policy has taken out of the queue."""
        self.readers: dict[str, dict[str, JobRecord]] = {}
        """Dataset → the jobs that read it, by the order of submission."""
        self.submitted = 0
        self.tenants = Tenants()
        self.inventory = Inventory(fleet, sorted(set(tiers)), servers)
        self.reclaimable = self.inventory.reclaimable
        self.work = FleetWork(self.inventory)
        self.datasets = Datasets(replicas or {})
        self.demand = Demand()
        self.use = ClusterUse()
        self.plans = Plans()
        self._classes = JobClasses()
        self.rules = 0
        """Number of times that replicas or quotas have changed."""
        self._handovers = Handovers()
        self._startable: list[str] = []
        self._never_started: list[str] = []

    def apply(self, seq: int, at_ms: int, event: ev.Event, bid: Bid | None = None) -> None:
        """Fold the next event of the log into the state.

        Args:
            bid: of this fleet for a ``Placed``, which commits it; without it the fleet adopts what the event says.

        Raises:
            CorruptLog: the event does not fit; the state is then of no further use.
        """
        if seq != self.seq + 1:
            raise ev.CorruptLog(seq, f"it follows event {self.seq}")
        if at_ms < self.now_ms:
            raise ev.CorruptLog(seq, f"its time {at_ms} ms lies before {self.now_ms} ms")
        self.seq, self.now_ms = seq, at_ms
        handler = _HANDLERS.get(type(event))
        try:
            if handler is not None:
                handler(self, event)
            elif isinstance(event, ev.Placed):
                self._placed(event, bid)
            self.follow_rights()
        except ev.Unfit as unfit:
            raise ev.CorruptLog(seq, str(unfit)) from None

    @property
    def fleet(self) -> Fleet:
        """The fleet, see ``Inventory.fleet``."""
        return self.inventory.fleet

    @property
    def quotas(self) -> Quotas:
        """The quotas of tenants, as the log has set them."""
        return self.fleet.quotas

    def follow_rights(self) -> None:
        """Take in which running jobs have come within or beyond their tenant's quotas."""
        for name in self.inventory.lagging.take_restood():
            record = self.jobs.get(name)
            if record is not None and record.state in (JobState.STARTING, JobState.RUNNING) and not record.is_guest:
                self._restand(record, over=self.fleet.is_over_quota(name))

    def opening(self) -> tuple[ev.ServerUp, ...]:
        """The events that put the servers of the constructor in service, with which a log begins."""
        return self.inventory.opening()

    def take_startable(self) -> tuple[JobRecord, ...]:
        """The jobs that may start now since their last blocker has gone, or that never had one, since the last call."""
        names, self._startable = self._startable, []
        records = (self.jobs.get(name) for name in names)
        return tuple(one for one in records if one and one.state is JobState.STARTING and not one.blockers)

    def take_never_started(self) -> tuple[JobRecord, ...]:
        """The jobs that were asked to stop before anybody was asked to start them, since the last call."""
        names, self._never_started = self._never_started, []
        records = (self.jobs.get(name) for name in names)
        return tuple(record for record in records if record and record.state is JobState.STOPPING)

    def digest(self) -> str:
        """Digest of the loop's state, equal for equal states: of a log that was lived through and of one that was read
        again.
        """
        return digest_of(self)

    # --- jobs ---

    def _submitted(self, event: ev.Submitted) -> None:
        """Fold in the submission of a job. Raises CorruptLog if its name is taken."""
        if event.job in self.jobs:
            raise self._corrupt(f"job {event.job} is there already")
        name, spec, now = event.job, event.spec, self.now_ms
        of = self._classes.of(name, spec)
        self.jobs[name] = JobRecord(name, self._classes.shared(spec), of, self.submitted, now, since_ms=now)
        self.jobs_of[spec.tenant] = self.jobs_of.get(spec.tenant, 0) + 1
        for dataset in spec.datasets:
            self.readers.setdefault(dataset, {})[name] = self.jobs[name]
        self.submitted += 1
        self.demand.submitted(of.demand, of.asked_mgpu, spec.datasets, now)

    def _cancelled(self, event: ev.Cancelled) -> None:
        """Fold in that a job is cancelled: one that waits is forgotten, one that runs has to stop first."""
        record = self._known(event.job)
        if record.state in WAITING:
            self._forget(record)
            return
        record.cancelled = True

    def _refused(self, event: ev.Refused) -> None:
        """Fold in that a policy holds a job that waits: it is inadmissible."""
        record = self._in(event.job, *WAITING)
        record.state, record.held = JobState.HELD, event.reason
        self.held[record.name] = record

    def _queued(self, event: ev.Queued) -> None:
        """Fold in that a held job is queued again."""
        record = self._in(event.job, *WAITING)
        record.state, record.held = JobState.QUEUED, ""
        self.held.pop(record.name, None)

    def _bound(self, event: ev.Bound) -> None:
        """Fold in that a job that waits is bound to a region."""
        self._in(event.job, *WAITING).bound = event.region

    def _promised(self, event: ev.Promised) -> None:
        """Fold in a promise of a place to a job that waits. Raises CorruptLog."""
        record = self._in(event.job, JobState.SUBMITTED, JobState.QUEUED)
        if event.region not in self.inventory.supply_mgpu or (event.by_ms is not None and event.by_ms < self.now_ms):
            raise self._corrupt(f"job {event.job} cannot be promised a place in {event.region} at {event.by_ms} ms")
        record.promise = event

    def _promise_ended(self, event: ev.PromiseEnded) -> None:
        """Fold in the end of a promise to a job that waits. Raises CorruptLog."""
        record = self._in(event.job, *WAITING)
        if record.promise is None or event.why not in ev.PROMISES_END:
            raise self._corrupt(f"job {event.job} has no promise that ends by {event.why!r}")
        record.promise = None

    def _placed(self, event: ev.Placed, bid: Bid | None) -> None:
        """Fold in the placement of a job: it takes its place in the fleet, and its victims stop."""
        record = self._next_attempt(event)
        if record.partner and event.shares != self.jobs[record.partner].shares:
            raise self._corrupt(f"job {record.name} shares the GPUs of {record.partner}, and is placed elsewhere")
        if record.partner:
            record.is_guest = True
        elif bid is not None:
            self.fleet.commit(bid)
        else:  # victims go last, as they count towards the quota of their tenant when the bid is made
            self.work.adopt(record.on(event.shares), event.shares)
            for victim in event.victims:
                self.work.release(victim)
        for victim in event.victims:
            self._stop(self._in(victim, JobState.STARTING, JobState.RUNNING))
        self._hold(record, event)
        if self._handovers.begin(record):
            self._startable.append(record.name)

    def _adopted(self, event: ev.Adopted) -> None:
        """Fold in that a host reports a running job. Reality wins: it runs, whether there is room for it or not."""
        record = self._next_attempt(event)
        try:
            self.work.adopt(record.job, event.shares)
        except MastOptError as error:
            raise self._corrupt(str(error)) from None
        self._hold(record, event)
        self._run(record)

    def _next_attempt(self, event: ev.Placed | ev.Adopted) -> JobRecord:
        """The record of a job that is placed, which has to wait."""
        record = self._in(event.job, *WAITING)
        if event.attempt != record.attempt + 1:
            raise self._corrupt(f"attempt {event.attempt} of job {event.job} follows attempt {record.attempt}")
        return record

    def _hold(self, record: JobRecord, event: ev.Placed | ev.Adopted) -> None:
        """Let a job hold the shares of servers that an event gives it."""
        record.state, record.attempt, record.promise = JobState.STARTING, event.attempt, None
        self.held.pop(record.name, None)
        record.resized = ()
        record.region, record.shares = event.region, event.shares
        if not record.is_guest:
            self._take(record)

    def _resized(self, event: ev.Resized) -> None:
        """Fold in that a running job has other tasks. Raises CorruptLog where it may not, or others still stop."""
        record = self._attempt(event.job, event.attempt, JobState.RUNNING)
        (least, most), before, held_ms = record.spec.sizes, record.shares, self.now_ms - record.since_ms
        if record.partner or event.tasks == record.tasks or not least <= event.tasks <= most:
            raise self._corrupt(f"job {record.name} cannot have {event.tasks} tasks instead of {record.tasks}")
        if self.waits_for_others(record, event.shares):
            raise self._corrupt(f"job {record.name} grows where others have not stopped")
        try:
            self.work.resize(replace(record.job, tasks=event.tasks), event.shares)
        except MastOptError as error:
            raise self._corrupt(str(error)) from None
        self._count(record, -1)
        record.attained_mgpu_ms += record.mgpu * held_ms
        record.resized = (*record.resized, (self.now_ms, record.tasks))
        record.shares = event.shares
        self._take(record)
        record.attained_mgpu_ms -= record.mgpu * held_ms  # of which it counts ``mgpu`` since it began
        self.tell_work(record)
        for share in before:
            self.inventory.shrink(share.server)

    def waits_for_others(self, record: JobRecord, shares: tuple[Share, ...]) -> bool:
        """Whether a job that is to have these shares gets more of a server where others still stop."""
        had = {share.server: share.tasks for share in record.shares}
        return any(share.tasks > had.get(share.server, 0) and self._handovers.busy(share.server) for share in shares)

    def _shared(self, event: ev.Shared) -> None:
        """Fold in that two jobs are to have the same GPUs: the first holds them, the second is about to be placed
        there.
        """
        holder = self._in(event.jobs[0], JobState.STARTING, JobState.RUNNING)
        guest = self._in(event.jobs[1], *WAITING)
        if holder.partner or guest.partner or holder.shares != event.shares:
            raise self._corrupt(f"job {guest.name} cannot share the GPUs of job {holder.name}")
        holder.partner, guest.partner = guest.name, holder.name

    def _started(self, event: ev.Started) -> None:
        """Fold in that a job runs. Raises CorruptLog where others still stop on its servers."""
        record = self._attempt(event.job, event.attempt, JobState.STARTING)
        if record.blockers:
            raise self._corrupt(f"job {record.name} starts where {min(record.blockers)} has not stopped")
        self._run(record)

    def _run(self, record: JobRecord) -> None:
        """Let a job run that has waited until now."""
        record.queued_ms += self.now_ms - record.since_ms
        record.state, record.since_ms = JobState.RUNNING, self.now_ms
        self.tell_work(record)

    def tell_work(self, record: JobRecord) -> None:
        """Tell the fleet what stopping a job that runs and may be stopped would lose: its work since the last
        checkpoint, or since it began to work."""
        if record.state is JobState.RUNNING and not record.is_guest:
            known = record.stoppable_tier is not None
            self.work.set_work(record.name, record.began_ms if known else -1, record.spec.checkpoint_ms)

    def catch_up(self) -> None:
        """Have the live fleet hold what the log's events have put on it. Raises UsageError, see ``Fleet.adopt``."""
        for name in self.work.catch_up():
            self.tell_work(self.jobs[name])

    def _stop_asked(self, event: ev.StopAsked) -> None:
        """Fold in that a job is asked to stop: others may have its place in the fleet."""
        record = self._known(event.job)
        if record.attempt != event.attempt:
            raise self._corrupt(f"attempt {event.attempt} of job {event.job} is over")
        if record.state is JobState.STOPPING:  # a victim, or on a server that is gone: its room is taken already
            return
        self._in(event.job, JobState.STARTING, JobState.RUNNING)
        self._release(record)

    def _stopped(self, event: ev.Stopped) -> None:
        """Fold in that an attempt has stopped: its job is queued again, or forgotten if it was cancelled."""
        record = self._attempt(event.job, event.attempt, *HOLDING)
        if record.state is not JobState.STOPPING:
            self._release(record)
        self._leave(record)
        record.work_ms += event.work_ms
        if record.cancelled:
            self._forget(record)
        else:
            record.state, record.since_ms = JobState.QUEUED, self.now_ms

    def _ended(self, event: ev.Finished | ev.Failed) -> None:
        """Fold in that a job has finished or failed, and forget it."""
        record = self._attempt(event.job, event.attempt, *HOLDING)
        if record.state is not JobState.STOPPING:
            self._release(record)
        self._leave(record)
        self._forget(record)

    def _release(self, record: JobRecord) -> None:
        """Free the place of a job in the fleet for others."""
        if not record.is_guest:
            self.work.release(record.name)
        self._stop(record)

    def _stop(self, record: JobRecord) -> None:
        """Let a job stop, whose place in the fleet has gone; it holds the servers themselves until it has stopped."""
        if record.state is JobState.RUNNING:
            record.attained_mgpu_ms += record.mgpu * (self.now_ms - record.since_ms)
            record.since_ms = self.now_ms
        elif record.blockers:
            self._handovers.withdraw(record)
            self._never_started.append(record.name)
        record.state = JobState.STOPPING
        if not record.is_guest:
            self._count(record, -1)
        self._handovers.stopping(record)
        if record.partner:
            other = self.jobs[record.partner]
            self._part(record, other)
            if other.state is JobState.STARTING:
                self._handovers.wait(other, record.name)

    def _take(self, record: JobRecord) -> None:
        """Let a job hold its shares."""
        record.mgpu = sum(sum(share.gpus.values()) for share in record.shares)
        record.over_quota = self.work.is_over_quota(record.name)
        record.stoppable_tier = self._stoppable_tier(record)
        self._count(record, 1)

    def _count(self, record: JobRecord, sign: int) -> None:
        """Count what a job holds (sign 1), or no more (−1), by tenant and cluster."""
        self.tenants.change(record.spec.tenant, sign * record.mgpu, self.now_ms)
        for share in record.shares:
            server = self.inventory.server_of[share.server]
            self.use.change(server.cluster, server.gpu_type, sign * sum(share.gpus.values()), self.now_ms)
            (self.reclaimable.shrink if sign > 0 else self.reclaimable.grow)(share.server)

    def _restand(self, record: JobRecord, *, over: bool) -> None:
        """Let a job that holds its shares be within or beyond the quotas of its tenant from now on."""
        if over == record.over_quota:
            return
        record.over_quota = over
        record.stoppable_tier = self._stoppable_tier(record)
        for share in record.shares:
            self.reclaimable.grow(share.server)
        self.tell_work(record)

    def _stoppable_tier(self, record: JobRecord) -> int | None:
        return record.spec.tier if record.over_quota or record.spec.preemptible else None

    def _part(self, record: JobRecord, other: JobRecord) -> None:
        """A job has no GPUs in common with another any more; the one that goes on holds them."""
        record.partner = other.partner = ""
        if record.is_guest or not other.is_guest:
            record.is_guest = False
            return
        other.is_guest = False
        self.work.adopt(other.job, other.shares)
        self._take(other)
        self.tell_work(other)
        if other.state is JobState.RUNNING:  # it holds them from now on
            other.attained_mgpu_ms -= other.mgpu * (self.now_ms - other.since_ms)

    def _forget(self, record: JobRecord) -> None:
        """Forget a job that has ended, and count it no longer as demand."""
        self.demand.ended(record.demand, record.asked_mgpu, self.now_ms, record.attained_mgpu_ms)
        self.jobs_of[record.spec.tenant] -= 1
        del self.jobs[record.name]
        for dataset in record.spec.datasets:
            self.readers[dataset].pop(record.name, None)
        self.held.pop(record.name, None)

    def _leave(self, record: JobRecord) -> None:
        """Take a job off its servers, so that others may start or the servers shrink."""
        self._startable += self._handovers.stopped(record)
        for share in record.shares:
            self.inventory.shrink(share.server)
        record.region, record.shares, record.mgpu = "", (), 0
        record.stoppable_tier, record.over_quota = None, False

    # --- servers, data, quotas ---

    def _server_down(self, event: ev.ServerDown) -> None:
        """Fold in that a server is out of service, with which its jobs stop."""
        for record in [self.jobs[name] for name in self.inventory.breaks(event)]:
            if record.partner:  # the fleet does not know of it
                self._stop(self.jobs[record.partner])
            self._stop(record)
        self.reclaimable.shrink(event.server)
        self.plans.server_down(event.server)

    def _move_asked(self, event: ev.MoveAsked) -> None:
        """Fold in that a server is to move to another cluster."""
        self.inventory.move_asked(event)
        self.plans.begun(event)

    def _server_moved(self, event: ev.ServerMoved) -> None:
        """Fold in that a server has moved to another cluster."""
        self.inventory.moved(event)
        self.plans.done(event)

    def _quota_set(self, event: ev.QuotaSet) -> None:
        """Fold in a quota of a tenant."""
        self.rules += 1
        self.set_quota(event)

    def set_quota(self, event: ev.QuotaSet) -> None:
        """Set a quota of the fleet. Raises UsageError, with nothing changed, for one that contradicts others."""
        self.fleet.set_quota(
            *(event.tenant, event.mgpu, event.gpu_type or None),
            borrowing=event.borrowing_mgpu,
            lending=event.lending_mgpu,
            parent=event.parent,
        )

    def _dataset_created(self, event: ev.DatasetCreated) -> None:
        """Fold in that there is a dataset, or that its size, owner or residency has changed."""
        self.datasets.created(event)
        self._replicas_changed(event.dataset)

    def _copy_asked(self, event: ev.CopyAsked) -> None:
        """Fold in that a copy of a dataset begins."""
        self.datasets.copy_asked(event)
        self.plans.begun(event)

    def _copy_ended(self, event: ev.CopyEnded) -> None:
        """Fold in the end of a copy, which may make a replica."""
        if self.datasets.copy_ended(event):
            self._replicas_changed(event.dataset)
        self.plans.done(event)

    def _replica_dropped(self, event: ev.ReplicaDropped) -> None:
        """Fold in the deletion of a replica."""
        self.datasets.dropped(event)
        self._replicas_changed(event.dataset)
        self.plans.begun(event)

    def _replicas_changed(self, dataset: str) -> None:
        """Tell the fleet which regions hold a dataset now, and where jobs may read it."""
        self.rules += 1
        self.fleet.set_replicas(dataset, self.datasets.whole_in(dataset), self.datasets.residency.get(dataset, ()))

    # --- what an event must find ---

    def _known(self, name: str) -> JobRecord:
        """Record of a job of the state. Raises CorruptLog if there is none."""
        if name not in self.jobs:
            raise self._corrupt(f"there is no job {name}")
        return self.jobs[name]

    def _in(self, name: str, *states: JobState) -> JobRecord:
        """Record of a job that is in one of these states. Raises CorruptLog."""
        record = self._known(name)
        if record.state not in states:
            raise self._corrupt(f"job {name} is {record.state.value}")
        return record

    def _attempt(self, name: str, attempt: int, *states: JobState) -> JobRecord:
        """Record of a job that is in this attempt and in one of these states. Raises CorruptLog."""
        record = self._in(name, *states)
        if record.attempt != attempt:
            raise self._corrupt(f"job {name} is in attempt {record.attempt}, not {attempt}")
        return record

    def _corrupt(self, why: str) -> ev.CorruptLog:
        """The error that the log says something impossible at this event."""
        return ev.CorruptLog(self.seq, why)


_HANDLERS: Mapping[type, Callable[[State, Any], None]] = {
    ev.Submitted: State._submitted,
    ev.Cancelled: State._cancelled,
    ev.Adopted: State._adopted,
    ev.CapacitySet: lambda state, event: state.inventory.resized(event),
    ev.Refused: State._refused,
    ev.Promised: State._promised,
    ev.PromiseEnded: State._promise_ended,
    ev.Queued: State._queued,
    ev.Bound: State._bound,
    ev.Shared: State._shared,
    ev.Resized: State._resized,
    ev.Started: State._started,
    ev.StopAsked: State._stop_asked,
    ev.Stopped: State._stopped,
    ev.Finished: State._ended,
    ev.Failed: State._ended,
    ev.ServerDown: State._server_down,
    ev.ServerUp: lambda state, event: state.inventory.arrives(event),
    ev.ServerClosed: lambda state, event: state.inventory.closes(event),
    ev.ServerOpened: lambda state, event: state.inventory.opens(event),
    ev.MoveAsked: State._move_asked,
    ev.ServerMoved: State._server_moved,
    ev.QuotaSet: State._quota_set,
    ev.StorageSet: lambda state, event: state.datasets.storage_mb.update({event.region: event.storage_mb}),
    ev.DatasetCreated: State._dataset_created,
    ev.CopyAsked: State._copy_asked,
    ev.CopyProgress: lambda state, event: state.datasets.progress(event),
    ev.CopyEnded: State._copy_ended,
    ev.ReplicaDropped: State._replica_dropped,
    ev.SolveAsked: lambda state, event: state.plans.asked(event),
    ev.SolveEnded: lambda state, event: state.plans.ended(event),
    ev.PlanAdopted: lambda state, event: state.plans.adopted(event),
    ev.StepDropped: lambda state, event: state.plans.step_dropped(event),
}
"""Event → what it changes; the others change nothing."""
