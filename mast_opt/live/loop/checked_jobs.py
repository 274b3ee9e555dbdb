"""Independent check of what a log says about jobs that share GPUs, by the events alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.server_checker import GPU_MILLI, CheckedServer, need_of

CLAIMING = ("placed", "running")
"""Phases of jobs that were not asked to stop."""


@dataclass(slots=True)
class CheckedJob:
    """A job as the events so far leave it."""

    spec: JobSpec
    phase: str = "waiting"
    """``waiting``, ``placed``, ``running``, ``stopping``, ``ended``."""
    attempt: int = 0
    placed: ev.Placed | None = None
    began_ms: int = 0
    bound: str = ""
    cancelled: bool = False
    ran: bool = False
    """Whether the attempt has started."""
    partner: str = ""
    """The job with which it claims the same GPUs; empty for none."""
    mate: str = ""
    """The job that runs on the same GPUs; empty for none."""
    others: list[tuple[int, JobSpec | None]] = field(default_factory=list)
    """(time, who runs on the same GPUs from then on) of the attempt."""
    began_tasks: int | None = None
    """Tasks with which the attempt of an elastic job was placed; None for another job."""
    sizes: list[tuple[int, int]] = field(default_factory=list)
    """(time, tasks from then on) of the attempt, where it was resized."""


class ShareCheck:
    """Jobs that share GPUs. What they hold is claimed from when the first of them is placed until the last is asked to
    stop, and in use from the start of the first to the end of the last.

    Args:
        wrong: takes what is wrong: a word, and a sentence.
        jobs, servers: as the events so far leave them.
    """

    def __init__(
        self,
        wrong: Callable[[str, str], None],
        jobs: Mapping[str, CheckedJob],
        servers: Mapping[str, CheckedServer],
    ) -> None:
        self._wrong, self._jobs, self._servers = wrong, jobs, servers

    def shared(self, event: ev.Shared) -> None:
        """Take in that two jobs of the log are to share GPUs."""
        holder, guest = (self._jobs.get(name) for name in event.jobs)
        if holder is None or guest is None:
            self._wrong("share", f"{' or '.join(event.jobs)} was never submitted; they cannot share GPUs")
        elif holder.phase not in CLAIMING or guest.phase != "waiting" or holder.partner or guest.partner:
            words = f"jobs {' and '.join(event.jobs)} are {holder.phase} and {guest.phase}, or have partners"
            self._wrong("share", f"{words}; they cannot share GPUs")
        else:
            holder.partner, guest.partner = event.jobs[1], event.jobs[0]

    def check_guest(self, event: ev.Placed, guest: CheckedJob) -> None:
        """Check that a job is placed on the GPUs of another."""
        holder = self._jobs[guest.partner]
        where = holder.placed
        if where is None or (where.region, where.shares) != (event.region, event.shares):
            self._wrong("share", f"job {event.job} is not placed where its partner {guest.partner} is")
        for spec in (guest.spec, holder.spec):
            kinds = (self._servers[one.server].up.gpu_type for one in event.shares if one.server in self._servers)
            if any(need_of(spec, kind) != (GPU_MILLI, 0, 0) for kind in kinds):
                self._wrong("share", f"job {event.job} or its partner does not take whole GPUs and nothing else")

    def leaves(self, job: CheckedJob) -> bool:
        """Note that a job of the log is asked to stop; returns whether another one claims the GPUs that it holds."""
        other = self._jobs.get(job.partner)
        job.partner = ""
        if other is None:
            return False
        other.partner = ""
        return other.phase in CLAIMING

    def starts(self, name: str, job: CheckedJob, now_ms: int) -> bool:
        """Note that a job of the log starts; returns whether the GPUs that it holds were in use before."""
        other = self._jobs.get(job.partner)
        if other is None or not other.ran:
            return False
        if other.mate:
            self._wrong("share", f"job {name} starts on GPUs of {job.partner}, where {other.mate} has not stopped")
            return True
        other.mate, job.mate = name, job.partner
        other.others.append((now_ms, job.spec))
        job.others.append((now_ms, other.spec))
        return True

    def ends(self, job: CheckedJob, now_ms: int) -> bool:
        """Note that a job of the log has ended; returns whether the GPUs that it held are still in use."""
        other = self._jobs.get(job.mate)
        if other is None:
            return False
        other.mate = job.mate = ""
        other.others.append((now_ms, None))
        return True
