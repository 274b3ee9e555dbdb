"""Starts of the waiting jobs of a fleet (job placement), with parts or without: the queue is played forward."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.fits_by import FitsBy
from mast_opt.problems.job_placement.live_fleet.types import Job

if TYPE_CHECKING:
    from mast_opt.problems.job_placement.live_fleet.fleet import Fleet


def starts_of_queue(
    fleet: "Fleet",
    queue: Sequence[Job],
    regions: Mapping[str, frozenset[str]],
    lengths: Mapping[str, int],
    asked: Collection[str],
) -> tuple[dict[str, int], dict[str, FitsBy]]:
    """Job → time at which it starts, until all that are asked for have started, if nobody else comes and nobody is
    stopped; and what the jobs were promised that had to wait as the first.

    The first job that does not fit is promised ``Fleet.fits_by``. Those behind it start in that region only if they
    end by then, by their limits.

    Args:
        fleet: with the work that runs at 0; it is left as it is.
        queue: waiting jobs, the first one first.
        regions: job → regions where it may run.
        lengths: job, running or waiting → ms for which it runs from 0, or from its start; without one it does not end.
        asked: names of waiting jobs.
    """
    ends = [(lengths[name], name) for name in fleet.running() if name in lengths]
    heapq.heapify(ends)
    waiting, starts, promised, now_ms = list(queue), dict[str, int](), dict[str, FitsBy](), 0
    with fleet.trial():
        while True:
            for job in _placed(fleet, waiting, regions, promised, now_ms):
                starts[job.name] = now_ms
                if job.name in lengths:
                    heapq.heappush(ends, (now_ms + lengths[job.name], job.name))
            waiting = [job for job in waiting if job.name not in starts]
            if not ends or starts.keys() >= set(asked):
                return starts, promised
            now_ms = ends[0][0]
            while ends and ends[0][0] == now_ms:
                fleet.release(heapq.heappop(ends)[1])


def _placed(
    fleet: "Fleet",
    waiting: Sequence[Job],
    regions: Mapping[str, frozenset[str]],
    promised: dict[str, FitsBy],
    now_ms: int,
) -> list[Job]:
    """Place the waiting jobs that may start now; the first that may not is promised a time if limits say so."""
    found, kept = list[Job](), None
    for job in waiting:
        there = regions[job.name]
        if kept is not None and (job.limit_ms is None or now_ms + job.limit_ms > kept.by_ms):
            there -= {kept.region}
        bid = fleet.place(job, regions=there, preempt=False) if there else None
        if isinstance(bid, Bid):
            fleet.commit(bid, started_ms=now_ms)
            found.append(job)
        elif kept is None and (kept := promised.get(job.name) or fleet.fits_by(job, now_ms, regions=there)):
            promised[job.name] = kept
    return found
