"""The engine of the loop: events in, events and commands out. It does no I/O and has no clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from mast_opt.core.errors import UsageError
from mast_opt.job_placement.live_fleet.types import Bid, Refused
from mast_opt.loop import events as ev
from mast_opt.loop.commands import Command, Start, Stop
from mast_opt.loop.job_states import JobState
from mast_opt.loop.jobs import JobRecord
from mast_opt.loop.policy import Policy
from mast_opt.loop.state import State


@dataclass(frozen=True, slots=True)
class Turn:
    """What one call of ``Engine.advance`` has brought."""

    events: tuple[ev.Stored, ...]
    """To be stored before any command leaves."""
    commands: tuple[Command, ...]
    """For the host."""
    next_wake_ms: int | None
    """When to call again if nothing happens before; None if there is no need."""


class Engine:
    """Runs a policy over a state.

    Args:
        state: its events so far have been applied; the engine owns it from now on.
        tick_ms: the least time between two decisions; 0 to decide at every change.
    """

    def __init__(self, state: State, policy: Policy, *, tick_ms: int = 0) -> None:
        if tick_ms < 0:
            raise UsageError(f"tick_ms is {tick_ms}; expected at least 0")
        self.state = state
        self.policy = policy
        self._tick_ms = tick_ms
        self._news: list[ev.Event] = []
        self._stored: list[ev.Stored] = []
        self._due = True
        self._decided_ms: int | None = None
        self._dropped = 0
        policy.begin(_View(state, ()))

    @property
    def dropped(self) -> int:
        """Reports of hosts that came twice, or too late to matter."""
        return self._dropped

    def advance(self, now_ms: int, inbox: Sequence[ev.Event]) -> Turn:
        """Take in what has been reported, then let the policy decide if it is due.

        Raises:
            UsageError: the time lies before that of the last turn, or a job was submitted that no region can hold.
        """
        state = self.state
        if now_ms < state.now_ms:
            raise UsageError(f"now_ms is {now_ms}; the last turn was at {state.now_ms}")
        self._stored = []
        state.now_ms = now_ms
        for event in inbox:
            if not state.fits(event):
                self._dropped += 1
                continue
            self.record(event)
            if isinstance(event, ev.Cancelled):
                self._stop_cancelled(event.job)
            elif isinstance(event, ev.ServerDown):
                self._withdraw()
        if self._is_due(now_ms):
            self._decide(now_ms)
        commands = [
            Stop(stored.event.job, stored.event.attempt, stored.event.why)
            for stored in self._stored
            if isinstance(stored.event, ev.StopAsked)
        ]
        starts = [Start(record.name, record.attempt, record.shares) for record in state.take_startable()]
        return Turn(tuple(self._stored), (*commands, *starts), self._next_wake(now_ms))

    def record(self, event: ev.Event, bid: Bid | None = None) -> None:
        """Apply an event of this turn, and keep it for the log."""
        state = self.state
        state.apply(state.seq + 1, state.now_ms, event, bid)
        self._stored.append(ev.Stored(state.seq, state.now_ms, event))
        self._news.append(event)
        if type(event) in self.policy.reacts_to:
            self._due = True

    def _is_due(self, now_ms: int) -> bool:
        last, every = self._decided_ms, self.policy.every_ms
        if last is None:
            return self._due or every is not None
        if every is not None and now_ms >= last + every:
            return True
        return self._due and now_ms >= last + self._tick_ms

    def _decide(self, now_ms: int) -> None:
        state = self.state
        self._due, self._decided_ms = False, now_ms
        news, self._news = self._news, []
        with ExitStack() as stack:
            self.policy.decide(_View(state, news), _Desk(self, stack))
        self._due = False
        self._withdraw()

    def _withdraw(self) -> None:
        """Jobs that were asked to stop before their hosts were asked to start them have stopped."""
        for record in self.state.take_never_started():
            self.record(ev.Stopped(record.name, record.attempt, 0, 0))

    def _stop_cancelled(self, name: str) -> None:
        record = self.state.jobs.get(name)
        if record is not None and record.state in (JobState.STARTING, JobState.RUNNING):
            self.record(ev.StopAsked(name, record.attempt, "cancelled"))
            self._withdraw()

    def _next_wake(self, now_ms: int) -> int | None:
        last = now_ms if self._decided_ms is None else self._decided_ms
        wakes = [last + self.policy.every_ms] if self.policy.every_ms is not None else []
        if self._due:
            wakes.append(max(now_ms, last + self._tick_ms))
        return min(wakes, default=None)


class _View:
    """See ``policy.View``."""

    def __init__(self, state: State, news: Sequence[ev.Event]) -> None:
        self._state = state
        self.news = news
        self.now_ms = state.now_ms
        self.jobs: Mapping[str, JobRecord] = state.jobs
        self.supply_mgpu: Mapping[str, int] = state.supply_mgpu
        self.used_mgpu: Mapping[str, int] = state.used_mgpu
        self.replicas: Mapping[str, frozenset[str]] = state.replicas
        self.reclaimable = state.reclaimable
        self.quotas: Mapping[str, int] = state.tenants.quota_mgpu

    def tier(self, record: JobRecord) -> int:
        state = self._state
        over = state.tenants.is_over(record.spec.tenant, record.asked_mgpu)
        return state.lowest_tier if over else record.spec.tier

    def credit_milli(self, tenant: str) -> int:
        return self._state.tenants.credit_milli(tenant, self.now_ms)

    def admissible(self, record: JobRecord) -> tuple[str, ...]:
        regions = (record.bound,) if record.bound else tuple(self._state.supply_mgpu)
        held = [self._state.replicas.get(dataset, frozenset()) for dataset in record.spec.datasets]
        return tuple(region for region in regions if all(region in holders for holders in held))


class _Desk:
    """See ``policy.Desk``."""

    def __init__(self, engine: Engine, stack: ExitStack) -> None:
        self._engine = engine
        self._state = engine.state
        self._stack = stack
        self._in_round = False
        self._at_risk_known = False

    def place(self, name: str, regions: Collection[str] | None = None) -> Bid | Refused:
        record = self._record(name)
        if record.bound:
            regions = (record.bound,)
        answer = self._state.fleet.place(record.job, regions=regions)
        if isinstance(answer, Bid) and answer.victims and self._refresh_at_risk():
            answer = self._state.fleet.place(record.job, regions=regions)
        return answer

    def bids(self, name: str) -> tuple[Bid, ...]:
        record = self._record(name)
        found = self._state.fleet.bids(record.job)
        if any(bid.victims for bid in found) and self._refresh_at_risk():
            found = self._state.fleet.bids(record.job)
        return tuple(bid for bid in found if not record.bound or bid.region == record.bound)

    def commit(self, bid: Bid, runner_up: Bid | None = None) -> tuple[str, ...]:
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
        if bid.victims and not self._in_round:  # a round costs as much as the fleet is large
            self._in_round = True
            self._stack.enter_context(self._state.fleet.round())
        self._engine.record(placed, bid)
        for victim in bid.victims:
            stopped = self._state.jobs[victim]
            self._engine.record(ev.StopAsked(victim, stopped.attempt, f"for {record.name}"))
        return bid.victims

    def preempt(self, name: str, why: str) -> None:
        self._engine.record(ev.StopAsked(name, self._state.jobs[name].attempt, why))

    def bind(self, name: str, region: str) -> None:
        if region not in self._state.supply_mgpu:
            raise UsageError(
                f"job {name} cannot be bound to {region}; expected one of {sorted(self._state.supply_mgpu)}"
            )
        self._engine.record(ev.Bound(name, region))

    def hold(self, name: str, why: str, code: str) -> None:
        self._engine.record(ev.Refused(name, why, code))

    def let_go(self, name: str) -> None:
        self._engine.record(ev.Queued(name))

    def _record(self, name: str) -> JobRecord:
        record = self._state.jobs[name]
        if not record.waits:
            raise UsageError(f"job {name} is {record.state.value}; only a queued job can be placed")
        return record

    def _refresh_at_risk(self) -> bool:
        """Give the fleet what every job that may be stopped would lose now, once in a turn. False if it has that."""
        if self._at_risk_known:
            return False
        self._at_risk_known = True
        for record in self._state.jobs.values():
            if record.state is JobState.RUNNING:
                self._state.fleet.set_at_risk(record.name, self._state.at_risk_gpu_hours(record))
        return True
