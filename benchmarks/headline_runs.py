"""MAST's claims as experiments: a generated organisation before and after, and with one thing changed at a time."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks.headline_structure import GPUS_PER_SERVER, OrganisationParams
from benchmarks.headline_trace import organisation_trace
from benchmarks.headline_variants import BEFORE, DEFAULTS, Variant
from benchmarks.long_waits import limits_of
from benchmarks.urgent_demand import urgent_demand
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.events import CopyAsked
from mast_opt.live.loop.metrics import STARVED_MS, metrics
from mast_opt.live.loop.place_metrics import place_metrics
from mast_opt.live.loop.worst_ratio import Mask, worst_ratio
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.surroundings import Happening
from mast_opt.live.simulation.traces.trace import JobTrace
from mast_opt.live.simulation.variants import jobs_at
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
        """Figures of the waits of urgent jobs, ready for JSON."""
        return asdict(self)


def urgent_waits(log: Iterable[ev.Stored], server_gpus: int, since_ms: int, until_ms: int) -> UrgentWaits:
    """The waits of urgent jobs in a simulated log.

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


DAY_MS = 86_400_000

WORST_BEFORE = 2.63
"""Published: tier-0 demand over supply in the worst region before."""


def trace_of(variant: Variant, params: OrganisationParams) -> JobTrace:
    """The trace that a variant runs."""
    changed = {"median_hours": params.median_hours * variant.hours, **variant.organisation}
    trace = organisation_trace(replace(params, **changed))
    if not variant.preemption:
        jobs = trace.submissions
        trace = replace(trace, submissions=replace(jobs, preemptible=np.zeros(len(jobs), np.bool_)))
    if variant.limits:
        jobs = trace.submissions
        limit_ms = limits_of(jobs.duration_ms.tolist(), "round", params.seed)
        trace = replace(trace, submissions=replace(jobs, limit_ms=np.array(limit_ms, np.int64)))
    around = trace.surroundings
    if variant.everywhere:
        trace = replace(trace, replicas=dict.fromkeys(trace.replicas, trace.regions))
        around = replace(around, storage_mb={})
    if variant.instant:
        around = replace(around, ingress_mb_per_day={}, links=None)
    if variant.lost_switchboard:
        at_ms, board = round(params.days * 0.75) * DAY_MS, sorted(set(around.switchboards.values()))[0]
        lost = (Happening(at_ms, "switchboard_down", board), Happening(at_ms + DAY_MS, "switchboard_up", board))
        around = replace(around, happenings=(*around.happenings, *lost))
    return replace(trace, surroundings=around)


def run_variant(
    variant: Variant, params: OrganisationParams, given: Mapping[str, str], *, warm_up_days: float
) -> dict[str, Any]:
    """The figures of a run of one variant of the organisation.

    Args:
        given: parameters of the run that the variant does not set, as text.
        warm_up_days: jobs that come earlier do not count.
    """
    trace = trace_of(variant, params)
    off = tuple(f"slow.{name}." for name in ("data", "servers") if name not in variant.slow)
    stated = {**DEFAULTS, **given}
    known = {name: text for name, text in stated.items() if not name.startswith(off)}
    until_ms = params.days * DAY_MS
    run = run_trace(trace, variant.policy, {**known, **variant.params}, slow=variant.slow, until_ms=until_ms)
    since_ms = round(warm_up_days * DAY_MS)
    found = metrics(run.rows, since_ms, until_ms).to_dict()
    found.update(place_metrics(run.events(), since_ms, until_ms).to_dict())
    copied_mb = sum(
        stored.event.size_mb
        for stored in run.events()
        if isinstance(stored.event, CopyAsked) and since_ms <= stored.at_ms < until_ms
    )
    all_mb = sum(one.size_mb for one in trace.surroundings.datasets.values())
    found["copied_percent_per_day"] = 100 * copied_mb / all_mb / (params.days - warm_up_days)
    found["urgent"] = urgent_waits(run.events(), GPUS_PER_SERVER, since_ms, until_ms).to_dict()
    found["least_ratio"] = least_ratio(trace, since_ms, until_ms)
    found["urgent_demand"] = urgent_demand(run.events(), since_ms, until_ms).to_dict()
    return found


def calibrated(params: OrganisationParams, *, warm_up_days: float, tolerance: float = 0.05) -> OrganisationParams:
    """The organisation's parameters with the skew that makes the mean worst ratio of tier 0 before what was published.

    Only tier 0 is run: nothing that is less important changes when it runs.
    """
    low, high = 0.9, 2.6
    for _ in range(12):
        skew = (low + high) / 2
        tried = replace(params, skew=skew)
        ratio = _ratio_before(tried, warm_up_days)
        if abs(ratio - WORST_BEFORE) <= tolerance:
            return tried
        low, high = (skew, high) if ratio < WORST_BEFORE else (low, skew)
    return tried


def _ratio_before(params: OrganisationParams, warm_up_days: float) -> float:
    """Mean worst ratio of tier 0 before anything is changed, if only work of that tier runs."""
    trace = organisation_trace(params)
    kept = np.flatnonzero(trace.submissions.tier == 0)
    trace = replace(trace, submissions=jobs_at(trace.submissions, kept))
    until_ms = params.days * DAY_MS
    run = run_trace(trace, BEFORE.policy, {**BEFORE.params, "tick_s": "60"}, until_ms=until_ms)
    mean = place_metrics(run.events(), round(warm_up_days * DAY_MS), until_ms).worst_ratio[0].mean
    return float("nan") if mean is None else mean
