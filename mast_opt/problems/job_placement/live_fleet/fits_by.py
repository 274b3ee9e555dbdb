"""Times at which waiting jobs fit into a live fleet (job placement) if all work ends at its limit."""

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mast_opt.problems.job_placement.fit_times import FOREVER, NOW, GroupTimes, Room, Task, Use, end_by_limit
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.inventory import FleetInventory
from mast_opt.problems.job_placement.live_fleet.running_job import Running
from mast_opt.problems.job_placement.live_fleet.types import Job

if TYPE_CHECKING:
    from mast_opt.problems.job_placement.live_fleet.fleet import Fleet


@dataclass(frozen=True)
class FitsBy:
    """Place and time at which a waiting job fits at the latest."""

    region: str
    by_ms: int
    """The time, by the caller's clock; now where it fits already."""
    servers: tuple[str, ...]
    """Servers on which it fits then; the fleet does not keep them."""


def fits_by(books: FleetInventory, job: Job, now_ms: int, regions: Collection[str] | None) -> FitsBy | None:
    """The region of a fleet where a job without parts fits first; None where limits do not say."""
    level, times = books.level_of(job, books.best_right(job)), dict[str, GroupTimes]()
    together, task = job.within == "server", Task(job.mgpu, job.cpu_mcores, job.memory_mib)
    asked = books.open_regions(job) if regions is None else books.open_regions(job) & books.regions_in(regions)
    there = [region for region, at in books.regions.items() if asked[at]]
    for name, server in books.servers.items():
        mgpu = job.mgpu if job.gpu_types is None else job.gpu_types.get(server.gpu_type, -1)
        if mgpu < 0 or server.region not in there or name in books.blocked:
            continue
        found = times.setdefault(server.region, GroupTimes(1 if together else job.tasks))
        room = Room(server.gpus, server.cpu_mcores, server.memory_mib, pool=server.pool)
        own = room.times(_uses(books, name, level, now_ms), task._replace(mgpu=mgpu), job.tasks)
        group = (server.cluster, server.gpu_type, *([server.rack] if job.within == "rack" else ()))
        found.put(name, group, own[job.tasks - 1 :] if together else own, last=True)
    for one in times.values():
        one.sort()
    best = min(times, key=lambda region: times[region].by(), default=None)
    if best is None or (by_ms := times[best].by()) == FOREVER:
        return None
    return FitsBy(best, max(by_ms, now_ms), times[best].servers(by_ms))


def parts_fit_by(
    fleet: "Fleet", books: FleetInventory, job: Job, now_ms: int, regions: Collection[str] | None
) -> FitsBy | None:
    """The region of a fleet where a job of several parts fits first, by trials: the time is one at which the fleet's
    search places it, and perhaps not the first at which it fits. None where limits do not say."""
    level, ends = books.level_of(job, books.best_right(job)), dict[int, list[str]]()
    for name, running in books.running.items():
        ends.setdefault(_end(running, level, now_ms), []).append(name)
    ends.pop(FOREVER, None)
    found = first_trial(fleet, job, ends, regions)
    if found is None:
        return None
    by_ms, bid = found
    return FitsBy(bid.region, max(by_ms, now_ms), tuple(dict.fromkeys(share.server for share in bid.shares)))


def first_trial(
    fleet: "Fleet", job: Job, ends: Mapping[int, Collection[str]], regions: Collection[str] | None
) -> tuple[int, Bid] | None:
    """The first time, by bisection, at which a fleet's search places a job without victims when the jobs have ended
    that end by then, and where; None if it never does.

    Args:
        ends: time → jobs that end then; the others stay.
    """
    times = sorted({NOW, *ends})
    first, last, found = 0, len(times), None
    with ExitStack() as ended:
        while first < last:
            middle = (first + last) // 2
            with ExitStack() as tried:
                tried.enter_context(fleet.trial())
                for name in (name for at in times[first : middle + 1] for name in ends.get(at, ())):
                    fleet.release(name)
                bid = fleet.place(job, regions=regions, preempt=False)
                if isinstance(bid, Bid):
                    found, last = (times[middle], bid), middle
                else:
                    first = middle + 1
                    ended.push(tried.pop_all())
    return found


def _end(running: Running, level: int, now_ms: int) -> int:
    """Time when running work of a fleet ends by its limit; ``NOW`` where a job of this level may stop it."""
    if running.stoppable and running.tier > level:
        return NOW
    return end_by_limit(running.started_ms, running.job.limit_ms, now_ms)


def _uses(books: FleetInventory, server: str, level: int, now_ms: int) -> list[tuple[int, Use]]:
    """(end, what it holds) of the work on a server of the fleet that a job of this level waits for, ascending."""
    found = []
    for name in books.jobs_on(server):
        end_ms = _end(books.running[name], level, now_ms)
        if end_ms != NOW:
            held = next(one for one in books.holdings(name) if one.server == server)
            mgpu_of = {at: int(held.device[at]) for at in np.flatnonzero(held.device).tolist()}
            found.append((end_ms, Use(mgpu_of, held.cpu_mcores, held.memory_mib)))
    return sorted(found, key=lambda one: one[0])
