"""Smallest job first: of the jobs that wait, those with the fewest GPUs start first, and nobody is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY, NamedPolicy
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.problems.job_placement.live_fleet.answers import Bid


@dataclass(frozen=True)
class SmallestFirstParams:
    """Parameters of ``smallest-first``: jobs of at most ``alike_gpus`` are equal, and start in order of submission."""

    alike_gpus: int = 1


class SmallestFirst:
    """The policy ``smallest-first``. It keeps nothing between two decisions."""

    name = "smallest-first"
    reacts_to: ClassVar[frozenset[type]] = CHANGES
    reads: frozenset[str] = EVERY_POLICY
    every_ms: int | None = None

    def __init__(self, params: SmallestFirstParams) -> None:
        self._alike_mgpu = 1000 * params.alike_gpus

    def begin(self, snapshot: Snapshot) -> None:
        """Nothing is kept."""

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Place each waiting job that fits, the smallest first."""
        waiting = [record for record in snapshot.jobs.values() if record.waits]
        for record in sorted(waiting, key=lambda one: (max(one.asked_mgpu, self._alike_mgpu), one.number)):
            bid = actions.place(record.name, preempt=False)
            if isinstance(bid, Bid):
                actions.commit(bid)


SMALLEST_FIRST = NamedPolicy(SmallestFirstParams, lambda params, speeds: SmallestFirst(params))
