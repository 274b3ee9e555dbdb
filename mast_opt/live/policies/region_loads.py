"""GPUs that jobs bound to each region have asked for, now or as of some time ago."""

from collections.abc import Mapping

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot

_MAY_END = (ev.Finished, ev.Failed, ev.Cancelled, ev.Stopped)


class RegionLoads:
    """Milli-GPUs of the jobs that are bound to each region and have not ended.

    Args:
        age_ms: how old the loads may be that choices are made by.
    """

    def __init__(self, age_ms: int = 0) -> None:
        self._age_ms = age_ms
        self._bound: dict[str, tuple[str, int]] = {}
        self._asked: dict[str, int] = {}
        self._seen: tuple[int, Mapping[str, int]] | None = None

    def begin(self, snapshot: Snapshot) -> None:
        """Count the jobs of this snapshot."""
        self._bound, self._asked = {}, {}
        for record in snapshot.jobs.values():
            if record.bound:
                self.add(record.name, record.bound, record.asked_mgpu)

    def take_in(self, snapshot: Snapshot) -> None:
        """Forget the jobs that have ended."""
        for event in snapshot.news:
            if isinstance(event, _MAY_END) and event.job in self._bound and event.job not in snapshot.jobs:
                region, mgpu = self._bound.pop(event.job)
                self._asked[region] -= mgpu

    def add(self, name: str, region: str, mgpu: int) -> None:
        """Count a job that has been bound to a region."""
        self._bound[name] = region, mgpu
        self._asked[region] = self._asked.get(region, 0) + mgpu

    def freest(self, record: JobRecord, snapshot: Snapshot, *, share: bool) -> str | None:
        """The region where most is left for a job; None where no region that may run it is large enough.

        Args:
            share: by the share of the supply that is left, not by the amount.
        """
        supply, inventory = snapshot.supply_mgpu, snapshot.inventory
        regions = [region for region in snapshot.admissible(record) if inventory.could_hold(record.job, region)]
        asked = self._of_some_time_ago(snapshot.now_ms)

        def left(region: str) -> float:
            amount = supply[region] - asked.get(region, 0)
            return amount / max(1, supply[region]) if share else amount

        return max(regions, key=left) if regions else None

    def by_share(self, record: JobRecord, snapshot: Snapshot) -> list[str]:
        """Regions that are large enough for a job, wherever its data is, the largest share left first."""
        supply, inventory = snapshot.supply_mgpu, snapshot.inventory
        asked = self._of_some_time_ago(snapshot.now_ms)
        regions = [region for region in supply if inventory.could_hold(record.job, region)]
        return sorted(regions, key=lambda region: asked.get(region, 0) / max(1, supply[region]))

    def _of_some_time_ago(self, now_ms: int) -> Mapping[str, int]:
        """Milli-GPUs that jobs have asked of each region, as old as the policy lets them be."""
        if not self._age_ms:
            return self._asked
        if self._seen is None or now_ms >= self._seen[0] + self._age_ms:
            self._seen = now_ms, dict(self._asked)
        return self._seen[1]
