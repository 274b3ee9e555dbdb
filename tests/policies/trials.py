"""The time and place at which a waiting job fits if what runs ends at its limit, by trials on the live fleet."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job

Ends = Sequence[tuple[int, str]]
"""(time in ms at which it ends at the latest, running job), ascending; jobs without a limit are not listed."""


def first_fit(
    fleet: Fleet, job: Job, ends: Ends, *, regions: Collection[str] | None = None, preempt: bool = False
) -> tuple[int, Bid] | None:
    """The first of these times at which the job fits, and its bid then; None if it never fits.

    Fewer running jobs never make a job fit worse, so the time is found by bisection.

    Args:
        regions: the only ones that are asked; None for all.
        preempt: whether the bid may have victims.
    """
    times = sorted({at for at, _ in ends})
    first, last = 0, len(times)
    found: tuple[int, Bid] | None = None
    while first < last:
        middle = (first + last) // 2
        with fleet.trial():
            for at, name in ends:
                if at > times[middle]:
                    break
                fleet.release(name)
            answer = fleet.place(job, regions=regions, preempt=preempt)
        if isinstance(answer, Bid):
            found, last = (times[middle], answer), middle
        else:
            first = middle + 1
    return found
