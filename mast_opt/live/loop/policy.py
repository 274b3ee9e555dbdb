"""What decides: policies, what they see, and the desk at which they decide."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Protocol

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.cluster_use import ClusterUse
from mast_opt.live.loop.datasets import Datasets
from mast_opt.live.loop.demand import Demand
from mast_opt.live.loop.inventory import Inventory
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.plans import Plans
from mast_opt.live.loop.reclaimable import Reclaimable
from mast_opt.problems.job_placement.live_fleet.answers import Bid, Refused

PLACED_BY = frozenset({"cpu_cores", "memory_gb", "within", "prefer"})
"""Optional columns of submissions that decide between servers, whatever the policy."""
RUN_BY = frozenset({"duration_s", "steps", "model", "limit_s", "checkpoint_s", "restart_s"})
"""Optional columns of submissions by which jobs run and stop, whatever the policy."""
EVERY_POLICY = PLACED_BY | RUN_BY


class View(Protocol):
    """The state, to be read only."""

    @property
    def now_ms(self) -> int:
        """The time of this turn."""
        ...

    @property
    def news(self) -> Sequence[ev.Event]:
        """What has happened since the policy last decided, its own decisions included."""
        ...

    @property
    def jobs(self) -> Mapping[str, JobRecord]:
        """Every job whose end is not known, by the order of submission."""
        ...

    @property
    def supply_mgpu(self) -> Mapping[str, int]:
        """Region → what its servers have."""
        ...

    @property
    def used_mgpu(self) -> Mapping[str, int]:
        """Region → what starts and runs there."""
        ...

    @property
    def replicas(self) -> Mapping[str, frozenset[str]]:
        """Dataset → regions that hold it whole."""
        ...

    @property
    def datasets(self) -> Datasets:
        """Sizes and replicas of data, copies under way, storage of regions."""
        ...

    @property
    def inventory(self) -> Inventory:
        """Servers, and which of them are in service."""
        ...

    @property
    def demand(self) -> Demand:
        """What jobs have asked for in the last days."""
        ...

    @property
    def plans(self) -> Plans:
        """What slow paths wait for and carry out."""
        ...

    @property
    def use(self) -> ClusterUse:
        """What was in use in each cluster in the last days."""
        ...

    @property
    def reclaimable(self) -> Reclaimable:
        """What each server could give at most, and where that has grown. Changed quotas and replicas do not show
        there."""
        ...

    @property
    def quotas(self) -> Mapping[str, int]:
        """Tenant → milli-GPUs that it may use; a tenant that is not listed has no limit."""
        ...

    @property
    def has_quotas(self) -> bool:
        """Whether any tenant has a quota, be it of a GPU type."""
        ...

    def tier(self, record: JobRecord) -> int:
        """The tier of a job after quotas: the lowest one if the job would take its tenant over the quota."""
        ...

    def credit_milli(self, tenant: str) -> int:
        """Thousandths of its quota that a tenant left unused in the mean of the last seven days."""
        ...

    def admissible(self, record: JobRecord) -> tuple[str, ...]:
        """The regions where a job may run: all of its data is there, and it is bound to no other one."""
        ...


class Desk(Protocol):
    """The only way to decide. Every decision becomes an event of the turn."""

    def place(
        self,
        name: str,
        regions: Collection[str] | None = None,
        gpu_type: str | None = None,
        avoid: Collection[str] = (),
        preempt: bool = True,
    ) -> Bid | Refused:
        """The best bid for a waiting job in these regions and on this GPU type (None: all of them), on none of the
        servers to ``avoid``, and without ``preempt`` with no victims; changes nothing."""
        ...

    def bids(self, name: str) -> tuple[Bid, ...]:
        """The best bid of every region that has one, the best of all first; changes nothing."""
        ...

    def first_fit(self, name: str) -> tuple[int, Bid] | None:
        """The first time at which a waiting job that does not fit now fits without victims if every job ends at its
        time limit, and its bid then; None if what runs without limits keeps it waiting. Changes nothing."""
        ...

    def leaves_room(self, name: str, other: str, at_ms: int) -> bool:
        """Whether another waiting job still fits at that time, if every job ends at its time limit, when the first one
        starts now. Changes nothing."""
        ...

    def commit(self, bid: Bid, runner_up: Bid | None = None) -> tuple[str, ...]:
        """Place the job; returns the victims, which stop."""
        ...

    def share(self, name: str, other: str) -> None:
        """Place a waiting job on the GPUs of another one, which goes on. Both take whole GPUs, have as many tasks, and
        need no cores and no memory; the data of the waiting job is in that region.

        Raises:
            UsageError: they cannot share GPUs.
        """
        ...

    def preempt(self, name: str, why: str) -> None:
        """Ask a job that starts or runs to stop. It returns to the queue when it has."""
        ...

    def bind(self, name: str, region: str) -> None:
        """From now on the job may run in this region only."""
        ...

    def copy(self, dataset: str, region: str) -> None:
        """Ask for a replica of a dataset in a region, from one that holds it whole."""
        ...

    def drop(self, dataset: str, region: str) -> None:
        """Delete the replica of a dataset in a region."""
        ...

    def hold(self, name: str, why: str, code: str) -> None:
        """Take a waiting job out of the queue until ``let_go``. ``code`` is that of ``Refused``."""
        ...

    def let_go(self, name: str) -> None:
        """Queue a held job again."""
        ...


class Policy(Protocol):
    """Decides which job runs where.

    It may keep caches that it fills from ``View.news``; ``begin`` clears them and fills them from the jobs that there
    are, so that a policy goes on after a restart.
    """

    name: str
    reacts_to: ClassVar[frozenset[type]]
    """Events after which it decides."""

    @property
    def reads(self) -> frozenset[str]:
        """Optional columns of submissions that change what happens: ``EVERY_POLICY``, and what it looks at itself."""
        ...

    every_ms: int | None
    """How long after a decision it decides again if nothing happens before; None for never. It may change with every
    decision."""

    def begin(self, view: View) -> None:
        """Forget everything, and take in the jobs of this view."""
        ...

    def decide(self, view: View, desk: Desk) -> None:
        """Decide on what is waiting and running now."""
        ...
