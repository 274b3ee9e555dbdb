"""The state as policies and slow paths see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.datasets import NOWHERE
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.state import State


class StateView:
    """See ``policy.View``."""

    def __init__(self, state: State, news: Sequence[ev.Event]) -> None:
        self._state = state
        self.news = news
        self.now_ms = state.now_ms
        self.jobs: Mapping[str, JobRecord] = state.jobs
        self.supply_mgpu: Mapping[str, int] = state.inventory.supply_mgpu
        self.used_mgpu: Mapping[str, int] = state.inventory.used_mgpu
        self.replicas: Mapping[str, frozenset[str]] = state.datasets.replicas
        self.datasets = state.datasets
        self.inventory = state.inventory
        self.demand = state.demand
        self.use = state.use
        self.plans = state.plans
        self.reclaimable = state.reclaimable
        self.quotas: Mapping[str, int] = state.tenants.quota_mgpu
        self.has_quotas = bool(state.tenants.quota_mgpu or state.tenants.typed)

    def tier(self, record: JobRecord) -> int:
        """See ``policy.View.tier``."""
        state = self._state
        over = state.tenants.is_over(record.spec.tenant, record.asked_mgpu)
        return state.lowest_tier if over else record.spec.tier

    def credit_milli(self, tenant: str) -> int:
        """See ``policy.View.credit_milli``."""
        return self._state.tenants.credit_milli(tenant, self.now_ms)

    def admissible(self, record: JobRecord) -> tuple[str, ...]:
        """See ``policy.View.admissible``."""
        regions = (record.bound,) if record.bound else tuple(self.supply_mgpu)
        held = [self.replicas.get(dataset, NOWHERE) for dataset in record.spec.datasets]
        return tuple(region for region in regions if all(region in holders for holders in held))
