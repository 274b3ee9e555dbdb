"""State that a loop finds when it begins: the servers of its log, its state, commands without an answer, and what
differs from what the host runs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mast_opt.core.errors import UsageError
from mast_opt.live.hosts.protocol import Attempt, Can, Host
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Command, Copy, Drop, Move, Resize, Start, Stop
from mast_opt.live.loop.event_log import record_of
from mast_opt.live.loop.job_states import HOLDING, JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.state import State
from mast_opt.live.service.requests import TIERS
from mast_opt.live.store.records import OpenCommand
from mast_opt.live.store.recovery import recovered
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.problems.job_placement.live_fleet.types import Server

_ENDS = (ev.Stopped, ev.Finished, ev.Failed)
_KINDS: Mapping[str, type[Start | Stop | Copy | Drop | Move | Resize]] = {
    cls.__name__: cls for cls in (Start, Stop, Copy, Drop, Move, Resize)
}


@dataclass(frozen=True)
class Found:
    """State and commands that a store leads to."""

    state: State
    snapshot_seq: int
    """The event after which events were read; 0 without a snapshot."""
    commands: tuple[Command, ...]
    """Commands without an answer, to be given again."""
    settled: tuple[str, ...]
    """Identifiers of commands that are not given again."""


@dataclass(frozen=True)
class Differences:
    """Differences between a state and what a host runs."""

    events: tuple[ev.Event, ...]
    """Events that the host has not reported."""
    commands: tuple[Command, ...]
    """Commands for what it has not done, and for what it runs and nobody knows."""


def opening_of(store: SqlStore, servers: Iterable[Server] = ()) -> Callable[[], State]:
    """Function that makes the state before the first event: with the servers that the log begins with; for an empty
    log, with these.

    Raises:
        UsageError: the log is empty, and there are no servers.
    """
    found = tuple(servers)
    if store.last_seq() > 0:
        found = tuple(_first_servers(store)) if store.first_seq() == 1 else ()
    elif not found:
        raise UsageError("the log is empty; a fleet to begin with is needed (--fleet)")
    return lambda: State(found, tiers=TIERS)


def _first_servers(store: SqlStore) -> Iterable[Server]:
    """Servers with which a stored log begins."""
    for stored in store.read():
        event = stored.event
        if not isinstance(event, ev.ServerUp):
            return
        yield event.as_server()


def found_in(store: SqlStore, opening: Callable[[], State]) -> Found:
    """State and commands of a store. Raises CorruptStore, StoreError."""
    found = recovered(store, opening)
    open_ones = [(one.id, _command(one)) for one in store.open_commands()]
    commands = tuple(command for _, command in open_ones if command is not None)
    return Found(found.state, found.snapshot_seq, commands, tuple(name for name, known in open_ones if known is None))


def _command(one: OpenCommand) -> Command | None:
    """A stored command; None for one that is not given again: a solve is asked for again when it is due."""
    return record_of(_KINDS[one.kind], one.fields) if one.kind in _KINDS else None


def differences(
    state: State, runs: Collection[Attempt], reports: Sequence[ev.Event], commands: Sequence[Command]
) -> Differences:
    """Compare a state with a host.

    Args:
        runs: attempts that the host runs.
        reports: of the host, that the state does not have yet.
        commands: that the host may not have got.
    """
    accounted = {*runs, *((one.job, one.attempt) for one in commands if isinstance(one, Start))}
    accounted |= {(event.job, event.attempt) for event in reports if isinstance(event, _ENDS)}
    events = [
        ev.Stopped(record.name, record.attempt, 0, 0)  # nothing is known of its work
        for record in state.jobs.values()
        if record.state in HOLDING and (record.name, record.attempt) not in accounted and not record.blockers
    ]
    holding = {(one.name, one.attempt) for one in state.jobs.values() if one.state in HOLDING}
    stops = [Stop(job, number, "nobody asked for it") for job, number in sorted(set(runs) - holding)]
    return Differences(tuple(events), tuple(stops))


class Reconciliation:
    """Comparison of a state with its host from time to time. A difference counts if two looks in a row find it
    unchanged: an answer or a command was lost, or the host has lost its work. So a look may be out of date by less than
    the time between two looks."""

    def __init__(self) -> None:
        self._before: set[tuple[str, int, JobState | None, bool]] = set()

    def look(self, state: State, runs: Collection[Attempt], reports: Sequence[ev.Event]) -> Differences:
        """Compare a state with a host.

        Args:
            runs: attempts that the host runs.
            reports: of the host, that the state does not have yet.
        """
        running, known = set(runs), {(event.job, event.attempt) for event in reports if isinstance(event, _ENDS)}
        events: list[ev.Event] = []
        commands: list[Command] = []
        now: set[tuple[str, int, JobState | None, bool]] = set()
        for job, attempt in sorted(running - {(one.name, one.attempt) for one in state.jobs.values()}):
            now.add((job, attempt, None, True))
            if (job, attempt, None, True) in self._before:
                commands.append(Stop(job, attempt, "nobody asked for it"))
        for record in state.jobs.values():
            of = record.name, record.attempt
            if record.state not in HOLDING or record.blockers or of in known:
                continue
            there = of in running
            if there and record.state is JobState.RUNNING:
                continue
            now.add((*of, record.state, there))
            if (*of, record.state, there) in self._before:
                one = _way_out(record, there=there)
                (events if isinstance(one, ev.Event) else commands).append(one)  # type: ignore[arg-type]
        self._before = now
        return Differences(tuple(events), tuple(commands))


def _way_out(record: JobRecord, *, there: bool) -> ev.Event | Start | Stop:
    """Event or command that settles an attempt that the host runs, or does not, against what the state has."""
    if record.state is JobState.STARTING:
        started = ev.Started(record.name, record.attempt)
        return started if there else Start(record.name, record.attempt, record.shares, record.partner)
    if record.state is JobState.STOPPING and there:
        return Stop(record.name, record.attempt, "it was asked to stop before")
    return ev.Stopped(record.name, record.attempt, 0, 0)  # nothing is known of its work


def early_starts(host: Host, state: State, events: Sequence[ev.Stored]) -> list[Start]:
    """Starts, on a host that makes room itself, of jobs that were placed just now where others have to stop first. They
    are not kept as commands without an answer: the state says which jobs are to start."""
    if Can.MAKE_ROOM not in host.can:
        return []
    placed = [stored.event for stored in events if isinstance(stored.event, ev.Placed)]
    return [
        Start(one.job, one.attempt, one.shares)
        for one in placed
        if one.job in state.jobs and state.jobs[one.job].blockers
    ]


def completed(state: State, reports: Iterable[ev.Event]) -> list[ev.Event]:
    """Reports of a host, with those that they imply: a job that has finished had started."""
    found: list[ev.Event] = []
    for event in reports:
        if isinstance(event, (ev.Finished, ev.Failed)):
            record = state.jobs.get(event.job)
            if record is not None and record.state is JobState.STARTING and record.attempt == event.attempt:
                found.append(ev.Started(event.job, event.attempt))
        found.append(event)
    return found


def settled(events: Sequence[ev.Stored]) -> list[str]:
    """Commands that these events answer."""
    found = []
    for stored in events:
        event = stored.event
        if isinstance(event, ev.Started):
            found.append(f"{event.job}/{event.attempt}/start")
        elif isinstance(event, _ENDS):
            found += [f"{event.job}/{event.attempt}/start", f"{event.job}/{event.attempt}/stop"]
    return found
