"""Several coolings from hot race: those that lag behind the others at the same temperature are given up.

On the instances of the challenge with 1,000 processes what a cooling ends at is decided while large processes find
their places: among eight to fourteen coolings of an instance, cost at RUNGS[2] and at the end had a correlation of 0.93
to 0.99, at RUNGS[0] one of about 0.7. Which of them go on is asynchronous successive halving (Li et al., MLSys 2020).
"""

from __future__ import annotations

from bisect import bisect_left, insort

RUNGS = ((0.45, 1 / 2), (0.6, 1 / 3), (0.75, 0.0))
"""Part of a cooling and the share of all that came so far which goes on, at least the best."""
WINDOW = 0.03
"""Part of a cooling, before a rung, over which its energy is averaged."""


class Race:
    """What coolings had at each rung."""

    def __init__(self) -> None:
        self._seen: list[list[float]] = [[] for _ in RUNGS]

    def goes_on(self, rung: int, energy: float) -> bool:
        """Record the energy of a cooling that has come to a rung; is it among the best there?"""
        seen = self._seen[rung]
        ahead = bisect_left(seen, energy)
        insort(seen, energy)
        return ahead < max(1.0, RUNGS[rung][1] * len(seen))

    def strike(self, energies: list[float]) -> None:
        """Forget a cooling that came to nothing: others shall not be measured against it."""
        for seen, energy in zip(self._seen, energies):
            seen.remove(energy)
