"""GPUs that jobs hold, counted by region, server, cluster and tenant. GPUs that two jobs share are counted once."""

from __future__ import annotations

from mast_opt.live.loop.cluster_use import ClusterUse
from mast_opt.live.loop.fleet_work import FleetWork
from mast_opt.live.loop.inventory import Inventory
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.reclaimable import Reclaimable
from mast_opt.live.loop.tenants import Tenants
from mast_opt.problems.job_placement.live_fleet.types import Share


class Holdings:
    """Counts of what jobs hold. Only ``State`` changes it.

    Args:
        lowest_tier: that of jobs over the quota of their tenant.
    """

    def __init__(
        self,
        work: FleetWork,
        inventory: Inventory,
        reclaimable: Reclaimable,
        tenants: Tenants,
        use: ClusterUse,
        lowest_tier: int,
    ) -> None:
        self._work = work
        self._inventory, self._reclaimable, self._tenants, self._use = inventory, reclaimable, tenants, use
        self._lowest_tier = lowest_tier

    def take(self, record: JobRecord, now_ms: int, *, over: bool) -> None:
        """A job holds its shares.

        Args:
            over: whether they take its tenant over the quota.
        """
        record.mgpu = mgpu_of(record.shares)
        record.over_quota = over
        self._inventory.used_mgpu[record.region] += record.mgpu
        tenant = record.spec.tenant
        if over or record.spec.preemptible or tenant in self._tenants.typed:
            may_be_over = over or tenant in self._tenants.typed  # the fleet knows; here it is a bound from above
            record.stoppable_tier = self._lowest_tier if may_be_over else record.spec.tier
        for share in record.shares:
            mgpu = sum(share.gpus.values())
            self._reclaimable.take(share.server, mgpu, record.stoppable_tier)
            self._change_use(share.server, mgpu, now_ms)
        self._tenants.change(tenant, record.mgpu, now_ms, over=over)

    def give(self, record: JobRecord, now_ms: int) -> None:
        """Others may have what a job holds."""
        self._inventory.used_mgpu[record.region] -= record.mgpu
        self._tenants.change(record.spec.tenant, -record.mgpu, now_ms, over=record.over_quota)
        for share in record.shares:
            mgpu = sum(share.gpus.values())
            self._reclaimable.give(share.server, mgpu, record.stoppable_tier)
            self._change_use(share.server, -mgpu, now_ms)

    def part(self, record: JobRecord, other: JobRecord, now_ms: int) -> None:
        """A job has no GPUs in common with another any more; the one that goes on holds them."""
        record.partner = other.partner = ""
        if record.is_guest or not other.is_guest:
            record.is_guest = False
            return
        other.is_guest = False
        self._work.adopt(other.job, other.shares)
        self.take(other, now_ms, over=self._tenants.is_over(other.spec.tenant, mgpu_of(other.shares)))
        if other.state is JobState.RUNNING:  # it holds them from now on
            other.attained_mgpu_ms -= other.mgpu * (now_ms - other.since_ms)

    def _change_use(self, server: str, mgpu: int, now_ms: int) -> None:
        where = self._inventory.server_of[server]
        self._use.change(where.cluster, where.gpu_type, mgpu, now_ms)


def mgpu_of(shares: tuple[Share, ...]) -> int:
    """Milli-GPUs of all shares."""
    return sum(sum(share.gpus.values()) for share in shares)
