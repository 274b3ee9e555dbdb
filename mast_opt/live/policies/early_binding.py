"""Early binding: every job is sent to one region when it comes, by the load of the regions, and waits there.

What federations do (Hydra, NSDI'19, section 5; MAST, OSDI'24, section 2): the choice is quick and needs little
knowledge, and it cannot be taken back.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY, PARTS
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.head_of_line import ARRIVALS, Queue, by_submission
from mast_opt.live.policies.hydra import load_weights, split
from mast_opt.problems.job_placement.units import WHOLE

RULES = ("free", "share", "hydra", "random", "home")


@dataclass(frozen=True)
class EarlyBindingParams:
    """Parameters of ``federated``.

    Args:
        rule: where a job goes, of the regions that hold its data and are large enough: ``free``, with the most free
            GPUs less those that wait there; ``share``, the largest share of them; ``hydra``, where Hydra would send
            most of its tasks, had they not to stay together; ``random``, in proportion to size; ``home``, its home
            region.
        age_ms: how old the loads are that ``free``, ``share`` and ``hydra`` see; 0 for those of now.
        seed: of ``random``.
        alpha: of ``hydra``: weight of the free GPUs against that of the load, see ``hydra.split``.
        high_gpus: of ``hydra``: waiting GPUs from which a region gets nothing by its load.
    """

    rule: str = "free"
    age_ms: int = 0
    seed: int = 0
    alpha: float = 1.0
    high_gpus: float = 1000.0

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise UsageError(f"rule is {self.rule!r}; expected one of {', '.join(RULES)}")
        if self.age_ms < 0:
            raise UsageError(f"age_ms is {self.age_ms}; expected at least 0")


class EarlyBinding:
    """A queue for each region, first come, first served; a job joins one of them when it comes."""

    name: str = "federated"
    reacts_to: ClassVar[frozenset[type]] = CHANGES
    every_ms: int | None = None

    def __init__(self, params: EarlyBindingParams | None = None) -> None:
        self.params = params or EarlyBindingParams()
        self._queues: dict[str, Queue] = {}
        self._waiting: dict[str, tuple[str, int]] = {}
        """Job in a queue → its region and its milli-GPUs."""
        self._waiting_mgpu: dict[str, int] = {}
        self._due: set[str] = set()
        """Regions whose head may fit: it is new, or something has become free."""
        self._seen_growth = 0
        self._seen: tuple[int, Mapping[str, int], Mapping[str, int]] | None = None

    @property
    def reads(self) -> frozenset[str]:
        """Optional columns of submissions that change what early binding does."""
        own = {"home_region"} if self.params.rule == "home" else set()
        return EVERY_POLICY | {PARTS, "tenant", "preemptible"} | own

    def begin(self, snapshot: Snapshot) -> None:
        """Take in the jobs that are bound already."""
        self._queues = {region: Queue(by_submission) for region in snapshot.supply_mgpu}
        self._waiting, self._waiting_mgpu = {}, dict.fromkeys(snapshot.supply_mgpu, 0)
        self._due, self._seen_growth, self._seen = set(self._queues), snapshot.reclaimable.count, None
        for record in snapshot.jobs.values():
            if record.bound and record.waits:
                self._join(record)

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Bind new jobs to a region, and let each region place what waits there."""
        for event in snapshot.news:
            if isinstance(event, (ev.Placed, ev.Cancelled)):
                self._leave(event.job)
            elif isinstance(event, ARRIVALS):
                self._arrived(event.job, snapshot, actions)
            elif isinstance(event, (ev.CopyEnded, ev.DatasetCreated)):
                for name in [record.name for record in snapshot.held]:
                    actions.requeue(name)
                    self._arrived(name, snapshot, actions)
            elif isinstance(event, ev.QuotaSet):
                self._due.update(self._queues)
        grown, inventory = snapshot.reclaimable.grown(self._seen_growth), snapshot.inventory
        self._seen_growth = snapshot.reclaimable.count
        self._due.update(self._queues if grown is None else (inventory.server_of[server].region for server in grown))
        for region, queue in self._queues.items():
            if region in self._due:
                queue.serve(snapshot, actions)
        self._due.clear()

    def _arrived(self, name: str, snapshot: Snapshot, actions: Actions) -> None:
        """Bind a job that has come to a region, where it waits; it is inadmissible if no region can hold it."""
        record = snapshot.jobs.get(name)
        if record is None or not record.waits or name in self._waiting:
            return
        if not record.bound:
            region = self._choose(record, snapshot)
            if region is None:
                actions.mark_inadmissible(name, "no region holds its data and is large enough", "data")
                return
            actions.bind(name, region)
        self._join(record)

    def _join(self, record: JobRecord) -> None:
        """Queue a job in the region that it is bound to."""
        mgpu = record.asked_mgpu
        self._queues[record.bound].push(record)
        self._waiting[record.name] = record.bound, mgpu
        self._waiting_mgpu[record.bound] += mgpu
        self._due.add(record.bound)

    def _leave(self, name: str) -> None:
        """Count a job no longer among those that early binding lets wait in its region."""
        if name in self._waiting:
            region, mgpu = self._waiting.pop(name)
            self._waiting_mgpu[region] -= mgpu

    def _choose(self, record: JobRecord, snapshot: Snapshot) -> str | None:
        """Region to which the policy's rule binds a new job; None if there is none."""
        inventory = snapshot.inventory
        regions = [region for region in snapshot.admissible(record) if inventory.could_hold(record.job, region)]
        if self.params.rule == "home":
            home = record.spec.home_region
            return home if home in snapshot.supply_mgpu else None
        if not regions:
            return None
        if self.params.rule == "random":
            rng = np.random.Generator(np.random.PCG64([self.params.seed, zlib.crc32(b"federated"), record.number]))
            size = np.array([snapshot.supply_mgpu[region] for region in regions], np.float64)
            return regions[int(rng.choice(len(regions), p=size / size.sum()))]
        free, waiting = self._loads(snapshot)
        if self.params.rule == "hydra":
            weights = load_weights([waiting[region] / WHOLE for region in regions], low=0.0, high=self.params.high_gpus)
            headroom = [max(0, free[region]) // WHOLE for region in regions]
            parts = split(record.asked_mgpu // WHOLE or 1, headroom=headroom, weights=weights, alpha=self.params.alpha)
            return regions[int(np.argmax(parts))]
        if self.params.rule == "free":
            return max(regions, key=free.__getitem__)
        return max(regions, key=lambda region: free[region] / max(1, snapshot.supply_mgpu[region]))

    def _loads(self, snapshot: Snapshot) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Region → free milli-GPUs less those that wait, and those that wait, as old as they may be."""
        if self._seen is not None and self.params.age_ms and snapshot.now_ms < self._seen[0] + self.params.age_ms:
            return self._seen[1:]
        used = snapshot.inventory.used_mgpu
        free = {
            region: supply - used[region] - self._waiting_mgpu[region]
            for region, supply in snapshot.supply_mgpu.items()
        }
        self._seen = snapshot.now_ms, free, dict(self._waiting_mgpu)
        return self._seen[1:]
