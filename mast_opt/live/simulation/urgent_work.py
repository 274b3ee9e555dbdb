"""Figures of the most important work of a run: waits by size, and the ratio that no policy can go below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.hall import Mask, worst_ratio
from mast_opt.live.loop.metrics import STARVED_MS
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.problems.job_placement.units import WHOLE

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class UrgentWaits:
    """Waits of the jobs of tier 0 that came in a window, as far as the window goes."""

    whole_h: float | None
    """Mean wait of gangs whose tasks fill servers, hours; None where there is none."""
    part_h: float | None
    """Mean wait of jobs whose tasks take a part of a server, hours."""
    starved: int
    """Those that waited more than a day in one go."""

    def to_dict(self) -> dict[str, Any]:
        """The figures, ready for JSON."""
        return asdict(self)


def urgent_waits(log: Iterable[ev.Stored], server_gpus: int, since_ms: int, until_ms: int) -> UrgentWaits:
    """The waits of a log.

    Args:
        server_gpus: GPUs of a whole server.
        since_ms: the window's begin.
        until_ms: its end; waits are cut off there.
    """
    whole: dict[str, bool] = {}
    begun: dict[str, int] = {}
    waited: Counter[str] = Counter()
    starved: set[str] = set()

    def end(job: str, at_ms: int) -> None:
        length = at_ms - begun.pop(job)
        waited[job] += length
        if length > STARVED_MS:
            starved.add(job)

    for stored in log:
        event, at_ms = stored.event, stored.at_ms
        if at_ms > until_ms:
            break
        if isinstance(event, ev.Submitted) and event.spec.tier == 0 and at_ms >= since_ms:
            whole[event.job] = event.spec.mgpu >= server_gpus * WHOLE
            begun[event.job] = at_ms
        elif isinstance(event, ev.Stopped) and event.job in whole:
            begun[event.job] = at_ms
        elif isinstance(event, (ev.Started, ev.Cancelled)) and event.job in begun:
            end(event.job, at_ms)
    for job in tuple(begun):
        end(job, until_ms)

    def mean_h(fills: bool) -> float | None:
        found = [waited[job] for job, is_whole in whole.items() if is_whole == fills]
        return float(np.mean(found)) / HOUR_MS if found else None

    return UrgentWaits(mean_h(fills=True), mean_h(fills=False), len(starved))


def least_ratio(trace: JobTrace, since_ms: int, until_ms: int, *, step_ms: int = HOUR_MS) -> float | None:
    """Mean ratio of tier 0 if no job of it ever waited and all data were everywhere: work that waits only adds to it,
    so no policy has less. Looked at as often as ``PlaceMetrics.worst_ratio``; None if the window has no look.

    Raises:
        NoAnswer: see ``worst_ratio``.
    """
    jobs = trace.submissions
    supply: Counter[str] = Counter()
    for server in trace.servers:
        supply[server.gpu_type] += server.gpus * WHOLE
    kinds = sorted(supply)
    urgent = np.flatnonzero(jobs.tier == 0)
    begin, end = jobs.submitted_ms[urgent], (jobs.submitted_ms + jobs.duration_ms)[urgent]
    specs = [jobs.spec(int(j)) for j in urgent]
    ratios = []
    for at_ms in range(since_ms, until_ms + 1, step_ms):
        demand: Counter[Mask] = Counter()
        for at in np.flatnonzero((begin <= at_ms) & (end > at_ms)):
            accepted = specs[at].gpu_types
            mask = frozenset(k for k, kind in enumerate(kinds) if accepted is None or kind in accepted)
            demand[mask] += specs[at].tasks * specs[at].mgpu
        ratios.append(worst_ratio(demand, [supply[kind] for kind in kinds]).ratio)
    return float(np.mean(ratios)) if ratios else None
