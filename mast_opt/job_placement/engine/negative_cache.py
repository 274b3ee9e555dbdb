"""Negative cache of the job-placement engine: what fitted nowhere is not searched for again until capacity appears."""

from __future__ import annotations

from mast_opt.job_placement.engine.feasibility import Request
from mast_opt.job_placement.units import Ints

MOST_KEPT = 64
"""Requests remembered for the same types, regions and level."""

Size = tuple[int, int, int, int]
"""Tasks, millicores, MiB, tier."""


class NegativeCache:
    """Requests that fitted nowhere, even at the expense of all less important work.

    One that asks for no less fits nowhere either: the same types, regions and level, a tier that is no more
    important, and at least as many tasks that need at least as much of everything.

    A stamp says when: entries with another stamp than that of the question are forgotten. Within a batch it never
    changes, because what is left to a tier only shrinks (a victim serves only more important work); a live fleet
    counts how often capacity appeared where the request could use it.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[bytes, bytes, int], tuple[int, list[tuple[Ints, Size]]]] = {}

    @staticmethod
    def _key(job: Request) -> tuple[bytes, bytes, int]:
        return (job.mgpu < 0).tobytes(), job.open.tobytes(), job.within

    def known(self, job: Request, stamp: int = 0) -> bool:
        """Whether the request, or one that asks for no more, is known to fit nowhere."""
        then, asked = self._asked.get(self._key(job), (stamp, ()))
        if then != stamp:
            return False
        size = _size(job)
        return any(
            all(less <= more for less, more in zip(known, size)) and bool((mgpu <= job.mgpu).all())
            for mgpu, known in asked
        )

    def remember(self, job: Request, stamp: int = 0) -> None:
        """Note that the request fits nowhere in the state of this stamp."""
        key = self._key(job)
        then, asked = self._asked.get(key, (stamp, []))
        if then != stamp or len(asked) >= MOST_KEPT:
            asked = []
        asked.append((job.mgpu, _size(job)))
        self._asked[key] = stamp, asked


def _size(job: Request) -> Size:
    return job.tasks, job.cpu, job.memory, job.tier
