"""Versions of a live fleet (job placement): whether what a bid touches is still as it was when the bid was made."""

from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping
from uuid import uuid4

from mast_opt.core.errors import StaleBid, UsageError
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.move_plan import MovePlan
from mast_opt.problems.job_placement.live_fleet.types import Share


class BidVersions:
    """A counter of changes, and when each server changed last."""

    def __init__(self) -> None:
        self.now = 0
        self.name = uuid4().hex
        """Name of the fleet, or of a trial in it; bids have it."""
        self._good = frozenset((self.name,))
        """Names of the fleets whose bids may be committed."""
        self._server: MutableMapping[str, int] = {}
        """Server → the version since which it is as it is now."""
        self._costs: MutableMapping[str, int] = {}
        """Region → the version since which victims there cost what they cost now."""
        self._oldest = 0
        """Bids of older versions are stale, whatever they touch."""

    def trial(self) -> "BidVersions":
        """Versions of bids for a trial of the fleet, which changes nothing here; it takes the bids of before, and its
        own.
        """
        inner = BidVersions()
        inner.name = f"{self.name} {inner.name}"
        inner.now, inner._oldest, inner._good = self.now, self._oldest, self._good | {inner.name}
        inner._server, inner._costs = ChainMap({}, self._server), ChainMap({}, self._costs)
        return inner

    def check_maker(self, made: Bid | MovePlan) -> None:
        """Raise UsageError for a bid or plan of another fleet, StaleBid for one of a trial that has ended."""
        if made.fleet not in self._good:
            what, root = f"the bid for {made.job.name}" if isinstance(made, Bid) else "the plan", self.name.split()[0]
            if isinstance(made.fleet, str) and made.fleet.split()[:1] == [root]:
                raise StaleBid(f"{what} was made in a trial that has ended; ask for a new one")
            raise UsageError(f"{what} is another fleet's; ask this one for a new one")

    def servers_changed(self, servers: Iterable[str]) -> None:
        """Count a change of these servers of the fleet."""
        self.now += 1
        for name in servers:
            self._server[name] = self.now

    def costs_changed(self, regions: Iterable[str]) -> None:
        """Count a change of what victims in these regions of the fleet cost."""
        self.now += 1
        for name in regions:
            self._costs[name] = self.now

    def rules_changed(self) -> None:
        """Count a change in the fleet of replicas or quotas, which a commit checks by itself."""
        self.now += 1

    def all_changed(self) -> None:
        """Count a change of the fleet after which no bid that was made before is good."""
        self.now += 1
        self._oldest = self.now
        self._server.clear()

    def is_stale(self, bid: Bid, shares_of: Callable[[str], tuple[Share, ...] | None]) -> bool:
        """Whether a server of the bid or of its victims has changed since; a victim that is gone counts too."""
        held = [shares_of(name) for name in bid.victims]
        if bid.version < self._oldest or None in held:
            return True
        if bid.victims and self._costs.get(bid.region, 0) > bid.version:
            return True
        servers = [share.server for share in bid.shares]
        servers += [share.server for shares in held for share in shares or ()]
        return self.changed_since(bid.version, servers)

    def changed_since(self, version: int, servers: Iterable[str]) -> bool:
        """Whether one of these servers of the fleet has changed since a version."""
        return version < self._oldest or any(self._server.get(name, 0) > version for name in servers)
