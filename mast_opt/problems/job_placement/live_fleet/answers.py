"""Answers of the live fleet (job placement): bids, refusals, and what became of a server or could be of a cluster."""

from dataclasses import dataclass, field

from mast_opt.problems.job_placement.live_fleet.types import Job, Share
from mast_opt.problems.job_placement.units import LEVELS


@dataclass(frozen=True)
class PartPlace:
    """Place where a part of a job of several parts would run; the shares of the bid have the servers."""

    part: str
    cluster: str
    gpu_type: str
    level: str
    """``server``, ``rack`` or ``cluster``: how close together its tasks are."""


@dataclass(frozen=True)
class Bid:
    """The best place for a job, as long as the fleet does not change."""

    job: Job
    tier: int
    """Tier of the job after quotas."""
    over_quota: bool
    """The job would take its tenant over the quota: it counts less than all work within its quota, and such work may
    stop it."""
    region: str
    cluster: str
    """Cluster of the job, or of its first part; the GPU type is that of the same part."""
    gpu_type: str
    shares: tuple[Share, ...]
    level: str
    """``server``, ``rack`` or ``cluster``, with parts also ``region``: how close together all tasks are."""
    victims: tuple[str, ...]
    """Running jobs that have to be stopped first, in the order in which they started."""
    victim_tier: int | None
    """The most important tier among them; work over its quota has the lowest one."""
    gpu_hours_lost: float
    price: float
    """The job's cost in the cluster, and what it reads from other regions at the fleet's price."""
    load: float
    """Share of the region's GPUs in use."""
    proven: bool
    """Whether no bid is better; False if the search for victims reached its limit, or the job has several parts, which
    are placed one after another."""
    version: int = field(compare=False)
    """Version of the fleet that made it."""
    fleet: str = field(compare=False, repr=False)
    """Name of the fleet that made it; no other one takes the bid."""
    parts: tuple[PartPlace, ...] = ()
    """Place of each part; empty where the job has none."""
    victim_rank: int | None = None
    """Importance of that job: its tier, or a number beyond the lowest tier where it is over its quota."""

    @property
    def key(self) -> tuple[float, float, int, int, float, float]:
        """Key by which bids for the same job compare; the least is the best: importance of the most important
        victim, GPU-hours lost, victims, levels beyond what the job prefers (of all parts), price, load of the region.
        Of equal ones the best is the one whose region and type of servers are listed first."""
        importance = float("-inf") if self.victim_rank is None else -float(self.victim_rank)
        levels = [part.level for part in self.parts] or [self.level]
        level = sum(max(0, LEVELS.index(level) - LEVELS.index(self.job.prefer)) for level in levels)
        lost, stopped = self.gpu_hours_lost, len(self.victims)
        return importance, lost, stopped, level, self.price, self.load


@dataclass(frozen=True)
class Refused:
    """A job that fits nowhere, and why."""

    job: Job
    reason: str
    code: str
    """Code for programs: ``gpu-type`` (no server has one that it accepts), ``residency``, ``data`` (no region holds all
    of its datasets), ``lost`` (no region holds one of them, where remote reads are allowed), ``regions`` (none of those
    that were asked), ``data-and-type``, ``size`` (larger than any cluster), ``task`` (no empty server holds one of its
    tasks), ``in-use``, ``no-room`` (for more tasks, see ``Fleet.resize``), ``together`` (each part fits somewhere, but
    no place was found for all of them), ``quota`` (its tenant may not borrow so much). Only ``in-use``, ``no-room``,
    ``together`` and ``quota`` may pass when other work ends.
    ``Fleet.explain`` has a code for each cluster."""
    remembered: bool = False
    """True if it was not searched for, because it asks for no less than one that fitted nowhere."""
    part: str = ""
    """The part of the job that fits nowhere; empty where it has none, or all parts fit, but not together."""


@dataclass(frozen=True)
class Drained:
    """Jobs of a server that takes no more work: those to stop, and those that stay."""

    stopped: tuple[str, ...]
    """Jobs that may be stopped, and now are."""
    staying: tuple[str, ...]
    """Jobs that may not be stopped; the server is empty when they have ended."""


@dataclass(frozen=True)
class ClusterReport:
    """Report on one cluster: what stands between it and a job."""

    cluster: str
    fits: bool
    words: str
    """The first constraint that rules the cluster out, or what admitting the job there takes."""
    code: str
    """Code for programs: ``fits``, ``victims``; ``residency``, ``lost``, ``data``, ``gpu-type``, ``task`` (no empty
    server holds one), ``size``, ``level``, ``out-of-service``; ``gpus``, ``cpu``, ``memory``, ``fragmented``;
    ``together`` (another part of the job fits nowhere near)."""
    part: str = ""
    """The part of the job that it is about, as if that were alone; empty where it has none."""
