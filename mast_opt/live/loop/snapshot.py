"""Snapshot of the state for policies and slow paths."""

from collections.abc import Collection, Mapping, Sequence

from mast_opt.core.ranks import Right
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.state import State
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fits_by import first_trial
from mast_opt.problems.job_placement.live_fleet.types import Job


class Snapshot:
    """Snapshot of the state for policies and slow paths, to be read only."""

    def __init__(self, state: State, news: Sequence[ev.Event]) -> None:
        self._state = state
        self.news = news
        """Events since the policy last decided, its own decisions included."""
        self.now_ms = state.now_ms
        """The time of this turn."""
        self.jobs: Mapping[str, JobRecord] = state.jobs
        """Every job whose end is not known, by the order of submission."""
        self.supply_mgpu: Mapping[str, int] = state.inventory.supply_mgpu
        """Region → milli-GPUs of its servers in service."""
        self.replicas: Mapping[str, frozenset[str]] = state.datasets.replicas
        """Dataset → regions that hold it whole."""
        self.datasets = state.datasets
        """Sizes and replicas of data, copies under way, storage of regions."""
        self.inventory = state.inventory
        """Servers, and which of them are in service."""
        self.demand = state.demand
        """Demand of jobs in the last days."""
        self.use = state.use
        """Use of each cluster in the last days."""
        self.plans = state.plans
        """Questions that slow paths wait for, and plans that they carry out."""
        self.reclaimable = state.reclaimable
        """Milli-GPUs that each server could give at most, and where they have grown. Changed quotas and replicas do
        not show there."""
        self.has_quotas = bool(state.quotas)
        """Whether any tenant has a quota, be it of a GPU type."""

    @property
    def held(self) -> list[JobRecord]:
        """The jobs that a policy has taken out of the queue, by the order of submission."""
        return sorted(self._state.held.values(), key=lambda record: record.number)

    def readers(self, dataset: str) -> Collection[JobRecord]:
        """The jobs that read a dataset, by the order of submission."""
        return self._state.readers.get(dataset, {}).values()

    def working_on(self, server: str) -> list[JobRecord]:
        """The jobs that start or run on a server, and were not asked to stop."""
        return [self._state.jobs[name] for name in self._state.fleet.jobs_on(server)]

    def first_trial(
        self, job: Job, region: str, ends: Mapping[int, Collection[str]], assuming: Bid | None = None
    ) -> tuple[int, Bid] | None:
        """The first time at which a job is placed in a region without victims if these jobs end then, see
        ``fits_by.first_trial``, and another one gets its bid now; what is found cannot be committed."""
        with self._state.fleet.trial():
            if assuming is not None:
                victims = self._state.fleet.commit(assuming)
                ends = {at: [name for name in names if name not in victims] for at, names in ends.items()}
            return first_trial(self._state.fleet, job, ends, (region,))

    def importance(self, record: JobRecord) -> int:
        """The tier of a job, or a greater number than all tiers if it would take its tenant over the quotas: such work
        keeps its order by tier, and what its tenant may not borrow comes last."""
        return self._state.fleet.importance_of(record.of.job) if self.has_quotas else record.spec.tier

    def right_at(self, importance: int) -> Right:
        """The right by which a waiting job of this importance would hold its GPUs."""
        tiers = self.reclaimable.tiers
        return Right(0 if importance <= tiers[-1] else 1 + (importance - tiers[-1] - 1) // len(tiers))

    def borrowing(self, tier: int) -> int:
        """The importance of a job of this tier that borrows."""
        tiers = self.reclaimable.tiers
        return tiers[-1] + 1 + tiers.index(tier)

    def is_bounded(self, tenant: str) -> bool:
        """Whether a tenant may hold no more than some amount, borrowed ones included: ``Ledger.is_bounded``."""
        return self._state.fleet.ledger.is_bounded(tenant)

    def eased(self, tenant: str) -> int:
        """Number of the last change by which rights of a tenant, or (empty) of any, may be better: ``Ledger.eased``."""
        return self._state.fleet.ledger.eased(tenant)

    def eased_since(self, number: int) -> list[str]:
        """The tenants whose own quotas may cover more since then: ``Ledger.eased_since``."""
        return self._state.fleet.ledger.eased_since(number)

    def credit_milli(self, tenant: str) -> int:
        """Thousandths of its quota that a tenant left unused in the mean of the last seven days."""
        quota = self._state.quotas.limits(tenant).get(None)
        return 0 if quota is None else self._state.tenants.credit_milli(tenant, quota.nominal, self.now_ms)

    def fair_shares(self, tenant: str, weights: Mapping[str, float], half_life_ms: int) -> tuple[float, ...]:
        """Shares of a tenant and of the groups above it, see ``Ledger.shares``; with a half-life, that of the tenant is
        of its use in the mean of the last days."""
        mean = self._state.tenants.mean_mgpu(tenant, half_life_ms, self.now_ms) if half_life_ms else None
        return self._state.fleet.ledger.shares(tenant, weights, mean)

    def admissible(self, record: JobRecord) -> tuple[str, ...]:
        """The regions where a job may run: all of its data may be read there, and it is bound to no other one."""
        regions = (record.bound,) if record.bound else tuple(self.supply_mgpu)
        held = [self.datasets.readable_in(dataset) for dataset in record.spec.datasets]
        return tuple(filter(frozenset.intersection(*held).__contains__, regions)) if held else regions
