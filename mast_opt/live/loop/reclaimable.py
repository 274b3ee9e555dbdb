"""Milli-GPUs that each server could give to a job of some tier, and where that has changed and grown: who was refused
need not be searched for again before it has grown."""

import bisect
from collections.abc import Iterable
from typing import Protocol

from mast_opt.problems.job_placement.live_fleet.fleet import Fleet

MOST_KEPT = 100_000
"""Servers that have changed, or grown, of which the order is kept."""


class _Order:
    """Servers in the order in which something happened to them; the last ones are kept."""

    def __init__(self) -> None:
        self._servers: list[str] = []
        self._dropped = 0

    @property
    def count(self) -> int:
        """Number of entries of the order in which servers grew or shrank, dropped ones included."""
        return self._dropped + len(self._servers)

    def since(self, count: int) -> Iterable[str] | None:
        """Each server that grew or shrank after the first ``count``, once; None if that is too long ago."""
        if count < self._dropped:
            return None
        return dict.fromkeys(self._servers[count - self._dropped :])

    def add(self, server: str) -> None:
        """Note that a server has grown or shrunk."""
        self._servers.append(server)
        if len(self._servers) > 2 * MOST_KEPT:
            del self._servers[:MOST_KEPT]
            self._dropped += MOST_KEPT


class HasFleet(Protocol):
    """Whatever has a fleet."""

    @property
    def fleet(self) -> Fleet:
        """The fleet as it is now."""


class Reclaimable:
    """Milli-GPUs that are free or held by jobs that may be stopped, by server, as the ledger of the fleet has them now;
    what it does not have is where that has changed, in which order.

    For a job of tier t, a server has what is free and what stoppable jobs of less important tiers hold. It grows only
    when a job ends there that such a job could not have stopped, or when the server comes into service.

    Args:
        servers: with their fleet as it is now.
        tiers: all tiers of its jobs, ascending.
    """

    def __init__(self, servers: HasFleet, tiers: Iterable[int]) -> None:
        self._servers, self.tiers = servers, tuple(tiers)
        self._grown = _Order()
        self._changed = _Order()

    @property
    def count(self) -> int:
        """Number of times that a server has grown so far."""
        return self._grown.count

    @property
    def changes(self) -> int:
        """Number of times that a server has grown or shrunk so far."""
        return self._changed.count

    def grown(self, since: int) -> Iterable[str] | None:
        """The servers that have grown since the count was ``since``; None if that is too long ago."""
        return self._grown.since(since)

    def changed(self, since: int) -> Iterable[str] | None:
        """The servers that have grown or shrunk since ``changes`` was ``since``; None if that is too long ago."""
        return self._changed.since(since)

    def most(self, server: str, tier: int) -> int:
        """Most milli-GPUs that a job of this tier could get on a server; 0 where it takes no work."""
        return self._servers.fleet.most_mgpu(server)[bisect.bisect_right(self.tiers, tier)]

    def most_of(self, server: str, importance: int) -> int:
        """Most milli-GPUs that a job of this importance, which may borrow, could get on a server."""
        level = bisect.bisect_right(self.tiers, importance) + max(0, importance - self.tiers[-1])
        return self._servers.fleet.most_mgpu(server)[level]

    def tiers_with(self, server: str, mgpu: int) -> int:
        """Number of tiers, counted from the most important one, that could get so many milli-GPUs on a server."""
        most = self._servers.fleet.most_mgpu(server)[1 : len(self.tiers) + 1]
        return next((number for number, there in enumerate(most) if there < mgpu), len(most))

    def grow(self, server: str) -> None:
        """Note that a server could give more than before, to a job of some tier; its processors and memory may have
        grown too.
        """
        self._grown.add(server)
        self._changed.add(server)

    def shrink(self, server: str) -> None:
        """Note that a server could give less than before."""
        self._changed.add(server)
