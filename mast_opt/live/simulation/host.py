"""Simulated host: runs every job for its true duration, saves checkpoints, copies data, moves and loses servers.

Work is counted in ms × rate, where the rate is in whole millionths of a job's reference speed.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Command, Copy, Drop, Move, Resize, Solve, Start, Stop
from mast_opt.live.loop.speeds import REFERENCE
from mast_opt.live.simulation.network import SimulatedNetwork
from mast_opt.live.simulation.solves import SimulatedSolver
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

MOVE_MS = 600_000
AT_LIMIT = "it reached its time limit"
"""Reason of a host that ends a job at its ``limit_ms``."""
Rate = Callable[[str, str, str, int], int]
"""(job, server, job on the same GPUs or "", tasks) → millionths of its reference speed at which the first job runs
there with so many tasks."""


@dataclass(frozen=True)
class Work:
    """Facts that a host knows of a job: how long it takes alone, and what it takes to stop and to start again."""

    duration_ms: int
    """Duration at the job's reference speed."""
    checkpoint_ms: int
    """Time between two checkpoints; 0: work is saved whenever the job is stopped."""
    restart_ms: int = 0
    """Time that a further attempt takes until it works."""
    stop_ms: int = 0
    """Time between the word to stop and the end."""
    limit_ms: int | None = None
    """Time after each start at which it is ended if it still runs; None for no limit."""


@dataclass(slots=True)
class _Attempt:
    number: int
    work: Work
    began_ms: int
    """Time when it begins to work, after its restart."""
    done: int
    """Work saved by earlier attempts."""
    shares: tuple[Share, ...]
    rates: list[tuple[int, int]]
    """(time, rate from then on), ascending; the first time is ``began_ms``."""
    partner: str = ""
    """The job on the same GPUs; empty for none."""
    stopping: bool = False
    ends_ms: int = 0
    """Time when all its work is done at the present rate."""
    since_ms: int = 0
    """Time since which it works at its present size."""
    kept: int = 0
    """Work saved by its checkpoints when its stop was asked for, including that of earlier attempts."""
    servers: frozenset[str] = field(init=False)
    """Servers on which it has tasks."""

    def __post_init__(self) -> None:
        self.occupy(self.shares)

    def occupy(self, shares: tuple[Share, ...]) -> None:
        """Have the tasks of an attempt of the simulation there."""
        self.shares, self.servers = shares, frozenset(share.server for share in shares)

    def work_at(self, at_ms: int) -> int:
        """Work of an attempt on the simulation's host at a time, that of earlier attempts included."""
        return self.done + sum(length * rate for length, rate in self._spans(at_ms))

    def worked_ms(self, at_ms: int) -> int:
        """Time for which an attempt has worked, without the restarts between its sizes."""
        return sum(length for length, rate in self._spans(at_ms) if rate)

    def _spans(self, at_ms: int) -> Iterator[tuple[int, int]]:
        """(ms, rate) of an attempt until a time."""
        ends = [start for start, _ in self.rates[1:]] + [at_ms]
        for (start, rate), end in zip(self.rates, ends, strict=True):
            yield max(0, min(end, at_ms) - start), rate

    def set_rate(self, now_ms: int, rate: int) -> None:
        """Change the rate at which a simulated attempt works from now on."""
        at = max(now_ms, self.since_ms)
        if self.rates and self.rates[-1][0] == at:
            self.rates.pop()
        self.rates.append((at, rate))
        left = self.work.duration_ms * REFERENCE - self.work_at(at)
        self.ends_ms = at - (-left // rate)


class SimulatedHost:
    """Host that carries out commands in virtual time.

    Args:
        work: job → what it is.
        rate: how fast jobs run where; None: everywhere at their reference speed.
        servers: that break, come back and move.
        network: what copies data; without it nothing can be copied.
        solver: what makes plans; without it none can be made.
        move_ms: time that a server takes to become part of another cluster.
    """

    def __init__(
        self,
        work: Mapping[str, Work],
        rate: Rate | None = None,
        *,
        servers: Iterable[Server] = (),
        network: SimulatedNetwork | None = None,
        solver: SimulatedSolver | None = None,
        move_ms: int = MOVE_MS,
    ) -> None:
        self._work = work
        self._rate = rate
        self._servers = {server.name: server for server in servers}
        self._sizes = Counter(server.region for server in self._servers.values())
        self._down: set[str] = set()
        self._moving: dict[str, str] = {}
        self._network, self._solver, self._move_ms = network, solver, move_ms
        self._saved: dict[str, int] = {}
        self._running: dict[str, _Attempt] = {}
        self._answers: list[tuple[int, int, ev.Event]] = []
        self._count = 0

    def next_ms(self) -> int | None:
        """Time when the simulated host's next answer is due; None if none is."""
        times = [self._answers[0][0]] if self._answers else []
        for part in (self._network, self._solver):
            time = None if part is None else part.next_ms()
            if time is not None:
                times.append(time)
        return min(times) if times else None

    @property
    def works(self) -> bool:
        """Whether the simulated host has anything under way but solves."""
        return bool(self._answers) or (self._network is not None and self._network.next_ms() is not None)

    def answers(self, now_ms: int) -> list[ev.Event]:
        """Events of simulated jobs and servers that are due by now."""
        due: list[ev.Event] = []
        if self._network is not None:
            due += self._network.reports(now_ms)
        if self._solver is not None:
            due += self._solver.answers(now_ms)
        while self._answers and self._answers[0][0] <= now_ms:
            at_ms, _, event = heapq.heappop(self._answers)
            if self._is_current(at_ms, event):
                due.append(event)
        return due

    def carry_out(self, now_ms: int, command: Command) -> None:
        """Carry out a command on the simulated host; its answer comes later, or at once."""
        if isinstance(command, Start):
            self._start(now_ms, command)
        elif isinstance(command, Stop):
            self._stop(now_ms, command)
        elif isinstance(command, Resize):
            self._resize(now_ms, command)
        elif isinstance(command, Move):
            server = self._servers[command.server]
            self._moving[server.name] = command.cluster
            self._answer(now_ms + self._move_ms, ev.ServerMoved(server.name, server.region, command.cluster))
        elif isinstance(command, Copy):
            if self._network is None:
                raise UsageError("this simulated host has no network; it cannot copy data")
            self._network.begin(now_ms, command)
        elif isinstance(command, Solve):
            if self._solver is None:
                raise UsageError("this simulated host has no solver; it cannot make plans")
            self._solver.begin(now_ms, command)
        else:
            assert isinstance(command, Drop)  # a replica is gone at once

    def running(self) -> set[tuple[str, int]]:
        """Jobs that run on the simulated host, each with the number of its attempt."""
        return {(name, attempt.number) for name, attempt in self._running.items()}

    def reported(self, now_ms: int, event: ev.Event) -> list[ev.Event]:
        """Reports of the simulated host when something happens to servers; other events as they are."""
        if isinstance(event, ev.ServerDown):
            return self._server_down(now_ms, event)
        if isinstance(event, ev.ServerUp):
            self._down.discard(event.server)
            self._regions_changed(now_ms)
            known = self._servers.get(event.server)
            return [event if known is None else replace(event, cluster=known.cluster)]
        return [event]

    def _server_down(self, now_ms: int, event: ev.ServerDown) -> list[ev.Event]:
        """Break a simulated server, and stop every job with a task there; what follows is its last checkpoint."""
        self._down.add(event.server)
        self._moving.pop(event.server, None)
        self._regions_changed(now_ms)
        events: list[ev.Event] = [event]
        for name, attempt in list(self._running.items()):
            if event.server in attempt.servers:
                events.append(self._stopped(now_ms, name, attempt))
        return events

    def _regions_changed(self, now_ms: int) -> None:
        """Tell the simulated network which regions are down: those without a server in service."""
        if self._network is not None:
            down = Counter(self._servers[name].region for name in self._down if name in self._servers)
            self._network.set_down(now_ms, {region for region, count in down.items() if count == self._sizes[region]})

    def _start(self, now_ms: int, command: Start) -> None:
        """Start an attempt of a simulated job; its end is foreseen."""
        known = self._running.get(command.job)
        if known is not None and known.number >= command.attempt:
            return
        if command.job not in self._work:
            raise UsageError(f"the simulated host does not know how long {command.job} takes")
        work = self._work[command.job]
        saved = self._saved.get(command.job, 0)
        began = now_ms + (work.restart_ms if command.attempt > 1 else 0)
        attempt = _Attempt(command.attempt, work, began, saved, command.shares, [], since_ms=began)
        self._running[command.job] = attempt
        self._answer(now_ms, ev.Started(command.job, command.attempt))
        if work.limit_ms is not None:
            self._answer(now_ms + work.limit_ms, ev.Failed(command.job, command.attempt, AT_LIMIT))
        other = self._running.get(command.partner)
        if other is not None:
            attempt.partner, other.partner = command.partner, command.job
            self._set_rate(now_ms, command.partner, other)
        self._set_rate(now_ms, command.job, attempt)

    def _resize(self, now_ms: int, command: Resize) -> None:
        """Save the work of a simulated job; it goes on with other tasks after its restart."""
        attempt = self._running.get(command.job)
        if attempt is None or attempt.number != command.attempt or attempt.stopping or attempt.shares == command.shares:
            return
        attempt.rates.append((max(now_ms, attempt.since_ms), 0))
        attempt.occupy(command.shares)
        attempt.since_ms = now_ms + attempt.work.restart_ms
        self._set_rate(now_ms, command.job, attempt)

    def _set_rate(self, now_ms: int, name: str, attempt: _Attempt) -> None:
        """Set the rate of a simulated job with its partner, and foresee its end."""
        if self._rate is None:
            rate = REFERENCE
        else:
            tasks = sum(share.tasks for share in attempt.shares)
            rate = min(self._rate(name, server, attempt.partner, tasks) for server in attempt.servers)
        if rate <= 0:
            raise UsageError(f"job {name} was started on {min(attempt.servers)}, where it cannot run")
        attempt.set_rate(now_ms, rate)
        worked_ms = None if self._rate is None else attempt.worked_ms(attempt.ends_ms)
        self._answer(attempt.ends_ms, ev.Finished(name, attempt.number, worked_ms))

    def _leave(self, now_ms: int, name: str) -> _Attempt:
        """End an attempt of a simulated job; a job that has shared its GPUs has them for itself."""
        attempt = self._running.pop(name)
        other = self._running.get(attempt.partner)
        if other is not None:
            other.partner = ""
            if not other.stopping:
                self._set_rate(now_ms, attempt.partner, other)
        return attempt

    def _stop(self, now_ms: int, command: Stop) -> None:
        """Stop an attempt of a simulated job; its answer comes later."""
        attempt = self._running.get(command.job)
        if attempt is None or attempt.number != command.attempt:
            self._answer(now_ms, ev.Stopped(command.job, command.attempt, 0, 0))
            return
        if not attempt.stopping:
            attempt.stopping = True
            end = now_ms + attempt.work.stop_ms
            self._answer(end, self._account(now_ms, command.job, attempt))

    def _stopped(self, now_ms: int, name: str, attempt: _Attempt) -> ev.Stopped:
        """End an attempt of a simulated job that stops, and report its work."""
        stopped = self._account(now_ms, name, attempt)
        self._forget(now_ms, stopped)
        return stopped

    def _forget(self, now_ms: int, stopped: ev.Stopped) -> None:
        """End an attempt of a simulated job; what its checkpoints have saved is there for the next one."""
        self._saved[stopped.job] = self._leave(now_ms, stopped.job).kept

    def _account(self, now_ms: int, name: str, attempt: _Attempt) -> ev.Stopped:
        """Account of a simulated job's attempt that stops now: what its checkpoints have saved, and what is lost."""
        every = attempt.work.checkpoint_ms
        lost_ms = max(0, now_ms - attempt.since_ms) % every if every else 0
        kept_ms, kept = attempt.worked_ms(now_ms - lost_ms), attempt.work_at(now_ms - lost_ms)
        attempt.kept = kept
        work = kept // REFERENCE - attempt.done // REFERENCE
        lost = (attempt.work_at(now_ms) - kept) // REFERENCE
        if self._rate is None:
            return ev.Stopped(name, attempt.number, work, lost)
        return ev.Stopped(name, attempt.number, work, lost, kept_ms, lost_ms)

    def _answer(self, at_ms: int, event: ev.Event) -> None:
        """Queue an event of the simulated host that is reported at a time."""
        self._count += 1
        heapq.heappush(self._answers, (at_ms, self._count, event))

    def _is_current(self, at_ms: int, event: ev.Event) -> bool:
        """Whether an answer of the simulated host that was foreseen is still true; notes that it has been given."""
        if isinstance(event, ev.Started):
            attempt = self._running.get(event.job)
            return attempt is not None and attempt.number == event.attempt
        if isinstance(event, (ev.Finished, ev.Failed)):
            attempt = self._running.get(event.job)
            if attempt is None or attempt.number != event.attempt:
                return False
            at_limit = isinstance(event, ev.Failed)
            if attempt.ends_ms <= at_ms if at_limit else attempt.stopping or attempt.ends_ms != at_ms:
                return False
            self._leave(at_ms, event.job)
            self._saved.pop(event.job, None)
            return True
        if isinstance(event, ev.ServerMoved):
            if self._moving.pop(event.server, None) != event.cluster:
                return False
            self._servers[event.server] = replace(self._servers[event.server], cluster=event.cluster)
        if isinstance(event, ev.Stopped):
            attempt = self._running.get(event.job)
            if attempt is not None and attempt.number == event.attempt:
                self._forget(at_ms, event)
        return True
