"""Jobs whose end is not known: what was submitted, what has been done, and where each one runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from mast_opt.job_placement.live_fleet.types import Job, Share
from mast_opt.loop.events import JobSpec
from mast_opt.loop.job_states import JobState


@dataclass(slots=True, eq=False)
class JobRecord:
    """A job as the events so far leave it. Only ``State.apply`` changes it.

    ``job`` is what the fleet is asked for; ``shares`` are where it runs, starts or stops.
    """

    name: str
    spec: JobSpec
    job: Job
    number: int
    """Jobs that were submitted later have higher ones."""
    submitted_ms: int
    state: JobState = JobState.SUBMITTED
    attempt: int = 0
    """How often it has been placed."""
    since_ms: int = 0
    """Since when it waits, starts, runs or stops."""
    queued_ms: int = 0
    """Waiting time of the attempts that have started."""
    work_ms: int = 0
    """Work of earlier attempts that a checkpoint has saved, at the reference speed."""
    attained_mgpu_ms: int = 0
    """Milli-GPUs held × time of earlier attempts."""
    region: str = ""
    """Where it runs; empty while it waits."""
    shares: tuple[Share, ...] = ()
    stoppable_tier: int | None = None
    """While it holds servers: the tier below which nothing may stop it; None if nothing may."""
    over_quota: bool = False
    """While it holds servers: its tenant's quota did not cover it when it was placed."""
    bound: str = ""
    """The only region where it may run, once it has been bound; empty before."""
    held: str = ""
    """Why it is held."""
    cancelled: bool = False
    """It is not to be queued again."""
    blockers: set[str] = field(default_factory=set)
    """Jobs that still stop on servers where this one starts."""

    @property
    def mgpu(self) -> int:
        """Milli-GPUs that it holds; 0 while it waits."""
        return sum(sum(share.gpus.values()) for share in self.shares)

    @property
    def asked_mgpu(self) -> int:
        """Milli-GPUs that it asks for, on the type on which it takes the fewest."""
        kinds = self.spec.gpu_types
        return self.spec.tasks * (min(kinds.values()) if kinds else self.spec.mgpu)

    @property
    def waits(self) -> bool:
        """Whether a policy may place it."""
        return self.state is JobState.QUEUED or self.state is JobState.SUBMITTED
