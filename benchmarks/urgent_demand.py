"""Demand of urgent work over supply, by what the ratio counts: the published text leaves open what is merged.

MAST (OSDI'24) reports the demand of high-priority workloads over supply "by region". That may be by region with all GPU
types merged, or by region and type, and with what waits or without. All of them are here, with the growth by week.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.past_state import PastState
from mast_opt.live.loop.worst_ratio import Mask, worst_ratio

LOOK_MS = 6 * 3_600_000
WEEK_MS = 7 * 24 * 3_600_000


@dataclass(frozen=True)
class UrgentDemand:
    """Ratios of tier 0 in a window, and what waits for data, means over looks; None if nothing was looked at."""

    by_cell: float | None
    """Worst ratio over sets of regions and GPU types, of what waits and runs."""
    by_region: float | None
    """Worst ratio over sets of regions, GPU types merged, of what waits and runs."""
    running_by_region: float | None
    """Largest share of a region's GPUs that it runs on."""
    running: float | None
    """What runs over all supply."""
    waiting: float | None
    """What waits over all supply."""
    blocked: float | None
    """Share of the jobs of all tiers, those that run included, that wait for data alone: a region without their data
    has room for them, and none with it has."""
    slope: float | None
    """Growth of running and waiting over all supply in a week, by least squares; None for one look."""

    def to_dict(self) -> dict[str, Any]:
        """The ratios, ready for JSON."""
        return asdict(self)


def urgent_demand(log: Iterable[ev.Stored], since_ms: int, until_ms: int, *, look_ms: int = LOOK_MS) -> UrgentDemand:
    """The demand of tier 0 over supply in a simulated log.

    Args:
        since_ms: the window's begin.
        until_ms: its end.
        look_ms: time between two looks.
    """
    past, looks, next_ms = PastState(), list[tuple[float, ...]](), since_ms
    for stored in log:
        while next_ms < min(stored.at_ms, until_ms + 1):
            looks.append((next_ms, *_look(past)))
            next_ms += look_ms
        if stored.at_ms > until_ms:
            break
        past.take(stored.at_ms, stored.event)
    if not looks:
        return UrgentDemand(*[None] * 7)
    table = np.array(looks)
    mean = table.mean(axis=0)
    weeks, asked = table[:, 0] / WEEK_MS, table[:, 4] + table[:, 5]
    slope = float(np.polyfit(weeks, asked, 1)[0]) if len(looks) > 1 else None
    by_cell, by_region, most, runs, waits, blocked = (float(one) for one in mean[1:])
    return UrgentDemand(by_cell, by_region, most, runs, waits, blocked, slope)


def _look(past: PastState) -> tuple[float, ...]:
    """Ratios of one moment, in the order of ``UrgentDemand``."""
    supply = past.supply_by_cell()
    cells, regions = list(supply), sorted({region for region, _ in supply})
    by_cell, by_region, here = Counter[Mask](), Counter[Mask](), Counter[str]()
    waiting = blocked = 0
    masks: dict[object, tuple[Mask, Mask]] = {}
    for job in past.jobs.values():
        holders = past.holders(job.spec.datasets)
        if job.placed is None and holders is not None:
            room = [r for r in past.regions_with_room(job) if job.bound in ("", r)]
            blocked += bool(room) and holders.isdisjoint(room)
        if job.spec.tier:
            continue
        asked = job.spec.asked_mgpu
        kinds = job.spec.gpu_types
        where = holders, job.bound, None if kinds is None else frozenset(kinds)
        if where not in masks:
            able = {r for r in regions if (holders is None or r in holders) and job.bound in ("", r)}
            takes = [region in able and (kinds is None or kind in kinds) for region, kind in cells]
            masks[where] = (
                frozenset(at for at, region in enumerate(regions) if region in able),
                frozenset(at for at, fits in enumerate(takes) if fits),
            )
        by_region[masks[where][0]] += asked
        by_cell[masks[where][1]] += asked
        if job.placed is None:
            waiting += asked
        else:
            here[job.placed.region] += asked
    of_region = {name: sum(mgpu for (region, _), mgpu in supply.items() if region == name) for name in regions}
    total = max(sum(supply.values()), 1)
    return (
        worst_ratio(by_cell, [supply[cell] for cell in cells]).ratio,
        worst_ratio(by_region, [of_region[name] for name in regions]).ratio,
        max((here[name] / of_region[name] for name in regions if of_region[name]), default=0.0),
        here.total() / total,
        waiting / total,
        blocked / max(len(past.jobs), 1),
    )
