"""Negative cache of the job-placement engine: what fitted nowhere is not searched for again until capacity appears."""

from collections.abc import Callable

from mast_opt.problems.job_placement.engine.feasibility import Request
from mast_opt.problems.job_placement.units import Ints

MOST_KEPT = 64
"""Requests remembered for the same types, regions and level."""

Size = tuple[int, int, int, int]
"""Tasks, millicores, MiB, tier."""


def never(job: Request) -> int:
    """The stamp where no capacity appears."""
    return 0


class NegativeCache:
    """Requests that fitted nowhere, even at the expense of all less important work.

    One that asks for no less fits nowhere either: the same types, regions and level, a tier that is no more
    important, and at least as many tasks that need at least as much of everything.

    Args:
        stamp: a number that changes whenever capacity may have appeared that a request could use; entries with another
            stamp than that of now are forgotten. Within a batch it never changes, because what is left to a tier only
            shrinks (a victim serves only more important work).
    """

    def __init__(self, stamp: Callable[[Request], int] = never) -> None:
        self._stamp = stamp
        self._asked: dict[tuple[bytes, bytes, int], tuple[int, list[tuple[Ints, Size]]]] = {}

    @staticmethod
    def _key(job: Request) -> tuple[bytes, bytes, int]:
        """Key of the requests that are refused alike but for their amounts."""
        return (job.mgpu < 0).tobytes(), job.open.tobytes(), job.within

    def known(self, job: Request) -> bool:
        """Whether the request, or one that asks for no more, is known to fit nowhere."""
        if not self._asked:
            return False
        key = self._key(job)
        found = self._asked.get(key)
        if found is None:
            return False
        then, asked = found
        if then != self._stamp(job):
            del self._asked[key]
            return False
        size = _size(job)
        return any(
            all(less <= more for less, more in zip(known, size)) and bool((mgpu <= job.mgpu).all())
            for mgpu, known in asked
        )

    def remember(self, job: Request) -> None:
        """Note that the request fits nowhere now."""
        key, now = self._key(job), self._stamp(job)
        then, asked = self._asked.get(key, (now, []))
        if then != now or len(asked) >= MOST_KEPT:
            asked = []
        asked.append((job.mgpu, _size(job)))
        self._asked[key] = now, asked


def _size(job: Request) -> Size:
    """Size of a request in the engine's negative cache: tasks, cores, memory and tier."""
    return job.tasks, job.cpu, job.memory, job.tier
