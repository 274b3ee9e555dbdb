"""Interface of policies, which decide what runs where: they read a ``Snapshot`` and decide by ``Actions``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.speeds import Speeds

PLACED_BY = frozenset({"cpu_cores", "memory_gb", "within", "prefer"})
"""Optional columns of submissions that decide between servers, whatever the policy."""
RUN_BY = frozenset({"duration_s", "steps", "model", "limit_s", "checkpoint_s", "restart_s"})
"""Optional columns of submissions by which jobs run and stop, whatever the policy."""
EVERY_POLICY = PLACED_BY | RUN_BY
"""Columns that count whatever the policy."""
SIZES = frozenset({"min_tasks", "max_tasks"})
"""Columns of elastic jobs, which a policy that changes sizes ``reads``."""
PARTS = "job_parts"
"""Table of traces whose jobs, those of several parts, a policy places only if it ``reads`` it."""
CHANGES: frozenset[type] = frozenset(
    {
        *(ev.Submitted, ev.Stopped, ev.Finished, ev.Failed, ev.Queued, ev.ServerUp, ev.ServerMoved, ev.QuotaSet),
        *(ev.CopyEnded, ev.DatasetCreated, ev.CapacitySet, ev.ServerOpened),
    }
)
"""Events after which a waiting job may start."""


class Policy(Protocol):
    """Decides which job runs where.

    It may keep caches that it fills from ``Snapshot.news``; ``begin`` clears them and fills them from the jobs that
    there are, so that a policy goes on after a restart. One that has an attribute ``reclaim``, a rule of
    ``Fleet.set_reclaim``, sets it for the fleet.
    """

    name: str
    reacts_to: ClassVar[frozenset[type]]
    """Events after which it decides."""

    @property
    def reads(self) -> frozenset[str]:
        """Optional columns of submissions that change what a policy does: ``EVERY_POLICY``, and what it looks at
        itself; ``PARTS``, if it places jobs of several parts; ``SIZES``, if it changes the tasks of running jobs.
        """
        ...

    every_ms: int | None
    """Time after a decision at which it decides again if nothing happens before; None for never. It may change with
    every decision."""

    def begin(self, snapshot: Snapshot) -> None:
        """Forget everything, and take in the jobs of this snapshot."""
        ...

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Decide on what is waiting and running now."""
        ...


def not_for(policy: Policy, name: str, job: JobSpec) -> str:
    """Reason why a policy would never place a job; empty if it may."""
    if not job.parts or PARTS in policy.reads:
        return ""
    return f"job {name} has several parts, and the policy {policy.name} places no such jobs"


@dataclass(frozen=True)
class NamedPolicy:
    """A policy that can be asked for by name."""

    params: type[Any]
    """A frozen dataclass whose fields, all with defaults, are its parameters: numbers, text, True or False."""
    make: Callable[[Any, Speeds], Policy]
    """(an object of that class, speeds of the trace's jobs) → the policy."""
