"""Jobs of a loop on a host that other users share: the attempt that the loop wants of each, and its reported phase."""

import enum
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Command, Start, Stop
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.problems.job_placement.live_fleet.types import Server, Share

CANCELLED = "cancelled"
"""Reason why a loop stops work that nobody wants any more."""


class Phase(enum.Enum):
    """Phase of a job in the loop."""

    WAITING = "waiting"
    WANTED = "wanted"
    """The job is to start, and the host has not started it yet."""
    RUNNING = "running"


@dataclass(slots=True, eq=False)
class Task:
    """A job of the loop, which its host knows under a key, or (foreign) one that the host has on its own account."""

    job: str
    key: str
    spec: JobSpec
    home: str = ""
    """Cluster of foreign work."""
    attempt: int = 0
    phase: Phase = Phase.WAITING
    shares: tuple[Share, ...] = ()
    stopping: bool = False
    """True if the loop has asked the job to stop, or has taken its place away."""
    cancelled: bool = False

    @property
    def server(self) -> str:
        """The first server where a job is to run, or runs; empty if there is none."""
        return self.shares[0].server if self.shares else ""

    @property
    def cluster(self) -> str:
        """The cluster of a job's server in Kueue."""
        return self.server.partition("/")[0]


def taken_over(record: JobRecord, key: str, home: str = "") -> Task:
    """The task of a job that a log leads to."""
    task = Task(record.name, key, record.spec, home, record.attempt, Phase.WAITING, record.shares)
    if record.state in (JobState.RUNNING, JobState.STARTING, JobState.STOPPING):
        task.phase = Phase.WANTED if record.state is JobState.STARTING else Phase.RUNNING
        task.stopping = record.state is JobState.STOPPING
        task.cancelled = record.cancelled
    return task


@dataclass
class Tracker:
    """The jobs of a loop, and the servers that it knows."""

    tasks: dict[str, Task] = field(default_factory=dict, kw_only=True)
    """Tasks by the name of the job."""
    servers: dict[str, Server] = field(default_factory=dict, kw_only=True)
    """Servers in service, by name."""
    _answers: list[ev.Event] = field(default_factory=list, kw_only=True)

    def carry_out(self, command: Command, can: str) -> None:
        """Note what the loop wants. Raises UsageError for a command of another kind, with what the host can do."""
        if isinstance(command, Start):
            self.start(command)
        elif isinstance(command, Stop):
            self.stop(command)
        else:
            raise UsageError(f"{can}; it got {type(command).__name__}")

    def start(self, command: Start) -> None:
        """Note that the loop wants an attempt of a job to run on these servers."""
        task = self.tasks.get(command.job)
        if task is None:
            self._answers.append(ev.Failed(command.job, command.attempt, "the host has no such job"))
        elif command.attempt > task.attempt:
            task.attempt, task.shares, task.phase = command.attempt, command.shares, Phase.WANTED
            task.stopping = False
        elif command.attempt < task.attempt or task.phase is Phase.WAITING:  # that one is over
            self._answers.append(ev.Stopped(command.job, command.attempt, 0, 0))

    def stop(self, command: Stop) -> None:
        """Note that the loop wants an attempt of a job to stop on these servers."""
        task = self.tasks.get(command.job)
        if task is None or task.attempt != command.attempt or task.phase is Phase.WAITING:
            self._answers.append(ev.Stopped(command.job, command.attempt, 0, 0))
            return
        task.stopping = True
        task.cancelled |= command.why == CANCELLED

    def changed_servers(self, found: Mapping[str, Server], lost: Mapping[str, str]) -> Iterator[ev.Event]:
        """Report servers of a host that have come, gone or changed.

        Args:
            found: servers in service now.
            lost: server → why it is not in service, where that is known.
        """
        for name in sorted(set(self.servers) - set(found)):
            del self.servers[name]
            yield ev.ServerDown(name, (lost.get(name) or "the host does not offer it any more")[:1000])
            for task in self.tasks.values():
                gone = any(share.server == name for share in task.shares)
                task.stopping |= gone and task.phase is not Phase.WAITING
        for name, one in found.items():
            if name not in self.servers:
                yield ev.ServerUp.of(one)
            self.servers[name] = one
            # again, as what is held may have kept it from being so
            yield ev.CapacitySet(name, one.gpus, one.cpu_mcores, one.memory_mib)

    def stopped(self, task: Task) -> Iterator[ev.Event]:
        """Report that the present attempt has stopped."""
        task.phase, task.shares = Phase.WAITING, ()
        task.stopping = False
        yield ev.Stopped(task.job, task.attempt, 0, 0)  # nobody knows what was saved


T = TypeVar("T", bound=Tracker)


class SharedHost(Generic[T]):
    """Common part of the hosts that other users share: reports come from a thread that looks every so often.

    Args:
        tracker: of the jobs.
        does: what the host can do.
        every_s: seconds between two looks.
        on_problem: called with why the host cannot be looked at, and with an empty text when it can be again.
    """

    def __init__(self, tracker: T, does: str, every_s: float, on_problem: Callable[[str], object]) -> None:
        self._tracker, self._does = tracker, does
        self._every_s, self._on_problem = every_s, on_problem
        self._lock = threading.RLock()
        self._fresh = False
        self.problem = ""
        """Reason why the host cannot be looked at; empty while it can."""
        self._call: Callable[[], None] = lambda: None
        self._due, self._stop = threading.Event(), threading.Event()

    def listen(self, call: Callable[[], None]) -> None:
        """Let the host call this function whenever there are reports."""
        self._call = call

    def carry_out(self, now_ms: int, command: Command) -> None:
        """Carry out a command, in the thread of the host."""
        with self._lock:
            self._tracker.carry_out(command, self._does)
            self._fresh = True
        self._due.set()

    def happened(self, now_ms: int, event: ev.Event) -> Sequence[ev.Event]:
        """Return no events: what runs on a server that somebody has closed goes on."""
        return ()

    def next_ms(self) -> int | None:
        """Time to ask the host for reports again; None if there are none."""
        return 0 if self._fresh else None

    def _note_problem(self, words: str) -> None:
        """Note why the host cannot be looked at, and report it if it is new."""
        if words != self.problem:
            self.problem = words
            self._on_problem(words)

    def _wait_after(self, failures: int) -> None:
        """Wait after so many failures to look in a row, twice as long each time, up to a minute."""
        self._stop.wait(min(60.0, self._every_s * 2 ** (failures - 1)))
