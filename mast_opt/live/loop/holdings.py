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
    """Counts of what jobs hold. Only ``State`` changes it."""

    def __init__(
        self,
        work: FleetWork,
        inventory: Inventory,
        reclaimable: Reclaimable,
        tenants: Tenants,
        use: ClusterUse,
    ) -> None:
        self._work = work
        self._inventory, self._reclaimable, self._tenants, self._use = inventory, reclaimable, tenants, use

    def take(self, record: JobRecord, now_ms: int) -> None:
        """Let a job hold its shares of servers, and count them by region, cluster and tenant."""
        record.mgpu = mgpu_of(record.shares)
        record.over_quota = self._work.is_over_quota(record.name)
        record.stoppable_tier = self._stoppable_tier(record)
        self._inventory.used_mgpu[record.region] += record.mgpu
        for share in record.shares:
            mgpu = sum(share.gpus.values())
            self._reclaimable.take(share.server, mgpu, record.stoppable_tier, over=record.over_quota)
            self._change_use(share.server, mgpu, now_ms)
        self._tenants.change(record.spec.tenant, record.mgpu, now_ms)

    def restand(self, record: JobRecord, *, over: bool) -> None:
        """Let a job that holds its shares be within or beyond the quotas of its tenant from now on."""
        if over == record.over_quota:
            return
        before = record.stoppable_tier, record.over_quota
        record.over_quota = over
        record.stoppable_tier = self._stoppable_tier(record)
        for share in record.shares:
            mgpu = sum(share.gpus.values())
            self._reclaimable.give(share.server, mgpu, before[0], over=before[1])
            self._reclaimable.take(share.server, mgpu, record.stoppable_tier, over=over)

    def _stoppable_tier(self, record: JobRecord) -> int | None:
        """Tier of a job that may be stopped for another one; None if it may not."""
        return record.spec.tier if record.over_quota or record.spec.preemptible else None

    def give(self, record: JobRecord, now_ms: int) -> None:
        """Let others have the shares of servers that a job holds."""
        self._inventory.used_mgpu[record.region] -= record.mgpu
        self._tenants.change(record.spec.tenant, -record.mgpu, now_ms)
        for share in record.shares:
            mgpu = sum(share.gpus.values())
            self._reclaimable.give(share.server, mgpu, record.stoppable_tier, over=record.over_quota)
            self._change_use(share.server, -mgpu, now_ms)

    def part(self, record: JobRecord, other: JobRecord, now_ms: int) -> None:
        """Note that a job has no GPUs in common with another any more; the one that goes on holds them."""
        record.partner = other.partner = ""
        if record.is_guest or not other.is_guest:
            record.is_guest = False
            return
        other.is_guest = False
        self._work.adopt(other.job, other.shares)
        self.take(other, now_ms)
        if other.state is JobState.RUNNING:  # it holds them from now on
            other.attained_mgpu_ms -= other.mgpu * (now_ms - other.since_ms)

    def _change_use(self, server: str, mgpu: int, now_ms: int) -> None:
        """Count GPUs as in use, or (negative) no longer, in the cluster of a server."""
        where = self._inventory.server_of[server]
        self._use.change(where.cluster, where.gpu_type, mgpu, now_ms)


def mgpu_of(shares: tuple[Share, ...]) -> int:
    """Milli-GPUs of all shares that a job holds."""
    return sum(sum(share.gpus.values()) for share in shares)
