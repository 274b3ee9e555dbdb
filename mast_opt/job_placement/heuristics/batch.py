"""A whole queue, in order: each job is placed for good, or found to fit nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mast_opt.job_placement.heuristics.desk import Desk
from mast_opt.job_placement.heuristics.fit import Request
from mast_opt.job_placement.heuristics.pack import TIGHT
from mast_opt.job_placement.heuristics.place import Offer, place
from mast_opt.job_placement.units import Ints
from mast_opt.search import Watch

Place = Callable[[Desk, int, Request], Offer | None]
"""The offer for a job of the problem; None if it is refused."""


@dataclass
class Seen:
    """What happened to a queue."""

    refused: int = 0
    remembered: int = 0
    """Refused because a job that asks for no more had been."""
    unproven: int = 0
    """Placed, with victims that were not proven to be the cheapest."""


class Failures:
    """What fitted nowhere. Within a batch what is left to a tier only shrinks (a victim serves only more important
    work), so a job that asks for no less fits nowhere either.

    Asking for no less: the same types, regions and level, a tier that is no more important, and at least as many
    tasks that need at least as much of everything.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[bytes, bytes, int], list[tuple[Ints, tuple[int, int, int, int]]]] = {}

    @staticmethod
    def _key(job: Request) -> tuple[bytes, bytes, int]:
        return (job.mgpu < 0).tobytes(), job.open.tobytes(), job.within

    def known(self, job: Request) -> bool:
        size = (job.tasks, job.cpu, job.memory, job.tier)
        return any(
            all(less <= more for less, more in zip(known, size)) and bool((mgpu <= job.mgpu).all())
            for mgpu, known in self._asked.get(self._key(job), ())
        )

    def remember(self, job: Request) -> None:
        asked = (job.mgpu, (job.tasks, job.cpu, job.memory, job.tier))
        self._asked.setdefault(self._key(job), []).append(asked)


def exhaustively(desk: Desk, j: int, job: Request) -> Offer | None:
    """The best bid of all groups."""
    return place(desk.state, job, desk.everywhere, TIGHT)


def admit_in_order(
    desk: Desk, order: Iterable[int], watch: Watch, how: Place = exhaustively, remember: bool = True
) -> Seen:
    """Place the jobs one after another until all are seen or the watch says stop.

    Args:
        remember: skip what is like a job that fitted nowhere; only right for a ``how`` that tries everything.
    """
    seen, failures = Seen(), Failures()
    for j in order:
        if watch.limit() is not None:
            break
        job = desk.request(int(j))
        if remember and failures.known(job):
            seen.remembered += 1
            seen.refused += 1
            continue
        offer = how(desk, int(j), job)
        if offer is None:
            failures.remember(job)
            seen.refused += 1
        else:
            desk.admit(int(j), job, offer.placed, offer.victims)
            seen.unproven += not offer.proven
    return seen
