"""The engine of the loop: events in, events and commands out. It does no I/O and has no clock."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.commands import Command, Copy, Drop, Move, Resize, Solve, Start, Stop
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.plan_steps import event_of, misfit
from mast_opt.live.loop.policy import Policy
from mast_opt.live.loop.reports import fits
from mast_opt.live.loop.slow_path import Planned, SlowPath
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.problems.job_placement.live_fleet.answers import Bid


@dataclass(frozen=True, slots=True)
class Turn:
    """Events and commands of one call of ``Engine.advance``."""

    events: tuple[ev.Stored, ...]
    """Events to be stored before any command leaves."""
    commands: tuple[Command, ...]
    """Commands for the host."""
    next_wake_ms: int | None
    """Time to call again if nothing happens before; None if there is no need."""


class Engine:
    """Runs a policy and slow paths over a state.

    Args:
        state: its events so far have been applied; the engine owns it from now on.
        slow: each asks for plans of its own; their names differ.
        plans: what ``SolveEnded.plan`` refers to; needed with ``slow``.
        tick_ms: the least time between two decisions; 0 to decide at every change.
        most_starts: jobs that a policy which looks at ``Actions.full`` places in one turn; None for as many as fit.
    """

    def __init__(
        self,
        state: State,
        policy: Policy,
        slow: Sequence[SlowPath] = (),
        *,
        plans: Callable[[str], Planned] | None = None,
        tick_ms: int = 0,
        most_starts: int | None = None,
    ) -> None:
        if tick_ms < 0:
            raise UsageError(f"tick_ms is {tick_ms}; expected at least 0")
        self.slow = {path.name: path for path in slow}
        if len(self.slow) < len(slow):
            raise UsageError(f"slow paths have the names {sorted(path.name for path in slow)}; expected different ones")
        if slow and plans is None:
            raise UsageError("slow paths need plans: what a finished solve refers to")
        self.policy = policy
        self._plans = plans
        self._tick_ms, self._most_starts = tick_ms, most_starts
        self._reacts_to = policy.reacts_to
        self._dropped = 0
        self.state = state
        self._news: list[ev.Event] = []
        self._stored: list[ev.Stored] = []
        self._due = True
        self._decided_ms: int | None = None
        self._emptied: dict[str, int] = {}
        """Closed server → when what runs there was to stop, and was asked to."""
        self._next_ask_ms = {
            name: (state.now_ms // path.every_ms + 1) * path.every_ms for name, path in self.slow.items()
        }
        state.fleet.set_reclaim(getattr(policy, "reclaim", "any"))
        self.policy.begin(Snapshot(state, ()))

    @property
    def dropped(self) -> int:
        """The loop's reports of hosts that came twice, or too late to matter."""
        return self._dropped

    def advance(self, now_ms: int, inbox: Iterable[ev.Event | ev.Asked], *, decides: bool = True) -> Turn:
        """Take in what has been reported and asked for, take the steps of plans that may be taken, let the policy
        decide if it is due, and let slow paths ask for plans if they are. An inbox may look at the state as the events
        that it has given have left it. Without ``decides`` the policy waits for a turn that has it.

        Raises:
            UsageError: the time lies before that of the last turn, or a job was submitted that no region can hold.
        """
        state = self.state
        if now_ms < state.now_ms:
            raise UsageError(f"now_ms is {now_ms}; the last turn was at {state.now_ms}")
        self._stored = []
        state.now_ms = now_ms
        for item in inbox:
            event, by = (item.event, item.by) if isinstance(item, ev.Asked) else (item, "")
            if not fits(state, event):
                self._dropped += 1
                continue
            self.record(event, by=by)
            follow = _FOLLOW.get(type(event))
            if follow is not None:
                follow(self, event)
        self._take_steps()
        self._empty_closed(now_ms)
        if decides and self._is_due(now_ms):
            self._decide(now_ms)
        solves = self._ask(now_ms) if self.slow else ()
        starts = [Start(one.name, one.attempt, one.shares, one.partner) for one in state.take_startable()]
        return Turn(tuple(self._stored), (*self._commands(), *starts, *solves), self._next_wake(now_ms))

    def record(self, event: ev.Event, bid: Bid | None = None, by: str = "") -> None:
        """Apply an event of this turn, and keep it for the log."""
        state = self.state
        state.apply(state.seq + 1, state.now_ms, event, bid)
        self._stored.append(ev.Stored(state.seq, state.now_ms, event, by))
        self._news.append(event)
        if type(event) in self._reacts_to:
            self._due = True

    # --- policy ---

    def _is_due(self, now_ms: int) -> bool:
        """Whether the policy is to decide now: something has happened that it waits for, or its interval has passed."""
        last, every = self._decided_ms, self.policy.every_ms
        if last is None:
            return self._due or every is not None
        if every is not None and now_ms >= last + every:
            return True
        return self._due and now_ms >= last + self._tick_ms

    def _decide(self, now_ms: int) -> None:
        """Let the policy decide on a snapshot, and take in how rights to quotas change."""
        state = self.state
        self._due, self._decided_ms = False, now_ms
        news, self._news = self._news, []
        with ExitStack() as stack:
            actions = Actions(state, self.record, stack, self._most_starts)
            self.policy.decide(Snapshot(state, news), actions)
        state.follow_rights()
        self._due = actions.full
        self._withdraw()

    def _withdraw(self) -> None:
        """Record that jobs have stopped that were asked to stop before their hosts were asked to start them."""
        for record in self.state.take_never_started():
            self.record(ev.Stopped(record.name, record.attempt, 0, 0))

    def _stop_cancelled(self, event: ev.Cancelled) -> None:
        """Ask a job that is cancelled while it starts or runs to stop."""
        record = self.state.jobs.get(event.job)
        if record is not None and record.state in (JobState.STARTING, JobState.RUNNING):
            self.record(ev.StopAsked(record.name, record.attempt, "cancelled"))
            self._withdraw()

    # --- slow paths ---

    def _adopt(self, ended: ev.SolveEnded) -> None:
        """Adopt the plan that a solve for a slow path has brought, with the steps that lead to it."""
        path = self.slow.get(ended.path)
        if path is None or not ended.plan or self._plans is None:
            return
        found = path.carry_out(Snapshot(self.state, ()), self._plans(ended.plan))
        self.record(ev.PlanAdopted(path.name, ended.plan, found.dropped, found.steps, found.ratios))

    def _take_steps(self) -> None:
        """Begin every step of a plan whose wave has come, or drop it. Plans may also come from people."""
        state = self.state
        for name in dict.fromkeys((*self.slow, *state.plans.paths())):
            while steps := state.plans.ready(name):
                for step in steps:
                    why = misfit(Snapshot(state, ()), step)
                    if why:
                        self.record(ev.StepDropped(name, step.does, step.name, step.target, why))
                    else:
                        self.record(event_of(Snapshot(state, ()), step))

    def _ask(self, now_ms: int) -> list[Command]:
        """Ask for the plans that are due. What was solved last and is still the same is not solved again."""
        commands: list[Command] = []
        for name, path in self.slow.items():
            if now_ms < self._next_ask_ms[name]:
                continue
            self._next_ask_ms[name] = _next(now_ms, path.every_ms)
            if self.state.plans.awaited(name):
                continue
            question = path.ask(Snapshot(self.state, ()))
            if question is not None and question.checksum != self.state.plans.solved(name):
                self.record(ev.SolveAsked(name, question.checksum))
                commands.append(Solve(self.state.seq, name, question.checksum, question.problem))
        return commands

    # --- what follows ---

    def _not_emptied(self) -> dict[str, int]:
        """Closed servers where jobs are still to be asked to stop, and when."""
        closed = self.state.inventory.closed
        return {name: at for name, at in closed.items() if at is not None and self._emptied.get(name) != at}

    def _empty_closed(self, now_ms: int) -> None:
        """Ask what runs on closed servers to stop where its time has come."""
        if not self.state.inventory.closed:
            return
        due = {name: at for name, at in self._not_emptied().items() if at <= now_ms}
        self._emptied |= due
        for record in list(self.state.jobs.values()) if due else ():
            there = next((share.server for share in record.shares if share.server in due), "")
            if there and record.state in (JobState.STARTING, JobState.RUNNING):
                self.record(ev.StopAsked(record.name, record.attempt, f"server {there} is closed"))
        if due:
            self._withdraw()

    def _commands(self) -> list[Command]:
        """Commands to hosts that follow from the events of this turn."""
        return [_COMMANDS[type(one.event)](one.seq, one.event) for one in self._stored if type(one.event) in _COMMANDS]

    def _next_wake(self, now_ms: int) -> int | None:
        """Time at which the loop's engine has to be called again; None if only a report changes anything."""
        last = now_ms if self._decided_ms is None else self._decided_ms
        wakes = [last + self.policy.every_ms] if self.policy.every_ms is not None else []
        if self._due:
            wakes.append(max(now_ms, last + self._tick_ms))
        wakes += self._not_emptied().values() if self.state.inventory.closed else ()
        if self.slow and self.state.jobs:
            wakes += self._next_ask_ms.values()
        return min(wakes) if wakes else None


def _next(now_ms: int, every_ms: int) -> int:
    """The first multiple of an interval of the loop after a time."""
    return (now_ms // every_ms + 1) * every_ms


_FOLLOW: Mapping[type, Callable[[Engine, Any], None]] = {
    ev.Cancelled: Engine._stop_cancelled,
    ev.ServerDown: lambda engine, event: engine._withdraw(),
    ev.SolveEnded: Engine._adopt,
}
"""Report → what follows from it at once."""

_COMMANDS: Mapping[type, Callable[[int, Any], Command]] = {
    ev.StopAsked: lambda seq, event: Stop(event.job, event.attempt, event.why),
    ev.Resized: lambda seq, event: Resize(seq, event.job, event.attempt, event.shares),
    ev.CopyAsked: lambda seq, event: Copy(seq, event.dataset, event.source, event.region, event.size_mb),
    ev.ReplicaDropped: lambda seq, event: Drop(seq, event.dataset, event.region),
    ev.MoveAsked: lambda seq, event: Move(seq, event.server, event.cluster),
}
"""(number, event) → what a host is asked to do."""
