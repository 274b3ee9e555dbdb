"""Work that the events of a log put on a fleet. While a log is replayed, a job that ends before anybody looks at the
fleet never reaches it: most of the time that a replay took went there."""

from mast_opt.live.loop.inventory import Inventory
from mast_opt.problems.job_placement.live_fleet.types import Job, Share


class FleetWork:
    """Jobs that a fleet has adopted, or will have when it catches up. Only ``State`` changes it.

    Args:
        inventory: with the fleet whose work it is.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.defers = False
        """Whether the fleet may lag behind."""
        self._due: dict[str, tuple[Job, tuple[Share, ...]]] = {}
        """Jobs that the fleet does not have yet, in the order in which they were placed."""

    def adopt(self, job: Job, shares: tuple[Share, ...]) -> None:
        """Have a job run on servers of the fleet, see ``Fleet.adopt``. What does not fit is refused now, or when the
        fleet catches up.
        """
        if self.defers:
            self._inventory.fleet.count_arrival(job)
            self._due[job.name] = job, shares
        else:
            self._inventory.fleet.adopt(job, shares)

    def resize(self, job: Job, shares: tuple[Share, ...]) -> None:
        """Have a job that runs on the fleet hold other servers."""
        if self._due.pop(job.name, None) is None:
            self._inventory.fleet.adopt(job, shares)
        else:
            self._due[job.name] = job, shares

    def release(self, name: str) -> None:
        """Take a job that has gone off the fleet, see ``Fleet.release``."""
        if self._due.pop(name, None) is None:
            self._inventory.fleet.release(name)

    def is_over_quota(self, name: str) -> bool:
        """Whether a job is beyond the quotas of its tenant. While the fleet lags behind, nobody has any."""
        return name not in self._due and self._inventory.fleet.is_over_quota(name)

    def set_work(self, name: str, began_ms: int, checkpoint_ms: int) -> None:
        """Say since when a job works and how often it saves that, see ``Fleet.set_work``, if the fleet has it."""
        if name not in self._due:
            self._inventory.fleet.set_work(name, began_ms, checkpoint_ms)

    def catch_up(self) -> tuple[str, ...]:
        """Have the fleet adopt the jobs that it does not have yet; returns them. Raises UsageError."""
        due, self._due = self._due, {}
        for job, shares in due.values():
            self._inventory.fleet.adopt(job, shares, arrives=False)
        return tuple(due)
