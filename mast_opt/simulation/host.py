"""Simulated host: runs every job for its true duration, saves checkpoints, and reports servers that break.

Work is counted in ms × rate, where the rate is in whole millionths of a job's reference speed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mast_opt.core.errors import UsageError
from mast_opt.loop import events as ev
from mast_opt.loop.commands import Command, Start, Stop
from mast_opt.loop.speeds import REFERENCE

Rate = Callable[[str, str], int]
"""(job, server) → millionths of its reference speed at which the job runs there."""


@dataclass(frozen=True)
class Work:
    """What a host knows of a job: how long it takes alone, and what it takes to stop and to start again."""

    duration_ms: int
    """At its reference speed."""
    checkpoint_ms: int
    """Time between two checkpoints; 0: work is saved whenever the job is stopped."""
    restart_ms: int = 0
    """Time that a further attempt takes until it works."""
    stop_ms: int = 0
    """Time between the word to stop and the end."""


@dataclass(slots=True)
class _Attempt:
    number: int
    work: Work
    began_ms: int
    """When it begins to work, after its restart."""
    done: int
    """Work saved by earlier attempts."""
    rate: int
    servers: frozenset[str]
    stopping: bool = False


class SimulatedHost:
    """Carries out commands in virtual time.

    Args:
        work: job → what it is.
        rate: how fast jobs run where; None: everywhere at their reference speed.
    """

    def __init__(self, work: Mapping[str, Work], rate: Rate | None = None) -> None:
        self._work = work
        self._rate = rate
        self._saved: dict[str, int] = {}
        self._running: dict[str, _Attempt] = {}
        self._answers: list[tuple[int, int, ev.Event]] = []
        self._count = 0

    def next_ms(self) -> int | None:
        """When the next answer is due; None if none is."""
        return self._answers[0][0] if self._answers else None

    def answers(self, now_ms: int) -> list[ev.Event]:
        """The answers that are due."""
        due = []
        while self._answers and self._answers[0][0] <= now_ms:
            event = heapq.heappop(self._answers)[2]
            if self._is_current(event):
                due.append(event)
        return due

    def carry_out(self, now_ms: int, command: Command) -> None:
        """Do what a command says; its answer comes later, or at once."""
        if isinstance(command, Start):
            self._start(now_ms, command)
        else:
            self._stop(now_ms, command)

    def server_down(self, now_ms: int, server: str) -> list[ev.Event]:
        """A server breaks, and every job with a task there stops; what follows is its last checkpoint."""
        events: list[ev.Event] = [ev.ServerDown(server)]
        for name, attempt in list(self._running.items()):
            if server in attempt.servers:
                events.append(self._stopped(now_ms, name, attempt))
        return events

    def _start(self, now_ms: int, command: Start) -> None:
        known = self._running.get(command.job)
        if known is not None and known.number >= command.attempt:
            return
        if command.job not in self._work:
            raise UsageError(f"the simulated host does not know how long {command.job} takes")
        work = self._work[command.job]
        saved = self._saved.get(command.job, 0)
        began = now_ms + (work.restart_ms if command.attempt > 1 else 0)
        servers = frozenset(share.server for share in command.shares)
        rate = REFERENCE if self._rate is None else min(self._rate(command.job, server) for server in servers)
        if rate <= 0:
            raise UsageError(f"job {command.job} was started on {min(servers)}, where it cannot run")
        self._running[command.job] = _Attempt(command.attempt, work, began, saved, rate, servers)
        self._answer(now_ms, ev.Started(command.job, command.attempt))
        left_ms = -((saved - work.duration_ms * REFERENCE) // rate)
        finished = ev.Finished(command.job, command.attempt, None if self._rate is None else left_ms)
        self._answer(began + left_ms, finished)

    def _stop(self, now_ms: int, command: Stop) -> None:
        attempt = self._running.get(command.job)
        if attempt is None or attempt.number != command.attempt:
            self._answer(now_ms, ev.Stopped(command.job, command.attempt, 0, 0))
            return
        if not attempt.stopping:
            attempt.stopping = True
            end = now_ms + attempt.work.stop_ms
            self._answer(end, self._account(now_ms, command.job, attempt))

    def _stopped(self, now_ms: int, name: str, attempt: _Attempt) -> ev.Stopped:
        stopped = self._account(now_ms, name, attempt)
        self._forget(stopped, attempt)
        return stopped

    def _forget(self, stopped: ev.Stopped, attempt: _Attempt) -> None:
        """An attempt has ended; what its checkpoints have saved is there for the next one."""
        del self._running[stopped.job]
        time_ms = stopped.work_ms if stopped.work_time_ms is None else stopped.work_time_ms
        self._saved[stopped.job] = attempt.done + time_ms * attempt.rate

    def _account(self, now_ms: int, name: str, attempt: _Attempt) -> ev.Stopped:
        """What an attempt that stops now has done: what its checkpoints have saved, and what is lost."""
        worked_ms = max(0, now_ms - attempt.began_ms)
        every = attempt.work.checkpoint_ms
        lost_ms = worked_ms % every if every else 0
        kept_ms = worked_ms - lost_ms
        work = (attempt.done + kept_ms * attempt.rate) // REFERENCE - attempt.done // REFERENCE
        lost = lost_ms * attempt.rate // REFERENCE
        if self._rate is None:
            return ev.Stopped(name, attempt.number, work, lost)
        return ev.Stopped(name, attempt.number, work, lost, kept_ms, lost_ms)

    def _answer(self, at_ms: int, event: ev.Event) -> None:
        self._count += 1
        heapq.heappush(self._answers, (at_ms, self._count, event))

    def _is_current(self, event: ev.Event) -> bool:
        """Whether an answer that was foreseen is still true; takes note of it."""
        if isinstance(event, ev.Started):
            attempt = self._running.get(event.job)
            return attempt is not None and attempt.number == event.attempt
        if isinstance(event, ev.Finished):
            attempt = self._running.get(event.job)
            if attempt is None or attempt.number != event.attempt or attempt.stopping:
                return False
            del self._running[event.job]
            self._saved.pop(event.job, None)
            return True
        if isinstance(event, ev.Stopped):
            attempt = self._running.get(event.job)
            if attempt is not None and attempt.number == event.attempt:
                self._forget(event, attempt)
        return True
