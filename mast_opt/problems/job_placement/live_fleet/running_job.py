"""A running job of the live fleet (job placement): what it holds, its places in the engine, what stopping it costs."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MILLI
from mast_opt.problems.job_placement.engine.state import MOST_HOURS, ROUND_OFF, VICTIM
from mast_opt.problems.job_placement.live_fleet.types import Job, Share
from mast_opt.problems.job_placement.units import Ints


@dataclass(frozen=True, eq=False)
class Holding:
    """Amounts that a running job holds on one server, whatever position that has."""

    server: str
    cpu_mcores: int
    memory_mib: int
    device: NDArray[np.int32]
    """Milli-GPUs of each GPU."""


@dataclass(frozen=True, slots=True)
class Running:
    """A job that runs."""

    job: Job
    tier: int
    """Position in the fleet's tiers, after quotas."""
    shares: tuple[Share, ...]
    over_quota: bool
    number: int
    """Jobs that started later have higher ones."""
    started_ms: int | None = None
    """Time when it started, by the clock of whoever uses the fleet; None if that was not said."""

    @property
    def servers(self) -> tuple[str, ...]:
        """Servers of a running job of the fleet, each once: parts of a job may share some."""
        found = [share.server for share in self.shares]
        return tuple(dict.fromkeys(found) if self.job.parts else found)

    @property
    def stoppable(self) -> bool:
        """Whether more important work may stop a running job of the fleet: it said so, or is over its
        tenant's quota.
        """
        return self.job.preemptible or self.over_quota

    def but_at_risk(self, gpu_hours: float) -> "Running":
        """The running job, where so much would be lost if it were stopped."""
        return Running(
            self.job.at_risk(gpu_hours), self.tier, self.shares, self.over_quota, self.number, self.started_ms
        )


@dataclass(frozen=True)
class Places:
    """The numbers of running jobs in the engine, and the order of the lists of servers: they decide between victims
    that are otherwise equal."""

    job: tuple[int, ...]
    """Place of each job."""
    free: tuple[int, ...]
    """The places without a job; the last one is taken first."""
    row: Ints
    """The allocations of all jobs, job by job, in the order in which they came to their servers."""


def cost_of(job: Job) -> int:
    """Cost of stopping a running job of the fleet, as the ledger counts it."""
    hours = min(job.gpu_hours_at_risk, MOST_HOURS)
    return math.ceil(round(hours * MILLI, ROUND_OFF)) * VICTIM + 1


def costs_of(gpu_hours: NDArray[np.float64]) -> Ints:
    """[·] what stopping jobs of the fleet costs that would lose so much, as ``cost_of`` counts it."""
    milli = np.minimum(gpu_hours, MOST_HOURS) * MILLI
    whole = np.floor(milli)
    costs: Ints = (whole.astype(np.int64) + (milli - whole >= 0.5 / 10**ROUND_OFF)) * VICTIM + 1
    return costs
