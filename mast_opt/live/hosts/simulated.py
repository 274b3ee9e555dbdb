"""A host in this process, in real time: it runs jobs for as long as they say, and does nothing else. Its jobs end with
the process; what ran then is reported as stopped when the loop starts again."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.live.hosts.protocol import Attempt, Can
from mast_opt.live.loop.commands import Command, Resize, Start, Stop
from mast_opt.live.loop.events import Event, Finished, Stopped
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.speeds import REFERENCE
from mast_opt.live.simulation.host import SimulatedHost, Work

DEFAULT_MS = 60_000


class SimulatedLiveHost:
    """Host that simulates jobs in real time.

    Args:
        spec_of: what a job asked for; it is ended at its limit and the grace there.
        default_ms: how long a job runs that does not say.
    """

    name = "sim"
    can = frozenset({Can.STOP, Can.RESIZE})

    def __init__(self, spec_of: Callable[[str], JobSpec], default_ms: int = DEFAULT_MS) -> None:
        self._spec_of, self._default_ms = spec_of, default_ms
        self._work: dict[str, Work] = {}
        self._asked: dict[str, int] = {}
        """Elastic job → tasks with which it runs at its speed."""
        self._host = SimulatedHost(self._work, self._rate)

    def resume(self, jobs: Iterable[JobRecord]) -> None:
        """Take over no jobs: what ran before ended with its process."""

    def listen(self, call: Callable[[], None]) -> None:
        """Do nothing with the function: no report comes before ``next_ms``."""

    def close(self) -> None:
        """Do nothing: a simulated host has nothing but its jobs."""

    def carry_out(self, now_ms: int, command: Command) -> None:
        """Carry out a command on the simulated servers."""
        if not isinstance(command, (Start, Stop, Resize)):
            raise UsageError(f"the simulated host starts, stops and resizes jobs; it got {type(command).__name__}")
        if isinstance(command, Start) and command.job not in self._work:
            spec = self._spec_of(command.job)
            duration = self._default_ms if spec.duration_ms is None else spec.duration_ms
            if spec.sizes[0] < spec.sizes[1]:
                self._asked[command.job] = spec.tasks
            self._work[command.job] = Work(duration, spec.checkpoint_ms, spec.restart_ms, limit_ms=spec.longest_ms)
        self._host.carry_out(now_ms, command)

    def _rate(self, job: str, server: str, partner: str, tasks: int) -> int:
        """Millionths of its speed at which a job runs: an elastic one in proportion to its tasks."""
        asked = self._asked.get(job)
        return REFERENCE if asked is None else REFERENCE * tasks // asked

    def reports(self, now_ms: int) -> Sequence[Event]:
        """Events of simulated jobs that are due. Those of a fixed size state no times: their work is the time that they
        ran, which the log knows by its own turns."""
        found = [self._without_times(event) for event in self._host.answers(now_ms)]
        for event in found:
            name: Any = getattr(event, "job", None)
            if type(event).__name__ in ("Finished", "Failed"):
                self._work.pop(name, None)
                self._asked.pop(name, None)
        return found

    def _without_times(self, event: Event) -> Event:
        """A report, without times of work where its job has a fixed size."""
        if isinstance(event, Stopped) and event.job not in self._asked:
            return replace(event, work_time_ms=None, lost_time_ms=None)
        if isinstance(event, Finished) and event.job not in self._asked:
            return replace(event, work_time_ms=None)
        return event

    def happened(self, now_ms: int, event: Event) -> Sequence[Event]:
        """Reports on what ran on a server that somebody else closed."""
        return self._host.reported(now_ms, event)[1:]

    def next_ms(self) -> int | None:
        """Time when the next event of a simulated job is due; None if none is."""
        return self._host.next_ms()

    def unenforced(self) -> str:
        """Return nothing: simulated jobs end at their limits."""
        return ""

    def observe(self) -> Collection[Attempt]:
        """Attempts of jobs that the simulated host runs."""
        return self._host.running()
