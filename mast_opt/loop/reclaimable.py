"""What each server could give to a job of some tier, and where that has grown: who was refused need not be searched for
again before it has."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

MOST_KEPT = 100_000
"""Places that have grown, of which the order is kept."""


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
        """Server → what stoppable jobs hold, by tier."""
        self._region: dict[str, str] = {}
        self._grown: list[str] = []
        self._dropped = 0

    @property
    def count(self) -> int:
        """How often a server has grown so far."""
        return self._dropped + len(self._grown)

    def grown(self, since: int) -> Iterable[tuple[str, str]] | None:
        """(region, server) of what has grown since the count was ``since``; None if that is too long ago."""
        if since < self._dropped:
            return None
        return [(self._region[server], server) for server in dict.fromkeys(self._grown[since - self._dropped :])]

    def most(self, server: str, tier: int) -> int:
        """What a job of this tier could get on a server at most."""
        return self._free[server] + sum(self._held[server][bisect.bisect_right(self._tiers, tier) :])

    def add(self, server: str, region: str, mgpu: int) -> None:
        """A server is in service, with so much free."""
        self._free[server] = mgpu
        self._held[server] = [0] * len(self._tiers)
        self._region[server] = region
        self._grow(server)

    def resize(self, server: str, mgpu: int) -> None:
        """A server has so much more, or less, than before; its processors and memory may have grown too."""
        self._free[server] += mgpu
        self._grow(server)

    def remove(self, server: str) -> None:
        """A server is out of service; what ran there has been taken off before."""
        self._free[server] = 0

    def take(self, server: str, mgpu: int, stoppable_tier: int | None) -> None:
        """A job holds so much; ``stoppable_tier`` is None if it cannot be stopped."""
        self._free[server] -= mgpu
        if stoppable_tier is not None:
            self._held[server][self._tiers.index(stoppable_tier)] += mgpu

    def give(self, server: str, mgpu: int, stoppable_tier: int | None) -> None:
        """A job no longer holds what it took."""
        self._free[server] += mgpu
        if stoppable_tier is not None:
            self._held[server][self._tiers.index(stoppable_tier)] -= mgpu
        self._grow(server)

    def _grow(self, server: str) -> None:
        self._grown.append(server)
        if len(self._grown) > 2 * MOST_KEPT:
            del self._grown[:MOST_KEPT]
            self._dropped += MOST_KEPT
