"""Milli-GPUs that each server could give to a job of some tier, and where that has changed and grown: who was refused
need not be searched for again before it has grown."""

import bisect
from collections.abc import Collection, Iterable, Sequence

from mast_opt.live.loop.jobs import JobRecord

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


class Reclaimable:
    """Milli-GPUs that are free or held by jobs that may be stopped, by server.

    For a job of tier t, a server has what is free and what stoppable jobs of less important tiers hold. It grows only
    when a job ends there that such a job could not have stopped, or when the server comes into service.

    Args:
        tiers: ascending.
    """

    def __init__(self, tiers: Sequence[int]) -> None:
        self._tiers = tuple(tiers)
        self._free: dict[str, int] = {}
        self._held: dict[str, list[int]] = {}
        """Server → what stoppable jobs hold, by tier, then what jobs over quotas hold, by tier."""
        self._region: dict[str, str] = {}
        self._grown = _Order()
        self._changed = _Order()

    @property
    def servers(self) -> Collection[str]:
        """Servers that were ever in service."""
        return self._free.keys()

    @property
    def count(self) -> int:
        """Number of times that a server has grown so far."""
        return self._grown.count

    @property
    def changes(self) -> int:
        """Number of times that a server has grown or shrunk so far."""
        return self._changed.count

    def grown(self, since: int) -> Iterable[tuple[str, str]] | None:
        """(region, server) of what has grown since the count was ``since``; None if that is too long ago."""
        servers = self._grown.since(since)
        return None if servers is None else [(self._region[server], server) for server in servers]

    def changed(self, since: int) -> Iterable[str] | None:
        """The servers that have grown or shrunk since ``changes`` was ``since``; None if that is too long ago."""
        return self._changed.since(since)

    def most(self, server: str, tier: int) -> int:
        """Most milli-GPUs that a job of this tier could get on a server."""
        return self._free[server] + sum(self._held[server][bisect.bisect_right(self._tiers, tier) :])

    @property
    def tiers(self) -> tuple[int, ...]:
        """All tiers of jobs in the loop, ascending."""
        return self._tiers

    def tiers_with(self, server: str, mgpu: int) -> int:
        """Number of tiers, counted from the most important one, that could get so many milli-GPUs on a server."""
        most = self._free[server] + sum(self._held[server])
        for number in range(len(self._tiers)):
            most -= self._held[server][number]
            if most < mgpu:
                return number
        return len(self._tiers)

    def add(self, server: str, region: str, mgpu: int) -> None:
        """Put a server into service, all of it free."""
        self._free[server] = mgpu
        self._held[server] = [0] * 2 * len(self._tiers)
        self._region[server] = region
        self._grow(server)

    def resize(self, server: str, mgpu: int) -> None:
        """Add milli-GPUs to a server, or take some away; its processors and memory may have grown too."""
        self._free[server] += mgpu
        self._grow(server)

    def remove(self, server: str) -> None:
        """Take a server out of service; jobs there have given their GPUs back before."""
        self._free[server] = 0
        self._changed.add(server)

    def close(self, server: str) -> None:
        """Let a server take no new job; what it could give stays a bound from above."""
        self._changed.add(server)

    def holds(self, record: JobRecord, sign: int) -> None:
        """Count what a job holds of its servers (sign 1), or no more (−1)."""
        for share in record.shares:
            mgpu, held = sign * sum(share.gpus.values()), self._held[share.server]
            self._free[share.server] -= mgpu
            if record.stoppable_tier is not None:
                held[self._tiers.index(record.stoppable_tier) + record.over_quota * len(self._tiers)] += mgpu
            (self._changed.add if sign > 0 else self._grow)(share.server)

    def _grow(self, server: str) -> None:
        """Note that a server could give more than before, to a job of some tier."""
        self._grown.add(server)
        self._changed.add(server)
