"""Independent check of the promises in a log: each is kept, or ended for a reason that the log bears out."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.checked_jobs import CheckedJob
from mast_opt.live.loop.server_checker import CheckedServer


@dataclass(slots=True)
class _Open:
    promised: ev.Promised
    excuses: set[str] = field(default_factory=set)
    """Reasons that have occurred since it was promised."""


class PromiseCheck:
    """Promises by the events alone.

    Args:
        wrong: takes what is wrong: a word, and a sentence.
        jobs, servers: as the events so far leave them.
        limited: tenants that have a quota: what they use gives their jobs other tiers.
    """

    def __init__(
        self,
        wrong: Callable[[str, str], None],
        jobs: Mapping[str, CheckedJob],
        servers: Mapping[str, CheckedServer],
        limited: Collection[str],
    ) -> None:
        self._wrong, self._jobs, self._servers, self._limited = wrong, jobs, servers, limited
        self._open: dict[str, _Open] = {}
        """Job → its promise."""
        self._ends: dict[str, tuple[str, int]] = {}
        """Job with a limit that is placed → its region, and the end of its limit had it started at once."""

    def take(self, event: ev.Event, now_ms: int) -> None:
        """Check the promises by the next event of the log, before it counts for jobs and servers."""
        if isinstance(event, ev.Promised):
            self._promised(event, now_ms)
        elif isinstance(event, ev.PromiseEnded):
            self._ended(event, now_ms)
        elif isinstance(event, (ev.Placed, ev.Adopted)):
            self._placed(event, now_ms)
        elif isinstance(event, ev.Started):
            job = self._jobs.get(event.job)
            region, end_ms = self._ends.get(event.job, ("", now_ms))
            if job is not None and (longest_ms := job.spec.longest_ms) is not None and now_ms + longest_ms > end_ms:
                self._excuse("overrun", region)
        elif self._open:
            self._changed(event)

    def check_end(self, now_ms: int) -> None:
        """Check the promises that are open when the log ends."""
        for name, one in self._open.items():
            job = self._jobs.get(name)
            if job is not None and job.phase == "waiting":
                self._check_time(name, one.promised, now_ms)

    def _promised(self, event: ev.Promised, now_ms: int) -> None:
        """Check a promise of a place: its job waits, its servers are in service, no other one is open in its region."""
        job = self._jobs.get(event.job)
        if job is None or job.phase != "waiting":
            self._wrong("promise", f"job {event.job} does not wait; nothing can be promised to it")
            return
        if event.by_ms is not None and event.by_ms < now_ms:
            self._wrong("promise", f"job {event.job} is promised a place at {event.by_ms} ms, which is past")
        for name in event.servers:
            server = self._servers.get(name)
            if server is None or not server.in_service or server.up.region != event.region:
                self._wrong("promise", f"job {event.job} is promised {name}, which is not in service in {event.region}")
        for name, other in self._open.items():
            waits = name in self._jobs and self._jobs[name].phase == "waiting"
            if name != event.job and waits and other.promised.region == event.region:
                self._wrong("promise", f"jobs {event.job} and {name} are both promised a place in {event.region}")
        before = self._open.get(event.job)
        if before is not None:
            first = before.promised
            later = first.by_ms is not None and (event.by_ms is None or event.by_ms > first.by_ms)
            if later or first.region != event.region:
                self._wrong("promise", f"job {event.job} is promised a later time or another region, and no reason why")
        self._open[event.job] = _Open(event, set() if before is None else before.excuses)

    def _ended(self, event: ev.PromiseEnded, now_ms: int) -> None:
        """Check that a promise ends for a reason that the log bears out."""
        one = self._open.pop(event.job, None)
        if one is None:
            self._wrong("promise", f"job {event.job} has no promise that could end")
            return
        if any(end < now_ms and region == one.promised.region for region, end in self._running()):
            one.excuses.add("overrun")
        holder = self._jobs[event.job].spec
        if any(
            job.spec.tenant in self._limited
            for job in self._jobs.values()
            if job.phase != "waiting" or job.spec is holder
        ):
            one.excuses.add("quota")
        if any(job.phase == "waiting" and job.spec.tier < holder.tier for job in self._jobs.values()):
            one.excuses.add("more-important")
        if event.why not in one.excuses:
            self._wrong("promise", f"the promise of job {event.job} ends by {event.why!r}, which has not occurred")

    def _running(self) -> list[tuple[str, int]]:
        """(region, latest end) of the jobs that run under a time limit."""
        for name in [name for name in self._ends if self._jobs[name].placed is None]:
            del self._ends[name]
        return list(self._ends.values())

    def _placed(self, event: ev.Placed | ev.Adopted, now_ms: int) -> None:
        """Check that a job with a promise is placed in time; note which other promises this may end."""
        job, one = self._jobs.get(event.job), self._open.pop(event.job, None)
        if one is not None:
            self._check_time(event.job, one.promised, now_ms)
        if job is None:
            return
        if (longest_ms := job.spec.longest_ms) is not None:
            self._ends[event.job] = event.region, now_ms + longest_ms
        if isinstance(event, ev.Adopted):
            self._excuse("adopted", event.region)
        for name, other in self._open.items():
            if other.promised.region == event.region and job.spec.tier < self._jobs[name].spec.tier:
                other.excuses.add("more-important")

    def _changed(self, event: ev.Event) -> None:
        """Take in an event that may end promises, such as a server that fails."""
        if isinstance(event, (ev.ServerDown, ev.ServerClosed, ev.CapacitySet, ev.MoveAsked)):
            server = self._servers.get(event.server)
            self._excuse("server", server.up.region if server is not None else "")
        elif isinstance(event, ev.QuotaSet):
            for one in self._open.values():
                one.excuses.add("quota")
        elif isinstance(event, (ev.ReplicaDropped, ev.DatasetCreated)):
            for name, one in self._open.items():
                if event.dataset in self._jobs[name].spec.datasets:
                    one.excuses.add("data")
        elif isinstance(event, ev.Bound) and event.job in self._open:
            self._open[event.job].excuses.add("bound")

    def _excuse(self, why: str, region: str) -> None:
        """Note a reason for which the promises of a region may end."""
        for one in self._open.values():
            if one.promised.region == region:
                one.excuses.add(why)

    def _check_time(self, name: str, promised: ev.Promised, now_ms: int) -> None:
        """Check that a promised time has not passed."""
        if promised.by_ms is not None and now_ms > promised.by_ms:
            self._wrong("promise", f"job {name} waits at {now_ms} ms; it was promised a place by {promised.by_ms} ms")
