"""Fold of a log: jobs that have not ended, with what they hold and claim, and servers, as the events so far leave them.

It is kept by the events alone. Whatever is computed from a log reads it: time series, rows of jobs, figures of places.
"""

from dataclasses import dataclass, field, replace

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.problems.job_placement.live_fleet.types import Share

GPU_MILLI = 1000
MOST_NUMBERED = 4096
"""GPUs of a server beyond which they have no numbers."""


@dataclass(slots=True, eq=False)
class PastJob:
    """A job that has not ended, or has with the event that was last taken in."""

    name: str
    spec: JobSpec
    submitted_ms: int
    number: int = 0
    """Jobs that were submitted later have higher ones."""
    tasks: int = 0
    """Tasks that it has, or asks for."""
    region: str = ""
    """Region where it was placed last, or may run only; before that its home."""
    bound: str = ""
    cancelled: bool = False
    placed: ev.Placed | ev.Adopted | None = None
    """Event by which it holds servers; None while it waits."""
    runs: bool = False
    """Whether it has started there."""
    claims: bool = False
    """Whether its servers are claimed by it: it holds them and was not asked to stop."""
    partner: str = ""
    """The job with the same GPUs, which count for one of them; empty for none."""
    is_guest: bool = False
    """Whether they count for its partner."""
    ended: bool = False

    @property
    def mgpu(self) -> int:
        """Milli-GPUs of all of a job's tasks."""
        return self.spec.stated_mgpu if self.spec.parts else self.tasks * self.spec.mgpu

    def hold(self, placed: ev.Placed | ev.Adopted) -> None:
        """Let a job of the past state hold servers; an elastic one has as many tasks as its shares."""
        least, most = self.spec.sizes
        self.placed = placed
        if least < most:
            self.tasks = sum(share.tasks for share in placed.shares)

    def need(self, gpu_type: str, part: str) -> tuple[int, int, int]:
        """Milli-GPUs, millicores and MiB of a task of a job, or of one of its parts, on a GPU type."""
        gang = self.spec.gang_of(part)
        mgpu = gang.mgpu if gang.gpu_types is None else gang.gpu_types.get(gpu_type, gang.mgpu)
        return mgpu, gang.cpu_mcores, gang.memory_mib


@dataclass(slots=True)
class PastServer:
    """A server, in service or not."""

    up: ev.ServerUp
    in_service: bool = True
    moves: bool = False
    free: list[int] = field(default_factory=list)
    """Milli-GPUs, millicores and MiB that no job claims."""
    idle: list[int] = field(default_factory=list)
    """Milli-GPUs of each GPU that no job claims; empty for a pool, whose GPUs have no numbers."""

    @property
    def takes_work(self) -> bool:
        """Whether a server of the past state is in service and about to move nowhere."""
        return self.in_service and not self.moves

    def resize(self, event: ev.CapacitySet) -> None:
        """Give a server of the past state other amounts, whatever is claimed of them."""
        before, self.up = (
            self.up,
            replace(self.up, gpus=event.gpus, cpu_mcores=event.cpu_mcores, memory_mib=event.memory_mib),
        )
        more = (self.up.gpus - before.gpus) * GPU_MILLI, self.up.cpu_mcores - before.cpu_mcores
        for at, amount in enumerate((*more, self.up.memory_mib - before.memory_mib)):
            self.free[at] += amount
        numbered = event.gpus if event.gpus <= MOST_NUMBERED else 0
        self.idle = [*self.idle[:numbered], *[GPU_MILLI] * (numbered - len(self.idle))]


class LogFold:
    """Jobs and servers after the events so far. Events about what it does not know change nothing."""

    def __init__(self) -> None:
        self.jobs: dict[str, PastJob] = {}
        """Every job that has not ended, by the order of submission."""
        self.servers: dict[str, PastServer] = {}
        self._submitted = 0
        self._claiming: dict[str, dict[str, PastJob]] = {}
        """Server → the jobs that claim it."""

    def take(self, at_ms: int, event: ev.Event) -> tuple[PastJob, ...]:
        """Take in the next event of the log; returns the jobs that hold, claim or ask for something else now."""
        if isinstance(event, ev.Submitted):
            spec, number = event.spec, self._submitted
            job = self.jobs[event.job] = PastJob(event.job, spec, at_ms, number, spec.tasks, spec.home_region)
            self._submitted += 1
            return (job,)
        if isinstance(event, ev.Shared):
            return self._share(*event.jobs)
        if type(event) in ev.JOB_EVENTS:
            known = self.jobs.get(event.job)  # type: ignore[attr-defined]
            return () if known is None else self._change(known, event)
        if isinstance(event, (ev.ServerUp, ev.ServerDown, ev.ServerMoved, ev.MoveAsked, ev.CapacitySet)):
            self._server(event)
        return self._break(event.server) if isinstance(event, ev.ServerDown) else ()

    def supply_mgpu(self, server: str) -> int:
        """Milli-GPUs that a server has in service, by the log so far."""
        known = self.servers.get(server)
        return 0 if known is None or not known.in_service else known.up.gpus * GPU_MILLI

    def _change(self, job: PastJob, event: ev.Event) -> tuple[PastJob, ...]:
        """Take in an event of a job that is known."""
        if isinstance(event, (ev.Placed, ev.Adopted)):
            for victim in event.victims if isinstance(event, ev.Placed) else ():
                self._release(self.jobs.get(victim))
            job.hold(event)
            job.region, job.claims = event.region, True
            self._list(job)
            job.runs = isinstance(event, ev.Adopted) or event.at_once
            if not job.is_guest:
                self._claim(job, -1)
        elif isinstance(event, ev.Started):
            job.runs = True
        elif isinstance(event, ev.StopAsked):
            self._release(job)
        elif isinstance(event, (ev.Stopped, ev.Finished, ev.Failed)):
            return self._end(job, for_good=job.cancelled or not isinstance(event, ev.Stopped))
        elif isinstance(event, ev.Cancelled):
            job.cancelled = True
            return (job,) if job.placed is not None else self._end(job, for_good=True)
        elif isinstance(event, ev.Bound):
            job.bound = job.region = event.region
            return ()
        elif isinstance(event, ev.Resized) and job.placed is not None:
            self._resize(job, job.placed, event.shares)
        else:
            return ()
        return (job,)

    def _resize(self, job: PastJob, placed: ev.Placed | ev.Adopted, shares: tuple[Share, ...]) -> None:
        """Let a job claim other shares of its servers."""
        self._claim(job, 1)
        self._unlist(job)
        job.hold(replace(placed, shares=shares))
        if job.claims:
            self._list(job)
        self._claim(job, -1)

    def _share(self, holder: str, guest: str) -> tuple[PastJob, ...]:
        """Take in that two jobs have the same GPUs from now on."""
        if holder not in self.jobs or guest not in self.jobs:
            return ()
        one, other = self.jobs[holder], self.jobs[guest]
        parted = self._part(one)  # from one that stops
        one.partner, other.partner, other.is_guest = guest, holder, True
        return (*parted, other)

    def _part(self, job: PastJob) -> tuple[PastJob, ...]:
        """Let a job share its GPUs no longer; returns the other one, which holds them for itself."""
        other = self.jobs.get(job.partner)
        if other is None:
            return ()
        job.partner = other.partner = ""
        job.is_guest = other.is_guest = False
        return (other,)

    def _end(self, job: PastJob, *, for_good: bool) -> tuple[PastJob, ...]:
        """Take in that a job holds nothing any more; it waits again, or has ended."""
        self._release(job)
        job.placed, job.runs, job.ended, job.tasks = None, False, for_good, job.spec.tasks
        parted = self._part(job)
        if for_good:
            del self.jobs[job.name]
        return (job, *parted)

    def _release(self, job: PastJob | None) -> None:
        """Release the servers that a job claims, to its partner if it has one that claims them too."""
        if job is not None and job.claims:
            job.claims = False
            self._unlist(job)
            other = self.jobs.get(job.partner)
            if other is None or not other.claims:
                self._claim(job, 1)

    def _break(self, server: str) -> tuple[PastJob, ...]:
        """Let jobs claim their servers no longer that had one which is out of service; returns these jobs."""
        broken = sorted(self._claiming.get(server, {}).values(), key=lambda job: job.number)
        for job in broken:
            self._release(job)
        return tuple(broken)

    def _list(self, job: PastJob) -> None:
        """List a job at the servers that it claims."""
        for share in job.placed.shares if job.placed is not None else ():
            self._claiming.setdefault(share.server, {})[job.name] = job

    def _unlist(self, job: PastJob) -> None:
        """Take a job off the lists of its servers."""
        for share in job.placed.shares if job.placed is not None else ():
            self._claiming.get(share.server, {}).pop(job.name, None)

    def _claim(self, job: PastJob, sign: int) -> None:
        """Take a job's claims off what is free of its servers (sign −1), or give them back (1), where that counts."""

    def _server(self, event: ev.ServerUp | ev.ServerDown | ev.ServerMoved | ev.MoveAsked | ev.CapacitySet) -> None:
        """Take in an event of a server."""
        server = self.servers.get(event.server)
        if isinstance(event, ev.ServerUp):
            free = [event.gpus * GPU_MILLI, event.cpu_mcores, event.memory_mib]
            idle = [GPU_MILLI] * event.gpus if event.gpus <= MOST_NUMBERED else []
            self.servers[event.server] = PastServer(event, free=free, idle=idle)
        elif server is None:
            pass
        elif isinstance(event, ev.ServerDown):
            server.in_service = False
        elif isinstance(event, ev.CapacitySet):
            server.resize(event)
        else:
            server.moves = isinstance(event, ev.MoveAsked)
            if isinstance(event, ev.ServerMoved):
                server.up = replace(server.up, region=event.region, cluster=event.cluster)
